"""How commands that show a real client configure it: confluent-kafka, which is librdkafka."""

import logging
import time
from typing import Any

from confluent_kafka import KafkaException

from strandline.client.ask import Servers, text_of
from strandline.client.config import PLAINTEXT, ClientConfig
from strandline.client.security.sasl_options import Sasl
from strandline.client.security.tls import Tls
from strandline.security.pem import certificates_in, keys_in

# librdkafka reports every lost connection on its own; a command says once what went wrong.
quiet = logging.getLogger("strandline.client.librdkafka")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False

TOKEN_S = 300.0  # for how long it believes in a token, before it asks for the next


def client_config(cluster: Servers, **options: Any) -> dict[str, Any]:
    """`cluster`: addresses, or how it is reached, with TLS and SASL."""
    secured = security_of(cluster) if isinstance(cluster, ClientConfig) else {}
    base = {"bootstrap.servers": addresses(cluster), "socket.timeout.ms": 10_000, "logger": quiet}
    return {**base, **secured, **options}


def addresses(cluster: Servers) -> str:
    return cluster if isinstance(cluster, str) else ",".join(text_of(*server) for server in cluster.bootstrap)


def security_of(config: ClientConfig) -> dict[str, Any]:
    """librdkafka's names. It chooses the version of TLS by itself."""
    found: dict[str, Any] = {}
    if config.security_protocol != PLAINTEXT:
        found["security.protocol"] = config.security_protocol
    if config.tls is not None:
        found |= tls_options(config.tls)
    if config.sasl is not None:
        found |= sasl_options(config.sasl)
    return found


def tls_options(tls: Tls) -> dict[str, Any]:
    found: dict[str, Any] = {
        "enable.ssl.certificate.verification": tls.verifies,
        "ssl.endpoint.identification.algorithm": "https" if tls.checks_hostname else "none",
    }
    if tls.authorities:
        found["ssl.ca.pem"] = certificates_in(tls.authorities)
    if tls.chain and tls.key is not None:
        found["ssl.certificate.pem"] = certificates_in(tls.chain)
        found["ssl.key.pem"] = keys_in(tls.key.reveal)
        if tls.key_password is not None:
            found["ssl.key.password"] = tls.key_password.reveal
    if tls.ciphers:
        found["ssl.cipher.suites"] = tls.ciphers
    return found


def sasl_options(sasl: Sasl) -> dict[str, Any]:
    if sasl.token_file:
        # It does not look into a token; a while later it asks for another one.
        return {"sasl.mechanism": sasl.mechanism, "oauth_cb": lambda _: (sasl.token(), time.time() + TOKEN_S)}
    return {
        "sasl.mechanism": sasl.mechanism,
        "sasl.username": sasl.username,
        "sasl.password": sasl.password.reveal,
    }


def why(error: KafkaException) -> str:
    return str(error.args[0].str()) if error.args else str(error)
