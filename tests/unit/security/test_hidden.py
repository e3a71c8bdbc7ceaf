"""No text that a person may read has a password or a key: not the repr of what holds it, not an error about it."""

import pytest
from tests.rows import each

from strandline.broker.config import ConfigError, NodeConfig
from strandline.client.ask import config_of
from strandline.client.errors import BadOption
from strandline.metadata.configs.node_configs import NODE_CONFIGS

HIDDEN = "s3cr3t"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{MODULE} required username="u" password="{HIDDEN}" user_u="{HIDDEN}";'
PLAIN = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.quorum.voters": "1@localhost:1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:1",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "log.dirs": "/data",
}
KEYS = [name for name, key in NODE_CONFIGS.items() if key.is_sensitive]


def test_a_nodes_configuration_shows_no_password() -> None:
    config = NodeConfig.from_properties(PLAIN | {key: HIDDEN for key in KEYS if key != "sasl.jaas.config"})
    assert len(KEYS) > 4
    assert HIDDEN not in repr(config) + str(config) + repr(config.settings_of("SASL_PLAINTEXT"))


@each(
    "wrong",
    [
        {"node.id": "no number"},
        {"listener.name.sasl_plaintext.plain.sasl.jaas.config": f"nonsense {HIDDEN}"},
        {"listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{JAAS} other="{HIDDEN}'},
        {"listener.name.sasl_plaintext.sasl.jaas.config": JAAS},
        {"sasl.jaas.config": JAAS, "node.id": ""},
    ],
)
def test_errors_about_a_nodes_configuration_show_none_either(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        NodeConfig.from_properties(PLAIN | wrong)
    assert HIDDEN not in str(caught.value) + repr(caught.value)


@each(
    "given",
    [
        {"sasl.jaas.config": f"{HIDDEN} {HIDDEN}"},
        {"sasl.jaas.config": JAAS.replace("Plain", "Scram")},
        {"sasl.jaas.config": f'{JAAS} password="{HIDDEN}'},
        {"sasl.jaas.config": JAAS.replace("username", "name")},
        {"sasl.password": HIDDEN},
        {"sasl.pasword": HIDDEN, "sasl.jaas.config": JAAS},
        {"ssl.keystore.key": HIDDEN, "security.protocol": "SASL_SSL", "sasl.jaas.config": JAAS},
    ],
)
def test_errors_about_a_clients_properties_show_none(given: dict[str, str]) -> None:
    with pytest.raises(BadOption) as caught:
        config_of("h:1", {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **given})
    assert HIDDEN not in str(caught.value) + repr(caught.value)


def test_a_clients_configuration_shows_no_password() -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}
    config = config_of("h:1", given)
    assert config.sasl is not None and config.sasl.password.reveal == HIDDEN
    assert HIDDEN not in repr(config) + str(config)
