"""DescribeLogDirs and AlterReplicaLogDirs, as a broker answers them."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, CALLER
from tests.unit.replica.storage.test_directories import HOME, Jbod, directory

from strandline.base.effects import Received, Reply, ReplyTo
from strandline.base.errors import ErrorCode as E
from strandline.base.ids import NodeId, TopicPartition
from strandline.broker.handlers import alter_replica_log_dirs, describe_log_dirs
from strandline.broker.metrics.gauges import of_cordoned
from strandline.metadata.image import UNASSIGNED_DIRECTORY
from strandline.metadata.records import ConfigRecord
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.cluster.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from strandline.wire.messages.cluster.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


class FakeBroker:
    def __init__(self, jbod: Jbod) -> None:
        self.replicas = jbod.nodes[NodeId(1)]
        self.directories = self.replicas.host.directories
        self.disk = jbod.disks[NodeId(1)]


class FakeNode:
    def __init__(self, jbod: Jbod) -> None:
        self.broker = FakeBroker(jbod)


@pytest.fixture
def jbod() -> Jbod:
    made = Jbod()
    made.create_in(*HOME)
    made.produce(1, 3)
    made.run(100)
    return made


def ask(jbod: Jbod, handler: Any, message: Any, version: int = 4) -> Any:
    to = ReplyTo(1, 1, 1, message.api_key, version)
    (reply,) = handler.answer(FakeNode(jbod), Received(to, CALLER, message), jbod.now)
    assert isinstance(reply, Reply)
    return decode_all(type(reply.message), version, memoryview(bytearray(encode_bytes(reply.message, version))))


def rows(answer: Any) -> dict[str, list[tuple[str, int, bool, int]]]:
    return {
        result.log_dir: [
            (topic.name, row.partition_index, row.is_future_key, row.offset_lag)
            for topic in result.topics
            for row in topic.partitions
        ]
        for result in answer.results
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_every_directory_is_reported_and_what_lies_in_it(jbod: Jbod, version: int) -> None:
    jbod.disks[NodeId(1)].capacity = 1_000_000  # type: ignore[attr-defined]
    answer = ask(jbod, describe_log_dirs, DescribeLogDirsRequest(topics=None), version)
    assert rows(answer) == {"/d0": [("t", 0, False, 0)], "/d1": []}
    first = answer.results[0]
    hosted = jbod.nodes[NodeId(1)].host.partitions.find(AT)
    assert hosted is not None
    assert first.topics[0].partitions[0].partition_size == hosted.log.size_bytes > 0
    assert first.total_bytes == (1_000_000 if version >= 4 else -1)
    assert version < 4 or 0 < first.usable_bytes < 1_000_000


@pytest.mark.parametrize(("asked", "found"), [((), 0), ((DescribableLogDirTopic(topic="t", partitions=(0, 7)),), 1)])
def test_only_what_is_asked_for_is_reported(jbod: Jbod, asked: Any, found: int) -> None:
    answer = ask(jbod, describe_log_dirs, DescribeLogDirsRequest(topics=asked))
    assert sum(map(len, rows(answer).values())) == found
    assert len(answer.results) == 2


def test_a_directory_that_is_offline_is_an_error_of_its_own(jbod: Jbod) -> None:
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    answer = ask(jbod, describe_log_dirs, DescribeLogDirsRequest(topics=None))
    assert [(r.log_dir, r.error_code, len(r.topics)) for r in answer.results] == [
        ("/d0", E.KAFKA_STORAGE_ERROR, 0),
        ("/d1", E.NONE, 0),
    ]


def test_a_move_shows_as_a_future_log_with_its_lag(jbod: Jbod) -> None:
    jbod.controller_answers = False
    wanted = (AlterReplicaLogDirTopic(name="t", partitions=(0, 9)), AlterReplicaLogDirTopic(name="u", partitions=(1,)))
    request = AlterReplicaLogDirsRequest(
        dirs=(AlterReplicaLogDir(path="/d1", topics=wanted), AlterReplicaLogDir(path="/no", topics=wanted[1:]))
    )
    answer = ask(jbod, alter_replica_log_dirs, request, 2)
    assert [(t.topic_name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in answer.results] == [
        ("t", [(0, E.NONE), (9, E.REPLICA_NOT_AVAILABLE)]),
        ("u", [(1, E.REPLICA_NOT_AVAILABLE), (1, E.LOG_DIR_NOT_FOUND)]),
    ]
    response = ask(jbod, describe_log_dirs, DescribeLogDirsRequest(topics=None))
    assert rows(response) == {"/d0": [("t", 0, False, 0)], "/d1": [("t", 0, True, 3)]}
    jbod.run(100)
    response = ask(jbod, describe_log_dirs, DescribeLogDirsRequest(topics=None))
    assert rows(response)["/d1"] == [("t", 0, True, 0)]


ALL_WITH_FOLLOWERS = DescribeLogDirsRequest(topics=None, with_followers=True)


def followers(jbod: Jbod, request: DescribeLogDirsRequest = ALL_WITH_FOLLOWERS, version: int = 4) -> Any:
    answer = ask(jbod, describe_log_dirs, request, version)
    ((_, (row,)),) = [(t.name, t.partitions) for result in answer.results for t in result.topics]
    if row.followers is None:
        return None
    return [(f.replica_id, f.log_end_offset, f.lag_records, f.lag_bytes) for f in row.followers]


def test_a_leader_reports_how_far_a_follower_out_of_sync_is_behind_its_log() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    jbod.produce(1, 3)
    jbod.run(100)
    hosted = jbod.nodes[NodeId(1)].host.partitions.find(AT)
    assert hosted is not None
    assert followers(jbod) == []  # all are in sync
    before = hosted.log.size_bytes
    jbod.kill(NodeId(3))
    for _ in range(4):
        jbod.produce(1, 5)
    jbod.run(60_000)
    assert hosted.role is not None
    assert jbod.row(1)[4] == (1, 2)
    assert followers(jbod) == [(3, 3, 20, hosted.log.size_bytes - before)]


def test_of_a_follower_that_has_never_fetched_nothing_is_known() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    jbod.kill(NodeId(3))
    jbod.change(isr=(NodeId(1), NodeId(2)), leader=NodeId(2))
    jbod.change(leader=NodeId(1))
    jbod.produce(1, 3)
    jbod.run(100)
    assert followers(jbod) == [(3, -1, -1, -1)]


def test_a_client_that_does_not_ask_for_followers_gets_kafkas_answer(jbod: Jbod) -> None:
    assert followers(jbod, DescribeLogDirsRequest(topics=None)) is None
    assert followers(jbod, ALL_WITH_FOLLOWERS, 1) is None  # there are no tagged fields yet
    jbod.change(leader=NodeId(2))
    assert followers(jbod) is None  # it does not lead any more


def cordon(jbod: Jbod, value: str | None) -> None:
    jbod.commit(ConfigRecord(resource_type=4, resource_name="1", name="cordoned.log.dirs", value=value))


def states(jbod: Jbod, version: int = 5) -> dict[str, bool]:
    answer = ask(jbod, describe_log_dirs, DescribeLogDirsRequest(topics=None), version)
    return {result.log_dir: result.is_cordoned for result in answer.results}


def test_a_cordoned_directory_keeps_its_logs_and_takes_no_new_one(jbod: Jbod) -> None:
    cordon(jbod, "/d1")
    assert states(jbod) == {"/d0": False, "/d1": True}
    assert states(jbod, 4) == {"/d0": False, "/d1": False}
    moved = jbod.nodes[NodeId(1)].futures.alter(TopicPartition("t", 0), "/d1", jbod.now)
    assert moved is E.INVALID_REPLICA_ASSIGNMENT
    placement, name = jbod.nodes[NodeId(1)].storage.placement, TopicPartition("t", 0)
    assert placement.place(name, UNASSIGNED_DIRECTORY).path == "/d0"  # though the other one is empty
    assert placement.place(name, directory(NodeId(1), 1)).path == "/d1"  # metadata has decided already
    count, by_path = of_cordoned(jbod.nodes[NodeId(1)].host)
    assert (count.samples, by_path.samples) == ([((), 1)], [(("/d0",), 0), (("/d1",), 1)])
    cordon(jbod, "*")
    assert states(jbod) == {"/d0": True, "/d1": True}
    assert placement.place(name, UNASSIGNED_DIRECTORY).path == "/d0"  # placed here just before: it must lie somewhere
    cordon(jbod, "/nowhere")
    assert states(jbod) == {"/d0": False, "/d1": False}
    cordon(jbod, None)
    assert placement.place(name, UNASSIGNED_DIRECTORY).path == "/d1"
    assert jbod.nodes[NodeId(1)].futures.alter(TopicPartition("t", 0), "/d1", jbod.now) is E.NONE
