"""A small deterministic world of quorum machines: virtual time, lost messages, partitions, crashes.

After every event the laws are checked: one leader per epoch; what one machine believes committed, nobody contradicts.
Messages go through the codec, as on a wire.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from random import Random

from tests.unit.quorum.memory_log import MemoryLog

from strandline.base.effects import (
    Answered,
    Caller,
    Effect,
    Endpoint,
    Event,
    Failed,
    Failure,
    Halt,
    Received,
    Reply,
    ReplyTo,
    Report,
    Save,
    Send,
    Sync,
    Synced,
    Token,
)
from strandline.base.ids import NodeId, Uuid
from strandline.base.time import Instant
from strandline.quorum.config import QuorumConfig
from strandline.quorum.ports import Unfit
from strandline.quorum.quorum import Quorum
from strandline.wire.api import api_of
from strandline.wire.codec import decode_all, encode_bytes

CLUSTER = "a-cluster"
CALLER = Caller("node", "127.0.0.1", "CONTROLLER", is_node=True)
BEGINNING = Instant(1_000_000)


class Machine:
    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.log = MemoryLog()
        self.quorum: Quorum | None = None
        self.life = 0  # counts starts; what belongs to an earlier life is void
        self.alarm = Instant(1 << 62)
        self.checked_end = 0  # up to where its committed records were compared


class World:
    def __init__(self, seed: int, voters: int = 3, observers: int = 0, config: QuorumConfig | None = None) -> None:
        self.rng = Random(seed)
        self.now = BEGINNING
        self.config = config or QuorumConfig()
        self.voters = {NodeId(n): Endpoint("host", n) for n in range(1, voters + 1)}
        self.machines = {NodeId(n): Machine(NodeId(n)) for n in range(1, voters + observers + 1)}
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.count = 0
        self.cut: set[tuple[NodeId, NodeId]] = set()  # directed: from, to
        self.loss_percent = 0
        self.save_ms = 0  # that a Save takes longer than a Sync
        self.waiting: dict[int, tuple[Machine, int, Send, NodeId]] = {}  # requests by number
        self.leaders: dict[int, NodeId] = {}
        self.committed: dict[int, tuple[int, bytes]] = {}
        self.reports: list[Report] = []
        self.unfit: dict[NodeId, Unfit] = {}  # what their next start finds that cannot be applied

    # --- the world's levers

    def start(self, *nodes: int) -> None:
        for n in nodes or tuple(self.machines):
            machine = self.machines[NodeId(n)]
            assert machine.quorum is None
            machine.life += 1
            machine.checked_end = machine.log.start
            directory = Uuid(bytes(15) + bytes([n]))
            unfit = self.unfit.pop(machine.node, None)
            machine.quorum = Quorum(
                machine.node, directory, CLUSTER, self.voters, machine.log, self.config, self.rng, self.now, unfit
            )
            self.perform(machine, machine.quorum.start(self.now))

    def crash(self, n: int) -> None:
        """Power off: what was not synced is lost, or happens to survive."""
        machine = self.machines[NodeId(n)]
        assert machine.quorum is not None
        machine.quorum = None
        if self.rng.randrange(0, 3):
            machine.log.restore(machine.log.durable)
        else:
            machine.log.durable = machine.log.content()
            machine.log.is_dirty = False
        for number, (asker, life, send, target) in list(self.waiting.items()):
            if target == n:
                del self.waiting[number]
                self.deliver(asker, life, Failed(send.token, Failure.CLOSED), self.latency())

    def kill(self, n: int) -> None:
        """The process dies, the machine does not: what was written stays."""
        log = self.machines[NodeId(n)].log
        log.durable = log.content()
        self.crash(n)

    def isolate(self, n: int) -> None:
        for other in self.machines:
            self.cut |= {(NodeId(n), other), (other, NodeId(n))}

    def heal(self) -> None:
        self.cut.clear()
        self.loss_percent = 0

    def append(self, n: int, *records: bytes) -> int:
        machine = self.machines[NodeId(n)]
        assert machine.quorum is not None
        last, effects = machine.quorum.append(records, self.now)
        self.perform(machine, effects)
        return last

    def resign(self, n: int) -> None:
        machine = self.machines[NodeId(n)]
        assert machine.quorum is not None
        self.perform(machine, machine.quorum.resign(self.now))

    def snapshot(self, n: int) -> None:
        """Of everything that the machine knows to be committed."""
        machine = self.machines[NodeId(n)]
        end = self.quorum(n).high_watermark
        if end > machine.log.start:
            machine.log.snapshot_at(end, b"state below %d" % end)

    def quorum(self, n: int) -> Quorum:
        quorum = self.machines[NodeId(n)].quorum
        assert quorum is not None
        return quorum

    @property
    def alive(self) -> list[Quorum]:
        return [machine.quorum for machine in self.machines.values() if machine.quorum is not None]

    def leader(self) -> Quorum | None:
        """The leader of the latest epoch that has one."""
        found = [quorum for quorum in self.alive if quorum.is_leader]
        return max(found, key=lambda quorum: quorum.leader_epoch, default=None)

    # --- time

    def run(self, ms: int) -> None:
        end = self.now + ms
        while self.queue and self.queue[0][0] <= end:
            at, _, action = heappop(self.queue)
            self.now = Instant(max(at, self.now))
            action()
        self.now = Instant(end)

    def run_until(self, holds: Callable[[], bool], within_ms: int) -> int:
        """Run until `holds`; return how long it took."""
        begun = self.now
        while not holds():
            assert self.now - begun < within_ms, f"not within {within_ms} ms"
            assert self.queue, "nothing happens any more"
            self.run(max(self.queue[0][0] - self.now, 0))
        return self.now - begun

    def later(self, ms: int, action: Callable[[], None]) -> None:
        self.count += 1
        heappush(self.queue, (self.now + ms, self.count, action))

    def latency(self) -> int:
        return self.rng.randrange(1, 4)

    # --- effects

    def perform(self, machine: Machine, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self.send(machine, effect)
                case Reply():
                    self.answer(machine, effect)
                case Sync():
                    is_log = machine.log.log_path in effect.paths
                    self.deliver_synced(machine, effect.token, self.keeping(machine) if is_log else None)
                case Save():
                    self.deliver_synced(machine, effect.token, self.saving(machine, effect), self.save_ms)
                case Report():
                    self.reports.append(effect)
                case Halt():
                    raise AssertionError(effect.why)
                case _:
                    raise AssertionError(f"unexpected: {effect}")
        self.look(machine)
        self.arm(machine)

    def keeping(self, machine: Machine) -> Callable[[], None]:
        """What the log holds now survives a crash after the sync is done."""
        content = machine.log.content()

        def keep() -> None:
            machine.log.durable = content

        return keep

    def saving(self, machine: Machine, effect: Save) -> Callable[[], None]:
        def save() -> None:
            machine.log.quorum_state = effect.content

        return save

    def deliver_synced(
        self, machine: Machine, token: Token, done: Callable[[], object] | None, wait_ms: int = 0
    ) -> None:
        life = machine.life

        def action() -> None:
            if machine.quorum is not None and machine.life == life:
                if done is not None:
                    done()
                self.perform(machine, machine.quorum.step(Synced(token), self.now))

        self.later(self.rng.randrange(1, 4) + wait_ms, action)

    def deliver(self, machine: Machine, life: int, event: Event, ms: int) -> None:
        def action() -> None:
            if machine.quorum is not None and machine.life == life:
                self.perform(machine, machine.quorum.step(event, self.now))

        self.later(ms, action)

    def is_lost(self, sender: NodeId, receiver: NodeId) -> bool:
        return (sender, receiver) in self.cut or self.rng.randrange(0, 100) < self.loss_percent

    def send(self, machine: Machine, send: Send) -> None:
        target = self.machines[NodeId(send.endpoint.port)]
        self.count += 1
        number = self.count
        self.waiting[number] = (machine, machine.life, send, target.node)
        content = encode_bytes(send.message, send.version)
        self.later(send.timeout_ms, lambda: self.fail(number, Failure.TIMED_OUT))
        if self.is_lost(machine.node, target.node):
            return

        def arrive() -> None:
            if number not in self.waiting:
                return
            if target.quorum is None:
                self.fail(number, Failure.REFUSED)
                return
            to = ReplyTo(number, 0, 0, type(send.message).key, send.version)
            message = decode_all(type(send.message), send.version, content)
            self.perform(target, target.quorum.step(Received(to, CALLER, message), self.now))

        self.later(self.latency(), arrive)

    def fail(self, number: int, why: Failure) -> None:
        if number in self.waiting:
            machine, life, send, _ = self.waiting.pop(number)
            self.deliver(machine, life, Failed(send.token, why), 0)

    def answer(self, machine: Machine, reply: Reply) -> None:
        if reply.to.connection not in self.waiting:
            return
        asker, life, send, _ = self.waiting[reply.to.connection]
        if self.is_lost(machine.node, asker.node):
            return
        del self.waiting[reply.to.connection]
        kind = api_of(send.message).response
        message = decode_all(kind, send.version, encode_bytes(reply.message, send.version))
        self.deliver(asker, life, Answered(send.token, message), self.latency())

    def arm(self, machine: Machine) -> None:
        quorum, life = machine.quorum, machine.life
        if quorum is None:
            return
        machine.alarm = quorum.deadline()

        def ring() -> None:
            if machine.quorum is quorum and machine.life == life and machine.alarm <= self.now:
                self.perform(machine, quorum.expire(self.now))

        if machine.alarm < 1 << 61:
            self.later(max(machine.alarm - self.now, 1), ring)

    # --- laws

    def look(self, machine: Machine) -> None:
        quorum = machine.quorum
        assert quorum is not None
        quorum.check()
        if quorum.is_leader:
            known = self.leaders.setdefault(quorum.leader_epoch, machine.node)
            assert known == machine.node, f"epoch {quorum.leader_epoch} has leaders {known} and {machine.node}"
        if quorum.high_watermark > machine.checked_end:
            for base, last, epoch, content in machine.log.entries:
                if machine.checked_end <= base and last < quorum.high_watermark:
                    known_entry = self.committed.setdefault(base, (epoch, content))
                    assert known_entry == (epoch, content), f"offset {base} was committed with other content"
            machine.checked_end = quorum.high_watermark

    @property
    def committed_end(self) -> int:
        return max((quorum.high_watermark for quorum in self.alive), default=0)

    def is_caught_up(self) -> bool:
        """Everybody alive follows one leader and has committed everything it has."""
        leader = self.leader()
        if leader is None:
            return False
        end = leader.state.log.log_end_offset
        return all(quorum.leader_id == leader.me and quorum.high_watermark == end for quorum in self.alive)

    def committed_values(self, n: int) -> list[bytes]:
        machine = self.machines[NodeId(n)]
        found = machine.log.committed_batches(0, self.quorum(n).high_watermark)
        return [value for batch in found for value in batch.records]
