"""Metadata is applied in steps of so many records, and nobody sees a batch of which only a part is applied."""

from typing import Any

from tests.unit.authorizing.one_node import ROOT, OneNode
from tests.unit.broker.test_committed import GOOD, NOW, UNKNOWN, acl, opened, state, write

from strandline.base.ids import TopicIdPartition, Uuid
from strandline.broker.committed import Committed
from strandline.metadata.framing import encode_record
from strandline.metadata.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionRecord,
    TopicRecord,
)
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.snapshot_file import encode_snapshot
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.metadata import MetadataRequest

T = Uuid(b"t" * 16)


def in_steps(limit: int) -> Committed:
    committed = Committed(opened())
    committed.step_records = limit
    return committed


def advance(committed: Committed) -> list[tuple[int, int | None]]:
    """The state after each step, until there is no more."""
    states: list[tuple[int, int | None]] = []
    while not states or committed.has_more:
        committed.advance(committed.log.log_end_offset, NOW)
        states.append(state(committed))
    return states


def topic(partitions: int) -> list[TopicRecord | PartitionRecord]:
    where = {"replicas": (1,), "isr": (1,), "leader": 1, "directories": (Uuid(bytes(16)),)}
    rows: list[Any] = [
        PartitionRecord(partition_id=at, topic_id=T, leader_epoch=0, partition_epoch=0, **where)  # type: ignore[arg-type]  # of several types
        for at in range(partitions)
    ]
    return [TopicRecord(name="t", topic_id=T), *rows]


def test_a_step_applies_as_many_whole_batches_as_it_has_room_for() -> None:
    committed = in_steps(3)
    for one in GOOD:
        write(committed.log, one)
    write(committed.log, GOOD[0], GOOD[1])
    write(committed.log, GOOD[2], GOOD[3])
    assert advance(committed) == [(3, 9), (6, 8), (8, 10)]


def test_a_batch_that_takes_several_steps_counts_as_a_whole_after_the_last_of_them() -> None:
    committed = in_steps(2)
    write(committed.log, GOOD[0])
    committed.advance(1, NOW)
    committed.image.take_delta()
    write(committed.log, *topic(3), GOOD[1])
    write(committed.log, GOOD[2])
    seen = []
    while not seen or committed.has_more:
        committed.advance(committed.log.log_end_offset, NOW)
        there = committed.image.topics.get(T)
        seen.append((*state(committed), None if there is None else len(there.partitions)))
        if committed.end < 6:
            assert not committed.image.delta, "nothing has changed yet"
    assert seen == [(1, 7, None), (1, 7, None), (6, 8, 3), (7, 9, 3)]
    delta = committed.image.take_delta()
    assert list(delta.partitions) == [TopicIdPartition(T, at) for at in range(3)]
    assert not delta.reloaded, "who follows the image need not look at all of it"
    committed.image.check()


def test_nothing_is_left_of_a_batch_whose_last_step_finds_a_record_that_does_not_fit() -> None:
    committed = in_steps(2)
    write(committed.log, GOOD[0])
    base = write(committed.log, *topic(3), UNKNOWN)
    write(committed.log, GOOD[3])
    assert advance(committed) == [(1, 7)] * 4
    assert committed.unfit is not None
    assert (committed.unfit.offset, committed.unfit.sound.end_offset) == (base + 4, base)
    assert not committed.image.topics
    assert not committed.image.transaction
    assert advance(committed) == [(1, 7)], "nothing is skipped"


def test_acls_that_came_in_several_steps_are_another_version_of_them() -> None:
    committed = in_steps(2)
    before = committed.image.acls_version
    write(committed.log, *map(acl, range(1, 6)))
    assert len(advance(committed)) == 3
    assert len(committed.image.acls) == 5
    assert committed.image.acls_version > before


def test_a_snapshot_is_loaded_in_steps_and_the_old_image_counts_until_then() -> None:
    committed = in_steps(2)
    write(committed.log, GOOD[0])
    advance(committed)
    snapshot = SnapshotId(9, 1)
    committed.log.begin_part(snapshot)
    content = encode_snapshot([encode_record(one) for one in [GOOD[1], *topic(4)]], 1, NOW)
    committed.log.append_part(snapshot, content)
    assert committed.log.name_part(snapshot) is None
    committed.log.install_snapshot(snapshot)
    assert advance(committed) == [(1, 7), (1, 7), (1, 7), (9, 8)]
    assert len(committed.image.topics[T].partitions) == 4
    assert committed.image.delta.reloaded


def test_a_transaction_goes_on_over_a_batch_of_several_steps() -> None:
    committed = in_steps(2)
    write(committed.log, BeginTransactionRecord(), *topic(3))
    write(committed.log, GOOD[1])
    advance(committed)
    assert not committed.image.topics, "the transaction has not ended"
    assert state(committed) == (6, None)
    write(committed.log, EndTransactionRecord())
    advance(committed)
    assert len(committed.image.topics[T].partitions) == 3
    assert state(committed) == (7, 8)


def test_a_node_answers_between_two_steps_by_what_is_applied() -> None:
    world = OneNode()
    node = world.node
    node.committed.step_records = 4
    of_brokers = MetadataRequest(topics=(), allow_auto_topic_creation=False)
    request = CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=20, replication_factor=1),))
    before = node.applied_end
    created = world.send(request, 7, ROOT)
    steps = 0
    while node.committed.has_more:
        assert node.deadline() <= world.now, "the next step follows at once"
        assert node.applied_end == before, "which is what heartbeats report"
        assert "t" not in node.image.topic_ids
        assert world.send(of_brokers, 12, ROOT) in world.answers, "others do not wait"
        world.perform(node.expire(world.now))
        steps += 1
    assert steps > 2
    assert created in world.answers
    assert len(node.image.topics[node.image.topic_ids["t"]].partitions) == 20
