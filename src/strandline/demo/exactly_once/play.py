"""How the demonstration goes: two loops over the same transfers, kills in the middle of both, and the count.

Time is given by the work. Transfers come in portions, one for each kill and one more, and a kill comes when a part of a
portion is booked: so it meets workers in the middle of their work, on a fast machine and on a slow one.
"""

import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer

from strandline.base.value import Value
from strandline.client.admin.topics import create_topic
from strandline.demo.demonstration import safe_producer
from strandline.demo.exactly_once import targets
from strandline.demo.exactly_once.bank import (
    BOOKING_PARTITIONS,
    TRANSFER_PARTITIONS,
    TRANSFERS,
    Transfer,
    transfer_bytes,
    transfers,
)
from strandline.demo.exactly_once.count import Count, count, taken_back
from strandline.demo.exactly_once.loop import Loop
from strandline.demo.exactly_once.reading import (
    Reader,
    Stalled,
    group_reader,
    has_no_open_transaction,
    is_all_committed,
)
from strandline.testing.local_cluster import LocalCluster, NodeProcess
from strandline.wire.messages.groups import find_coordinator

WITH, WITHOUT = "exactly-once", "plain"  # the loops: groups, ids and topics are named after them
PROPERTIES = {
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "replica.lag.time.max.ms": "3000",
}
NODES = 3
NODE_DOWN_S = 1.5
MEETS_S = 5.0  # how long a kill waits for a worker that is at work in both loops
QUIET_S = 120.0  # so long nothing may change where something must
PART = 0.25  # of a portion: when it is booked, the kill comes
CYCLE = ("worker", "leader", "worker", "transaction coordinator", "worker", "group coordinator")


Progress = Callable[[tuple[int, int]], None]  # transfers that are booked, with transactions and without


class Wish(Value, frozen=True):
    accounts: int
    transfers: int
    workers: int
    kills: int
    pace_ms: float = 4.0
    seed: int = 1


class Event(Value, frozen=True):
    at_s: float
    kind: str  # "kill", "back", "ended" (a worker that nobody killed), "step"
    text: str
    booked: tuple[int, int]  # transfers of which a booking was read by then, with transactions and without


class ExactlyOnceResult(Value, frozen=True):
    wish: Wish
    seconds: float
    events: tuple[Event, ...]
    with_transactions: Count
    without: Count
    aborted: int  # bookings that lie in the log, and that no read_committed reader gets
    taken_back: int  # that one got them while the loop ran, and that are not there in the end
    all_ended: bool  # no transaction is left open

    @property
    def holds(self) -> bool:
        """A run in which nothing is transferred shows nothing."""
        count = self.with_transactions
        return count.holds and count.once > 0 and not self.taken_back and self.all_ended

    @property
    def kills(self) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.kind == "kill")


