"""IncrementalAlterConfigs: the four operations, and one row per refusal."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.rows import each
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from strandline.metadata.records import ConfigRecord, FeatureLevelRecord
from strandline.wire.messages.cluster import alter_configs
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

E = ErrorCode
ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
NOTHING_SET = {(BROKER_RESOURCE, ""): {"min.insync.replicas": "1"}}  # what the first controller writes


def resource(kind: int, name: str, *rows: tuple[str, int, str | None]) -> AlterConfigsResource:
    configs = tuple(AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in rows)
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def topic(*rows: tuple[str, int, str | None], name: str = "t") -> AlterConfigsResource:
    return resource(TOPIC_RESOURCE, name, *rows)


def broker(*rows: tuple[str, int, str | None], name: str = "") -> AlterConfigsResource:
    return resource(BROKER_RESOURCE, name, *rows)


def group(*rows: tuple[str, int, str | None], name: str = "g") -> AlterConfigsResource:
    return resource(GROUP_RESOURCE, name, *rows)


SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def alter(cluster: Cluster, *resources: AlterConfigsResource, validate_only: bool = False) -> Any:
    return cluster.ask(IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only), 1).responses


def ready() -> Cluster:
    """Without ELR, which has rules of its own for min ISR."""
    cluster = Cluster(brokers=2, elr=False)
    cluster.create("t", (1, 2))
    return cluster


REFUSED = [
    (topic(("retention.ms", SET, "1"), name="x"), E.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'x' does not exist."),
    (topic(("no.such", SET, "1")), E.INVALID_CONFIG, None),
    (topic(("min.insync.replicas", SET, "0")), E.INVALID_CONFIG, None),
    (topic(("retention.ms", SET, None)), E.INVALID_REQUEST, "Null value not supported for : retention.ms"),
    (topic(("retention.ms", 9, "1")), E.INVALID_REQUEST, None),
    (
        topic(("retention.ms", APPEND, "1")),
        E.INVALID_CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (topic(("no.such", SUBTRACT, "1")), E.INVALID_CONFIG, None),
    (topic(("cleanup.policy", APPEND, "burn")), E.INVALID_CONFIG, None),
    (topic(("retention.ms", SET, "1"), ("retention.ms", DELETE, None)), E.INVALID_REQUEST, None),
    (topic(("retention.ms", SET, "1"), ("no.such", SET, "1")), E.INVALID_CONFIG, None),
    (
        broker(("node.id", SET, "7")),
        E.INVALID_REQUEST,
        "Cannot update these configs dynamically: [node.id]",
    ),
    (broker(("log.retention.hours", SET, "1")), E.INVALID_REQUEST, None),
    (broker(("log.retention.ms", SET, "1"), name="9"), E.BROKER_ID_NOT_REGISTERED, "No node with id 9 found."),
    (broker(("min.insync.replicas", SET, "2"), name="1"), E.INVALID_REQUEST, None),
    (broker(("unclean.leader.election.enable", SET, "true"), name="1"), E.INVALID_REQUEST, None),
    (
        broker(("message.max.bytes", SET, "-1")),
        E.INVALID_REQUEST,
        "Invalid value -1 for configuration message.max.bytes: Value must be at least 0",
    ),
    (broker(("min.insync.replicas", SET, "none")), E.INVALID_REQUEST, None),
    (broker(("custom", SET, "x" * 32768)), E.INVALID_CONFIG, None),
    (broker(("custom", SET, "1"), name="one"), E.INVALID_REQUEST, None),
    (
        topic(("retention.ms", SET, None), ("segment.ms", SET, None)),
        E.INVALID_REQUEST,
        "Null value not supported for : retention.ms, segment.ms",
    ),
    (
        topic(("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")),
        E.INVALID_CONFIG,
        "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
    ),
    (
        broker(("log.cleaner.min.compaction.lag.ms", SET, "9"), ("log.cleaner.max.compaction.lag.ms", SET, "8")),
        E.INVALID_REQUEST,
        "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
    ),
    (
        topic(("remote.storage.enable", SET, "true")),
        E.INVALID_CONFIG,
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
    ),
    (group((SESSION, SET, "50000"), name=""), E.INVALID_REQUEST, "Default group resources are not allowed."),
    (group(("session.timeout.ms", SET, "1")), E.INVALID_CONFIG, "Unknown group config name: session.timeout.ms"),
    (group(("share.session.timeout.ms", SET, "1")), E.INVALID_CONFIG, None),
    (
        group((SESSION, SET, "0")),
        E.INVALID_CONFIG,
        f"Invalid value 0 for configuration {SESSION}: Value must be at least 1",
    ),
    (
        group((SESSION, SET, "44999")),
        E.INVALID_CONFIG,
        f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
    ),
    (
        group((SESSION, SET, "60001")),
        E.INVALID_CONFIG,
        f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms",
    ),
    (
        group((HEARTBEAT, SET, "4999")),
        E.INVALID_CONFIG,
        f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
    ),
    (
        group((HEARTBEAT, SET, "15001")),
        E.INVALID_CONFIG,
        f"{HEARTBEAT} must be less than or equal to group.consumer.max.heartbeat.interval.ms",
    ),
    (group((SESSION, SET, None)), E.INVALID_REQUEST, f"Null value not supported for : {SESSION}"),
    (
        group((SESSION, APPEND, "1")),
        E.INVALID_CONFIG,
        f"Can't APPEND to key {SESSION} because its type is not LIST.",
    ),
    (resource(8, "", ("log.level", SET, "1")), E.INVALID_REQUEST, "Unexpected resource type 8."),
]


@each(("refused", "error", "message"), REFUSED)
def test_a_change_is_refused_as_a_whole(refused: AlterConfigsResource, error: ErrorCode, message: str | None) -> None:
    cluster = ready()
    (result,) = alter(cluster, refused)
    assert result.error_code == error, result
    assert result.error_message and message in (None, result.error_message)
    assert (result.resource_type, result.resource_name) == (refused.resource_type, refused.resource_name)
    assert cluster.image.configs == NOTHING_SET


def test_a_resource_twice_is_refused_and_others_succeed() -> None:
    cluster = ready()
    rows = topic(("retention.ms", SET, "1"))
    results = alter(cluster, rows, broker(("log.retention.ms", SET, "2")), rows)
    assert [r.error_code for r in results] == [E.INVALID_REQUEST, E.NONE, E.INVALID_REQUEST]
    assert cluster.image.topic_config("t", "retention.ms", {}) == 2


def test_set_and_delete() -> None:
    cluster = ready()
    assert alter(cluster, topic(("retention.ms", SET, "5")))[0].error_code == E.NONE
    assert cluster.image.topic_config("t", "retention.ms", {}) == 5
    assert alter(cluster, topic(("retention.ms", DELETE, None)))[0].error_code == E.NONE
    assert cluster.image.configs == NOTHING_SET
    before = len(cluster.log.records)
    assert alter(cluster, topic(("retention.ms", DELETE, None)))[0].error_code == E.NONE
    assert len(cluster.log.records) == before


def test_a_group_is_configured_whether_it_exists_or_not_and_loses_all_that_the_older_request_does_not_name() -> None:
    cluster = ready()
    assert alter(cluster, group((SESSION, SET, "60000"), (HEARTBEAT, SET, "15000")))[0].error_code == E.NONE
    assert cluster.image.configs[(GROUP_RESOURCE, "g")] == {SESSION: "60000", HEARTBEAT: "15000"}
    before = len(cluster.log.records)
    assert alter(cluster, group((SESSION, SET, "60000")))[0].error_code == E.NONE
    assert len(cluster.log.records) == before, "it has this value"
    rows = (alter_configs.AlterableConfig(name=SESSION, value="45000"),)
    older = alter_configs.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configs=rows)
    (result,) = cluster.ask(alter_configs.AlterConfigsRequest(resources=(older,)), 2).responses
    assert result.error_code == E.NONE
    assert cluster.image.configs[(GROUP_RESOURCE, "g")] == {SESSION: "45000"}
    assert alter(cluster, group((SESSION, DELETE, None)))[0].error_code == E.NONE
    assert cluster.image.configs == NOTHING_SET


def test_append_starts_from_the_default_and_subtract_takes_away() -> None:
    cluster = ready()
    alter(cluster, topic(("cleanup.policy", APPEND, "compact,delete")))
    assert cluster.image.configs[(TOPIC_RESOURCE, "t")] == {"cleanup.policy": "delete,compact"}
    alter(cluster, topic(("cleanup.policy", SUBTRACT, "delete")))
    assert cluster.image.topic_config("t", "cleanup.policy", {}) == ("compact",)


def test_a_topics_value_that_is_set_already_is_not_written_again_and_a_brokers_is() -> None:
    cluster = ready()
    for _ in range(2):
        alter(cluster, topic(("retention.ms", SET, "5")), broker(("log.retention.ms", SET, "5")))
    written = [(r.resource_type, r.name) for r in cluster.log.records if isinstance(r, ConfigRecord)]
    assert written.count((TOPIC_RESOURCE, "retention.ms")) == 1
    assert written.count((BROKER_RESOURCE, "log.retention.ms")) == 2


def test_one_broker_has_a_value_of_its_own_before_the_clusters() -> None:
    cluster = ready()
    rows = broker(("log.retention.ms", SET, "1"), name="1"), broker(("log.retention.ms", SET, "3"))
    assert [r.error_code for r in alter(cluster, *rows)] == [E.NONE, E.NONE]
    key = "retention.ms"
    assert [cluster.image.topic_config("t", key, {}, name) for name in ("1", "2", "")] == [1, 3, 3]
    alter(cluster, broker(("log.retention.ms", DELETE, None), name="1"))
    assert cluster.image.topic_config("t", key, {}, "1") == 3


# --- AlterConfigs, the older request


def replace_all(cluster: Cluster, kind: int, name: str, validate_only: bool = False, **values: str | None) -> Any:
    rows = tuple(
        alter_configs.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()
    )
    named = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    request = alter_configs.AlterConfigsRequest(resources=(named,), validate_only=validate_only)
    (result,) = cluster.ask(request, 2).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def test_the_older_request_replaces_all_that_a_resource_has() -> None:
    cluster = ready()
    alter(cluster, topic(("retention.ms", SET, "5"), ("segment.ms", SET, "6")))
    assert replace_all(cluster, TOPIC_RESOURCE, "t", validate_only=True, segment_ms="7").error_code == E.NONE
    assert cluster.image.configs[(TOPIC_RESOURCE, "t")] == {"retention.ms": "5", "segment.ms": "6"}
    assert replace_all(cluster, TOPIC_RESOURCE, "t", segment_ms="7").error_code == E.NONE
    assert cluster.image.configs[(TOPIC_RESOURCE, "t")] == {"segment.ms": "7"}
    assert replace_all(cluster, TOPIC_RESOURCE, "t").error_code == E.NONE
    assert cluster.image.configs == NOTHING_SET


def test_the_older_request_is_refused_as_the_newer_is() -> None:
    cluster = ready()
    alter(cluster, topic(("retention.ms", SET, "5")))
    before = dict(cluster.image.configs)
    assert replace_all(cluster, TOPIC_RESOURCE, "x", retention_ms="1").error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert replace_all(cluster, TOPIC_RESOURCE, "t", retention_ms=None).error_code == E.INVALID_REQUEST
    assert replace_all(cluster, TOPIC_RESOURCE, "t", no_such="1").error_code == E.INVALID_CONFIG
    assert cluster.image.configs == before


def test_the_older_request_leaves_the_cluster_a_min_isr() -> None:
    """T1: what it does not name becomes what the controller's file says, and under ELR it is refused."""
    cluster = Cluster(brokers=1, static={"min.insync.replicas": 2}, elr=False)
    alter(cluster, broker(("min.insync.replicas", SET, "3")))
    assert replace_all(cluster, BROKER_RESOURCE, "", message_max_bytes="9").error_code == E.NONE
    kept = {"min.insync.replicas": "2", "message.max.bytes": "9"}
    assert cluster.image.configs == {(BROKER_RESOURCE, ""): kept}
    cluster.controller.write([ELR_ON], cluster.now)
    refused = replace_all(cluster, BROKER_RESOURCE, "", message_max_bytes="8")
    assert refused.error_message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert cluster.image.configs == {(BROKER_RESOURCE, ""): kept}


