"""Transactions that hang after an unclean election are aborted (KIP-664, T42).

Their markers are among what was lost. A coordinator that took a transaction for ended never ends it again, and
consumers that read what is committed would wait for ever. The leader does not know which transactional id a producer
has: it asks every broker who coordinates the producer, and then that coordinator about the transaction.

Rules:
  - aborted is only what its coordinator does not have in this partition, so that no decision comes after the abort; and
    what no broker knows, all of them asked several times, and each of them having answered
  - a transaction to which something was appended meanwhile is asked for anew
  - brokers are asked again where that was no answer, for as long as the transaction is open and this leadership lasts
"""

from strandline.base.effects import Answered, Effect, Failed, Report, ToBroker
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, TRANSACTION_TOPIC, NodeId
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.coordination.partitioning import coordinator_of
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.serving.transactions.markers import Markers
from strandline.replica.tokens import HangingAsked
from strandline.wire.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from strandline.wire.messages.transactions.write_txn_markers import WritableTxnMarker
from strandline.wire.schema import Message

TIMEOUT_MS = 10_000
AGAIN_MS = 10_000
UNKNOWN_MIN = 3  # so often all brokers say that they do not know the producer, before that is believed
UNDER_WAY = ("Ongoing", "PrepareCommit", "PrepareAbort")


class Suspect:
    """A transaction that was open when this leadership began."""

    __slots__ = ("end", "first_offset", "hosted", "leader", "producer_id", "unknown")

    def __init__(self, hosted: Hosted, leader: Leader, producer_id: int, first_offset: int) -> None:
        self.hosted = hosted
        self.leader = leader
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.unknown = 0  # how often nobody knew the producer
        self.end: int | None = None  # the producer's last offset when brokers were asked; None: they were not

    @property
    def is_open(self) -> bool:
        is_led = self.hosted.role is self.leader and not self.hosted.gone
        return is_led and self.leader.log.transactions.open.get(self.producer_id) == self.first_offset

    @property
    def last_offset(self) -> int:
        batches = self.leader.log.producers.known[self.producer_id].batches
        return batches[-1].last_offset if batches else -1

    def is_in(self, row: TransactionState) -> bool:
        """Does its coordinator have this transaction, in this partition?"""
        topic, partition = self.hosted.name
        is_there = any(one.topic == topic and partition in one.partitions for one in row.topics)
        return row.producer_id == self.producer_id and row.transaction_state in UNDER_WAY and is_there


class HangingCheck:
    def __init__(self, host: Host, markers: Markers) -> None:
        self.host = host
        self.markers = markers
        self.suspects: list[Suspect] = []
        self.asked: dict[int, None] = {}  # requests that are under way
        self.count = 0
        self.names: dict[int, dict[str, None]] = {}  # transactional ids, by producer id
        self.rows: dict[str, TransactionState] = {}  # what their coordinators say
        self.is_refused = False  # somebody has not answered
        self.wake = Alarm(host.timers, self.go_on)

    def suspect(self, hosted: Hosted, opened: dict[int, int], now: Instant) -> None:
        """`opened`: producers, and where their transactions begin."""
        assert type(hosted.role) is Leader
        self.suspects += [Suspect(hosted, hosted.role, *row) for row in opened.items()]
        self.wake.set(now + AGAIN_MS)

    # --- asking

    def go_on(self, now: Instant) -> list[Effect]:
        self.suspects = [one for one in self.suspects if one.is_open]
        if not self.suspects:
            return []
        self.wake.set(now + AGAIN_MS)
        if self.asked:
            return []
        self.names, self.rows, self.is_refused = {}, {}, False
        for one in self.suspects:
            one.end = one.last_offset
        producers = tuple(dict.fromkeys(one.producer_id for one in self.suspects))
        request = ListTransactionsRequest(producer_id_filters=producers)
        return [self.ask(node, request, 2) for node, one in sorted(self.host.image.brokers.items()) if not one.fenced]

    def ask(self, node: NodeId, request: Message, version: int) -> Effect:
        assert node != NOBODY
        self.count += 1
        self.asked[self.count] = None
        return ToBroker(node, "transactions", request, version, TIMEOUT_MS, HangingAsked(self.count))

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        sent: HangingAsked = event.token
        del self.asked[sent.sequence]
        answer = event.message if isinstance(event, Answered) else None
        is_listed = isinstance(answer, ListTransactionsResponse)
        if isinstance(answer, ListTransactionsResponse) and answer.error_code == ErrorCode.NONE:
            for one in answer.transaction_states:
                self.names.setdefault(one.producer_id, {})[one.transactional_id] = None
        elif isinstance(answer, DescribeTransactionsResponse):
            self.rows |= {row.transactional_id: row for row in answer.transaction_states}
        else:
            self.is_refused = True
        if self.asked or self.is_refused:
            return []
        return self.describe(now) if is_listed else self.conclude(now)

    def describe(self, now: Instant) -> list[Effect]:
        """All brokers have said which ids they coordinate: those are asked for."""
        assert not self.asked and not self.is_refused
        by_node: dict[NodeId, list[str]] = {}
        for one in self.suspects:
            for name in self.names.get(one.producer_id, ()):
                node = coordinator_of(name, TRANSACTION_TOPIC, self.host.image)
                by_node.setdefault(node, []).append(name)
        by_node.pop(NOBODY, None)
        if not by_node:
            return self.conclude(now)
        return [self.ask(node, DescribeTransactionsRequest(tuple(names)), 0) for node, names in by_node.items()]

    # --- what it comes to

    def conclude(self, now: Instant) -> list[Effect]:
        assert not self.asked and not self.is_refused, "each broker has answered"
        effects: list[Effect] = []
        for one in self.suspects:
            if one.end is None:
                continue  # it came while others were asked about
            names = self.names.get(one.producer_id, {})
            one.unknown = 0 if names else one.unknown + 1
            is_lost = one.unknown >= UNKNOWN_MIN if not names else all(self.is_denied(one, name) for name in names)
            if is_lost and one.is_open and one.end == one.last_offset:
                effects += self.abort(one, now)
        return effects

    def is_denied(self, suspect: Suspect, name: str) -> bool:
        row = self.rows.get(name)
        if row is None or row.error_code not in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
            return False
        return not suspect.is_in(row)

    def abort(self, suspect: Suspect, now: Instant) -> list[Effect]:
        assert suspect.is_open and not self.asked
        producer = suspect.leader.log.producers.known[suspect.producer_id]
        name = suspect.hosted.name
        asked = WritableTxnMarker(
            producer_id=suspect.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=False,
            coordinator_epoch=producer.coordinator_epoch,
        )

        def then(error: ErrorCode) -> list[Effect]:
            if error is not ErrorCode.NONE:
                return []  # it is open still, and tried again; or this leadership has ended
            why = "its coordinator does not know it there, and its end was lost"
            text = f"{name}: the transaction of producer {suspect.producer_id} since {suspect.first_offset} is aborted"
            return [Report("warning", f"{text}: {why}")]

        return self.markers.write_one(asked, name, then, now)
