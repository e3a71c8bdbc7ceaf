"""A broker that answers for a cluster where something is down or moves; its every answer is written down here."""

from tests.unit.client.scripted import ScriptedBroker, Session

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.wire.batch import build
from strandline.wire.messages.groups.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.wire.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from strandline.wire.messages.records.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.messages.records.list_offsets import (
    EARLIEST,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

OURS, OTHER, NOBODY = 1, 2, -1  # of brokers, the second is not there
END = 10
FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)


class ScriptedCluster(ScriptedBroker):
    """One broker, and its answers about a cluster. Each topic has one partition, with the offsets up to END."""

    def __init__(self, **leaders: int) -> None:
        super().__init__({3: self.metadata, 2: self.edges, 1: self.fetch, 10: self.coordinator, 9: self.committed})
        self.answers.update({16: self.groups, 8: self.commit})
        self.leaders = leaders
        self.gone: set[str] = set()  # of which the log is deleted already, though metadata has it once more
        self.forgotten: set[str] = set()
        self.topic_id = FIRST
        self.positions: dict[str, dict[str, int]] = {}  # of groups, by topic
        self.silent: set[str] = set()  # groups without a coordinator
        self.records: list[PartitionData] = []
        self.fetched: list[int] = []
        self.group_error = 0

    def metadata(self, session: Session, request: MetadataRequest) -> MetadataResponse:
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

    def commit(self, session: Session, request: OffsetCommitRequest) -> OffsetCommitResponse:
        topics = {topic.name: topic.partitions[0].committed_offset for topic in request.topics}
        self.positions[request.group_id] = topics
        return OffsetCommitResponse()

    def groups(self, session: Session, request: ListGroupsRequest) -> ListGroupsResponse:
        rows = [
            ListedGroup(group_id=name, protocol_type="consumer") for name in sorted({*self.positions, *self.silent})
        ]
        return ListGroupsResponse(groups=tuple(rows), error_code=self.group_error)


def batch(offset: int, timestamp: int, *, control: bool = False) -> PartitionData:
    value = b"\0\0\0\1" if control else b"v"
    data = build([(timestamp, value, value, ())], base_offset=offset, producer_id=7, control=control)
    return PartitionData(high_watermark=END, last_stable_offset=END, records=data)


def opened(scripted: ScriptedCluster) -> Cluster:
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{scripted.port}", "kafka.retry.backoff.ms": "5"}
    return Cluster(ClientConfig.of(servers))
