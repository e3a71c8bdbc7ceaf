"""Every dynamic key at every level: the topic, one broker, all brokers, the broker's file, the default."""

import pytest
from tests.rows import each
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.configs.test_configs import DELETE, SET, alter, broker, ready, topic

from strandline.base.errors import ErrorCode
from strandline.metadata.configs.config_key import ConfigKey, ConfigValue, show_value
from strandline.metadata.configs.dynamic_configs import (
    DYNAMIC_NODE_KEYS,
    FOR_ONE_BROKER,
    ONE_FOR_ALL,
    TOPIC_DEFAULTS,
    dynamic_value,
)
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.tls_configs import DYNAMIC_TLS_KEYS
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS

E = ErrorCode
OTHERS = sorted(DYNAMIC_NODE_KEYS - TOPIC_DEFAULTS.keys() - FOR_ONE_BROKER)
READ_ONLY = sorted(NODE_CONFIGS.keys() - DYNAMIC_NODE_KEYS - DYNAMIC_TLS_KEYS)
# Where small numbers will not do.
VALUES = {
    "BOOLEAN": ("true", "false"),
    "DOUBLE": ("0.1", "0.2", "0.3", "0.4"),
    "cleanup.policy": ("compact", "compact,delete", "delete,compact", ""),
    "compression.type": ("zstd", "lz4", "snappy", "gzip"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime"),
    "unclean.recovery.strategy": ("None", "Aggressive"),
    "segment.bytes": tuple(str((1 << 20) + n) for n in range(4)),
}


def values(key: ConfigKey) -> list[str]:
    """Four values that are not the default, or two in turn where there are no more."""
    some = VALUES.get(key.name) or VALUES.get(key.type) or ("5", "6", "7", "8")
    return [some[n % len(some)] for n in range(4)]


@each("synonym", sorted(TOPIC_DEFAULTS))
def test_a_topics_key_has_the_value_of_the_first_level_that_has_one(synonym: str) -> None:
    key = TOPIC_CONFIGS[TOPIC_DEFAULTS[synonym]]
    own, one, every, file = values(key)
    cluster = ready()  # without ELR, which refuses a broker's own min ISR
    static: dict[str, ConfigValue] = {synonym: NODE_CONFIGS[synonym].parse(file)}

    def effective() -> tuple[str | None, str | None]:
        """On brokers 1 and 2."""
        found = [show_value(cluster.image.topic_config("t", key.name, static, node)) for node in ("1", "2")]
        return found[0], found[1]

    def set_to(*rows: tuple[str, str | None]) -> list[ErrorCode]:
        where = {"topic": topic, "one": broker, "every": broker}
        codes = []
        for level, value in rows:
            name = key.name if level == "topic" else synonym
            options = {"name": "1"} if level == "one" else {}
            row = (name, DELETE if value is None else SET, value)
            codes.append(E(alter(cluster, where[level](row, **options))[0].error_code))
        return codes

    is_state = key.name == "min.insync.replicas"  # the file's value is not asked for: the cluster's is always there
    assert effective() == (("1", "1") if is_state else (file, file))
    assert set_to(("every", every)) == [E.NONE]
    assert effective() == (every, every)
    if synonym in ONE_FOR_ALL:
        assert set_to(("one", one)) == [E.INVALID_REQUEST]
    else:
        assert set_to(("one", one)) == [E.NONE]
        assert effective() == (one, every)
    assert set_to(("topic", own)) == [E.NONE]
    assert effective() == (own, own)
    assert set_to(("topic", None)) == [E.NONE]
    assert effective() == ((every, every) if synonym in ONE_FOR_ALL else (one, every))
    if not is_state:
        assert set_to(("every", None)) == [E.NONE]
        assert effective() == ((file, file) if synonym in ONE_FOR_ALL else (one, file))


@pytest.mark.parametrize("name", OTHERS)
def test_a_brokers_own_key_is_first_its_own_and_then_that_of_all(name: str) -> None:
    cluster = ready()

    def effective() -> list[ConfigValue]:
        return [dynamic_value(cluster.image.configs, node, name) for node in ("1", "2")]

    assert effective() == [None, None], "the file counts"
    kind = NODE_CONFIGS[name].type
    one, every = ("true", "false") if kind == "BOOLEAN" else ("11", "12")
    if name == "max.connections.per.ip.overrides":
        one, every = "10.0.0.1:11", "10.0.0.1:12"
    alter(cluster, broker((name, SET, every)), broker((name, SET, one), name="1"))
    assert effective() == [NODE_CONFIGS[name].parse(text) for text in (one, every)]
    alter(cluster, broker((name, DELETE, None), name="1"))
    assert effective() == [NODE_CONFIGS[name].parse(every)] * 2
    wrong = alter(cluster, broker((name, SET, "x")))[0]
    assert wrong.error_code == E.INVALID_REQUEST
    why = "Expected value to be either true or false" if kind == "BOOLEAN" else f"Not a number of type {kind}"
    if kind == "STRING":
        why = "expected address:number, not x"
    assert wrong.error_message == f"Invalid value x for configuration {name}: {why}"


@each("name", READ_ONLY)
def test_what_is_read_only_is_refused_at_both_levels_in_kafkas_words(name: str) -> None:
    cluster = Cluster(brokers=1)
    for row in (broker((name, SET, "1")), broker((name, SET, "1"), name="1")):
        refused = alter(cluster, row)[0]
        assert refused.error_code == E.INVALID_REQUEST
        assert refused.error_message == f"Cannot update these configs dynamically: [{name}]"


@each("name", sorted(DYNAMIC_TLS_KEYS))
def test_certificates_are_given_to_one_listener_of_one_broker(name: str) -> None:
    """In Kafka's words."""
    cluster, value = Cluster(brokers=1), "PEM"
    only = "These security configs can be dynamically updated only per-listener using the listener prefix: "
    level = "Cannot update these configs at default cluster level, broker id must be specified: "
    own = f"listener.name.external.{name}"
    for row, why in (
        (broker((name, SET, value), name="1"), f"{only}[{name}]"),
        (broker((own, SET, value)), f"{level}[{own}]"),
        (
            broker((f"listener.name.external.{name}.x", SET, value), name="1"),
            "Cannot update these configs dynamically: ",
        ),
    ):
        refused = alter(cluster, row)[0]
        assert (refused.error_code, (refused.error_message or "")[: len(why)]) == (E.INVALID_REQUEST, why)
    assert alter(cluster, broker((own, SET, value), name="1"))[0].error_code == E.NONE


@each("name", ("max.connections", "max.connection.creation.rate"))
def test_a_limit_of_a_listener_is_given_to_one_broker_or_to_all(name: str) -> None:
    cluster, own = Cluster(brokers=1), f"listener.name.external.{name}"
    for of in ({}, {"name": "1"}):
        assert alter(cluster, broker((own, SET, "5"), **of))[0].error_code == E.NONE
        wrong = alter(cluster, broker((own, SET, "-1"), **of))[0]
        assert wrong.error_code == E.INVALID_REQUEST and "Value must be at least 0" in (wrong.error_message or "")
    unknown = alter(cluster, broker((f"{own}.x", SET, "5")))[0]
    assert (unknown.error_message or "").startswith("Cannot update these configs dynamically: ")


def test_a_certificates_type_is_checked_for_a_listener_too() -> None:
    refused = alter(Cluster(brokers=1), broker(("listener.name.external.ssl.keystore.type", SET, "JKS"), name="1"))[0]
    assert refused.error_code == E.INVALID_REQUEST
    assert "only Java reads this format" in (refused.error_message or "")
