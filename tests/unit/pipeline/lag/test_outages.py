"""Samples of a cluster where something is down, or moves; its every answer is written down here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pipeline.client.scripted import ScriptedBroker, Session

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.pipeline.client import ClientConfig, Cluster, KafkaError
from strandline.pipeline.errors import PipelineError
from strandline.pipeline.jobs.lag import trouble
from strandline.pipeline.jobs.lag.sampling import Sampler
from strandline.wire.batch import build
from strandline.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from strandline.wire.messages.list_offsets import (
    EARLIEST,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

OURS, OTHER, NOBODY = 1, 2, -1  # of brokers, the second is not there
END = 10
FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)


class Town(ScriptedBroker):
    """One broker, and what it says of a cluster. Each topic has one partition, with the offsets up to END."""

    def __init__(self, **leaders: int) -> None:
        super().__init__({3: self.town, 2: self.edges, 1: self.fetch, 10: self.coordinator, 9: self.committed})
        self.answers[16] = self.groups
        self.leaders = leaders
        self.gone: set[str] = set()  # of which the log is deleted already, though metadata has it once more
        self.forgotten: set[str] = set()
        self.topic_id = FIRST
        self.positions: dict[str, dict[str, int]] = {}  # of groups, by topic
        self.silent: set[str] = set()  # groups without a coordinator
        self.records: list[PartitionData] = []
        self.fetched: list[int] = []
        self.group_error = 0

    def town(self, session: Session, request: MetadataRequest) -> MetadataResponse:
        asked = [topic.name for topic in request.topics or ()]
        rows = [self.topic(name) for name in asked if name is not None]
        self.forgotten |= self.gone & set(map(str, asked))
        ports = {OURS: self.port, OTHER: 1}
        brokers = [MetadataResponseBroker(node_id=i, host="127.0.0.1", port=port) for i, port in ports.items()]
        return MetadataResponse(brokers=tuple(brokers), topics=tuple(rows))

    def topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.leaders or name in self.forgotten:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        row = MetadataResponsePartition(
            leader_id=self.leaders[name], leader_epoch=4, replica_nodes=(1,), isr_nodes=(1,)
        )
        return MetadataResponseTopic(name=name, topic_id=self.topic_id, partitions=(row,))

    def edges(self, session: Session, request: ListOffsetsRequest) -> ListOffsetsResponse:
        rows = []
        for topic in request.topics:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic.name in self.gone else ErrorCode.NONE
            offset = 0 if topic.partitions[0].timestamp == EARLIEST else END
            found = ListOffsetsPartitionResponse(partition_index=0, offset=offset, error_code=code)
            rows.append(ListOffsetsTopicResponse(name=topic.name, partitions=(found,)))
        return ListOffsetsResponse(topics=tuple(rows))

    def fetch(self, session: Session, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        self.fetched.append(topic.partitions[0].fetch_offset)
        row = self.records.pop(0) if self.records else PartitionData(high_watermark=END, records=b"")
        answered = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=(row,))
        return FetchResponse(responses=(answered,))

    def coordinator(self, session: Session, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        (group,) = request.coordinator_keys
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if group in self.silent else ErrorCode.NONE
        row = Coordinator(key=group, node_id=OURS, host="127.0.0.1", port=self.port, error_code=code)
        return FindCoordinatorResponse(coordinators=(row,))

    def committed(self, session: Session, request: OffsetFetchRequest) -> OffsetFetchResponse:
        (group,) = request.groups
        topics = []
        for name, offset in self.positions.get(group.group_id, {}).items():
            row = OffsetFetchResponsePartitions(partition_index=0, committed_offset=offset)
            topics.append(OffsetFetchResponseTopics(name=name, partitions=(row,)))
        return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id=group.group_id, topics=tuple(topics)),))

    def groups(self, session: Session, request: ListGroupsRequest) -> ListGroupsResponse:
        rows = [
            ListedGroup(group_id=name, protocol_type="consumer") for name in sorted({*self.positions, *self.silent})
        ]
        return ListGroupsResponse(groups=tuple(rows), error_code=self.group_error)


def batch(offset: int, timestamp: int, *, control: bool = False) -> PartitionData:
    value = b"\0\0\0\1" if control else b"v"
    data = build([(timestamp, value, value, ())], base_offset=offset, producer_id=7, control=control)
    return PartitionData(high_watermark=END, last_stable_offset=END, records=data)


def opened(town: Town) -> Cluster:
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{town.port}", "kafka.retry.backoff.ms": "5"}
    return Cluster(ClientConfig.of(servers))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails may cost a tenth of a second."""
    monkeypatch.setattr(trouble, "LIMIT_MS", 100)


def lags(sampler: Sampler) -> dict[tuple[str, str], int | None]:
    return {(sample.reader, sample.topic): sample.lag for sample in sampler.sample()}


def test_a_partition_without_a_leader_is_left_out_and_told_once() -> None:
    told: list[str] = []
    with Town(a=OURS, b=NOBODY) as town, opened(town) as cluster:
        town.positions["g"] = {"a": 4, "b": 4}
        sampler = Sampler(cluster, groups=["g"], tell=told.append)
        assert lags(sampler) == lags(sampler) == {("", "a"): None, ("g", "a"): 6}
        assert told == ["no sample of b-0: no leader now; `strandline explain b:0` says why"]
        assert list(sampler.lacking.values()) == told
        town.leaders["b"] = OURS
        assert lags(sampler)["g", "b"] == 6
        assert not sampler.lacking
        town.leaders["b"] = NOBODY
        sampler.sample()
        assert len(told) == 2, "it is told again when it comes again"


