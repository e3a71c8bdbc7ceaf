"""What must hold of transactions after every event, and when faults have ended.

- the last stable offset of every replica is that of the records below its high watermark: before the first record of a
  transaction without a committed marker. It never passes the high watermark. (A marker that was there when the log was
  opened or cut may count before it is known to be committed: what it says was decided for good. And of a transaction
  whose batches a cleaner has taken, on another replica perhaps, nothing is there to wait for.)
- it never moves back while one leads
- no marker without a decision: each marker that ends a transaction says what a committed record of its coordinator
  decided, for this producer, epoch and partition, and each decision ends one transaction of a partition at most
- an EndTxn is acknowledged when its decision is committed
- none is open for ever
"""

from collections import Counter
from collections.abc import Container
from types import NoneType
from typing import Any

from strandline.base.effects import Received, Reply
from strandline.base.ids import TRANSACTION_TOPIC, TopicIdPartition, TopicPartition
from strandline.log.log import Log
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.sim.laws.logs.truth import Truth
from strandline.sim.laws.partitions.partitions import Partitions
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.txn.states import DECIDED, IDLE, State
from strandline.wire.batch import batches
from strandline.wire.control import read_marker
from strandline.wire.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from strandline.wire.messages.transactions.transaction_records import decode_key, decode_value
from strandline.wire.record import records

Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence
Decision = tuple[int, int, bool, TopicPartition]  # producer id and epoch, does it commit, where


class TransactionHistory:
    """The transactions of one partition below the true high watermark."""

    def __init__(self) -> None:
        self.count = 0  # of batches that were read
        self.open: dict[int, int] = {}  # the first offset, by producer id
        self.over: list[tuple[int, int, int]] = []  # first offset, marker and producer id, in the order of markers

    def stable_end(self, high_watermark: int, ended: Container[int] = ()) -> int:
        """`ended`: the transactions of these producers are over for other reasons."""
        end = min([high_watermark, *(first for producer_id, first in self.open.items() if producer_id not in ended)])
        for first, marker, producer_id in reversed(self.over):
            if marker < high_watermark:
                break
            if producer_id not in ended or first >= high_watermark:
                end = min(end, first)
        return end


