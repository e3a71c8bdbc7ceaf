"""A node's configuration: property files, the table, and what the keys mean together."""

import pytest
from tests.rows import each

from strandline.base.effects import Endpoint
from strandline.broker.config import ConfigError, ListenerConfig, NodeConfig, parse_properties
from strandline.metadata.configs.config_key import show_value
from strandline.metadata.configs.node_configs import NODE_CONFIGS, STANDARD_AUTHORIZER
from strandline.metadata.configs.topic_configs import (
    SHOWN,
    TOPIC_CONFIGS,
    topic_default,
    topic_default_text,
    why_invalid,
)

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093,2@host:9095",
}


def problems(**changes: str | None) -> list[str]:
    properties = COMBINED | {key.replace("_", "."): value for key, value in changes.items()}
    try:
        NodeConfig.from_properties({key: value for key, value in properties.items() if value is not None})
    except ConfigError as error:
        return error.problems
    return []


def test_a_combined_node_has_kafkas_defaults() -> None:
    config = NodeConfig.from_properties(COMBINED)
    assert (config.node_id, config.is_broker, config.is_controller) == (1, True, True)
    assert config.listeners == (
        ListenerConfig("PLAINTEXT", "127.0.0.1", 9092),
        ListenerConfig("CONTROLLER", "127.0.0.1", 9093),
    )
    assert config.advertised_listeners == config.listeners[:1]
    assert [(v.node_id, v.endpoint) for v in config.voters] == [
        (1, Endpoint("127.0.0.1", 9093)),
        (2, Endpoint("host", 9095)),
    ]
    assert config.inter_broker_listener_name == "PLAINTEXT"
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.metadata_log_dir == "/tmp/kafka-logs"
    assert config.integer("replica.lag.time.max.ms") == 30_000
    assert config.boolean("auto.create.topics.enable") is True
    assert set(config.explicit) == set(COMBINED)


def test_log_dirs_wins_over_log_dir() -> None:
    config = NodeConfig.from_properties(COMBINED | {"log.dir": "/a", "log.dirs": "/b, /c", "metadata.log.dir": "/m"})
    assert config.log_dirs == ("/b", "/c")
    assert config.metadata_log_dir == "/m"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("127.0.0.1:9404", Endpoint("127.0.0.1", 9404)),
        (":9404", Endpoint("127.0.0.1", 9404)),  # not to the world, unless that is said
        ("0.0.0.0:0", Endpoint("0.0.0.0", 0)),
        ("[::1]:9404", Endpoint("::1", 9404)),
    ],
)
def test_metrics_are_served_where_the_setting_says(text: str, at: Endpoint) -> None:
    assert NodeConfig.from_properties(COMBINED | {"strandline.metrics.listener": text}).metrics_listener == at


def test_without_the_setting_no_metrics_are_served() -> None:
    assert NodeConfig.from_properties(COMBINED).metrics_listener is None


@pytest.mark.parametrize("text", ["9404", "host", "host:", "host:x", "host:65536", "host:-1", ""])
def test_a_metrics_listener_without_a_port_is_refused(text: str) -> None:
    (problem,) = problems(strandline_metrics_listener=text)
    assert problem == f"Invalid value {text} for configuration strandline.metrics.listener: expected host:port"


def test_an_authorizer_has_its_super_users() -> None:
    config = NodeConfig.from_properties(COMBINED)
    assert (config.has_authorizer, config.super_users, config.allows_everyone) == (False, frozenset(), False)
    given = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": " User:CN=a,O=b ; User:c;; Group:d:e ;",
        "allow.everyone.if.no.acl.found": "TRUE",
    }
    config = NodeConfig.from_properties(COMBINED | given)
    assert config.has_authorizer
    assert config.super_users == {"User:CN=a,O=b", "User:c", "Group:d:e"}
    assert config.allows_everyone


def test_unknown_keys_are_kept_and_are_no_problem() -> None:
    config = NodeConfig.from_properties(COMBINED | {"num.network.threads": "3"})
    assert config.unknown == {"num.network.threads": "3"}


