"""Produce, and appends by the broker itself: what is written, and when it is acknowledged.

Rules:
  - acks=−1 is refused before anything is written while the committed ISR is smaller than min.insync.replicas, and
    acknowledged when the high watermark has passed the last record
  - acks=1 is acknowledged after the leader's own append; acks=0 never, but an error closes the connection
  - a request that waits gets REQUEST_TIMED_OUT in time, and NOT_LEADER_OR_FOLLOWER as soon as this leadership ends
  - a batch that was written before is answered as it was the first time: with its offset, and by the same rules, so
    with acks=−1 not before it is committed. DUPLICATE_SEQUENCE_NUMBER, which names no offset, is never the answer
  - a batch is refused that would come before one that was refused, where the log cannot see that: `awaited`
  - the first batch of a transaction waits until its coordinator knows of it (`verifying`), and what follows it, too
  - if the committed ISR becomes too small meanwhile, nothing is committed until a replica is back: a producer
    gets NOT_ENOUGH_REPLICAS_AFTER_APPEND at once. The broker's own appends wait on, as there is nothing better to do
"""

from typing import Any

from strandline.base.effects import Caller, Close, Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import INTERNAL_TOPICS, Uuid
from strandline.base.interrupted import Interrupted
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.coordination.internal_log import Done
from strandline.log.log import Appended
from strandline.log.refusals import Refused, refused
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.serving.awaited import Awaited, Where
from strandline.replica.serving.fetching import Fetching
from strandline.replica.serving.hints import LeaderHints
from strandline.replica.serving.internal_append import InternalAppend
from strandline.replica.serving.transactions.verifying import AGAIN, Verifying
from strandline.wire.batch import read_header, why_no_batch
from strandline.wire.compress import Codec
from strandline.wire.messages.records.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TOPIC_IDS_SINCE = 13
ZSTD_SINCE = 7
ADDS_SINCE = 12  # the Produce version by which a client leaves it to the brokers to add partitions to its transaction
ABORTABLE_SINCE = 11
VERIFICATION_MS = 5_000  # for the broker's own appends
ADMIN_CLIENT = "__admin_client"  # Kafka lets one that calls itself so write into internal topics
ACKS_ALL = -1
NONE = ErrorCode.NONE
# A producer sends again what was held, and then refused for one of these.
COMES_AGAIN = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)


class ParkedProduce:
    """A Produce: what its partitions are answered; with acks=−1 it waits until the last of them is."""

    __slots__ = (
        "acks",
        "client_id",
        "done",
        "failed",
        "held",
        "moved",
        "producing",
        "request",
        "rows",
        "to",
        "unanswered",
        "waits",
    )

    def __init__(self, producing: "Producing", to: ReplyTo, client_id: str | None, request: ProduceRequest) -> None:
        self.producing = producing
        self.to = to
        self.client_id = client_id
        self.request = request
        self.acks = request.acks
        self.rows: list[TopicRows] = []
        self.failed = False  # one of its partitions was refused
        self.moved: dict[int, None] = {}  # brokers that lead what is not led here
        self.waits: list[tuple[Hosted, Part]] = []  # for the high watermark; until they are in its queues
        self.held = 0  # of its partitions, how many wait for the coordinator of their transaction
        self.unanswered = 0
        self.done = False

    def refuse(self, data: PartitionProduceData, error: ErrorCode, message: str | None) -> PartitionProduceResponse:
        self.failed = True
        return refusal(data.index, error, message)

    def wait(self, now: Instant, timeout_ms: int) -> None:
        assert (self.waits or self.held) and not self.done
        self.unanswered = len(self.waits) + self.held
        for hosted, part in self.waits:
            hosted.wait(part)
        self.waits = []
        self.producing.waiting += 1
        self.producing.host.timers.push(now + max(timeout_ms, 0), self)

    def part_done(self) -> list[Effect]:
        """Of those that waited. The answer, with the last one."""
        assert self.unanswered > 0
        self.unanswered -= 1
        if self.unanswered:
            return []
        self.done = True
        self.producing.waiting -= 1
        self.producing.host.timers.entry_done()
        return self.answers()

    def answers(self) -> list[Effect]:
        if self.acks:
            return [Reply(self.to, self.response())]
        effects: list[Effect] = [Reply(self.to, None)]
        if self.failed:
            # No answer can report it; a closed connection makes the client ask for metadata.
            effects.append(Close(self.to.connection, "a produce request with acks=0 failed"))
        return effects

    def expire(self, now: Instant) -> list[Effect]:
        assert not self.done
        assert self.unanswered > 0
        self.done = True
        self.producing.waiting -= 1
        for _, _, parts in self.rows:
            for part in parts:
                if isinstance(part, Part) and not part.done:
                    part.refuse(ErrorCode.REQUEST_TIMED_OUT)
        return self.answers()

    def response(self) -> ProduceResponse:
        responses: list[TopicProduceResponse] = []
        for name, topic_id, parts in self.rows:
            rows = tuple([part.row if isinstance(part, Part) else part for part in parts])
            responses.append(TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=rows))
        return ProduceResponse(responses=tuple(responses))


