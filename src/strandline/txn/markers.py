"""Markers: a decision is carried to the leader of each partition of the transaction (WriteTxnMarkers).

Each broker is asked for everything that waits for it with one request at a time. What it refuses because leaders have
moved, or cannot do just now, is asked again, of whoever leads then. A partition whose topic was deleted needs no
marker: the image of a coordinator has every topic that a transaction of its has ever had. When all partitions have
their markers the transaction is complete.

Invariants:
  - only a decision whose record is committed is carried out, and only while this broker coordinates the id;
  - a decision is forgotten when its transaction is complete, or another broker coordinates it.
"""

from collections.abc import Iterable

from strandline.base.effects import Answered, Effect, Failed, ToBroker
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NOBODY, NodeId, TopicPartition
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
WRITTEN = (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH)


class Decision:
    """A decided transaction, and the partitions that have no marker of it yet."""

    def __init__(self, shard: Shard, entry: Entry) -> None:
        assert entry.current is not None and entry.current.state in DECIDED
        self.shard = shard
        self.entry = entry
        self.transaction = entry.current
        self.missing: dict[TopicPartition, None] = dict.fromkeys(entry.current.partitions)
        self.asked: set[TopicPartition] = set()  # a broker was asked for these
        self.is_completing = False


class Markers:
    def __init__(self, shards: TxnShards) -> None:
        self.shards = shards
        self.image = Image()
        self.decisions: dict[Entry, Decision] = {}
        self.under_way: dict[NodeId, tuple[int, list[tuple[Decision, TopicPartition]]]] = {}
        self.count = 0  # of requests
        self.next_try: Instant = NEVER

    # --- decisions come and go

    def decide(self, shard: Shard, entry: Entry, now: Instant) -> list[Effect]:
        """The record of the decision is committed."""
        assert entry not in self.decisions and self.shards.loaded.get(shard.partition) is shard
        self.decisions[entry] = Decision(shard, entry)
        return self.go_on(now)

    def loaded(self, shards: Iterable[Shard], now: Instant) -> list[Effect]:
        """This broker coordinates these from now on: it goes on with what others have decided."""
        for shard in shards:
            for entry in shard.entries.values():
                if entry.current is not None and entry.current.state in DECIDED:
                    self.decisions[entry] = Decision(shard, entry)
        return self.go_on(now)

    def dropped(self, shards: Iterable[Shard]) -> None:
        """Another broker coordinates these."""
        for shard in shards:
            for entry in shard.entries.values():
                self.decisions.pop(entry, None)

    # --- carrying them out

    def go_on(self, now: Instant) -> list[Effect]:
        """Ask whoever can be asked now, and complete what has all its markers."""
        self.next_try = NEVER
        wanted: dict[NodeId, list[tuple[Decision, TopicPartition]]] = {}
        effects: list[Effect] = []
        for decision in list(self.decisions.values()):
            for at in [at for at in decision.missing if at not in decision.asked]:
                leader = self.leader_of(at)
                if leader is None:
                    del decision.missing[at]
                elif leader == NOBODY:
                    self.next_try = after(now, AGAIN_MS)
                elif leader not in self.under_way:
                    wanted.setdefault(leader, []).append((decision, at))
            if not decision.missing and not decision.is_completing:
                effects += self.complete(decision, now)
        for node, rows in wanted.items():
            if node not in self.under_way:  # else what was completed meanwhile has asked it
                effects.append(self.ask(node, rows[:ROWS_MAX]))
        return effects

    def leader_of(self, at: TopicPartition) -> NodeId | None:
        """None: there is no such partition any more."""
        topic = self.image.topic_named(at.topic)
        partition = None if topic is None else topic.partitions.get(at.partition)
        if partition is None:
            return None
        broker = self.image.brokers.get(partition.leader)
        return NOBODY if broker is None or broker.fenced else partition.leader

    def ask(self, node: NodeId, rows: list[tuple[Decision, TopicPartition]]) -> Effect:
        assert node not in self.under_way
        grouped: dict[Entry, dict[str, list[int]]] = {}
        for decision, at in rows:
            decision.asked.add(at)
            grouped.setdefault(decision.entry, {}).setdefault(at.topic, []).append(at.partition)
        self.count += 1
        self.under_way[node] = self.count, rows
        request = WriteTxnMarkersRequest(
            markers=tuple(marker_of(self.decisions[entry], topics) for entry, topics in grouped.items())
        )
        return ToBroker(node, "markers", request, VERSION, TIMEOUT_MS, MarkersSent(node, self.count))

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        sent: MarkersSent = event.token
        number, rows = self.under_way.pop(sent.node)
        assert number == sent.sequence, "one request at a time"
        errors = errors_in(event.message) if isinstance(event, Answered) else {}
        is_refused = False
        for decision, at in rows:
            decision.asked.discard(at)
            transaction = decision.transaction
            error = errors.get((transaction.producer_id, at), ErrorCode.NETWORK_EXCEPTION)
            if error in WRITTEN:
                decision.missing.pop(at, None)
            else:  # also TRANSACTION_COORDINATOR_FENCED: metadata will say soon that another broker coordinates it
                is_refused = True
        if not is_refused:
            return self.go_on(now)
        effects = self.go_on_without(sent.node, now)
        self.next_try = min(self.next_try, after(now, AGAIN_MS))
        return effects

    def go_on_without(self, node: NodeId, now: Instant) -> list[Effect]:
        """As `go_on`, but this broker is not asked at once again."""
        self.under_way[node] = 0, []
        effects = self.go_on(now)
        del self.under_way[node]
        return effects

    def complete(self, decision: Decision, now: Instant) -> list[Effect]:
        entry = decision.entry
        if entry.is_busy or entry.current is not decision.transaction:
            return []
        decision.is_completing = True

        def done(error: ErrorCode, now: Instant) -> list[Effect]:
            decision.is_completing = False
            if error is ErrorCode.NONE:
                self.decisions.pop(entry, None)
            elif entry in self.decisions:
                self.next_try = min(self.next_try, after(now, AGAIN_MS))
            return []

        return self.shards.write(decision.shard, entry, decision.transaction.completed(now), now, done)

    def deadline(self) -> Instant:
        return self.next_try

    def expire(self, now: Instant) -> list[Effect]:
        return self.go_on(now) if self.next_try <= now else []

    def check(self) -> None:
        for entry, decision in self.decisions.items():
            assert self.shards.loaded.get(decision.shard.partition) is decision.shard
            assert entry.current is decision.transaction, "a decision does not change"
            assert decision.asked <= decision.missing.keys()


def marker_of(decision: Decision, topics: dict[str, list[int]]) -> WritableTxnMarker:
    transaction = decision.transaction
    return WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_result=transaction.commits,
        topics=tuple(WritableTxnMarkerTopic(name=name, partition_indexes=tuple(ids)) for name, ids in topics.items()),
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
