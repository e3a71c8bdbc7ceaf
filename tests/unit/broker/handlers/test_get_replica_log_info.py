"""GetReplicaLogInfo, as a broker answers it (KIP-966)."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, CALLER
from tests.unit.replica.storage.test_directories import HOME, ROOTS, Jbod, directory

from strandline.base.effects import Received, Reply, ReplyTo
from strandline.base.errors import ErrorCode as E
from strandline.base.ids import NOBODY, ZERO_UUID, NodeId, TopicIdPartition, Uuid
from strandline.broker.handlers import get_replica_log_info
from strandline.broker.lifecycle import Identity, Lifecycle, LifecycleConfig, Registered
from strandline.broker.metrics.gauges import of_replicas
from strandline.metadata import records as r
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.own.get_replica_log_info import (
    PARTITIONS_MAX,
    GetReplicaLogInfoRequest,
    PartitionLogInfo,
    TopicPartitions,
)


class FakeBroker:
    def __init__(self, jbod: Jbod, node: NodeId, previous_epoch: int) -> None:
        self.replicas = jbod.nodes[node]
        self.lifecycle = Lifecycle(
            Identity(node, "cluster", ZERO_UUID, (), {}, None, previous_epoch, {}), LifecycleConfig()
        )
        self.lifecycle.role = Registered(jbod.nodes[node].broker_epoch, fenced=False)


class FakeNode:
    def __init__(self, jbod: Jbod, node: NodeId, previous_epoch: int) -> None:
        self.me = node
        self.broker = FakeBroker(jbod, node, previous_epoch)


@pytest.fixture
def jbod() -> Jbod:
    made = Jbod()
    made.create_in(*HOME)
    made.produce(1, 3)
    made.run(1_000)
    return made


def ask(
    jbod: Jbod,
    node: int = 1,
    at: tuple[TopicIdPartition, ...] | None = (AT,),
    *,
    broker_id: int | None = None,
    previous_epoch: int = 7,
) -> Any:
    """The answer, as the asker would read it from the wire."""
    topics = None if at is None else tuple(TopicPartitions(topic_id=t, partitions=(n,)) for t, n in at)
    message = GetReplicaLogInfoRequest(broker_id=node if broker_id is None else broker_id, topic_partitions=topics)
    to = ReplyTo(1, 1, 1, message.api_key, 0)
    asked = FakeNode(jbod, NodeId(node), previous_epoch)
    (reply,) = get_replica_log_info.answer(asked, Received(to, CALLER, message), jbod.now)  # type: ignore[arg-type]
    assert isinstance(reply, Reply)
    return decode_all(type(reply.message), 0, memoryview(bytearray(encode_bytes(reply.message, 0))))


def row(*args: Any, **named: Any) -> PartitionLogInfo:
    (topic,) = ask(*args, **named).topic_partition_log_info_list
    (only,) = topic.partition_log_info
    assert isinstance(only, PartitionLogInfo)
    return only


def test_a_replica_reports_how_much_of_the_log_it_has_and_which_incarnation_says_so(jbod: Jbod) -> None:
    jbod.cut = {NodeId(3)}
    jbod.produce(1, 4)
    assert ask(jbod).broker_epoch == jbod.nodes[NodeId(1)].broker_epoch
    assert row(jbod) == PartitionLogInfo(
        partition=0,
        last_written_leader_epoch=0,
        current_leader_epoch=0,
        log_end_offset=7,
        high_watermark=3,
        log_start_offset=0,
        last_stable_offset=3,
        is_whole=True,
    )
    assert row(jbod, 2).log_end_offset == 7
    assert row(jbod, 3).log_end_offset == 3


def test_the_current_epoch_is_that_of_the_metadata_and_the_last_written_one_that_of_the_last_record(jbod: Jbod) -> None:
    jbod.change(leader=NodeId(2))
    jbod.change(leader=NodeId(1))
    info = row(jbod)
    assert (info.current_leader_epoch, info.last_written_leader_epoch) == (2, 0), "nothing was written since"
    jbod.produce(1, 1)
    info = row(jbod)
    assert (info.current_leader_epoch, info.last_written_leader_epoch) == (2, 2)


def test_a_replica_that_does_not_know_the_latest_election_answers_with_an_older_epoch(jbod: Jbod) -> None:
    jbod.change(leader=NOBODY, skip=(2,))
    assert [row(jbod, node).current_leader_epoch for node in (1, 2, 3)] == [1, 0, 1]


def test_an_empty_log_has_no_last_written_epoch_though_its_leader_began_one() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    jbod.change(leader=NodeId(1))
    info = row(jbod)
    assert (info.log_end_offset, info.last_written_leader_epoch, info.current_leader_epoch) == (0, -1, 1)


@pytest.mark.parametrize(("previous", "uncleanly"), [(7, False), (0, False), (-1, True)])
def test_a_process_that_began_after_an_unclean_stop_says_so(jbod: Jbod, previous: int, uncleanly: bool) -> None:
    assert row(jbod, previous_epoch=previous).recovered_uncleanly is uncleanly


def test_a_broker_that_was_not_meant_reports_nothing(jbod: Jbod) -> None:
    info = row(jbod, 1, broker_id=2)
    assert (info.error_code, info.log_end_offset) == (E.INVALID_REQUEST, -1)
    assert info.error_message == "this is broker 1, and broker 2 was asked"


def test_what_it_does_not_know_or_have_is_refused_with_the_partitions_index(jbod: Jbod) -> None:
    def refused(at: TopicIdPartition) -> tuple[int, int]:
        info = row(jbod, 1, (at,))
        assert info.error_message
        assert info.log_end_offset == -1
        return info.partition, info.error_code

    other = Uuid(b"o" * 16)
    assert refused(TopicIdPartition(other, 5)) == (5, E.UNKNOWN_TOPIC_ID)
    assert refused(TopicIdPartition(AT.topic_id, 9)) == (9, E.UNKNOWN_TOPIC_OR_PARTITION)
    record = r.PartitionRecord(
        partition_id=4,
        topic_id=AT.topic_id,
        replicas=(2,),
        isr=(2,),
        leader=2,
        leader_epoch=0,
        partition_epoch=0,
        directories=(directory(2, 0),),
    )
    jbod.commit(record)
    assert refused(TopicIdPartition(AT.topic_id, 4)) == (4, E.NOT_LEADER_OR_FOLLOWER)


def test_a_log_that_waits_to_be_made_is_asked_for_again(jbod: Jbod) -> None:
    replicas = jbod.nodes[NodeId(1)]
    hosted = replicas.host.partitions.find(AT)
    assert hosted is not None
    hosted.role = None
    assert row(jbod).error_code == E.REPLICA_NOT_AVAILABLE
    replicas.host.drop(hosted)
    assert row(jbod).error_code == E.REPLICA_NOT_AVAILABLE


def test_a_replica_whose_directory_is_offline_is_refused_with_the_partitions_index(jbod: Jbod) -> None:
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    info = row(jbod)
    assert (info.partition, info.error_code) == (0, E.KAFKA_STORAGE_ERROR)
    assert row(jbod, 2).error_code == E.NONE


def test_a_replica_in_a_directory_that_was_dead_at_the_start_is_in_one_that_is_offline(jbod: Jbod) -> None:
    jbod.kill(NodeId(1))
    jbod.dead = ("/d0",)
    jbod.start(NodeId(1), clean=False)
    assert row(jbod).error_code == E.KAFKA_STORAGE_ERROR


def test_a_replica_in_a_directory_that_the_broker_does_not_have_is_not_found(jbod: Jbod) -> None:
    """Another directory is offline, so the log may lie there: an empty one in its place could lead."""
    jbod.fail(1, ROOTS[1])
    jbod.kill(NodeId(1))
    jbod.disks[NodeId(1)].remove_tree(f"{ROOTS[0]}/t-0")
    jbod.change(directories=(Uuid(b"z" * 16), *HOME[1:]))
    jbod.controller_answers = False
    jbod.start(NodeId(1), clean=False)
    assert row(jbod).error_code == E.LOG_DIR_NOT_FOUND


def test_2000_partitions_are_answered_and_each_one_more_is_to_be_asked_for_again(jbod: Jbod) -> None:
    answer = ask(jbod, at=(AT,) * (PARTITIONS_MAX + 2))
    (topic,) = answer.topic_partition_log_info_list
    codes = [info.error_code for info in topic.partition_log_info]
    assert codes == [E.NONE] * 2000 + [E.REQUEST_LIMIT_REACHED] * 2
    assert {info.partition for info in topic.partition_log_info} == {0}
    assert topic.partition_log_info[-1].log_end_offset == -1
    (topic,) = ask(jbod, at=(AT,) * PARTITIONS_MAX).topic_partition_log_info_list
    assert {info.error_code for info in topic.partition_log_info} == {E.NONE}


def test_a_request_without_topics_gets_all_that_the_broker_has(jbod: Jbod) -> None:
    (topic,) = ask(jbod, at=None).topic_partition_log_info_list
    assert (topic.topic_id, [info.partition for info in topic.partition_log_info]) == (AT.topic_id, [0])
    assert ask(jbod, at=()).topic_partition_log_info_list == ()


def test_what_the_disk_has_damaged_is_reported_until_it_is_repaired(jbod: Jbod) -> None:
    disk: Any = jbod.disks[NodeId(1)]
    hosted = jbod.nodes[NodeId(1)].host.partitions.find(AT)
    assert hosted is not None
    hosted.log.tail.clear()
    disk.flip(hosted.log.active.path, 64, 0)
    jbod.cut = {NodeId(2), NodeId(3)}
    assert jbod.consume(1, 0)().error_code == E.CORRUPT_MESSAGE
    jbod.run(10)
    found = {family.metric.name: family.samples for family in of_replicas(jbod.nodes[NodeId(1)], [])}
    counts = [found[f"strandline_replica_Scrubber_{name}"] for name in ("Damaged_total", "UnrepairedCount")]
    assert counts == [[((), 1)], [((), 1)]]
    (row,) = rows(jbod)
    assert (row.damaged_start, row.damaged_end) == (0, 3)
    jbod.cut = set()
    jbod.run(5_000)
    (row,) = rows(jbod)
    assert (row.damaged_start, row.damaged_end) == (-1, -1)
    found = {family.metric.name: family.samples for family in of_replicas(jbod.nodes[NodeId(1)], [])}
    counts = [found[f"strandline_replica_Scrubber_{name}"] for name in ("Repaired_total", "UnrepairedCount")]
    assert counts == [[((), 1)], [((), 0)]]


def rows(jbod: Jbod) -> Any:
    return ask(jbod).topic_partition_log_info_list[0].partition_log_info
