"""What the controller asks brokers about their logs: GetReplicaLogInfo (KIP-966), one request to a broker at a time.

A broker that does not answer is asked again after a pause, for as long as somebody wants to know. The answer to a
request that was given up is not taken.
"""

from collections.abc import Iterator, Mapping

from strandline.base.effects import Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSET_MAX, NodeId, TopicIdPartition
from strandline.base.time import NEVER, Instant, after
from strandline.base.value import Value
from strandline.controller.tokens import InquirySent
from strandline.metadata.image import Broker
from strandline.metadata.losses import Evidence
from strandline.wire.messages.own.get_replica_log_info import (
    PARTITIONS_MAX,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    request_of,
)

TIMEOUT_MS = 3000
PAUSE_MS = 300  # before a broker is asked again for what it did not say


class Answer(Value, frozen=True):
    """What a replica said of its log, and what it knew then: an answer counts while both epochs are still true."""

    broker_epoch: int
    leader_epoch: int
    evidence: Evidence
    is_whole: bool = False  # it has everything that it had when it was in sync last, and since


class Inquiries:
    def __init__(self, listener: str) -> None:
        self.listener = listener  # inter.broker.listener.name
        self.serial = 0
        self.under_way: dict[NodeId, int] = {}  # the serial of the request that a broker has not answered
        self.again_at: dict[NodeId, Instant] = {}
        self.asked: dict[NodeId, int] = {}  # about how many partitions so far: of many, others each time

    def ask(self, wanted: Mapping[NodeId, list[TopicIdPartition]], brokers: Mapping[NodeId, Broker]) -> Iterator[Send]:
        """Ask those brokers that may be asked now; the others when they have answered, or their pause is over."""
        assert all(wanted.values()), "who is asked is asked for something"
        for node, ats in wanted.items():
            if node in self.under_way or node in self.again_at:
                continue
            endpoint = brokers[node].endpoint(self.listener)
            if endpoint is None:
                continue
            self.serial += 1
            self.under_way[node] = self.serial
            first = self.asked.get(node, 0) % len(ats)
            some = (ats[first:] + ats[:first])[:PARTITIONS_MAX]
            self.asked[node] = first + len(some)
            assert 0 < len(some) <= PARTITIONS_MAX
            token = InquirySent(node, self.serial)
            yield Send(endpoint, "recovery", request_of(node, some), 0, TIMEOUT_MS, token, node)

    def answered(
        self, node: NodeId, serial: int, response: GetReplicaLogInfoResponse | None, now: Instant
    ) -> Iterator[tuple[TopicIdPartition, Answer]]:
        """What the broker said, partition by partition; None: it said nothing."""
        if self.under_way.get(node) != serial:
            return
        del self.under_way[node]
        assert node not in self.again_at, "it is not asked in a pause"
        self.again_at[node] = after(now, PAUSE_MS)  # if somebody still wants to know something of it
        if response is None:
            return
        for topic in response.topic_partition_log_info_list:
            for row in topic.partition_log_info:
                if row.error_code == ErrorCode.NONE and can_be(row):
                    evidence = Evidence(row.last_written_leader_epoch, row.log_end_offset, row.high_watermark)
                    answer = Answer(response.broker_epoch, row.current_leader_epoch, evidence, row.is_whole)
                    yield TopicIdPartition(topic.topic_id, row.partition), answer

    def deadline(self) -> Instant:
        return min(self.again_at.values()) if self.again_at else NEVER

    def expire(self, now: Instant) -> bool:
        """Is the pause of somebody over?"""
        over = [node for node, at in self.again_at.items() if at <= now]
        for node in over:
            del self.again_at[node]
        assert self.deadline() > now
        return bool(over)


def can_be(row: PartitionLogInfo) -> bool:
    """Is there a log like this? Who says more than there can be would be elected before all others, and by the ledger
    nothing would be lost below it."""
    is_epoch = -1 <= row.last_written_leader_epoch <= row.current_leader_epoch
    return is_epoch and 0 <= row.log_end_offset <= OFFSET_MAX and 0 <= row.high_watermark <= OFFSET_MAX
