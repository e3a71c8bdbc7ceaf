"""Replicas over the wire that cannot be had: of brokers that are gone, of brokers that lack one of their logs, and of
topics that are deleted while they are looked for."""

import socket
from typing import Any

import pytest
from tests.unit.client.scripted import ScriptedBroker, Session

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.client.config import ClientConfig
from strandline.client.errors import UnknownTopic, Unreachable
from strandline.wire.batch import build
from strandline.wire.messages.records.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.messages.topics.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from strandline_spark.replica import remote
from strandline_spark.replica.options import BOOTSTRAP, SCHEMAS, parse
from strandline_spark.replica.planning import Unplanned
from strandline_spark.replica.source import ReplicaReader

PARTITIONS = 4


class ScriptedCluster(ScriptedBroker):
    """Broker 1, which has a batch in each partition of t. Broker 2 listens at the port `other`; 0: it is the same."""

    def __init__(self, other: int) -> None:
        super().__init__({3: self.metadata, 1: self.fetch})
        self.other = other
        self.refuses: dict[int, ErrorCode] = {}
        self.is_there = True

    def metadata(self, session: Session, request: Any) -> MetadataResponse:
        rows = tuple(
            MetadataResponsePartition(
                partition_index=at, leader_id=1, leader_epoch=4, replica_nodes=(1, 2), isr_nodes=(1, 2)
            )
            for at in range(PARTITIONS)
        )
        code = ErrorCode.NONE if self.is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = MetadataResponseTopic(error_code=code, name="t", topic_id=Uuid(b"1" * 16), partitions=rows)
        brokers = [MetadataResponseBroker(node_id=1 + i, host="127.0.0.1", port=p) for i, p in enumerate(self.ports)]
        return MetadataResponse(brokers=tuple(brokers), topics=(topic,))

    @property
    def ports(self) -> tuple[int, int]:
        return self.port, self.other or self.port

    def fetch(self, session: Session, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        at = topic.partitions[0].partition
        if self.refuses.get(at) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self.is_there = False  # its deletion was under way
        data = build([(0, None, b"x", ())], base_offset=0, leader_epoch=4)
        row = PartitionData(
            partition_index=at, high_watermark=1, last_stable_offset=1, log_start_offset=0, records=data
        )
        if at in self.refuses:
            row = PartitionData(partition_index=at, error_code=self.refuses[at], high_watermark=-1, records=b"")
        answered = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=(row,))
        return FetchResponse(responses=(answered,))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PATIENCE_MS", 200)
    monkeypatch.setattr(remote, "HURRY_MS", 50)
    monkeypatch.setattr("strandline.client.metadata.MISSING_PATIENCE_MS", 100)


def reader(scripted: ScriptedCluster, **options: str) -> ReplicaReader:
    given = {BOOTSTRAP: f"127.0.0.1:{scripted.port}", "kafka.retry.backoff.ms": "10", **options}
    request = parse(given)
    return ReplicaReader(request, SCHEMAS[request.level], ClientConfig.of(dict(request.kafka)))


def found(reading: ReplicaReader) -> list[tuple[int, int, str | None]]:
    rows = [row for split in reading.partitions() for part in reading.read(split) for row in part.to_pylist()]
    return sorted((row["broker"], row["partition"], row.get("fault")) for row in rows)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


ALL = [(1, at, None) for at in range(PARTITIONS)]


def test_each_log_of_a_broker_that_is_gone_is_a_row_and_the_broker_is_waited_for_once() -> None:
    with ScriptedCluster(closed_port()) as scripted:
        gone = [(2, at, "unreachable") for at in range(PARTITIONS)]
        assert found(reader(scripted, whenChanged="report")) == [*ALL, *gone]
        splits = reader(scripted, whenChanged="report").partitions()
        reasons = [split.why for split in splits if isinstance(split, Unplanned)]
        assert [reason is reasons[0] for reason in reasons] == [True] * PARTITIONS
        assert found(reader(scripted, level="record", whenChanged="skip")) == ALL
        with pytest.raises(Unreachable, match="replica of t-0 on broker 2 cannot be read"):
            reader(scripted).partitions()


def test_a_broker_that_does_not_give_one_log_gives_the_others() -> None:
    """As one with a log directory offline."""
    with ScriptedCluster(0) as scripted:
        scripted.refuses = {1: ErrorCode.KAFKA_STORAGE_ERROR}
        faults = {1: "unreachable"}
        assert found(reader(scripted, whenChanged="report")) == [
            (broker, at, faults.get(at)) for broker in (1, 2) for at in range(PARTITIONS)
        ]


def test_a_topic_that_is_deleted_while_the_read_is_planned_has_changed() -> None:
    with ScriptedCluster(0) as scripted:
        scripted.refuses = dict.fromkeys(range(PARTITIONS), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        changed = [(broker, at, "changed") for broker in (1, 2) for at in range(PARTITIONS)]
        assert found(reader(scripted, whenChanged="report")) == changed


def test_a_partition_that_was_there_a_moment_ago_may_be_gone_and_a_topic_that_a_user_names_may_not() -> None:
    with ScriptedCluster(0) as scripted:
        scripted.is_there = False
        assert reader(scripted, assign='{"t": [0]}', whenChanged="report").partitions() == []
        with pytest.raises(UnknownTopic, match="topic t does not exist"):
            reader(scripted, subscribe="t", whenChanged="report").partitions()
