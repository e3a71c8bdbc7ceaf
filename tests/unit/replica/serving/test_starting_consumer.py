"""A consumer that starts at any moment of a topic's first moments has read everything two seconds after the last.

It does what kafka-python does: metadata from one broker, ListOffsets, and fetches in sessions that name a partition
only if its position or its epoch is another; an error makes it ask for metadata again. Every moment is tried with each
broker's metadata, of which one may be behind.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.rows import each
from tests.unit.replica.asking import ask
from tests.unit.replica.conftest import START, World

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, Uuid
from strandline.metadata import records as r
from strandline.wire.batch import batches, build
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from strandline.wire.messages.records.list_offsets import (
    EARLIEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from strandline.wire.record import all_records

pytestmark = pytest.mark.slow  # every moment is tried

OLD, NEW = Uuid(b"id of an old one"), Uuid(b"id of topic t  .")
MAX_WAIT_MS = 30_000  # so a wake-up that is lost is seen
RETRY_MS = 100
TURN_MS = 50


class Consumer:
    """`asks` is the broker whose metadata it goes by."""

    def __init__(self, world: World, asks: NodeId) -> None:
        self.world = world
        self.asks = asks
        self.leader = NodeId(-1)
        self.epoch = -1
        self.position: int | None = None
        self.last_epoch = -1
        self.sessions: dict[NodeId, tuple[int, int]] = {}
        self.known: dict[NodeId, tuple[int, int, int]] = {}  # what each broker's session has of the partition
        self.answer: Callable[[], Any] | None = None
        self.rests_until = 0
        self.values: list[bytes] = []

    def turn(self) -> None:
        if self.answer is not None:
            answered = self.answer()
            if answered is None:
                return
            self.answer = None
            self.take(answered)
        elif self.world.now < self.rests_until:
            return
        elif self.leader < 0:
            self.find_leader()
        elif self.position is None:
            self.find_position()
        else:
            self.fetch()

    def again(self) -> None:
        self.leader, self.rests_until = NodeId(-1), self.world.now + RETRY_MS

    def find_leader(self) -> None:
        topic = self.world.images[self.asks].topic_named("t")
        if topic is None:
            self.again()
        else:
            self.leader, self.epoch = topic.partitions[0].leader, topic.partitions[0].leader_epoch

    def find_position(self) -> None:
        asked = ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(timestamp=EARLIEST),))
        answer = ask(self.world, self.leader, "list_offsets", ListOffsetsRequest(topics=(asked,)), 5)()
        found = answer.topics[0].partitions[0]
        if found.error_code != ErrorCode.NONE:
            self.again()
        else:
            self.position, self.last_epoch = found.offset, -1

    def fetch(self) -> None:
        assert self.position is not None
        for node in [node for node in self.known if node != self.leader]:
            self.leave(node)
        session_id, session_epoch = self.sessions.get(self.leader, (0, 0))
        at = (self.position, self.epoch, self.last_epoch)
        asked = FetchPartition(
            fetch_offset=at[0], current_leader_epoch=at[1], last_fetched_epoch=at[2], partition_max_bytes=1 << 20
        )
        named = self.known.get(self.leader) != at or session_id == 0
        self.known[self.leader] = at
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=(FetchTopic(topic="t", partitions=(asked,)),) if named else (),
        )
        self.answer = ask(self.world, self.leader, "fetch", request, 12)

    def leave(self, node: NodeId) -> None:
        del self.known[node]
        session_id, epoch = self.sessions[node]
        gone = (ForgottenTopic(topic="t", partitions=(0,)),)
        request = FetchRequest(session_id=session_id, session_epoch=epoch, forgotten_topics_data=gone)
        answer = ask(self.world, node, "fetch", request, 12)()
        self.sessions[node] = (answer.session_id, epoch + 1) if answer.error_code == ErrorCode.NONE else (0, 0)

    def take(self, answer: Any) -> None:
        node = self.leader
        if answer.error_code != ErrorCode.NONE:
            self.sessions[node] = (0, 0)
            return
        self.sessions[node] = (answer.session_id, self.sessions.get(node, (0, 0))[1] + 1)
        for topic in answer.responses:
            for part in topic.partitions:
                if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE or part.diverging_epoch.epoch >= 0:
                    self.position = None
                elif part.error_code != ErrorCode.NONE:
                    self.again()
                else:
                    self.read(part.records)

    def read(self, records: Any) -> None:
        plain = b"".join(records) if isinstance(records, tuple) else bytes(records)
        self.values += [record.value for record in all_records(plain) if record.value is not None]
        for header in batches(plain):
            self.position, self.last_epoch = header.next_offset, header.partition_leader_epoch


# --- a topic's first moments


def made(world: World, topic_id: Uuid, skip: tuple[int, ...] = ()) -> None:
    world.commit(
        r.TopicRecord(name="t", topic_id=topic_id),
        r.PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=(1, 2, 3),
            isr=(1, 2, 3),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(Uuid(bytes([node]) * 16) for node in (1, 2, 3)),
        ),
        skip=skip,
    )


def removed(world: World, skip: tuple[int, ...] = ()) -> None:
    world.commit(r.RemoveTopicRecord(topic_id=OLD), skip=skip)


def led(world: World, leader: int, skip: tuple[int, ...] = ()) -> None:
    world.commit(r.PartitionChangeRecord(partition_id=0, topic_id=NEW, leader=leader), skip=skip)


def cut(world: World, *nodes: int) -> None:
    world.cut = set(map(NodeId, nodes))


def put(world: World, leader: int, value: bytes) -> None:
    world.produce(leader, batch=build([(START, None, value, ())]))


Step = Callable[[World], None]
HISTORIES: dict[str, list[Step]] = {
    "it is made, written, and led by others": [
        lambda w: made(w, NEW, skip=(2, 3)),
        lambda w: w.catch_up(NodeId(2)),
        lambda w: put(w, 1, b"0"),
        lambda w: w.catch_up(NodeId(3)),
        lambda w: cut(w, 2, 3),
        lambda w: put(w, 1, b"1"),
        cut,
        lambda w: led(w, 2, skip=(1, 3)),
        lambda w: put(w, 2, b"2"),
        lambda w: w.catch_up(NodeId(1)),
        lambda w: w.catch_up(NodeId(3)),
        lambda w: cut(w, 1),
        lambda w: put(w, 2, b"3"),
        cut,
        lambda w: led(w, 1, skip=(2,)),
        lambda w: w.catch_up(NodeId(2)),
        lambda w: put(w, 1, b"last"),
    ],
    "another one had its name": [
        lambda w: made(w, OLD),
        lambda w: put(w, 1, b"old"),
        lambda w: put(w, 1, b"old"),
        lambda w: removed(w, skip=(1, 3)),
        lambda w: made(w, NEW, skip=(1, 3)),
        lambda w: w.catch_up(NodeId(1)),
        lambda w: put(w, 1, b"last"),
        lambda w: w.catch_up(NodeId(3)),
    ],
    "another one had its name, and is not gone on the leader": [
        lambda w: made(w, OLD),
        lambda w: put(w, 1, b"old"),
        lambda w: put(w, 1, b"old"),
        lambda w: w.run(1_000),
        lambda w: removed(w, skip=(1,)),
        lambda w: made(w, NEW, skip=(1,)),
        lambda w: w.catch_up(NodeId(1)),
        lambda w: put(w, 1, b"last"),
    ],
}
MOMENTS = [(name, moment) for name, steps in HISTORIES.items() for moment in range(len(steps))]


@each("pause_ms", [0, TURN_MS, 700])
@each("asks", [1, 2, 3])
@each(("history", "moment"), MOMENTS, world=World)
def test_it_reads_what_is_there_whenever_it_starts(
    world: World, history: str, moment: int, asks: int, pause_ms: int
) -> None:
    consumer: Consumer | None = None

    def passes(span_ms: int) -> None:
        for _ in range(max(1, span_ms // TURN_MS)):
            if consumer is not None:
                consumer.turn()
            world.run(min(span_ms, TURN_MS))

    for number, step in enumerate(HISTORIES[history]):
        if number == moment:
            consumer = Consumer(world, NodeId(asks))
        step(world)
        passes(pause_ms)
    assert consumer is not None
    passes(2_000)
    log = world.nodes[NodeId(1)].host.partitions.named("t", 0).log
    read = log.read(0, 1 << 20, upto=log.log_end_offset, min_one=True)
    there = [record.value for record in all_records(b"".join(read.buffers))]
    assert there[-1] == b"last"
    assert [value for value in consumer.values if value != b"old"] == there