@each(
    ("changes", "expected"),
    [
        ({"num_partitions": "0"}, "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ({"num_partitions": "x"}, "Invalid value x for configuration num.partitions: Not a number of type INT"),
        ({"num_partitions": "2147483648"}, "Not a number of type INT"),
        ({"node_id": None}, 'Missing required configuration "node.id" which has no default value.'),
        (
            {"process_roles": "broker,king"},
            "Invalid value king for configuration process.roles: String must be one of: broker, controller",
        ),
        ({"process_roles": "broker,broker,controller"}, "Configuration 'process.roles' values must not be duplicated."),
        ({"process_roles": ""}, "'process.roles' must not be empty. Valid values include: [broker, controller]"),
        ({"log_dirs": ""}, "Configuration 'log.dirs' must not be empty. Valid values include: any non-empty value"),
        ({"log_dirs": "/a,,/b"}, "Configuration 'log.dirs' values must not be empty."),
        ({"auto_create_topics_enable": "yes"}, "Expected value to be either true or false"),
        ({"authorizer_class_name": "org.example.Authorizer"}, "String must be one of: , org.apache.kafka.metadata"),
        ({"super_users": "User:a;b,c"}, "expected a string in format principalType:principalName but got b,c"),
        ({"allow_everyone_if_no_acl_found": "no"}, "Expected value to be either true or false"),
        ({"listeners": "PLAINTEXT"}, "expected NAME://host:port"),
        ({"listeners": "PLAINTEXT://h:70000,CONTROLLER://h:1"}, "expected NAME://host:port"),
        ({"listeners": "CONTROLLER://h:1"}, "at least one listener"),
        ({"listeners": "PLAINTEXT://h:1"}, "must contain at least one of listeners"),
        ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2,CONTROLLER://h:3"}, "different name"),
        ({"process_roles": "broker"}, "must not appear in listeners"),
        ({"inter_broker_listener_name": "OTHER"}, "must be one of the broker's listeners"),
        ({"advertised_listeners": "CONTROLLER://h:1"}, "must not have a controller listener"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "nonroutable meta-address"),
        ({"controller_quorum_voters": "1@h"}, "expected {id}@{host}:{port}"),
        ({"controller_quorum_voters": "2@h:1"}, "node.id 1 must be in controller.quorum.voters"),
        ({"controller_quorum_voters": "1@h:1,1@h:2"}, "a node id twice"),
        ({"controller_quorum_voters": None}, "must name at least one controller"),
        ({"broker_heartbeat_interval_ms": "5000"}, "at least twice"),
        ({"replica_fetch_wait_max_ms": "40000"}, "less than or equal to replica.lag.time.max.ms"),
        ({"replica_socket_timeout_ms": "499"}, "should always be at least replica.fetch.wait.max.ms"),
        (
            {"group_consumer_session_timeout_ms": "44999"},
            "group.consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"group_consumer_heartbeat_interval_ms": "15001"},
            "group.consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"group_consumer_max_session_timeout_ms": "44999"},
            "group.consumer.max.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"group_consumer_session_timeout_ms": "5000", "group_consumer_min_session_timeout_ms": "5000"},
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
        (
            {"group_coordinator_rebalance_protocols": "consumer"},
            "Disabling the 'classic' protocol is not supported.",
        ),
        ({"group_consumer_assignors": "mine"}, "String must be one of: uniform, range"),
        ({"log_retention_hours": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_reason(changes: dict[str, str | None], expected: str) -> None:
    assert any(expected in problem for problem in problems(**changes)), problems(**changes)


def test_all_problems_are_reported_at_once() -> None:
    assert len(problems(num_partitions="0", node_id=None, message_max_bytes="-1")) == 3


def test_kafkas_sample_map_names_protocols_that_no_listener_uses() -> None:
    text = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
    assert problems(listener_security_protocol_map=text) == []


def test_property_text_is_read_as_java_reads_it() -> None:
    text = "# comment\n! too\n\n a = 1 \nb:2\nc 3\nlist=x,\\\n   y\npath=C\\:\\\\x\\u0041\na=4\nempty=\n\\=k=v"
    assert parse_properties(text) == {
        "a": "4",
        "b": "2",
        "c": "3",
        "list": "x,y",
        "path": "C:\\xA",
        "empty": "",
        "=k": "v",
    }


@each("name", sorted(NODE_CONFIGS))
def test_every_default_of_a_node_passes_its_own_check(name: str) -> None:
    key = NODE_CONFIGS[name]
    text = show_value(key.default)
    if text is not None and not key.required:
        assert key.why_invalid(text) is None
        assert key.parse(text) == key.default


@each("name", sorted(key.name for key in SHOWN))
def test_every_topic_key_has_a_default_that_passes_and_synonyms_that_exist(name: str) -> None:
    key = TOPIC_CONFIGS[name]
    assert why_invalid(name, topic_default_text(name, {})) is None
    for synonym, factor in key.synonyms:
        node_key = NODE_CONFIGS[synonym]
        if node_key.default is not None and isinstance(node_key.default, int) and factor > 1:
            assert node_key.default * factor == key.default
        elif node_key.default is not None:
            assert node_key.default == key.default


def test_a_topic_takes_the_nodes_value_of_the_first_synonym_that_is_set() -> None:
    assert topic_default("retention.ms", {}) == (604_800_000, None)
    assert topic_default("retention.ms", {"log.retention.hours": 2}) == (7_200_000, "log.retention.hours")
    assert topic_default("retention.ms", {"log.retention.hours": -1}) == (-1, "log.retention.hours")
    both = {"log.retention.hours": 2, "log.retention.ms": 5}
    assert topic_default("retention.ms", both) == (5, "log.retention.ms")


@each(
    ("name", "value", "expected"),
    [
        ("cleanup.policy", "compact,delete", None),
        ("cleanup.policy", "burn", "Invalid value burn for configuration cleanup.policy: String must be one of"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("segment.bytes", "1048575", "Value must be at least 1048576"),
        ("compression.type", "zip", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("cleanup.policy", "", None),
        ("cleanup.policy", "delete,delete", "Configuration 'cleanup.policy' values must not be duplicated."),
        ("cleanup.policy", "delete,burn", "Invalid value burn for configuration cleanup.policy: String must be one of"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("leader.replication.throttled.replicas", "0:1,1:2", None),
        ("leader.replication.throttled.replicas", "*", None),
        ("leader.replication.throttled.replicas", "0:1,", None),
        (
            "leader.replication.throttled.replicas",
            "0:1,1-2",
            "Invalid value [0:1, 1-2] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following"
            " format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        ("unclean.recovery.strategy", "Hope", "None, Balanced, Aggressive"),
        ("no.such.key", "1", "Unknown topic config name: no.such.key"),
    ],
)
def test_a_topics_value_is_refused_in_kafkas_words(name: str, value: str, expected: str | None) -> None:
    reason = why_invalid(name, value)
    if expected is None:
        assert reason is None
    else:
        assert reason is not None
        assert expected in reason
