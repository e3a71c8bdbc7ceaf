"""A read fails in the middle of a step: its directory is offline at once, and the step goes on with what is left."""

from typing import Any

import pytest
from tests.unit.replica.asking import ask
from tests.unit.replica.conftest import AT, registration
from tests.unit.replica.storage import test_directories
from tests.unit.replica.storage.test_directories import Jbod, directory

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, Uuid
from strandline.base.ports import DiskError
from strandline.metadata import records as r
from strandline.replica.hosting.hosted import Hosted
from strandline.wire.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

E = ErrorCode


@pytest.fixture
def jbod() -> Jbod:
    """Broker 1 has its replica in a directory that may fail, and broker 2 another one. Broker 2 asks for nothing."""
    jbod = Jbod(2)
    jbod.create_in(directory(1, 0), directory(2, 0))
    jbod.produce(1, 2)
    jbod.run(1_000)
    jbod.cut = {NodeId(2)}
    return jbod


def hosted_on(jbod: Jbod, node: int) -> Hosted:
    hosted = jbod.nodes[NodeId(node)].host.partitions.find(AT)
    assert hosted is not None
    return hosted


def create_second(jbod: Jbod, where: Uuid) -> None:
    """t-1, on broker 1 alone."""
    at = {"partition_id": 1, "topic_id": AT.topic_id}
    who = {"replicas": (1,), "isr": (1,), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    jbod.commit(r.PartitionRecord(**at, **who, directories=(where,)))


def fail(*_: Any, **__: Any) -> Any:
    raise DiskError("/d0/t-0: Input/output error")


def fetch_as_follower(jbod: Jbod, offset: int, log_start_offset: int = 0, max_wait_ms: int = 60_000) -> Any:
    """Broker 2 asks broker 1."""
    asked = FetchPartition(
        partition=0, fetch_offset=offset, log_start_offset=log_start_offset, partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic_id=AT.topic_id, partitions=(asked,))
    state = ReplicaState(2, 102)
    request = FetchRequest(replica_state=state, max_wait_ms=max_wait_ms, min_bytes=1, topics=(topic,))
    return ask(jbod, 1, "fetch", request, 17)


def delete_records(jbod: Jbod, *partitions: int, offset: int = 1) -> Any:
    asked = tuple(DeleteRecordsPartition(partition_index=index, offset=offset) for index in partitions)
    topic = DeleteRecordsTopic(name="t", partitions=asked)
    return ask(jbod, 1, "delete_records", DeleteRecordsRequest(topics=(topic,), timeout_ms=60_000), 2)


def test_for_a_follower_that_is_answered_at_an_append(jbod: Jbod) -> None:
    """That a follower is out of sync, and reads from the disk, is when a read is likely to fail."""
    jbod.change(isr=(1,))
    jbod.commit(r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, fenced=1))
    hosted = hosted_on(jbod, 1)
    assert fetch_as_follower(jbod, hosted.log.log_end_offset)() is None
    hosted.log.read_if_cached = fail  # type: ignore[method-assign]
    assert jbod.produce(1)().error_code == E.KAFKA_STORAGE_ERROR, "nothing is promised of a log that has failed"
    assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None


def test_for_a_consumer_that_waits_where_a_leadership_begins(jbod: Jbod) -> None:
    jbod.change(leader=2)
    hosted = hosted_on(jbod, 1)
    waiting = jbod.consume(1, 0, max_wait_ms=60_000, min_bytes=1 << 20)
    assert waiting() is None
    hosted.log.read_if_cached = fail  # type: ignore[method-assign]
    jbod.change(leader=1)
    assert waiting().error_code == E.KAFKA_STORAGE_ERROR
    assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None


@pytest.mark.parametrize("moves_by", ["fetch", "metadata"])
def test_for_a_consumer_that_waits_for_a_commit_while_records_are_deleted(jbod: Jbod, moves_by: str) -> None:
    hosted = hosted_on(jbod, 1)
    end = hosted.log.log_end_offset
    fetch_as_follower(jbod, end, max_wait_ms=0)
    written, waiting = jbod.produce(1), jbod.consume(1, end, max_wait_ms=60_000)
    deleted = delete_records(jbod, 0)
    assert (written(), waiting(), deleted()) == (None, None, None)
    hosted.log.read_if_cached = fail  # type: ignore[method-assign]
    if moves_by == "fetch":
        fetch_as_follower(jbod, end + 1, 1, max_wait_ms=0)
    else:
        jbod.change(isr=(1,), removing_replicas=(2,))
        jbod.commit(r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, fenced=1))
    assert written().error_code == E.NONE
    assert waiting().error_code == E.KAFKA_STORAGE_ERROR
    (row,) = deleted().topics[0].partitions
    assert row.error_code in (E.NONE, E.KAFKA_STORAGE_ERROR)
    assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None


def test_a_write_for_the_second_of_two_partitions_whose_records_are_deleted(jbod: Jbod) -> None:
    create_second(jbod, directory(1, 0))
    second = jbod.nodes[NodeId(1)].host.partitions.named("t", 1)
    assert second is not None
    second.log.append_as_leader(hosted_on(jbod, 1).log.read(0, 1 << 20, upto=2, min_one=True).buffers[0], 0, jbod.now)
    second.role.advance(jbod.now)  # type: ignore[union-attr]
    second.log.advance_log_start = fail  # type: ignore[method-assign]
    rows = delete_records(jbod, 0, 1)().topics[0].partitions
    assert [row.error_code for row in rows] == [E.KAFKA_STORAGE_ERROR] * 2
    assert not list(jbod.nodes[NodeId(1)].host.partitions.all())


def test_what_is_answered_because_a_directory_has_failed_may_find_that_another_one_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(test_directories, "ROOTS", ("/d0", "/d1", "/d2"))
    jbod = Jbod(1)
    jbod.commit(registration(NodeId(1), log_dirs=tuple(directory(1, number) for number in range(3))))
    jbod.create_in(directory(1, 0))
    create_second(jbod, directory(1, 1))
    jbod.produce(1, 2)
    partitions = tuple(FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in (0, 1))
    topics = (FetchTopic(topic="t", partitions=partitions),)
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1 << 20, session_epoch=-1, topics=topics)
    waiting = ask(jbod, 1, "fetch", request, 12)
    host = jbod.nodes[NodeId(1)].host
    first, second = (host.partitions.named("t", index) for index in (0, 1))
    assert first is not None
    assert second is not None
    batch = first.log.read(0, 1 << 20, upto=2, min_one=True).buffers[0]  # type: ignore[union-attr]
    second.log.append_as_leader(batch, 0, jbod.now)
    second.role.advance(jbod.now)  # type: ignore[union-attr]
    second.log.read_if_cached = fail  # type: ignore[method-assign]
    assert waiting() is None
    host.fail(first.directory, DiskError("/d0/t-0: Input/output error"))
    jbod.perform(NodeId(1), [])
    assert [row.error_code for row in waiting().responses[0].partitions] == [E.KAFKA_STORAGE_ERROR] * 2
    assert [log_dir.path for log_dir in host.directories.live] == ["/d2"]
    assert not list(host.partitions.all())
