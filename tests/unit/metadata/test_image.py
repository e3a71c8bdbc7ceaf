"""The image: what each record makes of it, and what its questions answer."""

from typing import Any

import pytest

from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.metadata import records as r
from strandline.metadata.image import (
    BROKER_RESOURCE,
    FROM_CLUSTER_DEFAULT,
    FROM_DEFAULT,
    FROM_STATIC,
    FROM_TOPIC,
    TOPIC_RESOURCE,
    Image,
)
from strandline.metadata.registrations import registration_record
from strandline.metadata.security.records import EntityData

T = Uuid(b"t" * 16)
AT = TopicIdPartition(T, 0)


def topic(name: str = "t", topic_id: Uuid = T) -> r.TopicRecord:
    return r.TopicRecord(name=name, topic_id=topic_id)


def partition(**fields: Any) -> r.PartitionRecord:
    values: dict[str, Any] = {
        "partition_id": 0,
        "topic_id": T,
        "replicas": (1, 2, 3),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 7,
    }
    return r.PartitionRecord(**{**values, **fields})


def change(**fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(partition_id=0, topic_id=T, **fields)


def broker(**fields: Any) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(
        **{
            "broker_id": 1,
            "incarnation_id": Uuid(b"i" * 16),
            "broker_epoch": 40,
            "end_points": (r.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092),),
            "features": (r.BrokerFeature(name="metadata.version", min_supported_version=1, max_supported_version=27),),
            "rack": "a",
            "log_dirs": (Uuid(b"d" * 16),),
            **fields,
        }
    )


def test_the_security_protocol_of_a_listener_outlives_changes_and_snapshots() -> None:
    image = Image()
    ends = (
        r.BrokerEndpoint(name="A", host="h", port=1),
        r.BrokerEndpoint(name="B", host="h", port=2, security_protocol=3),
    )
    image.apply(broker(end_points=ends))
    image.apply(r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=40, fenced=-1))
    assert registration_record(image.brokers[NodeId(1)]).end_points == ends


def config(kind: int, name: str, key: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def acl(acl_id: Uuid = T, **fields: Any) -> r.AccessControlEntryRecord:
    values: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "t",
        "pattern_type": 4,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 2,
    }
    return r.AccessControlEntryRecord(**{"id": acl_id, **values, **fields})


def scram(name: str, mechanism: int = 1, salt: bytes = b"salt", iterations: int = 4096) -> r.UserScramCredentialRecord:
    return r.UserScramCredentialRecord(
        name=name, mechanism=mechanism, salt=salt, stored_key=b"stored", server_key=b"server", iterations=iterations
    )


def quota(value: float | None, *parts: tuple[str, str | None], key: str = "producer_byte_rate") -> r.ClientQuotaRecord:
    entity = tuple(EntityData(kind, name) for kind, name in parts)
    return r.ClientQuotaRecord(entity=entity, key=key, value=value or 0.0, remove=value is None)


def image_of(*records: Any) -> Image:
    image = Image()
    for record in records:
        image.apply(record)
        image.check()
    return image


def test_a_change_without_a_leader_keeps_the_leader_epoch() -> None:
    new = image_of(topic(), partition(), change(isr=(1, 3))).partition(AT)
    assert new is not None
    assert (new.isr, new.leader, new.leader_epoch, new.partition_epoch) == ((1, 3), 1, 4, 8)


@pytest.mark.parametrize("leader", [1, 2, -1])
def test_a_named_leader_opens_a_leader_epoch_even_if_it_leads_already(leader: int) -> None:
    new = image_of(topic(), partition(), change(leader=leader)).partition(AT)
    assert new is not None
    assert (new.leader, new.leader_epoch, new.partition_epoch) == (leader, 5, 8)


def test_directories_follow_their_replicas() -> None:
    a, b, c = (Uuid(bytes([n]) * 16) for n in (1, 2, 3))
    new = image_of(topic(), partition(directories=(a, b, c)), change(replicas=(3, 1, 4), isr=(1,))).partition(AT)
    assert new is not None
    assert new.directories == (c, a, Uuid(bytes(16)))


