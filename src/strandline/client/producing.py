"""A producer: batches to many partitions at once, several requests in flight to each broker, in order on retry.

`send` hands over a finished batch; the producer writes its id and sequence into it, and calls `acknowledged` when the
broker has it. Nothing runs in the background: answers are taken while `send` waits for room, and by `flush`.

Rules (lanes.py has what holds for one partition):
  - a refusal that passes by itself, and a broken connection, are tried again until delivery.timeout.ms is over, of
    which what a caller does between two calls is no part
  - idempotence makes retries harmless. If the broker has lost a producer's sequence, nobody knows what it has of the
    batches in flight: with `renews` they are written again under a new producer id (at least once), else it is an
    error; so is a duplicate then, since others may write in the same sequence
  - a batch that is too large for the broker is split if it can be; of a single record it is an error that names it
"""

import select
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from strandline.base.errors import ErrorCode, error_of, is_retriable, message_of
from strandline.base.ids import ZERO_UUID, Uuid
from strandline.client.config import INT_MAX
from strandline.client.connection import Connection
from strandline.client.errors import (
    KafkaError,
    ProduceFailed,
    UnknownTopic,
    Unreachable,
    Unsupported,
    passes_by_itself,
    refused,
)
from strandline.client.lanes import Lane, Pending
from strandline.client.metadata import Metadata, Partition
from strandline.client.patience import Patience
from strandline.wire.batch import NO_PRODUCER_ID
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.records.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

E = ErrorCode
TOPIC_IDS_SINCE = 13
ADDS_PARTITIONS_SINCE = 12  # to a transaction, without being asked (KIP-890)
TOO_LARGE = (E.MESSAGE_TOO_LARGE, E.RECORD_LIST_TOO_LARGE)
LOST_SEQUENCE = (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_EPOCH)
QUEUED_BYTES_MAX = 32 << 20
MISSING_PATIENCE_S = 10.0  # a topic may be on its way: brokers create it when it is first asked for
TURN_S = 1.0
AWAY_S = 0.1
ANSWER_SLACK_S = 5.0  # over what a broker itself waits for its followers


class Produced(NamedTuple):
    """A batch that the broker has. With acks=0 nobody knows: −1."""

    topic: str
    partition: int
    base_offset: int
    records: int
    tag: Any  # what the sender gave with it


class Sent(NamedTuple):
    """One request in flight."""

    batches: list[tuple[Lane, Pending]]
    names: dict[Uuid, str]  # of its topics: an answer may have their ids alone, of which the cluster tells others later
    until: float


