"""Listeners and their security protocols: what the keys mean together, and what is said of a wrong combination."""

from tests.rows import each

from strandline.base.secret import Secret
from strandline.broker.config import ConfigError, NodeConfig
from strandline.broker.listeners.tls import client_auth

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT,EXTERNAL:SASL_SSL",
    "inter.broker.listener.name": "SSL",
    "ssl.keystore.location": "/k.pem",
    "ssl.truststore.location": "/t.pem",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
}
MAP = "listener.security.protocol.map"
PLAIN = {MAP: None, "inter.broker.listener.name": None}


def properties(changes: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in (BASE | changes).items() if value is not None}


def problems(changes: dict[str, str | None]) -> list[str]:
    try:
        NodeConfig.from_properties(properties(changes))
    except ConfigError as error:
        return error.problems
    return []


@each(
    ("changes", "expected"),
    [
        ({}, {"SSL": "SSL", "CONTROLLER": "PLAINTEXT"}),
        # Without a map a listener's name is its protocol, and controllers' are PLAINTEXT.
        (
            {"listeners": "PLAINTEXT://h:1,CONTROLLER://h:2", **PLAIN},
            {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"},
        ),
        ({MAP: "ssl:sasl_ssl, controller:ssl"}, {"SSL": "SASL_SSL", "CONTROLLER": "SSL"}),
        (
            {
                "listeners": "INSIDE://h:1,CONTROLLER://h:2",
                MAP: "INSIDE:SSL,CONTROLLER:SSL",
                "inter.broker.listener.name": "INSIDE",
            },
            {"INSIDE": "SSL", "CONTROLLER": "SSL"},
        ),
    ],
)
def test_each_listener_has_a_protocol(changes: dict[str, str | None], expected: dict[str, str]) -> None:
    config = NodeConfig.from_properties(properties(changes))
    assert {name: config.protocol_of(name) for name in expected} == expected


@each(
    ("changes", "name"),
    [
        ({}, "SSL"),
        ({"inter.broker.listener.name": None, "security.inter.broker.protocol": "SSL"}, "SSL"),
        ({"inter.broker.listener.name": None}, "SSL"),  # the only one of the broker
        (
            {
                "listeners": "SSL://h:1,PLAINTEXT://h:3,CONTROLLER://h:2",
                MAP: f"{BASE[MAP]},PLAINTEXT:PLAINTEXT",
                "inter.broker.listener.name": None,
            },
            "PLAINTEXT",
        ),
    ],
)
def test_other_brokers_use_the_listener_that_is_named_or_that_has_the_protocols_name(
    changes: dict[str, str | None], name: str
) -> None:
    assert NodeConfig.from_properties(properties(changes)).inter_broker_listener_name == name


INLINE = {"ssl.keystore.location": None, "ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C"}
OWN = "listener.name.ssl."


@each(
    ("changes", "expected"),
    [
        ({MAP: None}, "No security protocol defined for listener CONTROLLER: add CONTROLLER:PROTOCOL"),
        ({MAP: "SSL:SSL"}, "No security protocol defined for listener CONTROLLER"),
        (
            {MAP: "SSL:TLS,CONTROLLER:PLAINTEXT"},
            f"Invalid value SSL:TLS for configuration {MAP}: the protocol must be one of",
        ),
        ({MAP: "SSL,CONTROLLER:PLAINTEXT"}, "expected LISTENER:PROTOCOL"),
        ({"security.inter.broker.protocol": "SSL"}, "Only one of inter.broker.listener.name and security.inter.broker"),
        ({"security.inter.broker.protocol": "TLS"}, "String must be one of: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (
            {"inter.broker.listener.name": None, "security.inter.broker.protocol": "SASL_SSL"},
            "it must be one of the broker's listeners",
        ),
        ({"ssl.keystore.location": None}, "Listener SSL speaks SSL and has no certificate: set ssl.keystore.location"),
        ({"ssl.keystore.location": None}, "(or listener.name.ssl.ssl.keystore.location)"),
        ({"ssl.keystore.key": "K"}, "SSL private key is specified, but certificate chain is not specified."),
        ({**INLINE, "ssl.keystore.key": None}, "SSL certificate chain is specified, but private key is not specified."),
        ({**INLINE, "ssl.keystore.location": "/k"}, "Both SSL key store location and separate private key are"),
        (
            {**INLINE, "ssl.keystore.type": "PKCS12"},
            "SSL private key can be specified only for PEM, but key store type",
        ),
        ({"ssl.keystore.password": "s3cret"}, "SSL key store password cannot be specified with PEM format, only key"),
        (
            {"ssl.keystore.location": None, "ssl.keystore.password": "p", "ssl.keystore.type": "PKCS12"},
            "SSL key store is not specified, but key store password is specified.",
        ),
        ({"ssl.truststore.certificates": "T"}, "Both SSL trust store location and separate trust certificates are"),
        ({"ssl.truststore.password": "p"}, "SSL trust store password cannot be specified for PEM format."),
        (
            {"ssl.truststore.password": "p", "ssl.truststore.type": "PKCS12", "ssl.truststore.location": None},
            "SSL trust store is not specified, but trust store password is specified.",
        ),
        (
            {"ssl.truststore.certificates": "T", "ssl.truststore.type": "PKCS12", "ssl.truststore.location": None},
            "certificates can be specified only for PEM",
        ),
        ({"ssl.keystore.type": "JKS"}, "only Java reads this format. `keytool -importkeystore"),
        ({"ssl.keystore.type": "X"}, "String must be one of: PEM, PKCS12"),
        (
            {f"{OWN}ssl.truststore.type": "jks"},
            "Invalid value jks for configuration listener.name.ssl.ssl.truststore.type",
        ),
        ({"ssl.client.auth": "yes"}, "String must be one of: required, requested, none"),
        (
            {"ssl.client.auth": "required", "ssl.truststore.location": None},
            "trusts nobody: set ssl.truststore.location",
        ),
        ({"ssl.client.auth": "requested", "ssl.truststore.location": None}, "trusts nobody"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "String must be one of: TLSv1.2, TLSv1.3"),
        ({"ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "no suite of TLSv1.2"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "only https is known"),
        (
            {"ssl.principal.mapping.rules": "RULE:x"},
            "configuration ssl.principal.mapping.rules: Invalid rule: 'RULE:x'",
        ),
        # A listener where other nodes listen counts too.
        (
            {MAP: "SSL:SSL,CONTROLLER:SSL", "listener.name.controller.ssl.keystore.key": "K"},
            "Listener CONTROLLER: SSL private",
        ),
    ],
)
def test_a_wrong_combination_is_refused_with_what_to_do(changes: dict[str, str | None], expected: str) -> None:
    found = problems(changes)
    assert any(expected in problem for problem in found), found
    assert "s3cret" not in str(found)


def test_a_listener_that_is_not_encrypted_needs_no_certificates() -> None:
    bare: dict[str, str | None] = {key: None for key in BASE if key.startswith("ssl.")}
    assert problems({**bare, "listeners": "PLAINTEXT://h:1,CONTROLLER://h:2", **PLAIN}) == []


def test_a_listeners_own_setting_goes_before_the_nodes_and_a_dynamic_one_before_both() -> None:
    own = {f"{OWN}ssl.keystore.location": "/own.pem", f"{OWN}ssl.key.password": "s3cret"}
    config = NodeConfig.from_properties(properties(own))
    ours, others = config.settings_of("SSL"), config.settings_of("CONTROLLER")
    assert (ours.text("ssl.keystore.location"), others.text("ssl.keystore.location")) == ("/own.pem", "/k.pem")
    assert (ours.secret("ssl.key.password"), others.secret("ssl.key.password")) == (Secret("s3cret"), None)
    assert "s3cret" not in repr(config) + repr(ours)
    assert (ours.named("ssl.keystore.location"), ours.named("ssl.truststore.location")) == (
        "listener.name.ssl.ssl.keystore.location",
        "ssl.truststore.location",
    )
    given = {
        f"{OWN}ssl.keystore.location": "/new.pem",
        "listener.name.controller.ssl.keystore.location": "/c.pem",
        f"{OWN}ssl.client.auth": "required",  # which is not among what a running node takes
        "log.cleaner.backoff.ms": "1",
    }
    changed = ours.changed_by(given)
    assert changed.own == {"ssl.keystore.location": "/new.pem", "ssl.key.password": Secret("s3cret")}
    assert ours.changed_by({}) == ours


def test_a_setting_of_a_listener_that_nobody_knows_is_unknown() -> None:
    strange = {"listener.name.sll.ssl.client.auth": "none", f"{OWN}ssl.colour": "red", "listener.name.ssl.port": "1"}
    assert NodeConfig.from_properties(properties({**strange})).unknown == strange


def test_clients_of_sasl_need_a_certificate_only_if_their_listener_says_so() -> None:
    """KIP-684."""
    changes = {MAP: "SSL:SASL_SSL,CONTROLLER:PLAINTEXT", "ssl.client.auth": "required"}
    assert client_auth(NodeConfig.from_properties(properties(changes)).settings_of("SSL")) == "none"
    changes[f"{OWN}ssl.client.auth"] = "requested"
    assert client_auth(NodeConfig.from_properties(properties(changes)).settings_of("SSL")) == "requested"
    assert (
        client_auth(NodeConfig.from_properties(properties({"ssl.client.auth": "required"})).settings_of("SSL"))
        == "required"
    )


def test_a_node_without_a_listener_of_controllers_still_has_their_settings() -> None:
    changes = {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": "SSL://127.0.0.1:9092",
        MAP: "SSL:SSL,CONTROLLER:SSL",
        "listener.name.controller.ssl.truststore.location": "/c.pem",
    }
    config = NodeConfig.from_properties(properties(changes))
    assert config.used_listener_names == ("SSL", "CONTROLLER")
    assert config.settings_of("CONTROLLER").text("ssl.truststore.location") == "/c.pem"