def test_the_indexes_follow_isr_elr_and_deletion() -> None:
    image = image_of(topic(), partition(), change(isr=(1,), eligible_leader_replicas=(2,)))
    assert [AT in image.eligible.get(NodeId(n), {}) for n in (1, 2, 3)] == [True, True, False]
    image.apply(r.RemoveTopicRecord(topic_id=T))
    image.check()
    assert not any(image.hosted.values()) and not any(image.eligible.values())


def test_a_recreated_topic_has_nothing_of_the_old_one() -> None:
    """T4: names are resolved where the record stands."""
    image = image_of(topic(), partition(), config(TOPIC_RESOURCE, "t", "retention.ms", "1"))
    image.apply(r.RemoveTopicRecord(topic_id=T))
    image.apply(topic(topic_id=Uuid(b"u" * 16)))
    assert not image.configs and image.partition(AT) is None
    found = image.topic_named("t")
    assert found is not None and found.topic_id == Uuid(b"u" * 16) and not found.partitions


def test_fencing_and_shutdown_are_deltas() -> None:
    def active_after(*changes: tuple[int, int]) -> list[bool]:
        image = image_of(broker())
        seen = []
        for fenced, shutdown in changes:
            image.apply(
                r.BrokerRegistrationChangeRecord(
                    broker_id=1, broker_epoch=40, fenced=fenced, in_controlled_shutdown=shutdown
                )
            )
            seen.append(image.is_active(NodeId(1)))
        return seen

    assert active_after((-1, 0), (0, 1), (1, 0)) == [True, False, False]
    assert active_after((0, 0), (-1, 0), (1, 0), (-1, 0)) == [False, True, False, True]
    assert not image_of().is_active(NodeId(1))


def test_a_value_comes_from_the_topic_the_cluster_the_node_or_the_table() -> None:
    image = image_of(topic())
    static = {"log.retention.hours": 3}
    key = "retention.ms"
    assert image.config_in_force("t", key, {}) == (7 * 24 * 3_600_000, FROM_DEFAULT)
    assert image.config_in_force("t", key, static) == (3 * 3_600_000, FROM_STATIC)
    image.apply(config(BROKER_RESOURCE, "1", "log.retention.ms", "8"))
    assert image.config_in_force("t", key, static) == (3 * 3_600_000, FROM_STATIC), "another broker's own value"
    image.apply(config(BROKER_RESOURCE, "", "log.retention.minutes", "2"))
    assert image.config_in_force("t", key, static) == (120_000, FROM_CLUSTER_DEFAULT)
    image.apply(config(BROKER_RESOURCE, "", "log.retention.minutes", "-1"))
    assert image.config_in_force("t", key, static) == (-1, FROM_CLUSTER_DEFAULT)
    image.apply(config(TOPIC_RESOURCE, "t", key, "9"))
    assert image.config_in_force("t", key, static) == (9, FROM_TOPIC)
    image.apply(config(TOPIC_RESOURCE, "t", key, None))
    assert image.topic_config("t", key, static) == -1


@pytest.mark.parametrize(
    ("configured", "replicas", "adding", "effective"),
    [("2", (1, 2, 3), (), 2), ("4", (1, 2, 3), (), 3), ("3", (1, 2, 3), (3,), 2), ("2", (1,), (), 1)],
)
def test_effective_min_isr(configured: str, replicas: tuple[int, ...], adding: tuple[int, ...], effective: int) -> None:
    """T19, L2: per partition, and replicas that are only being added do not count."""
    image = image_of(
        topic(),
        partition(replicas=replicas, isr=(1,), adding_replicas=adding),
        config(TOPIC_RESOURCE, "t", "min.insync.replicas", configured),
    )
    found = image.partition(AT)
    assert found is not None
    assert image.effective_min_isr(image.topics[T], found) == effective


def test_the_elr_of_a_partition_without_an_isr_is_not_cleared() -> None:
    """L6: otherwise only an unclean election would be left; and nothing can be committed there."""
    image = image_of(topic(), partition(isr=(), leader=-1, eligible_leader_replicas=(2,), last_known_elr=(1,)))
    before = image.partition(AT)
    for name in ("", "t"):
        image.apply(r.ClearElrRecord(topic_name=name))
        assert image.partition(AT) is before


