"""CLIENT_METRICS resources: what a subscription may be set to, with Kafka's codes and messages (KIP-714)."""

from tests.rows import each
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.configs.test_configs import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    alter,
    resource,
)

from strandline.base.errors import ErrorCode as E
from strandline.metadata.configs.client_metrics import CLIENT_METRICS_CONFIGS, matches_in, why_invalid_subscription
from strandline.metadata.configs.config_docs import documentation
from strandline.metadata.records import CLIENT_METRICS_RESOURCE
from strandline.wire.messages.cluster import alter_configs
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest

INTERVAL = "interval must be between 100 and 3600000 (1 hour)"
ILLEGAL = "Illegal client matching pattern: "
REFUSED = [
    ("no.such", "1", E.INVALID_REQUEST, "Unknown client metrics configuration: no.such"),
    ("retention.ms", "1", E.INVALID_REQUEST, "Unknown client metrics configuration: retention.ms"),
    ("interval.ms", "99", E.INVALID_REQUEST, f"Invalid value 99 for interval.ms, {INTERVAL}"),
    ("interval.ms", "3600001", E.INVALID_REQUEST, f"Invalid value 3600001 for interval.ms, {INTERVAL}"),
    (
        "interval.ms",
        "soon",
        E.INVALID_CONFIG,
        "Invalid value soon for configuration interval.ms: Not a number of type INT",
    ),
    ("match", "client_id", E.INVALID_CONFIG, ILLEGAL + "client_id"),
    ("match", "client_id=", E.INVALID_CONFIG, ILLEGAL + "client_id="),
    ("match", "=x", E.INVALID_CONFIG, ILLEGAL + "=x"),
    ("match", "client_id=a=b", E.INVALID_CONFIG, ILLEGAL + "client_id=a=b"),
    ("match", "client_name=a", E.INVALID_CONFIG, ILLEGAL + "client_name=a"),
    ("match", "client_id=(", E.INVALID_CONFIG, ILLEGAL + "client_id=("),
    ("match", "client_id=a,,", E.INVALID_CONFIG, ILLEGAL),
    ("match", "client_id=(?=a)", E.INVALID_CONFIG, ILLEGAL + "client_id=(?=a)"),
]


def ready() -> Cluster:
    return Cluster(brokers=1, elr=False)


def of(cluster: Cluster, name: str = "s") -> dict[str, str]:
    return cluster.image.configs.get((CLIENT_METRICS_RESOURCE, name), {})


@each("key, value, error, message", REFUSED, cluster=ready)
def test_what_a_subscription_may_not_be_set_to(key: str, value: str, error: E, message: str, cluster: Cluster) -> None:
    rows = (("metrics", SET, "a."), (key, SET, value))
    (result,) = alter(cluster, resource(CLIENT_METRICS_RESOURCE, "s", *rows))
    assert (result.error_code, result.error_message) == (error, message)
    assert of(cluster) == {}


def test_a_subscription_needs_a_name() -> None:
    cluster = ready()
    (result,) = alter(cluster, resource(CLIENT_METRICS_RESOURCE, "", ("metrics", SET, "*")))
    assert (result.error_code, result.error_message) == (E.INVALID_REQUEST, "Subscription name can't be empty")


def test_a_subscription_is_there_as_long_as_a_key_of_it_is_set() -> None:
    cluster = ready()
    steps = [
        (("metrics", SET, "a."), ("interval.ms", SET, "100")),
        (("metrics", APPEND, "b.,a."), ("match", APPEND, "client_id=x,client_source_port=1")),
        (("metrics", SUBTRACT, "a."), ("match", SUBTRACT, "client_id=x")),
        (("interval.ms", DELETE, None), ("metrics", DELETE, None), ("match", DELETE, None)),
    ]
    seen = []
    for step in steps:
        (result,) = alter(cluster, resource(CLIENT_METRICS_RESOURCE, "s", *step))
        assert result.error_code == E.NONE, result
        seen.append(dict(of(cluster)))
    assert seen == [
        {"metrics": "a.", "interval.ms": "100"},
        {"metrics": "a.,b.", "interval.ms": "100", "match": "client_id=x,client_source_port=1"},
        {"metrics": "b.", "interval.ms": "100", "match": "client_source_port=1"},
        {},
    ]
    end = cluster.log.next_offset
    alter(cluster, resource(CLIENT_METRICS_RESOURCE, "s", *steps[0]))
    assert cluster.log.next_offset > end
    end = cluster.log.next_offset
    alter(cluster, resource(CLIENT_METRICS_RESOURCE, "s", *steps[0]))
    assert cluster.log.next_offset == end, "what is so already is not written again"


def test_the_older_request_replaces_all_keys_of_a_subscription() -> None:
    cluster = ready()
    alter(cluster, resource(CLIENT_METRICS_RESOURCE, "s", ("metrics", SET, "a."), ("interval.ms", SET, "100")))
    row = alter_configs.AlterableConfig(name="match", value="client_id=x")
    whole = alter_configs.AlterConfigsResource(resource_type=CLIENT_METRICS_RESOURCE, resource_name="s", configs=(row,))
    (result,) = cluster.ask(AlterConfigsRequest(resources=(whole,)), 1).responses
    assert result.error_code == E.NONE
    assert of(cluster) == {"match": "client_id=x"}


def test_what_is_accepted_can_be_read_and_every_key_says_what_it_is_for() -> None:
    for entries in ("", "client_id=a", "client_id = a , client_software_name=[a-z]+", "client_id=a=="):
        assert why_invalid_subscription("match", entries) is None, entries
        parsed = CLIENT_METRICS_CONFIGS["match"].parse(entries)
        assert isinstance(parsed, tuple)
        assert matches_in(parsed) is not None, entries
    assert why_invalid_subscription("interval.ms", "100") is None
    assert why_invalid_subscription("interval.ms", "3600000") is None
    assert all(documentation(key) for key in CLIENT_METRICS_CONFIGS.values())