def test_the_older_request_too_elects_at_once_when_it_allows_unclean_elections() -> None:
    cluster = ready()
    cluster.alter("t", (1,))
    cluster.fence(1)
    replace_all(cluster, TOPIC_RESOURCE, "t", unclean_leader_election_enable="true")
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))


def test_validate_only_changes_nothing() -> None:
    cluster = ready()
    assert alter(cluster, topic(("retention.ms", SET, "5")), validate_only=True)[0].error_code == E.NONE
    assert alter(cluster, topic(("retention.ms", SET, "x")), validate_only=True)[0].error_code == E.INVALID_CONFIG
    assert cluster.image.configs == NOTHING_SET


def test_min_isr_of_one_broker_is_refused_under_elr() -> None:
    """T1, T13: controller and brokers must agree on min ISR."""
    cluster = ready()
    cluster.controller.write([ELR_ON], cluster.now)
    one = broker(("min.insync.replicas", SET, "1"), name="1")
    gone = broker(("min.insync.replicas", DELETE, None))
    (refused,) = alter(cluster, one)
    assert refused.error_message == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    (refused,) = alter(cluster, gone)
    assert refused.error_message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert alter(cluster, broker(("min.insync.replicas", SET, "2")))[0].error_code == E.NONE


def test_allowing_unclean_elections_elects_at_once() -> None:
    cluster = ready()
    cluster.alter("t", (1,))
    cluster.fence(1)
    assert cluster.partition("t").leader == -1
    alter(cluster, topic(("unclean.leader.election.enable", SET, "true")))
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))