def test_an_elr_is_cleared_once() -> None:
    image = image_of(topic(), partition(isr=(1,), eligible_leader_replicas=(2,)))
    image.apply(r.ClearElrRecord(topic_name=""))
    image.check()
    new = image.partition(AT)
    assert new is not None
    assert (new.elr, new.last_known_elr, new.partition_epoch) == ((), (), 8)
    image.apply(r.ClearElrRecord(topic_name="t"))
    assert image.partition(AT) is new, "nothing is left to clear"


def test_the_delta_remembers_what_was_before() -> None:
    image = image_of(topic(), partition())
    first = image.take_delta()
    assert first.topics == {T: None} and first.partitions == {AT: None}
    old = image.partition(AT)
    image.apply(change(isr=(1,)))
    image.apply(change(isr=(1, 2)))
    second = image.take_delta()
    assert second.partitions == {AT: old}, "the value before the first change, not the last"
    assert not image.delta


def test_a_copy_is_independent() -> None:
    image = image_of(broker(), topic(), partition(), config(TOPIC_RESOURCE, "t", "retention.ms", "1"))
    twin = image.copy()
    assert not twin.delta
    twin.apply(change(isr=(2,), leader=2))
    twin.apply(r.RemoveTopicRecord(topic_id=T))
    twin.apply(r.UnregisterBrokerRecord(broker_id=1, broker_epoch=40))
    image.check()
    old = image.partition(AT)
    assert old is not None and old.isr == (1, 2)
    assert NodeId(1) in image.brokers and image.configs


def test_neither_of_two_copies_sees_what_the_other_changes_in_a_topic_that_they_share() -> None:
    """Each has changed the topic before, and so had it for itself."""
    image = image_of(topic(), partition(), partition(partition_id=1))
    for _ in range(2):
        twin = image.copy()
        before = image.partition(AT)
        twin.apply(change(leader=2))
        assert image.partition(AT) == before != twin.partition(AT)
        image, twin = twin, image
        before = image.partition(AT)
        twin.apply(change(isr=(1, 2, 3), leader=3))
        assert image.partition(AT) == before != twin.partition(AT)
        image.check()
        twin.check()


def test_a_topic_is_copied_once_and_not_for_each_of_its_partitions() -> None:
    image = image_of(topic(), partition())
    partitions = image.topics[T].partitions
    for index in range(1, 9):
        image.apply(partition(partition_id=index))
    assert image.topics[T].partitions is partitions
    twin = image.copy()
    twin.apply(change(leader=2))
    image.apply(change(leader=2))
    assert image.topics[T].partitions is not partitions
    assert twin.topics[T].partitions is not image.topics[T].partitions


def test_a_snapshot_says_everything() -> None:
    image = image_of(
        r.FeatureLevelRecord(name="metadata.version", feature_level=27),
        broker(fenced=False, in_controlled_shutdown=True),
        broker(broker_id=2, rack=None),
        topic(),
        partition(eligible_leader_replicas=(3,), last_known_elr=(), leader_recovery_state=1),
        config(BROKER_RESOURCE, "", "min.insync.replicas", "2"),
        r.ProducerIdsRecord(broker_id=1, broker_epoch=40, next_producer_id=1000),
        acl(),
        acl(Uuid(b"u" * 16), resource_type=5, resource_name="x", pattern_type=3, host="::1", permission_type=3),
        scram("alice"),
        scram("alice", mechanism=2),
        quota(1.5, ("user", "alice"), ("client-id", None)),
        quota(7.0, ("ip", "10.0.0.1")),
    )
    twin = image_of(*image.records())
    names = ("topics", "topic_ids", "brokers", "configs", "features", "next_producer_id", "hosted", "eligible")
    for name in (*names, "acls", "acl_ids", "scram", "quotas"):
        assert getattr(twin, name) == getattr(image, name) != type(getattr(image, name))(), name


