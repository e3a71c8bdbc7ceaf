"""SASL in a node's configuration: what listeners enable, and what is said of what cannot be."""

from tests.rows import each
from tests.unit.broker.listeners.test_listeners import MAP, problems, properties

from strandline.broker.config import NodeConfig
from strandline.broker.listeners.sasl import sasl_rules

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
JAAS = "listener.name.ssl.plain.sasl.jaas.config"
URL = "sasl.oauthbearer.jwks.endpoint.url"
ENABLED = "sasl.enabled.mechanisms"
SASL: dict[str, str | None] = {MAP: "SSL:SASL_SSL,CONTROLLER:PLAINTEXT", ENABLED: "SCRAM-SHA-256"}


def test_a_listener_has_its_own_mechanisms_users_and_times() -> None:
    changes = {
        "listener.name.ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        JAAS: f'{MODULE} username="node" password="x" user_alice="a s" user_bob="b";',
        "connections.max.reauth.ms": "5000",
        "listener.name.ssl.connections.max.reauth.ms": "4000",
        "listener.name.ssl.plain.connections.max.reauth.ms": "3000",
    }
    config = NodeConfig.from_properties(properties(SASL | changes))
    assert (config.sasl_listener_names, config.unknown) == (("SSL",), {})
    rules = sasl_rules(config.settings_of("SSL"))
    assert rules.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert {name: secret.reveal for name, secret in rules.plain_users.items()} == {"alice": "a s", "bob": "b"}
    assert rules.reauth_ms == {"PLAIN": 3000, "SCRAM-SHA-512": 4000}
    assert "a s" not in f"{config!r} {rules!r}"
    assert config.settings_of("CONTROLLER").whole("connections.max.reauth.ms") == 5000


def test_settings_of_oauthbearer_are_the_mechanisms_the_listeners_or_the_nodes() -> None:
    changes = {
        ENABLED: "OAUTHBEARER",
        URL: "https://a/keys",
        "listener.name.ssl.sasl.oauthbearer.expected.issuer": "b",
        "listener.name.ssl.oauthbearer.sasl.oauthbearer.expected.audience": "c,d",
    }
    settings = NodeConfig.from_properties(properties(SASL | changes)).settings_of("SSL").for_mechanism("OAUTHBEARER")
    assert settings.text(URL) == "https://a/keys"
    assert settings.text("sasl.oauthbearer.expected.issuer") == "b"
    assert settings.value("sasl.oauthbearer.expected.audience") == ("c", "d")


@each(
    ("changes", "problem"),
    [
        ({ENABLED: None}, "speaks SASL_SSL and enables no mechanism"),
        ({ENABLED: "GSSAPI"}, "has GSSAPI; supported are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ({ENABLED: "plain"}, "has plain; supported are"),
        ({ENABLED: "PLAIN"}, f"enables PLAIN and has no users: set {JAAS} to"),
        ({ENABLED: "PLAIN", JAAS: f'{MODULE} username="a" password="b";'}, "has no users"),
        ({ENABLED: "PLAIN", JAAS: f'{MODULE} user_a="hush'}, "[hidden]"),
        ({ENABLED: "PLAIN", JAAS: f'{MODULE} user_a="";'}, "empty password"),
        (
            {ENABLED: "PLAIN", JAAS: 'x.ScramLoginModule required user_a="hush";'},
            "module ScramLoginModule does not",
        ),
        ({"listener.name.ssl.scram-sha-256.sasl.jaas.config": "hush"}, "[hidden]"),
        ({"sasl.jaas.config": f'{MODULE} user_a="hush";'}, "does not say for which mechanism"),
        ({"listener.name.ssl.sasl.jaas.config": f'{MODULE} user_a="hush";'}, "does not say for which mechanism"),
        ({ENABLED: "OAUTHBEARER"}, f"enables OAUTHBEARER and has no keys: set {URL}"),
        ({ENABLED: "OAUTHBEARER", URL: "ftp://a/b"}, "must begin with one of: file:, http:, https:"),
        ({ENABLED: "OAUTHBEARER", URL: "https://me:hush@a/keys"}, "has a user's name or password before its host"),
        ({ENABLED: "OAUTHBEARER", URL: "https:me:hush@a/keys"}, "must have a host"),
        ({ENABLED: "OAUTHBEARER", URL: "https://me:hush/b@a/keys"}, "is not a URL"),
        (
            {ENABLED: "OAUTHBEARER", URL: "file:/a", "sasl.server.callback.handler.class": "a.b.Mine"},
            "sasl.server.callback.handler.class is Mine",
        ),
        ({"cluster.secret.required": "false"}, "where nodes have to prove the cluster's secret"),
        ({"connection.failed.authentication.delay.ms": "600000"}, "should always be less than connections.max.idle.ms"),
        ({"listener.name.ssl.plain.connections.max.reauth.ms": "soon"}, "Not a number of type LONG"),
    ],
)
def test_what_cannot_be_is_said(changes: dict[str, str | None], problem: str) -> None:
    found = problems(SASL | changes)
    assert len(found) == 1 and problem in found[0]
    assert "hush" not in found[0]


@each("name", ["listener.name.else.plain.sasl.jaas.config", "listener.name.ssl.plain.sasl.enabled.mechanisms"])
def test_a_setting_of_no_listener_or_of_no_mechanism_is_unknown(name: str) -> None:
    assert list(NodeConfig.from_properties(properties(SASL | {name: "x"})).unknown) == [name]


@each(
    ("changes", "has_some"),
    [
        ({}, False),
        ({ENABLED: "PLAIN", JAAS: f'{MODULE} user_a="b";'}, True),
        ({"ssl.key.password": "x"}, True),
        ({"listener.name.ssl.ssl.key.password": "x"}, True),
    ],
)
def test_a_configuration_knows_whether_it_has_secrets(changes: dict[str, str | None], has_some: bool) -> None:
    assert NodeConfig.from_properties(properties(SASL | changes)).has_secrets is has_some