@pytest.mark.parametrize("make", [topic, broker])
def test_a_new_min_isr_ends_the_eligibility_by_the_old_one(make: Callable[..., AlterConfigsResource]) -> None:
    """T2: with min ISR 1 the leader commits alone, so the log of an eligible replica goes stale at once."""
    cluster = Cluster(brokers=2, static={"min.insync.replicas": 2})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2), (1, 2))
    cluster.alter("t", (1,))
    assert cluster.partition("t").elr == (2,)
    epochs = cluster.partition("t").partition_epoch, cluster.partition("t", 1).partition_epoch
    assert alter(cluster, make(("min.insync.replicas", SET, "1")))[0].error_code == E.NONE
    assert (cluster.partition("t").elr, cluster.partition("t").partition_epoch) == ((), epochs[0] + 1)
    assert cluster.partition("t", 1).partition_epoch == epochs[1] + 1


@pytest.mark.parametrize("make", [topic, broker])
def test_a_leader_that_has_not_heard_of_a_new_min_isr_is_refused(make: Callable[..., AlterConfigsResource]) -> None:
    """L7: the answer would overtake the log, and the leader commit alone to what the controller calls eligible."""
    cluster = Cluster(brokers=2, static={"min.insync.replicas": 1})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2))
    before = cluster.proposal("t", (1,))
    assert alter(cluster, make(("min.insync.replicas", SET, "2")))[0].error_code == E.NONE
    (answer,) = cluster.ask(before, version=3).topics[0].partitions
    assert answer.error_code == E.INVALID_UPDATE_VERSION
    assert (cluster.partition("t").isr, cluster.partition("t").leader_epoch) == ((1, 2), 0)


