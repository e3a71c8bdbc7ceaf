"""The security protocols of listeners: their names in configurations, and their numbers in messages and records.

Source: Kafka's SecurityProtocol.
"""

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
NUMBERS = {PLAINTEXT: 0, SSL: 1, SASL_PLAINTEXT: 2, SASL_SSL: 3}


def uses_tls(protocol: str) -> bool:
    assert protocol in NUMBERS
    return protocol in (SSL, SASL_SSL)


def uses_sasl(protocol: str) -> bool:
    assert protocol in NUMBERS
    return protocol in (SASL_PLAINTEXT, SASL_SSL)