def test_a_snapshot_says_all_of_a_partition_whatever_happens_to_it() -> None:
    """A reassignment, an election that lost records, and replicas that are eligible or were: field by field."""
    loss = r.LossEvent(start=3, end=5, certainty=1, replica=2, old_epoch=1, new_epoch=2, time_ms=7, cause="a test")
    image = image_of(
        topic(),
        partition(
            replicas=(1, 2, 3, 4),
            isr=(1,),
            directories=tuple(Uuid(bytes([n]) * 16) for n in (1, 2, 3, 4)),
            adding_replicas=(4,),
            removing_replicas=(2,),
            eligible_leader_replicas=(3,),
            last_known_elr=(2,),
            leader_recovery_state=1,
            losses=(loss,),
        ),
        r.PartitionChangeRecord(partition_id=0, topic_id=T, isr=(), leader=-1, last_known_leader=1),
    )
    before = image.partition(AT)
    after = image_of(*image.records()).partition(AT)
    assert before is not None
    assert after is not None
    unchanged = [name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    assert unchanged == []
    empty = [
        name
        for name in ("adding_replicas", "removing_replicas", "elr", "last_known_elr", "losses")
        if not getattr(before, name)
    ]
    assert empty == [], "a field without a value would say nothing"


def test_a_loss_is_reported_beside_those_before_it() -> None:
    first, second = (r.LossEvent(start=at, end=at + 1, time_ms=at) for at in (3, 7))
    image = image_of(topic(), partition(losses=(first,)), change(losses=(second,)), change(isr=(1,)))
    after = image.partition(AT)
    assert after is not None
    assert after.losses == (first, second)


def test_a_credential_is_replaced_and_removed_and_shows_its_keys_nowhere() -> None:
    image = image_of(scram("alice"), scram("alice", mechanism=2), scram("alice", salt=b"new"))
    assert image.scram["alice", 1].salt == b"new"
    for shown in (repr(image.scram), str(image.scram["alice", 2]), repr(scram("alice")), str(scram("alice"))):
        assert "alice" in shown or "SHA-512" in shown
        assert not any(secret in shown for secret in ("salt", "new", "stored", "server"))
    twin = image.copy()
    twin.apply(r.RemoveUserScramCredentialRecord(name="alice", mechanism=1))
    twin.check()
    assert list(twin.scram) == [("alice", 2)]
    assert ("alice", 1) in image.scram


def test_an_entity_is_the_same_in_any_order_and_there_as_long_as_it_has_a_quota() -> None:
    a, b = ("user", "alice"), ("client-id", None)
    image = image_of(quota(1.0, a, b), quota(2.0, b, a), quota(3.0, b, a, key="request_percentage"))
    assert image.quotas == {(b, a): {"producer_byte_rate": 2.0, "request_percentage": 3.0}}
    twin, version = image.copy(), image.quotas_version
    for key in ("producer_byte_rate", "request_percentage", "request_percentage"):
        twin.apply(quota(None, a, b, key=key))
        twin.check()
    assert not twin.quotas
    assert image.quotas[b, a]["producer_byte_rate"] == 2.0
    assert twin.quotas_version > version == image.quotas_version


@pytest.mark.parametrize("record", [change(isr=(9,)), change(leader=3), change(eligible_leader_replicas=(1,))])
def test_check_finds_a_partition_that_cannot_be(record: r.PartitionChangeRecord) -> None:
    image = image_of(topic(), partition())
    image.apply(record)
    with pytest.raises(AssertionError):
        image.check()


def test_an_unknown_record_is_an_error() -> None:
    with pytest.raises(KeyError):
        Image().apply(object())


def test_an_acl_is_there_until_it_is_removed_and_each_change_has_a_version() -> None:
    image = image_of(acl())
    first = image.acls_version
    twin = image.copy()
    assert (twin.acls, twin.acls_version) == (image.acls, first)
    other = Uuid(b"u" * 16)
    image.apply(acl(other, host="::1"))
    second = image.acls_version
    image.apply(r.RemoveAccessControlEntryRecord(id=T))
    image.check()
    assert first < second < image.acls_version
    assert [found.host for found in image.acls.values()] == ["::1"]
    assert list(twin.acls) == [T], "a copy keeps its own"
    image.apply(acl(Uuid(b"v" * 16)))  # what was removed may come again
    image.check()


def test_an_image_that_takes_the_place_of_another_has_later_acls() -> None:
    """A version never stands for two sets of ACLs: who has derived something from the old image notices the new one."""
    old, new = image_of(acl(), acl(Uuid(b"u" * 16), host="::1")), image_of(acl())
    new.take_place_of(old)
    assert new.acls_version > old.acls_version
    assert new.delta.reloaded
    old.take_place_of(new)
    assert old.acls_version > new.acls_version