class Play:
    def __init__(
        self, cluster: LocalCluster, wish: Wish, folder: Path, say: Callable[[Event], None], progress: Progress
    ) -> None:
        self.cluster = cluster
        self.wish = wish
        self.say = say
        self.progress = progress
        self.events: list[Event] = []
        self.started = time.monotonic()
        self.transfers = list(transfers(wish.transfers, wish.accounts, wish.seed))
        self.sent = 0
        self.down: dict[int, float] = {}  # nodes that were killed, and when they start again
        self.strikes = 0  # at workers
        self.loops = [
            Loop(name, cluster.bootstrap, wish.workers, transactions=name == WITH, pace_ms=wish.pace_ms, folder=folder)
            for name in (WITH, WITHOUT)
        ]
        self.readers: list[Reader] = []

    def run(self) -> ExactlyOnceResult:
        try:
            self.open()
            for number in range(self.wish.kills):
                self.send_portion(number)
                self.wait_amid(number)
                self.strike(CYCLE[number % len(CYCLE)], number // len(CYCLE))
            self.send_portion(self.wish.kills)
            self.finish()
            for loop in self.loops:
                loop.kill_all()  # nothing is left to do: every transfer's offset is committed
            return self.outcome()
        finally:
            for loop in self.loops:
                loop.kill_all()
            for reader in self.readers:
                reader.close()

    def open(self) -> None:
        bootstrap = self.cluster.bootstrap
        create_topic(bootstrap, TRANSFERS, TRANSFER_PARTITIONS, NODES)
        for loop in self.loops:
            create_topic(bootstrap, loop.topic, BOOKING_PARTITIONS, NODES)
        self.producer: Producer = safe_producer(bootstrap)
        self.watch(lambda: targets.is_whole(self.cluster), "the topics to have leaders")
        self.readers = [Reader(bootstrap, loop.topic) for loop in self.loops]
        for loop in self.loops:
            loop.start()
        self.note("step", f"two loops of {self.wish.workers} workers begin")

    # --- what goes on

    def booked_before(self, portion: int) -> int:
        return len(self.transfers) * portion // (self.wish.kills + 1)

    def booked(self) -> tuple[int, int]:
        if not self.readers:
            return 0, 0
        with_transactions, without = (len(reader.transfers) for reader in self.readers[:2])
        return with_transactions, without

    def wait_amid(self, portion: int) -> None:
        start, end = self.booked_before(portion), self.booked_before(portion + 1)
        wanted = start + PART * (end - start)
        self.watch(lambda: min(self.booked()) >= wanted, "transfers to be booked")

    def send_portion(self, portion: int) -> None:
        for transfer in self.transfers[self.sent : self.booked_before(portion + 1)]:
            self.send(transfer)
        self.sent = self.booked_before(portion + 1)

    def send(self, transfer: Transfer) -> None:
        partition = transfer.number % TRANSFER_PARTITIONS
        self.producer.produce(TRANSFERS, transfer_bytes(transfer), partition=partition)
        self.producer.poll(0)

    def note(self, kind: str, text: str) -> None:
        self.events.append(Event(round(time.monotonic() - self.started, 2), kind, text, self.booked()))
        self.say(self.events[-1])

    def watch(self, is_reached: Callable[[], bool], what: str) -> None:
        """Read, start again what was killed, until it is reached."""
        changed, before = time.monotonic(), (self.booked(), len(self.events))
        while not is_reached():
            self.look()
            self.progress(self.booked())
            now = (self.booked(), len(self.events))
            if now != before:
                changed, before = time.monotonic(), now
            if time.monotonic() - changed > QUIET_S:
                raise Stalled(f"for {QUIET_S:.0f} s nothing has happened; waiting for {what}")

    def look(self) -> None:
        self.producer.poll(0)
        for reader in self.readers:
            reader.poll(0.01)
        if not self.readers:
            time.sleep(0.05)
        for loop in self.loops:
            for number in loop.revive():
                self.note("ended", f"worker {number} of the loop {loop.name} gave up, and is started again")
        for node_id, at in list(self.down.items()):
            if time.monotonic() >= at:
                del self.down[node_id]
                self.cluster.node(node_id).start()
                self.note("back", f"node {node_id} starts again")

    # --- kills

    def strike(self, what: str, turn: int) -> None:
        if what == "worker":
            self.kill_workers()
            return
        self.watch(lambda: not self.down and targets.is_whole(self.cluster), "all replicas to be in sync")
        found: list[NodeProcess] = []

        def is_found() -> bool:
            node = self.victim(what, turn)
            if node is not None:
                found.append(node)
            return bool(found)

        self.watch(is_found, f"a {what}")
        node = found[0]
        node.kill()
        self.down[node.node_id] = time.monotonic() + NODE_DOWN_S
        self.note("kill", f"node {node.node_id} is killed: {self.role(what, turn)}")

    def victim(self, what: str, turn: int) -> NodeProcess | None:
        if what == "leader":
            return targets.leader(self.cluster, self.loops[0].topic, turn % BOOKING_PARTITIONS)
        if what == "transaction coordinator":
            key = self.loops[0].workers[turn % self.wish.workers].job.transactional_id
            return targets.coordinator(self.cluster, key, find_coordinator.TRANSACTION)
        return targets.coordinator(self.cluster, self.loops[0].name, find_coordinator.GROUP)

    def role(self, what: str, turn: int) -> str:
        if what == "leader":
            return f"the leader of partition {turn % BOOKING_PARTITIONS} of the bookings"
        if what == "transaction coordinator":
            return f"the transaction coordinator of worker {turn % self.wish.workers}"
        return "the group coordinator of the workers"

    def kill_workers(self) -> None:
        """One of each loop, while it is at work; not the same ones as last time, if others are at work."""
        before = [reader.by_worker.copy() for reader in self.readers]
        start = self.strikes % self.wish.workers
        self.strikes += 1
        order = [*range(start, self.wish.workers), *range(start)]
        until = time.monotonic() + MEETS_S

        def at_work() -> list[list[int]]:
            pairs = zip(self.readers, before, strict=True)
            return [[n for n in order if reader.by_worker[n] > old[n]] for reader, old in pairs]

        self.watch(lambda: all(at_work()) or time.monotonic() > until, "workers at work")
        chosen = [(working or order)[0] for working in at_work()]
        for loop, number in zip(self.loops, chosen, strict=True):
            loop.kill(number)
        ours, other = chosen
        self.note("kill", f"worker {ours} is killed, and worker {other} of the loop without transactions")

    # --- the end

    def finish(self) -> None:
        """Until both groups have committed all offsets."""
        groups: list[Consumer] = [group_reader(self.cluster.bootstrap, loop.name) for loop in self.loops]
        self.watch(lambda: not self.down and not self.producer.flush(0.1), "all transfers to be written")
        self.watch(lambda: all(is_all_committed(g, self.sent) for g in groups), "all offsets to be committed")
        for group in groups:
            group.close()
        self.note("step", "all transfers are read, and their offsets committed")

    def outcome(self) -> ExactlyOnceResult:
        bootstrap = self.cluster.bootstrap
        fresh = [Reader(bootstrap, loop.topic) for loop in self.loops]
        raw = Reader(bootstrap, self.loops[0].topic, "read_uncommitted")
        self.readers += [*fresh, raw]
        all_ended = has_no_open_transaction(fresh[0], raw)
        ends, other_ends = (reader.ends() for reader in fresh)
        for reader in self.readers:
            reader.read_to(ends if reader.topic == raw.topic else other_ends)
        accounts = self.wish.accounts
        counts = [count(self.transfers, reader.found.values(), accounts) for reader in fresh]
        self.note("step", "the bookings are counted")
        return ExactlyOnceResult(
            self.wish,
            round(time.monotonic() - self.started, 1),
            tuple(self.events),
            counts[0],
            counts[1],
            len(raw.found) - len(fresh[0].found),
            taken_back(self.readers[0].found, fresh[0].found),
            all_ended,
        )