class Link:
    """The connection to one broker, and what is in flight on it, oldest first."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sent: deque[Sent] = deque()


class Producer:
    """Used by one thread; closed by `with`. Without `flush` at its end, what is in flight is abandoned."""

    def __init__(
        self,
        cluster: Metadata,
        *,
        acknowledged: Callable[[Produced], None] = lambda produced: None,
        producer: tuple[int, int] | None = None,
        transactional_id: str | None = None,
        sequences: "dict[Partition, int] | None" = None,
        renews: bool = True,
        creates_topics: bool = False,
        stamps: bool = True,
        acks: int | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """`producer`: an id and epoch to go on with, `sequences`: the next sequence of each partition (default 0).
        Without, an id is asked for if the configuration says enable.idempotence. `stamps=False`: batches go as they
        are. `creates_topics`: brokers may create what is missing, if they are configured to. With a
        `transactional_id`, of `producer`, all is written in its transaction; whoever began it ends it."""
        assert transactional_id is None or (producer is not None and not renews and stamps)
        self.cluster = cluster
        self.config = cluster.config
        self.acknowledged = acknowledged
        self.producer = producer
        self.transactional_id = transactional_id
        self.sequences = dict(sequences or {})
        self.renews = renews
        self.creates_topics = creates_topics
        self.lanes: dict[Partition, Lane] = {}
        self.links: dict[int, Link] = {}
        self.queued_bytes = 0
        self.missing_since: dict[str, float] = {}
        self.left_at = time.monotonic()  # when the caller last got control back
        self.stamps = stamps
        self.acks = cluster.config.acks if acks is None else acks
        self.timeout_ms = cluster.config.request_timeout_ms if timeout_ms is None else timeout_ms

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for link in self.links.values():
            if link.sent:
                link.connection.close()
            else:
                self.cluster.release(link.connection)
        self.links.clear()

    # --- in

    def send(
        self,
        topic: str,
        partition: int,
        batch: bytearray,
        *,
        tag: Any = None,
        split: Callable[[], Sequence[Pending]] | None = None,
    ) -> None:
        """Take over a batch (base offset 0, any producer fields). May block until there is room, and then raises what
        went wrong with earlier ones: `ProduceFailed`, `KafkaError`."""
        self.come_back()
        lane = self.lanes.get((topic, partition))
        if lane is None:
            lane = self.lanes[topic, partition] = self.new_lane(topic, partition)
        lane.append(Pending(batch, tag, split))
        self.queued_bytes += len(batch)
        self.send_what_waits()
        while self.queued_bytes > QUEUED_BYTES_MAX:
            self.turn()
        self.left_at = time.monotonic()

    def flush(self) -> None:
        """Until everything is acknowledged. Raises `ProduceFailed`, `KafkaError`."""
        while any(lane.pending for lane in self.lanes.values()):
            self.turn()

    def come_back(self) -> None:
        """What the caller did meanwhile is not the brokers' time: nobody took their answers, or sent what waited."""
        away = time.monotonic() - self.left_at
        if away < AWAY_S:
            return
        self.missing_since = {topic: since + away for topic, since in self.missing_since.items()}
        for lane in self.lanes.values():
            for batch in lane.pending:
                batch.began += away
        for link in self.links.values():
            link.sent = deque(sent._replace(until=sent.until + away) for sent in link.sent)

    def new_lane(self, topic: str, partition: int) -> Lane:
        producer_id, epoch = NO_PRODUCER_ID, -1
        if self.producer is None and self.stamps and self.config.enable_idempotence:
            self.producer = init_producer_id(self.cluster)
        if self.producer is not None and self.stamps:
            producer_id, epoch = self.producer
        first = self.sequences.get((topic, partition), 0)
        transactional = self.transactional_id is not None
        return Lane(topic, partition, producer_id, epoch, first, stamps=self.stamps, transactional=transactional)

    # --- out

    def send_what_waits(self) -> None:
        """As much as may go now."""
        while True:
            now = time.monotonic()
            groups: dict[int, list[tuple[Lane, Pending]]] = {}
            for lane in self.lanes.values():
                batch = lane.next_to_send(now)
                if batch is None:
                    continue
                self.check_time(lane, batch, now)
                leader = self.leader_of(lane, now)
                if leader is not None and (not lane.in_flight or lane.leader == leader):
                    groups.setdefault(leader, []).append((lane, batch))
            sent = [self.send_to(leader, rows) for leader, rows in groups.items()]
            if True not in sent:
                return

    def leader_of(self, lane: Lane, now: float) -> int | None:
        """None: not now; it will be asked for again."""
        try:
            if lane.topic not in self.cluster.known:
                self.cluster.refresh([lane.topic], creates=self.creates_topics)
            leader = self.cluster.leader_of(lane.topic, lane.partition)
            self.missing_since.pop(lane.topic, None)
            return leader
        except KafkaError as error:
            if isinstance(error, UnknownTopic):
                since = self.missing_since.setdefault(lane.topic, now)
                if error.partition is not None or now - since > MISSING_PATIENCE_S:
                    raise
            elif not passes_by_itself(error):
                raise
            self.put_off(lane, error.problem)
            return None

    def put_off(self, lane: Lane, why: str) -> None:
        lane.put_off(why, time.monotonic() + self.backoff_s(lane.tries))
        self.cluster.known.pop(lane.topic, None)  # to be asked for anew

    def backoff_s(self, tries: int) -> float:
        return min(self.config.retry_backoff_max_ms, self.config.retry_backoff_ms << min(tries, 20)) / 1000

    def check_time(self, lane: Lane, batch: Pending, now: float) -> None:
        limit_ms = self.config.delivery_timeout_ms
        over = (now - batch.began) * 1000 > limit_ms
        if over or batch.tries > self.config.retries:
            what = f"within delivery.timeout.ms={limit_ms}" if over else f"after retries={self.config.retries}"
            why = f"; the last failure: {lane.why}" if lane.why else ""
            code = ErrorCode.REQUEST_TIMED_OUT
            raise self.failure(code, lane, batch, f"not acknowledged {what}{why}", maybe=batch.tries > 0)

    def send_to(self, leader: int, rows: list[tuple[Lane, Pending]]) -> bool:
        """One request, if there is room. Has anything been sent?"""
        link = self.links.get(leader)
        if link is None or not link.connection.is_open:
            try:
                link = self.links[leader] = Link(self.cluster.lease(leader))
            except KafkaError as error:
                if not passes_by_itself(error):
                    raise
                for lane, _ in rows:
                    self.put_off(lane, error.problem)
                return False
        if len(link.sent) >= self.config.max_in_flight:
            return False
        chosen: list[tuple[Lane, Pending]] = []
        size = 0
        for lane, batch in rows:
            if not chosen or size + len(batch.bytes) <= self.config.max_request_size:
                chosen.append((lane, batch))
                size += len(batch.bytes)
        version = link.connection.version_of(ProduceRequest)
        if self.transactional_id is not None and version < ADDS_PARTITIONS_SINCE:
            raise Unsupported(
                f"{link.connection} does not add partitions to transactions (Produce version {version})",
                "exactly once needs brokers with KIP-890",
            )
        request = self.request(chosen, by_id=version >= TOPIC_IDS_SINCE)
        for lane, batch in chosen:
            lane.sent(batch, leader)
        names = {topic.topic_id: topic.name for topic in request.topic_data}
        link.sent.append(Sent(chosen, names, time.monotonic() + self.timeout_ms / 1000 + ANSWER_SLACK_S))
        try:
            link.connection.send(request, version, expects_answer=self.acks != 0)
        except Unreachable as error:
            self.lost(link, error)
            return True
        if self.acks == 0:
            for lane, batch in link.sent.pop().batches:
                self.done(lane, batch, -1)
        return True

    def request(self, rows: list[tuple[Lane, Pending]], *, by_id: bool) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for lane, batch in rows:
            topics.setdefault(lane.topic, []).append(PartitionProduceData(index=lane.partition, records=batch.bytes))
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.acks,
            timeout_ms=self.timeout_ms,
            topic_data=tuple(
                TopicProduceData(
                    name=name,
                    topic_id=self.cluster.view(name).raw_id if by_id else ZERO_UUID,
                    partition_data=tuple(data),
                )
                for name, data in topics.items()
            ),
        )

    # --- answers

    def turn(self) -> None:
        """Send what may go, then take the answers that are there, or wait for one."""
        self.come_back()
        try:
            self.exchange()
        finally:
            self.left_at = time.monotonic()

    def exchange(self) -> None:
        self.send_what_waits()
        links = {link.connection.socket.fileno(): link for link in self.links.values() if link.sent}
        now = time.monotonic()
        waits = [lane.retry_at for lane in self.lanes.values() if lane.pending and lane.retry_at > now]
        until = min([*waits, *(link.sent[0].until for link in links.values()), now + TURN_S])
        if not links:
            time.sleep(max(until - now, 0.001))
            return
        poll = select.poll()
        for number, link in links.items():
            poll.register(number, select.POLLIN)
            if isinstance(link.connection.socket, ssl.SSLSocket) and link.connection.socket.pending():
                until = now
        found = {number for number, _ in poll.poll(max((until - now) * 1000, 0))}
        for number, link in links.items():
            plain = link.connection.socket
            if number in found or (isinstance(plain, ssl.SSLSocket) and plain.pending()):
                self.take_answer(link)
            elif time.monotonic() > link.sent[0].until:
                self.lost(link, link.connection.broken("no answer in time"))

    def take_answer(self, link: Link) -> None:
        try:
            answer = link.connection.receive()
        except Unreachable as error:
            self.lost(link, error)
            return
        sent = link.sent.popleft()
        rows = {
            (topic.name or sent.names.get(topic.topic_id), row.index): row
            for topic in answer.responses
            for row in topic.partition_responses
        }
        for lane, batch in sent.batches:
            row = rows.get((lane.topic, lane.partition))
            if row is None:
                lane.refused(batch, f"{link.connection} does not answer for it")
            else:
                self.judge(lane, batch, row)
        self.restart(lane for lane, _ in sent.batches)

    def judge(self, lane: Lane, batch: Pending, row: PartitionProduceResponse) -> None:
        code = error_of(row.error_code)
        why = f"{code.name}: {row.error_message or message_of(code)}"
        # A duplicate is of this very batch only if nobody else has the sequence: one with other edges may lack rows.
        is_alone = self.renews or self.transactional_id is not None
        if code == E.NONE or (code == E.DUPLICATE_SEQUENCE_NUMBER and is_alone):
            self.done(lane, batch, row.base_offset)
        elif code in TOO_LARGE and batch.count > 1 and batch.split is not None:
            lane.refused(batch, why)
            self.split(lane, batch)
        elif lane.failed and code in LOST_SEQUENCE:
            lane.refused(batch, lane.failed)  # it came after one that failed: that is why its sequence does not follow
        elif code in LOST_SEQUENCE and lane.is_idempotent and self.renews:
            lane.refused(batch, why)
            lane.lost_sequence = True
        elif is_retriable(code):
            lane.refused(batch, why)
            self.cluster.known.pop(lane.topic, None)
        else:
            blamed = tuple(error.batch_index for error in row.record_errors)
            raise self.failure(code, lane, batch, why, records=blamed, maybe=batch.tries > 1)

    def done(self, lane: Lane, batch: Pending, base_offset: int) -> None:
        lane.acknowledged(batch)
        self.queued_bytes -= len(batch.bytes)
        self.acknowledged(Produced(lane.topic, lane.partition, base_offset, batch.count, batch.tag))

    def split(self, lane: Lane, batch: Pending) -> None:
        assert batch.split is not None
        parts = batch.split()
        lane.replace(batch, parts)
        self.queued_bytes += sum(len(part.bytes) for part in parts) - len(batch.bytes)

    def lost(self, link: Link, error: KafkaError) -> None:
        """The connection is gone: what was in flight on it may be written or not."""
        link.connection.close()
        lanes: list[Lane] = []
        for sent in link.sent:
            for lane, batch in sent.batches:
                lane.refused(batch, error.problem)
                self.cluster.known.pop(lane.topic, None)
                lanes.append(lane)
        link.sent.clear()
        self.restart(lanes)

    def restart(self, lanes: Iterable[Lane]) -> None:
        """Lanes that failed, and whose last answer has come, begin anew where they failed."""
        for lane in lanes:
            if lane.failed and not lane.in_flight:
                if lane.lost_sequence:
                    lane.renew(*init_producer_id(self.cluster))
                lane.restart(time.monotonic() + self.backoff_s(lane.tries))

    def failure(
        self, code: int, lane: Lane, batch: Pending, what: str, *, records: tuple[int, ...] = (), maybe: bool = False
    ) -> ProduceFailed:
        return ProduceFailed(
            code, lane.topic, lane.partition, what, records=records, count=batch.count, maybe=maybe, tag=batch.tag
        )


def init_producer_id(cluster: Metadata) -> tuple[int, int]:
    """See `Cluster.init_producer_id`."""
    patience = Patience(cluster.config, "asking for a producer id")
    while True:
        try:
            answer, connection = cluster.ask_any(InitProducerIdRequest(transaction_timeout_ms=INT_MAX))
            if not answer.error_code:
                return answer.producer_id, answer.producer_epoch
            raise refused(answer.error_code, f"{connection} hands out no producer id")
        except KafkaError as error:
            if not passes_by_itself(error):
                raise
            patience.pause(error.problem)