def test_a_leader_that_does_not_answer_hides_no_other() -> None:
    told: list[str] = []
    with Town(a=OURS, b=OTHER) as town, opened(town) as cluster:
        sampler = Sampler(cluster, topics=["a", "b"], tell=told.append)
        assert lags(sampler) == {("", "a"): None}
    assert len(told) == 1
    assert told[0].startswith("no sample of b-0 (broker 2): ")


def test_a_topic_that_is_deleted_while_it_is_asked_for_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.pipeline.client import cluster as client

    monkeypatch.setattr(client, "MISSING_PATIENCE_MS", 0)
    with Town(a=OURS, b=OURS) as town, opened(town) as cluster:
        town.gone.add("b")
        sampler = Sampler(cluster, topics=["a", "b"])
        assert lags(sampler) == {("", "a"): None}
        assert not sampler.lacking


def test_a_group_without_a_coordinator_hides_no_other() -> None:
    told: list[str] = []
    with Town(a=OURS) as town, opened(town) as cluster:
        town.positions["g"] = {"a": 4}
        town.silent.add("h")
        assert lags(Sampler(cluster, groups=["h", "g"], tell=told.append)) == {("", "a"): None, ("g", "a"): 6}
        assert [line.partition(":")[0] for line in told] == ["no sample of group h"]
        sampler = Sampler(cluster, groups=None)
        assert ("g", "a") in lags(sampler), "broker 2 is dead, and its groups are with others"
        assert set(sampler.lacking) == {"no sample of group h", "no groups of broker 2"}


def test_a_broker_that_still_loads_its_groups_is_told_of() -> None:
    with Town(a=OURS) as town, opened(town) as cluster:
        town.group_error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        sampler = Sampler(cluster, groups=None, topics=["a"])
        assert lags(sampler) == {("", "a"): None}
        assert "COORDINATOR_LOAD_IN_PROGRESS" in sampler.lacking["no groups of broker 1"]


def test_a_checkpoint_that_goes_away_is_told_and_one_that_never_was_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with Town(a=OURS) as town, opened(town) as cluster:
        sampler = Sampler(cluster, queries={"etl": str(tmp_path)}, topics=["a"])
        assert lags(sampler) == {("", "a"): None}
        (tmp_path / "offsets").rmdir()
        assert lags(sampler) == {("", "a"): None}
        assert "is no checkpoint" in sampler.lacking["no sample of query etl"]
        with pytest.raises(PipelineError, match="is no checkpoint"):
            Sampler(cluster, queries={"etl": str(tmp_path)}).sample()


def test_a_cluster_where_nobody_answers_is_no_sample() -> None:
    with Town(a=OURS) as town:
        cluster = opened(town)
    with cluster, pytest.raises(KafkaError, match="no broker answers"):
        Sampler(cluster, topics=["a"]).sample()


Sampled = Callable[[], Any]


def sampled_at(cluster: Cluster, now_s: float) -> Sampled:
    sampler = Sampler(cluster, groups=["g"], clock=lambda: now_s)
    return lambda: next(sample.delay_ms for sample in sampler.sample() if sample.reader == "g")


def test_the_delay_of_a_reader_at_a_transactions_marker_is_that_of_the_record_behind_it() -> None:
    with Town(a=OURS) as town, opened(town) as cluster:
        town.positions["g"] = {"a": 4}
        town.records = [batch(4, 1000, control=True), batch(5, 2000, control=True), batch(6, 3000)]
        delay = sampled_at(cluster, 10)
        assert delay() == delay() == 7000
        assert town.fetched == [4, 5, 6], "what is known is not asked for again"


def test_a_reader_that_has_nothing_but_markers_before_it_has_no_delay() -> None:
    with Town(a=OURS) as town, opened(town) as cluster:
        town.positions["g"] = {"a": END - 1}
        town.records = [batch(END - 1, 1000, control=True)]
        assert sampled_at(cluster, 10)() == 0


def test_markers_without_an_end_are_not_walked_for_ever() -> None:
    with Town(a=OURS) as town, opened(town) as cluster:
        town.positions["g"] = {"a": 0}
        town.records = [batch(offset, 1000, control=True) for offset in range(END)]
        assert sampled_at(cluster, 10)() is None


def test_an_answer_without_records_is_asked_for_again() -> None:
    with Town(a=OURS) as town, opened(town) as cluster:
        town.positions["g"] = {"a": 4}
        delay = sampled_at(cluster, 10)
        assert delay() is None
        town.records = [batch(4, 3000)]
        assert delay() == 7000


def test_another_topic_of_the_same_name_has_other_records() -> None:
    with Town(a=OURS) as town, opened(town) as cluster:
        town.positions["g"] = {"a": 4}
        town.records = [batch(4, 3000), batch(4, 9000)]
        delay = sampled_at(cluster, 10)
        assert delay() == 7000
        town.topic_id = SECOND
        assert delay() == 1000
