"""One partition of a broker whose every answer to a fetch is written down."""

from typing import Any

from tests.unit.client.scripted import ScriptedBroker, Session

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.wire.batch import build
from strandline.wire.messages.records.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.messages.records.list_offsets import (
    EARLIEST,
    LATEST,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.messages.topics.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)


class Partition(ScriptedBroker):
    """One partition, led by broker 1; broker 2 listens at the same port. It answers fetches row by row."""

    def __init__(self, *rows: PartitionData | ErrorCode, fetch_version: int = 18) -> None:
        super().__init__({3: self.town, 1: self.fetch}, versions_max={1: fetch_version})
        self.rows = list(rows)
        self.asked: list[Any] = []
        self.topic_id = FIRST
        self.is_there = True
        self.throttle_ms = 0

    def town(self, session: Session, request: Any) -> MetadataResponse:
        rows = (MetadataResponsePartition(leader_id=1, leader_epoch=4, replica_nodes=(1, 2), isr_nodes=(1, 2)),)
        code = ErrorCode.NONE if self.is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = MetadataResponseTopic(error_code=code, name="t", topic_id=self.topic_id, partitions=rows)
        brokers = [MetadataResponseBroker(node_id=i, host="127.0.0.1", port=self.port) for i in (1, 2)]
        return MetadataResponse(brokers=tuple(brokers), topics=(topic,))

    def fetch(self, session: Session, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        self.asked.append((topic, topic.partitions[0], request))
        row = self.rows.pop(0) if self.rows else PartitionData(high_watermark=0, records=b"")
        if isinstance(row, ErrorCode):
            row = PartitionData(error_code=row, high_watermark=-1, records=b"")
        answered = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=(row,))
        return FetchResponse(throttle_time_ms=self.throttle_ms, responses=(answered,))

    def edges(self, session: Session, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """The log has offsets 5 to 8."""
        (topic,) = request.topics
        offset = {EARLIEST: 5, LATEST: 8}[topic.partitions[0].timestamp]
        row = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=topic.name, partitions=(row,)),))


def batch(offset: int, epoch: int = 4, high_watermark: int = 100) -> PartitionData:
    data = build([(0, None, b"%d" % offset, ())], base_offset=offset, leader_epoch=epoch)
    return PartitionData(high_watermark=high_watermark, last_stable_offset=high_watermark, records=data)


def empty(high_watermark: int) -> PartitionData:
    return PartitionData(high_watermark=high_watermark, last_stable_offset=high_watermark, records=b"")


def raw(records: bytes, high_watermark: int = 10) -> PartitionData:
    return PartitionData(high_watermark=high_watermark, last_stable_offset=high_watermark, records=records)