def test_what_elr_left_behind_ends_with_another_min_isr_although_it_is_off() -> None:
    """Else it would be believed again once ELR is on, and with min ISR 1 the leader has committed alone."""
    cluster = Cluster(brokers=2, static={"min.insync.replicas": 2})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    cluster.controller.write([FeatureLevelRecord(name=ELR_ON.name, feature_level=0)], cluster.now)
    assert cluster.partition("t").elr == (2,)
    assert alter(cluster, topic(("min.insync.replicas", SET, "1")))[0].error_code == E.NONE
    assert cluster.partition("t").elr == ()


SAME_EFFECT = [
    ("the value as it is", True, (("min.insync.replicas", SET, "2"),)),
    ("a value that no partition has the replicas for", True, (("min.insync.replicas", SET, "5"),)),
    ("another key", True, (("retention.ms", SET, "5"),)),
    ("without ELR nobody is eligible by min ISR", False, (("min.insync.replicas", SET, "1"),)),
]


@pytest.mark.parametrize(("title", "elr", "rows"), SAME_EFFECT, ids=[row[0] for row in SAME_EFFECT])
def test_what_leaves_min_isr_in_effect_touches_no_partition(
    title: str, elr: bool, rows: tuple[tuple[str, int, str], ...]
) -> None:
    """T3."""
    cluster = Cluster(brokers=2, static={"min.insync.replicas": 2}, elr=elr)
    cluster.create("t", (1, 2))
    before = cluster.partition("t")
    assert alter(cluster, topic(*rows))[0].error_code == E.NONE
    assert cluster.partition("t") is before


def test_asking_only_whether_a_min_isr_is_valid_touches_no_partition() -> None:
    cluster = Cluster(brokers=2, static={"min.insync.replicas": 2})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2))
    before = cluster.partition("t")
    assert alter(cluster, topic(("min.insync.replicas", SET, "1")), validate_only=True)[0].error_code == E.NONE
    assert cluster.partition("t") is before