class Transactions:
    HEARS = ((Received, EndTxnRequest),)
    ANSWERS = (EndTxnResponse, NoneType)

    def __init__(self, world: Subject, partitions: Partitions) -> None:
        self.world = world
        self.partitions = partitions
        self.history: dict[TopicIdPartition, TransactionHistory] = {}
        self.decided: Counter[Decision] = Counter()
        self.written: Counter[Decision] = Counter()
        self.ends: set[tuple[str, int, int, bool]] = set()  # id, producer id and epoch, does it commit
        self.stable: dict[
            tuple[str, int, TopicIdPartition], tuple[int, int]
        ] = {}  # leader epoch, and last stable offset
        self.read: dict[tuple[str, int, Log], tuple[int, int]] = {}  # its end, and up to where it was read from files
        self.asked: dict[Asked, EndTxnRequest] = {}
        self.answered: list[EndTxnRequest] = []  # in this event

    def forget(self, machine: Machine) -> None:
        for asked in [asked for asked in self.asked if asked[0] == machine.name]:
            del self.asked[asked]
        self.answered.clear()

    def received(self, machine: Machine, event: Any) -> None:
        self.asked[machine.name, machine.life, event.to.connection, event.to.sequence] = event.message

    def replies(self, machine: Machine, reply: Reply) -> None:
        asked = self.asked.pop((machine.name, machine.life, reply.to.connection, reply.to.sequence), None)
        if asked is not None and type(reply.message) is EndTxnResponse and not reply.message.error_code:
            self.answered.append(asked)

    @property
    def are_decisions_lost(self) -> bool:
        return self.world.damage.is_exceeded(TRANSACTION_TOPIC)

    # --- after every event

    def look(self, machine: Machine, touched: list[Hosted]) -> None:
        for hosted in touched:
            name = self.partitions.names.get(hosted.at)  # a disk may have swapped topic ids: the folder's name may lie
            if name is not None and name.topic == TRANSACTION_TOPIC:
                self.follow_decisions(hosted.at)
        for hosted in touched:
            if hosted.role is not None and hosted.log.transactions.are_used and self.partitions.is_bound(hosted.at):
                self.look_at(machine, hosted)
        for asked in self.answered:
            self.is_decided(machine, asked)
        self.answered.clear()

    def follow_decisions(self, at: TopicIdPartition) -> None:
        truth = self.partitions.truths.get(at)
        if truth is None:
            return
        for batch, header in unread(truth, self.history.setdefault(at, TransactionHistory())):
            for record in () if header.is_control else records(header, batch):
                transactional_id, value = decode_key(record.key), decode_value(record.value)
                if transactional_id is None or value is None or value.transaction_status not in DECIDED:
                    continue
                commits = value.transaction_status == State.PREPARE_COMMIT
                producer = value.producer_id, value.producer_epoch
                self.ends.add((transactional_id, *producer, commits))
                for row in value.transaction_partitions or ():
                    for index in row.partition_ids:
                        self.decided[*producer, commits, TopicPartition(row.topic, index)] += 1

    def look_at(self, machine: Machine, hosted: Hosted) -> None:
        role, truth = hosted.role, self.partitions.truths.get(hosted.at)
        assert role is not None
        history = self.history.setdefault(hosted.at, TransactionHistory())
        if truth is not None and hosted.name.topic != TRANSACTION_TOPIC:
            self.follow(hosted, truth, history)
        stable, end = role.last_stable_offset, hosted.log.log_end_offset
        which = machine.name, machine.life, hosted.log
        before, from_files = self.read.get(which, (end + 1, 0))
        self.read[which] = end, (from_files := end if end < before else from_files)
        if machine.is_rotten or machine.has_lost(hosted) or truth is None or role.high_watermark > truth.end:
            return
        expected = max(history.stable_end(role.high_watermark), min(hosted.log.log_start_offset, role.high_watermark))
        assert stable == expected or stable in others(hosted.log, history, role.high_watermark, from_files), (
            f"the last stable offset of {hosted.name} on {machine.name} is {stable}, not {expected}, with the high"
            f" watermark {role.high_watermark}"
        )
        if type(role) is Leader:
            where = machine.name, machine.life, hosted.at
            epoch, before = self.stable.get(where, (-1, -1))
            assert epoch != role.epoch or stable >= before, (
                f"the last stable offset of {hosted.name} fell from {before} to {stable} on {machine.name}, which leads"
                f" in epoch {epoch} all the time"
            )
            self.stable[where] = role.epoch, stable

    def follow(self, hosted: Hosted, truth: Truth, history: TransactionHistory) -> None:
        for batch, header in unread(truth, history):
            if not header.is_transactional:
                continue
            if not header.is_control:
                history.open.setdefault(header.producer_id, header.base_offset)
                continue
            marker = read_marker(batch)
            first = history.open.pop(header.producer_id, None)
            if marker is None or first is None:
                continue
            history.over.append((first, header.base_offset, header.producer_id))
            said = header.producer_id, header.producer_epoch, marker.commits, hosted.name
            self.written[said] += 1
            assert self.written[said] <= self.decided[said] or self.are_decisions_lost, (
                f"a marker in {hosted.name} at {header.base_offset} {'commits' if marker.commits else 'aborts'} the"
                f" transaction of producer {said[:2]} that begins at {first}, and its coordinator has decided that"
                f" {self.decided[said]} times"
            )

    def is_decided(self, machine: Machine, asked: EndTxnRequest) -> None:
        """With transaction.version 2 the decision has the next epoch; with an exhausted one, too."""
        name, producer_id, epoch = asked.transactional_id, asked.producer_id, asked.producer_epoch
        said = [(name, producer_id, one, asked.committed) for one in (epoch, epoch + 1)]
        assert any(one in self.ends for one in said) or self.are_decisions_lost, (
            f"{machine.name} acknowledges {asked}, and no such decision is committed"
        )

    # --- when faults have ended

    def why_open(self) -> str | None:
        """Where nothing is lost that was promised to survive. None: no transaction is open."""
        if self.are_decisions_lost:
            return None
        for machine in self.world.machines.values():
            node = machine.node
            if node is None or node.broker is None:
                continue
            for hosted in node.broker.replicas.host.partitions.all():
                if hosted.log.transactions.open and self.partitions.is_bound(hosted.at):
                    return f"open in {hosted.name} on {machine.name}: {hosted.log.transactions.open}"
            for shard in node.broker.transactions.shards.loaded.values():
                for name, entry in shard.entries.items():
                    if entry.current is None or entry.is_busy or entry.current.state not in IDLE:
                        return f"{machine.name} has not ended the transaction of {name}: {entry.current}"
        return None


def others(log: Log, history: TransactionHistory, high_watermark: int, from_files: int) -> set[int]:
    """What else the last stable offset may be. Of the markers that were there when the log was opened, those count that
    a snapshot of producers knows: the first ones. And what a cleaner has taken is not waited for."""
    ended = taken(log, history, high_watermark) if log.has_gaps else set()
    found = {history.stable_end(high_watermark, ended)}
    for producer_id in markers_between(log, high_watermark, from_files):
        ended.add(producer_id)
        found.add(history.stable_end(high_watermark, ended))
    return found


def taken(log: Log, history: TransactionHistory, high_watermark: int) -> set[int]:
    """Producers of whose transaction, which is not decided here, no batch is left."""
    waiting = {producer_id: first for first, marker, producer_id in history.over if first < high_watermark <= marker}
    waiting |= {producer_id: first for producer_id, first in history.open.items() if first < high_watermark}
    first = min(waiting.values(), default=high_watermark)
    there = set()
    for header in log.headers(first):
        if header.base_offset >= high_watermark:
            break
        if not header.is_control and header.base_offset >= waiting.get(header.producer_id, high_watermark):
            there.add(header.producer_id)
    return waiting.keys() - there


def markers_between(log: Log, start: int, end: int) -> list[int]:
    """Whose transactions they end, in order."""
    headers = log.segments.marked_headers(start)
    return [
        header.producer_id for header, marker in headers if marker is not None and start <= header.base_offset < end
    ]


def unread(truth: Truth, history: TransactionHistory) -> Any:
    """Batches that were committed since the last look, as bytes and header."""
    start, history.count = history.count, len(truth.bases)
    for at in range(start, history.count):
        end = truth.positions[at + 1] if at + 1 < history.count else len(truth.content)
        batch = bytes(truth.content[truth.positions[at] : end])
        yield batch, next(iter(batches(batch)))
