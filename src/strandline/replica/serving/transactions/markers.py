"""WriteTxnMarkers: the end of a transaction is written where its coordinator, or an operator, says (KIP-98).

Each partition answers when its marker is committed. What a group has committed in the transaction counts, or is
forgotten, from then on: `ended` is told.
"""

from collections.abc import Callable

from strandline.base.effects import Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.refusals import Refused
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.serving.fetching import Fetching
from strandline.replica.serving.internal_append import InternalAppend
from strandline.replica.serving.transactions.verifying import Verifying
from strandline.wire.control import EndTxnMarker
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TIMEOUT_MS = 20_000  # below the coordinator's own
# The partition, the producer id, whether it commits, and the marker's offset.
Ended = Callable[[TopicPartition, int, bool, int, Instant], list[Effect]]
Then = Callable[[ErrorCode], list[Effect]]


class Writing:
    """A WriteTxnMarkers request, until each of its partitions has answered."""

    def __init__(self, to: ReplyTo, request: WriteTxnMarkersRequest) -> None:
        self.to = to
        self.request = request
        self.errors: dict[tuple[int, str, int], ErrorCode] = {}  # by the marker's number, topic and partition
        self.open = sum(len(topic.partition_indexes) for marker in request.markers for topic in marker.topics)

    def answered(self, key: tuple[int, str, int], error: ErrorCode) -> list[Effect]:
        assert self.open > 0
        self.errors[key] = error
        self.open -= 1
        return [] if self.open else [self.reply()]

    def reply(self) -> Effect:
        assert self.open == 0, "a partition has not answered"
        rows = []
        for number, marker in enumerate(self.request.markers):
            topics = tuple(
                WritableTxnMarkerTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        WritableTxnMarkerPartitionResult(
                            partition_index=index, error_code=self.errors[number, topic.name, index]
                        )
                        for index in topic.partition_indexes
                    ),
                )
                for topic in marker.topics
            )
            rows.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        return Reply(self.to, WriteTxnMarkersResponse(markers=tuple(rows)))


class Markers:
    def __init__(self, host: Host, fetching: Fetching, verifying: Verifying) -> None:
        self.host = host
        self.fetching = fetching
        self.verifying = verifying
        self.ended: Ended = lambda at, producer_id, commits, offset, now: []

    def write(self, to: ReplyTo, request: WriteTxnMarkersRequest, now: Instant) -> list[Effect]:
        writing = Writing(to, request)
        if not writing.open:
            return [writing.reply()]
        effects: list[Effect] = []
        for number, marker in enumerate(request.markers):
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    key = number, topic.name, index

                    def then(error: ErrorCode, key: tuple[int, str, int] = key) -> list[Effect]:
                        return writing.answered(key, error)

                    effects += self.write_one(marker, TopicPartition(topic.name, index), then, now)
        return effects

    def write_one(self, asked: WritableTxnMarker, at: TopicPartition, then: Then, now: Instant) -> list[Effect]:
        hosted = self.host.partitions.named(*at)
        leader = None if hosted is None else hosted.role
        if hosted is None or type(leader) is not Leader:
            return then(self.host.why_not_leader(at.topic, None, at.partition))
        if asked.producer_id < 0 or asked.producer_epoch < 0:
            return then(ErrorCode.INVALID_REQUEST)  # nobody's transaction
        if len(leader.isr.isr) < leader.min_isr:
            return then(ErrorCode.NOT_ENOUGH_REPLICAS)
        marker = EndTxnMarker(asked.transaction_result, asked.coordinator_epoch)
        return self.append(hosted, leader, asked, marker, then, now)

    def append(
        self,
        hosted: Hosted,
        leader: Leader,
        asked: WritableTxnMarker,
        marker: EndTxnMarker,
        then: Then,
        now: Instant,
    ) -> list[Effect]:
        effects: list[Effect] = []
        leader.stamp_caught_up()
        try:
            appended = leader.log.append_marker(
                asked.producer_id, asked.producer_epoch, marker, leader.epoch, now, asked.transaction_version
            )
            if leader.log.must_flush:
                leader.log.flush_if_due()
        except DiskError as error:
            self.host.fail(hosted.directory, error)
            return then(ErrorCode.KAFKA_STORAGE_ERROR)
        if isinstance(appended, Refused):
            return then(appended.error)
        self.verifying.marker_written(hosted, asked.producer_id)

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            leader.log.transactions.committed(leader.high_watermark)
            if error is not ErrorCode.NONE:
                return then(error)
            # guard: group-not-told-of-markers
            return self.ended(hosted.name, asked.producer_id, marker.commits, base_offset, now) + then(error)

        waiter = InternalAppend(self.host, done, appended.base_offset, appended.last_offset + 1)
        assert waiter.required > leader.high_watermark, "nothing was committed yet"
        hosted.wait(waiter)
        self.host.timers.push(now + TIMEOUT_MS, waiter)
        self.fetching.appended(hosted, leader, appended.size_bytes, effects, now)
        return effects
