"""Markers: a decision is carried to the leader of each partition of the transaction (WriteTxnMarkers).

Each broker is asked for everything that waits for it with one request at a time. What it refuses because leaders have
moved, or cannot do just now, is asked again, of whoever leads then. A partition whose topic was deleted needs no
marker: the image of a coordinator has every topic that a transaction of its has ever had. When all partitions have
their markers the transaction is complete.

Invariants (executed by `check`):
  - only a decision whose record is committed is carried out, and only while this broker coordinates the id;
  - a decision is forgotten when its transaction is complete, or another broker coordinates it.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from strandline.base.effects import Answered, Effect, Failed, ToBroker
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NOBODY, NodeId, TopicPartition, by_topic
from strandline.base.time import NEVER, Instant, after
from strandline.metadata.image import Image
from strandline.txn.shard import Entry, Shard
from strandline.txn.shards import TxnShards
from strandline.txn.states import DECIDED
from strandline.txn.tokens import MarkersSent
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

VERSION = 2
TIMEOUT_MS = 30_000
AGAIN_MS = 50
ROWS_MAX = 10_000  # partitions of transactions, in one request

# The partition has what the marker would say, or more: a producer epoch above it comes only behind its transaction's
# end.
WRITTEN = (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH)  # guard: marker-for-a-leader-that-moved


class Decision:
    """A decided transaction, and the partitions that have no marker of it yet."""

    def __init__(self, shard: Shard, entry: Entry) -> None:
        assert entry.current is not None and entry.current.state in DECIDED
        self.shard = shard
        self.entry = entry
        self.transaction = entry.current
        self.missing: dict[TopicPartition, None] = dict.fromkeys(entry.current.partitions)
        self.is_completing = False


Row = tuple[Decision, TopicPartition]


class Markers:
    def __init__(self, shards: TxnShards) -> None:
        self.shards = shards
        self.image = Image()
        self.decisions: dict[Entry, Decision] = {}
        self.waiting: dict[NodeId, dict[Row, None]] = {}  # by the leader; NOBODY: there is none that can be asked
        self.under_way: dict[NodeId, tuple[int, list[Row]]] = {}
        self.pausing: dict[NodeId, None] = {}  # brokers that have refused something just now
        self.unwritten: dict[Decision, None] = {}  # they have all their markers, and the record of it was refused
        self.count = 0  # of requests
        self.next_try: Instant = NEVER

    # --- decisions come and go

    def decide(self, shard: Shard, entry: Entry, now: Instant) -> list[Effect]:
        """The record of the decision is committed."""
        assert entry not in self.decisions and self.shards.loaded.get(shard.partition) is shard
        self.decisions[entry] = Decision(shard, entry)
        return self.carry_out([self.decisions[entry]], now)

    def loaded(self, shards: Sequence[Shard], now: Instant) -> list[Effect]:
        """This broker coordinates these from now on: it goes on with what others have decided."""
        fresh = [Decision(shard, entry) for shard in shards for entry in shard.decided.values()]
        for shard in shards:
            shard.decided = {}
        assert all(decision.entry not in self.decisions for decision in fresh), "it is carried out once"
        # guard: decisions-die-with-their-coordinator
        self.decisions |= {decision.entry: decision for decision in fresh}
        return self.carry_out(fresh, now)

    def dropped(self, shards: Sequence[Shard]) -> None:
        """Another broker coordinates these."""
        gone = set(shards)
        assert not gone & set(self.shards.loaded.values()), "this broker coordinates it"
        for entry in [entry for entry, decision in self.decisions.items() if decision.shard in gone]:
            del self.decisions[entry]

    def is_known(self, decision: Decision) -> bool:
        return self.decisions.get(decision.entry) is decision

    # --- carrying them out

    def carry_out(self, fresh: Iterable[Decision], now: Instant) -> list[Effect]:
        """Costs what these have, not what others wait for."""
        effects: list[Effect] = []
        for decision in fresh:
            assert self.is_known(decision) and not decision.is_completing
            for at in list(decision.missing):
                self.place((decision, at), now)
            effects += self.complete(decision, now)
        return effects + self.ask_all()

    def moved(self, now: Instant) -> list[Effect]:
        """The partitions that wait may have other leaders."""
        rows = [row for waiting in self.waiting.values() for row in waiting if self.is_known(row[0])]
        self.waiting = {}
        effects: list[Effect] = []
        for row in rows:
            self.place(row, now)
            effects += self.complete(row[0], now)
        return effects + self.ask_all()

    def place(self, row: Row, now: Instant) -> None:
        """Have the partition's leader asked."""
        assert row[1] in row[0].missing, "it has its marker"
        leader = self.leader_of(row[1])
        if leader is None:
            del row[0].missing[row[1]]
            return
        self.waiting.setdefault(leader, {})[row] = None
        if leader == NOBODY:
            self.try_again(now)

    def try_again(self, now: Instant) -> None:
        self.next_try = min(self.next_try, after(now, AGAIN_MS))

    def leader_of(self, at: TopicPartition) -> NodeId | None:
        """None: there is no such partition any more."""
        topic = self.image.topic_named(at.topic)
        partition = None if topic is None else topic.partitions.get(at.partition)
        if partition is None:
            return None
        broker = self.image.brokers.get(partition.leader)
        return NOBODY if broker is None or broker.fenced else partition.leader

    def ask_all(self) -> list[Effect]:
        """Whoever can be asked now."""
        effects: list[Effect] = []
        for node in list(self.waiting):
            if node != NOBODY and node not in self.under_way and node not in self.pausing:
                effects += self.ask(node)
        return effects

    def ask(self, node: NodeId) -> list[Effect]:
        assert node not in self.under_way
        assert node != NOBODY and node not in self.pausing
        waiting = self.waiting[node]
        rows: list[Row] = []
        for row in list(islice(waiting, ROWS_MAX)):
            del waiting[row]
            if self.is_known(row[0]):
                rows.append(row)
        if not waiting:
            del self.waiting[node]
        if not rows:
            return []
        grouped: dict[Decision, list[TopicPartition]] = {}
        for decision, at in rows:
            grouped.setdefault(decision, []).append(at)
        self.count += 1
        self.under_way[node] = self.count, rows
        request = WriteTxnMarkersRequest(
            markers=tuple(marker_of(decision, partitions) for decision, partitions in grouped.items())
        )
        return [ToBroker(node, "markers", request, VERSION, TIMEOUT_MS, MarkersSent(node, self.count))]

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        sent: MarkersSent = event.token
        number, rows = self.under_way.pop(sent.node)
        assert number == sent.sequence, "one request at a time"
        errors = errors_in(event.message) if isinstance(event, Answered) else {}
        effects: list[Effect] = []
        for decision, at in rows:
            if not self.is_known(decision):
                continue
            error = errors.get((decision.transaction.producer_id, at), ErrorCode.NETWORK_EXCEPTION)
            if error in WRITTEN:
                del decision.missing[at]
            else:  # also TRANSACTION_COORDINATOR_FENCED: metadata will say soon that another broker coordinates it
                self.pausing[sent.node] = None
                self.try_again(now)  # guard: refused-marker-is-not-sent-again
                self.place((decision, at), now)
            effects += self.complete(decision, now)
        return effects + self.ask_all()

    def complete(self, decision: Decision, now: Instant) -> list[Effect]:
        """If it has all its markers."""
        entry = decision.entry
        # guard: complete-before-the-markers
        if decision.missing or decision.is_completing or entry.is_busy or entry.current is not decision.transaction:
            return []
        assert self.is_known(decision), "another broker coordinates it"
        decision.is_completing = True

        def done(error: ErrorCode, now: Instant) -> list[Effect]:
            assert decision.is_completing and not decision.missing
            assert self.decisions.get(entry) in (decision, None), "one decision of an id at a time"
            decision.is_completing = False
            if error is ErrorCode.NONE:
                self.decisions.pop(entry, None)
            elif self.is_known(decision):
                self.unwritten[decision] = None
                self.try_again(now)
            return []

        return self.shards.write(decision.shard, entry, decision.transaction.completed(now), now, done)

    def deadline(self) -> Instant:
        return self.next_try

    def expire(self, now: Instant) -> list[Effect]:
        if self.next_try > now:
            return []
        self.next_try = NEVER
        self.pausing = {}
        unwritten, self.unwritten = self.unwritten, {}
        effects: list[Effect] = []
        for decision in unwritten:
            if self.is_known(decision):
                effects += self.complete(decision, now)
        return effects + self.moved(now)

    def check(self) -> None:
        rows = {row for waiting in self.waiting.values() for row in waiting}
        rows |= {row for _, asked in self.under_way.values() for row in asked}
        for entry, decision in self.decisions.items():
            assert self.shards.loaded.get(decision.shard.partition) is decision.shard
            assert entry.current is decision.transaction, "a decision does not change"
            assert all((decision, at) in rows for at in decision.missing), "somebody is asked for each, or will be"
            assert decision.missing or decision.is_completing or decision in self.unwritten, "then it is complete"
            assert not decision.is_completing or entry.pending is not None
        assert NOBODY not in self.under_way
        assert all(self.waiting.values()), "a broker for which nothing waits is forgotten"
        assert all(number <= self.count for number, _ in self.under_way.values())
        put_off = self.pausing or self.unwritten or NOBODY in self.waiting
        assert not put_off or self.next_try != NEVER, "what is put off is tried again"


def marker_of(decision: Decision, partitions: list[TopicPartition]) -> WritableTxnMarker:
    transaction = decision.transaction
    assert transaction.state in DECIDED
    assert partitions, "the broker would have nothing to do"
    return WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_result=transaction.commits,
        topics=tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=ids) for name, ids in by_topic(partitions).items()
        ),
        coordinator_epoch=decision.shard.coordinator_epoch,
        transaction_version=transaction.version,
    )


def errors_in(response: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (marker.producer_id, TopicPartition(topic.name, row.partition_index)): error_of(row.error_code)
        for marker in response.markers
        for topic in marker.topics
        for row in topic.partitions
    }