class Part:
    """One partition of a parked Produce."""

    __slots__ = ("done", "parked", "required", "row")

    def __init__(self, parked: ParkedProduce, required: int, row: PartitionProduceResponse) -> None:
        self.parked = parked
        self.required = required
        self.row = row
        self.done = False

    def complete(self, error: ErrorCode, now: Instant) -> list[Effect]:
        assert not self.done
        if error is NONE:
            self.done = True
        else:
            self.refuse(error)
        return self.parked.part_done()

    def refuse(self, error: ErrorCode) -> None:
        assert not self.done
        assert error is not NONE
        self.done = True
        self.parked.failed = True
        self.row = PartitionProduceResponse(index=self.row.index, error_code=error, base_offset=-1)


# A topic's name and id, and for each of its partitions the answer, or what waits for it.
TopicRows = tuple[str, Uuid, list[PartitionProduceResponse | Part]]


class Producing:
    def __init__(self, host: Host, fetching: Fetching, hints: LeaderHints) -> None:
        self.host = host
        self.fetching = fetching
        self.hints = hints
        self.verifying = Verifying(host)
        self.awaited = Awaited()
        self.waiting = 0  # Produces

    def produce(self, to: ReplyTo, caller: Caller, request: ProduceRequest, now: Instant) -> list[Effect]:
        by_id = to.api_version >= TOPIC_IDS_SINCE
        effects: list[Effect] = []
        partitions = self.host.partitions
        parked = ParkedProduce(self, to, caller.client_id, request)
        try:
            for topic in request.topic_data:
                group = partitions.by_id.get(topic.topic_id) if by_id else partitions.by_name.get(topic.name)
                parts: list[PartitionProduceResponse | Part] = []
                parked.rows.append((topic.name, topic.topic_id, parts))
                for data in topic.partition_data:
                    hosted = None if group is None else group.get(data.index)
                    parts.append(self.produce_one(parked, topic, data, hosted, effects, now))
        except Exception as error:
            raise Interrupted(effects) from error
        if parked.waits or parked.held:
            parked.wait(now, request.timeout_ms)
        elif parked.moved and request.acks:
            effects.append(Reply(to, self.with_endpoints(parked.response(), parked.moved, caller.listener)))
        else:
            effects += parked.answers()
        return effects

    def produce_one(
        self,
        parked: ParkedProduce,
        topic: TopicProduceData,
        data: PartitionProduceData,
        hosted: Hosted | None,
        effects: list[Effect],
        now: Instant,
    ) -> PartitionProduceResponse | Part:
        """The answer for one partition, or what waits for it. `effects` is a parameter, here and below, since this
        is the hot path."""
        to, acks = parked.to, parked.acks
        if to.api_version < ZSTD_SINCE and has_zstd(data.records):
            return parked.refuse(data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, too_old(to.api_version))
        leader = None if hosted is None else hosted.role
        if hosted is None or type(leader) is not Leader:
            by_id = to.api_version >= TOPIC_IDS_SINCE
            error = self.host.why_not_leader(topic.name, topic.topic_id if by_id else None, data.index)
            return self.elsewhere(parked, topic, data, error, now)
        if hosted.name.topic in INTERNAL_TOPICS and parked.client_id != ADMIN_CLIENT:
            why = f"Cannot append to internal topic {hosted.name.topic}"
            return parked.refuse(data, ErrorCode.INVALID_TOPIC_EXCEPTION, why)
        if acks not in (ACKS_ALL, 0, 1):
            return parked.refuse(data, ErrorCode.INVALID_REQUIRED_ACKS, None)
        if parked.request.transactional_id is not None and self.must_hold(hosted, leader, data):
            return self.hold(parked, topic, data, hosted, leader, effects, now)
        return self.write(parked, topic, data, hosted, leader, effects, now)

    def write(
        self,
        parked: ParkedProduce,
        topic: TopicProduceData,
        data: PartitionProduceData,
        hosted: Hosted,
        leader: Leader,
        effects: list[Effect],
        now: Instant,
        *,
        was_held: bool = False,
    ) -> PartitionProduceResponse | Part:
        """The answer, or what waits for the high watermark; it is not in the queue yet.
        `effects`: see `produce_one`."""
        acks = parked.acks
        is_in_transaction = parked.request.transactional_id is not None  # what must ask before has asked
        appended = self.append(
            hosted,
            leader,
            data.records,
            acks,
            effects,
            now,
            where=called(topic, data),
            may_begin=is_in_transaction,
            from_zero=is_in_transaction and parked.to.api_version >= ADDS_SINCE,
        )
        if isinstance(appended, Refused):
            parked.failed = True
            hosted.counters.refused(appended.error, len(data.records or ()))
            return refusal(data.index, appended.error, appended.message, appended.records)
        row = PartitionProduceResponse(
            index=data.index,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time,
            log_start_offset=appended.log_start_offset,
        )
        if acks == ACKS_ALL and leader.high_watermark <= appended.last_offset:  # guard: acks-all-waits
            part = Part(parked, appended.last_offset + 1, row)
            if not was_held:
                parked.waits.append((hosted, part))
            return part
        return row

    # --- transactions

    def must_hold(self, hosted: Hosted, leader: Leader, data: PartitionProduceData) -> bool:
        records: Any = data.records
        is_batch = records is not None and why_no_batch(records, 0) is None
        return is_batch and self.verifying.must_ask(hosted, leader, read_header(records))

    def hold(
        self,
        parked: ParkedProduce,
        topic: TopicProduceData,
        data: PartitionProduceData,
        hosted: Hosted,
        leader: Leader,
        effects: list[Effect],
        now: Instant,
    ) -> PartitionProduceResponse | Part:
        """The batch is appended when the coordinator of its transaction has answered. `effects`: see `produce_one`."""
        assert parked.request.transactional_id is not None
        records: Any = data.records
        if self.verifying.is_full:
            self.awaited.refused(called(topic, data), records, now)
            return parked.refuse(data, ErrorCode.NOT_ENOUGH_REPLICAS, None)
        part = Part(parked, 0, PartitionProduceResponse(index=data.index, base_offset=-1))
        parked.held += 1

        def done(error: ErrorCode, now: Instant) -> list[Effect]:
            code = for_producer(error, parked.to.api_version)
            if part.done or code in COMES_AGAIN:
                self.awaited.refused(called(topic, data), records, now)
            if part.done:
                return []  # its time is up
            if code is not NONE:
                return part.complete(code, now)
            effects: list[Effect] = []
            found = self.write(parked, topic, data, hosted, leader, effects, now, was_held=True)
            if isinstance(found, Part):
                part.row, part.required = found.row, found.required
                if leader.high_watermark < part.required:
                    hosted.wait(part)
                    return effects
            else:
                part.row = found
            part.done = True
            return effects + parked.part_done()

        effects += self.verifying.ask(
            hosted,
            leader,
            parked.request.transactional_id,
            read_header(records),
            done,
            now,
            adds=parked.to.api_version >= ADDS_SINCE,
            patience_ms=parked.request.timeout_ms,
        )
        return part

    def append(
        self,
        hosted: Hosted,
        leader: Leader,
        records: Any,
        acks: int,
        effects: list[Effect],
        now: Instant,
        *,
        where: Where | None = None,
        may_begin: bool = False,
        from_zero: bool = False,
    ) -> Appended | Refused:
        """Append as the leader, and answer the fetches that wait for it. `where`: as the client's request calls it;
        None: the broker itself appends. `effects`: see `produce_one`."""
        counters = hosted.counters
        counters.produces += 1
        if acks == ACKS_ALL and len(leader.isr.isr) < leader.min_isr:  # guard: pending-replica-counts-for-acks-all
            if where is not None:
                self.awaited.refused(where, records, now)
            return Refused(ErrorCode.NOT_ENOUGH_REPLICAS, message_of(ErrorCode.NOT_ENOUGH_REPLICAS))
        if records is None:
            return Refused(ErrorCode.INVALID_RECORD, "there are no records")
        if where is not None and self.awaited.rows and self.awaited.is_skipped(where, leader.log, records, now):
            return refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        leader.stamp_caught_up()
        try:
            appended = leader.log.append_as_leader(
                records, leader.epoch, now, internal=where is None, may_begin=may_begin, from_zero=from_zero
            )
            if leader.log.must_flush:
                leader.log.flush_if_due()
        except DiskError as error:
            self.host.fail(hosted.directory, error)
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, message_of(ErrorCode.KAFKA_STORAGE_ERROR))
        if not isinstance(appended, Refused) and not appended.duplicate:
            assert appended.base_offset <= appended.last_offset < leader.log.log_end_offset, hosted.name
            counters.messages_in += appended.last_offset - appended.base_offset + 1
            counters.bytes_in += len(records)
            self.fetching.appended(hosted, leader, appended.size_bytes, effects, now)
        return appended

    def fail_under_min_isr(self, hosted: Hosted, now: Instant) -> list[Effect]:
        """The high watermark stands until the ISR grows, which may take longer than a producer's patience."""
        assert type(hosted.role) is Leader and hosted.role.is_under_min_isr(), hosted.name
        # guard: acknowledged-when-the-isr-became-too-small
        return hosted.fail_those(Part, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, now)

    def append_internal(
        self,
        topic: str,
        partition: int,
        batch: bytearray,
        now: Instant,
        then: Done,
        timeout_ms: int,
        *,
        transaction: str = "",
        adds: bool = False,
        is_verified: bool = False,
    ) -> list[Effect]:
        assert timeout_ms > 0
        hosted = self.host.partitions.named(topic, partition)
        leader = None if hosted is None else hosted.role
        if hosted is None or type(leader) is not Leader:
            return then(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, now)
        header = read_header(batch)
        if transaction and not is_verified and self.verifying.must_ask(hosted, leader, header):
            if self.verifying.is_full:
                return then(ErrorCode.NOT_ENOUGH_REPLICAS, -1, now)

            def verified(error: ErrorCode, now: Instant) -> list[Effect]:
                if error is not NONE:
                    return then(error, -1, now)
                return self.append_internal(
                    topic, partition, batch, now, then, timeout_ms, transaction=transaction, is_verified=True
                )

            patience_ms = min(timeout_ms, VERIFICATION_MS)
            return self.verifying.ask(
                hosted, leader, transaction, header, verified, now, adds=adds, patience_ms=patience_ms
            )
        effects: list[Effect] = []
        appended = self.append(hosted, leader, batch, ACKS_ALL, effects, now, may_begin=bool(transaction))
        if isinstance(appended, Refused):
            return effects + then(appended.error, -1, now)
        if leader.high_watermark > appended.last_offset:
            return effects + then(NONE, appended.base_offset, now)
        waiter = InternalAppend(self.host, then, appended.base_offset, appended.last_offset + 1)
        assert waiter.required > leader.high_watermark, hosted.name
        hosted.wait(waiter)
        self.host.timers.push(now + timeout_ms, waiter)
        return effects

    def elsewhere(
        self, parked: ParkedProduce, topic: TopicProduceData, data: PartitionProduceData, error: ErrorCode, now: Instant
    ) -> PartitionProduceResponse:
        assert error is not NONE
        parked.failed = True
        self.awaited.refused(called(topic, data), data.records, now)
        leader, epoch = self.hints.leader_of(topic.topic_id, topic.name, data.index)
        if leader >= 0:
            parked.moved[leader] = None
        return PartitionProduceResponse(
            index=data.index,
            error_code=error,
            base_offset=-1,
            current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        )

    def with_endpoints(self, response: ProduceResponse, moved: dict[int, None], listener: str) -> ProduceResponse:
        assert moved
        return ProduceResponse(
            responses=response.responses,
            node_endpoints=tuple(
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in self.hints.endpoints(moved, listener)
            ),
        )


def called(topic: TopicProduceData, data: PartitionProduceData) -> Where:
    """The partition, as the request calls it: by the topic's name or by its id."""
    return topic.name or topic.topic_id, data.index


def has_zstd(records: Any) -> bool:
    return records is not None and why_no_batch(records, 0) is None and read_header(records).codec == Codec.ZSTD


def too_old(version: int) -> str:
    return f"Produce requests with version {version} are not allowed to use ZStandard compression"


def refusal(
    index: int, error: ErrorCode, message: str | None, records: tuple[int, ...] = ()
) -> PartitionProduceResponse:
    """`records`: those of the batch that are to blame."""
    assert error is not NONE
    return PartitionProduceResponse(
        index=index,
        error_code=error,
        base_offset=-1,
        error_message=message,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=delta, batch_index_error_message=message) for delta in records
        ),
    )


def for_producer(error: ErrorCode, version: int) -> ErrorCode:
    """What a coordinator has refused, as producers know it."""
    if error in AGAIN:
        return ErrorCode.NOT_ENOUGH_REPLICAS  # every client tries again
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    is_new = error is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE
    return ErrorCode.INVALID_TXN_STATE if is_new else error
