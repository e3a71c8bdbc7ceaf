"""One machine with a disk and a clock, and the node that runs on it: the driver of the simulator.

It performs effects as the real driver does, and as late. What a flush names is durable some time before the node is
told so, and nothing that was written since is. An error of the disk that the node does not survive ends the process, as
in the real driver; any other error out of a node is a bug of ours, and ends the run.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Protocol

from msgspec import structs

from strandline.base.effects import (
    AwaitRoom,
    Close,
    Effect,
    Endpoint,
    Event,
    Halt,
    Probe,
    Remove,
    Reply,
    Report,
    Save,
    Send,
    Sync,
    Synced,
    SyncFailed,
    Throttle,
    Warm,
)
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError, DiskFull
from strandline.base.time import NEVER, Instant
from strandline.broker.authorizing.guarded import node_of
from strandline.broker.config import NodeConfig
from strandline.broker.node import Node
from strandline.broker.parts import prepare
from strandline.log.directory import DirectoryMeta, write_meta
from strandline.log.evidence.wholeness import distrust
from strandline.quorum.tokens import LogSynced
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.tokens import ReplicaToken
from strandline.sim.world import room
from strandline.sim.world.connection import Station
from strandline.sim.world.disk import PowerLost, SimDisk
from strandline.sim.world.ground import Ground
from strandline.sim.world.page_cache import PageCache
from strandline.sim.world.timeline import Clock
from strandline.sim.world.trace import Kind
from strandline.sim.world.violation import Violation

METADATA_DIR = "/m"
CLUSTER_ID = "sim-cluster-000000000A"


class Watch(Protocol):
    """Whoever looks at what machines do: the laws."""

    def starts(self, machine: "Machine") -> None: ...
    def received(self, machine: "Machine", event: Any) -> None: ...
    def sends(self, machine: "Machine", effect: Send) -> None: ...
    def replies(self, machine: "Machine", reply: Reply) -> None: ...
    def reported(self, machine: "Machine", level: str, text: str) -> None: ...
    def look(self, machine: "Machine", node: Node) -> None: ...
    def comes_back(self, machine: "Machine") -> None: ...
    def stopped(self, machine: "Machine") -> None: ...
    def ends_over(self, machine: "Machine", node: Node, error: DiskError) -> None: ...
    def forget(self, machine: "Machine") -> None: ...


class Losses(Protocol):
    """Whoever notes what faults have taken."""

    unseen: dict[TopicIdPartition, None]

    def stops(self, node: NodeId) -> None: ...
    def lost(self, node: NodeId, why: str) -> None: ...


class Surroundings(Ground):
    laws: Watch
    damage: Losses


class Machine(Station):
    contains = False  # what handlers raise

    def __init__(self, world: Surroundings, node_id: NodeId, roles: str, settings: dict[str, str]) -> None:
        super().__init__(f"n{node_id}", world.network)
        self.world = world
        self.is_node = True
        self.node_id = node_id
        self.rng = world.random(self.name)
        listeners = {"broker": ("PLAINTEXT", 9092), "controller": ("CONTROLLER", 9093)}
        self.where = {name: Endpoint(self.name, port) for role, (name, port) in listeners.items() if role in roles}
        own = {
            "log.scrub.interval.ms": "1000",
            "node.id": str(node_id),
            "process.roles": roles,
            "listeners": ",".join(f"{name}://{at.host}:{at.port}" for name, at in self.where.items()),
            "metadata.log.dir": METADATA_DIR,
        }
        if world.options.racks:
            own["broker.rack"] = f"r{node_id % world.options.racks}"
        self.settings = settings | own
        self.config = NodeConfig.from_properties(self.settings)
        self.disk = SimDisk((METADATA_DIR, *self.config.log_dirs))
        self.cache = PageCache(world, self)
        self.clock = Clock(world.time, drift_ppm=self.drawn(world.options.drift_ppm))
        self.node: Node | None = None
        self.armed = self.due = NEVER  # `due`: the deadline that the node had after what it did last
        self.flushes: deque[Sync | Save] = deque()
        self.is_flushing = False
        self.checked_end = -1
        self.metadata_durable = 0  # up to where the metadata log is certainly durable here
        self.has_left = False  # its last process ended in order, and all that it had is durable
        self.waits_for_room = False  # its process is there, without a node
        self.awaited: tuple[str, ...] = ()  # full log directories that its node goes on without
        self.comes_back = False  # it stops in order, to begin anew with a directory that has room again
        self.is_tampered = False  # somebody changed its files
        # Since the last stop: is the inventory there that it left, and were files changed that nothing else shows?
        self.has_inventory = self.needs_inventory = False
        self.touches = 0  # how often that happened, or its disks were others
        self.has_misread = False  # a bit flipped in what it was sent
        self.changed: dict[TopicIdPartition, None] = {}  # where records may be gone by that, since the last start
        self.is_rotten = False  # what it stores is damaged where nobody may have looked yet
        for root in self.disk.roots:
            self.format(root)

    def drawn(self, bound: int) -> int:
        """A whole number between −bound and bound."""
        return self.rng.randrange(-bound, bound + 1)

    def format(self, path: str) -> None:
        """What an operator does with a new disk."""
        write_meta(self.disk, path, DirectoryMeta(CLUSTER_ID, self.node_id, Uuid(self.rng.randbytes(16))))
        self.disk.sync([path])

    def note(self, kind: Kind, text: str) -> None:
        self.world.note(kind, text, self.name)

    # --- the process

    def start(self) -> None:
        if self.is_running:
            return
        if self.disk.doubtful():
            # After a flush that failed the system's memory shows what its disk may not have. No process can see that;
            # an operator has to start the machine anew.
            self.power_cut()
        if not self.is_powered:
            self.power_on()
        self.is_running = True
        self.waits_for_room = self.comes_back = False
        self.disk.broken = {}
        self.armed, self.is_flushing, self.checked_end = NEVER, False, -1
        self.flushes.clear()
        self.clock.step(self.drawn(self.world.options.clock_step_ms))
        self.note(Kind.STARTED, "starts")
        self.has_left = self.has_inventory = self.needs_inventory = False
        rng = Random(self.rng.getrandbits(64))
        self.world.laws.starts(self)
        with self.world.holding(f"{self.name} starts"):
            try:
                parts = prepare(self.config, self.disk, rng, self.where, self.clock.now())
                self.node = node_of(parts, self.clock.now())
            except DiskFull as error:
                self.stop_without_room(error)
                return
            except DiskError as error:
                self.stop(f"cannot start: {error}")
                return
            except PowerLost:
                self.power_cut()
                return
        if step_records := self.world.options.step_records:
            take_steps(self.node, step_records)
        self.node.containment.is_on = self.contains  # elsewhere an exception is a bug of ours, and ends the run
        if self.node.broker is not None and not self.node.broker.clean_start:
            self.world.damage.unseen |= self.changed
        self.changed = {}
        self.metadata_durable = self.node.metadata_log.log_end_offset  # opening a log makes it durable
        self.run("start", lambda node, now: node.start(now))

    def event(self, event: Event) -> None:
        self.world.laws.received(self, event)
        self.run(event)

    def run(self, event: Any, act: Callable[[Node, Instant], list[Effect]] | None = None) -> None:
        """The node takes the event; or does what `act` is, and `event` is its name."""
        node, now = self.node, self.clock.now()
        assert node is not None
        try:
            try:
                effects = node.step(event, now) if act is None else act(node, now)
            except DiskError as error:
                self.world.laws.ends_over(self, node, error)
                self.disk_failed(error)
                return
            except PowerLost:
                self.power_cut()
                return
            for effect in effects:
                self.perform(effect)
            if self.is_running:
                self.world.events += 1
                self.check(node, is_idle=act is Node.expire and node.is_idle)
                self.due = node.deadline()
                self.arm(self.due)
        except Violation:
            raise
        except Exception as error:
            raise self.world.breach(error, event) from error  # as `holding`, which costs more

    def check(self, node: Node, *, is_idle: bool) -> None:
        world = self.world
        if is_idle or node.containment.is_stopping:
            return  # nothing was done; or something is half done, which nothing uses
        end = node.committed.end
        if end != self.checked_end or world.events % world.options.check_every == 0:
            node.check(image=end != self.checked_end)
            self.checked_end = end
        if self.disk.failing:
            with self.disk.observed():
                world.laws.look(self, node)
        else:
            world.laws.look(self, node)

    def arm(self, deadline: Instant) -> None:
        if deadline >= self.armed or deadline == NEVER:
            return
        self.armed = deadline
        self.world.time.later(max(self.clock.span_until(deadline), 1), partial(self.ring, self.life, deadline))

    def ring(self, life: int, deadline: Instant) -> None:
        """As `deliver`, which most timers need not: another one rang before them."""
        if self.is_paused:
            self.deliver(life, partial(self.fire, deadline))
        elif life == self.life and self.armed == deadline:
            self.fire(deadline)

    def fire(self, at: Instant) -> None:
        if self.armed != at or self.node is None:
            return
        self.armed = NEVER
        if self.due <= self.clock.now():
            self.run("deadline", Node.expire)
        else:
            self.arm(self.due)

    def wake(self) -> None:
        """The clock was moved: what was to come may be due."""
        self.armed = NEVER
        if self.node is not None:
            self.arm(self.node.deadline())

    def perform(self, effect: Effect) -> None:
        match effect:
            case Send():
                self.world.laws.sends(self, effect)
                self.network.send(self, effect)
            case Reply(to=to):
                self.world.laws.replies(self, effect)
                if to.connection in self.inbound:
                    self.inbound[to.connection].reply(effect)
            case Throttle(connection=number, ms=ms):
                if number in self.inbound:
                    self.inbound[number].throttle(ms)
            case Sync() | Save():
                self.network.count(effect.content if isinstance(effect, Save) else "\n".join(effect.paths).encode())
                self.flushes.append(effect)
                self.flush()
            case Warm():
                self.cache.warm(effect)
            case Remove(paths=paths):
                life = self.life
                self.world.time.later(self.world.options.sync_ms, lambda: self.remove(paths, life))
            case Probe():
                self.network.probe(self, effect)
            case AwaitRoom():
                self.await_room(effect.paths)
            case Close(connection=number):
                if number in self.inbound:
                    self.inbound[number].close()
            case Report(level=level, text=text):
                if level != "debug":
                    self.note(Kind.REPORT, f"{level}: {text}")
                self.world.laws.reported(self, level, text)
            case Halt(why=why, status=status):
                self.has_left = status == 0 and not (self.is_rotten or self.has_offline_directories)
                self.has_inventory = self.has_left
                if status == 0:
                    self.world.laws.stopped(self)
                self.stop(why)
                if self.comes_back and status == 0:
                    self.world.time.later(1, lambda: self.start() if self.comes_back else None)
            case _:
                raise AssertionError(effect)

    def remove(self, paths: tuple[str, ...], life: int) -> None:
        """What an error leaves, the next start removes."""
        if life == self.life and self.is_running:
            known = self.disk.broken.copy()
            try:
                for path in paths:
                    with suppress(DiskError):
                        self.disk.remove_tree(path)
            except PowerLost:
                self.power_cut()
            self.disk.broken = known  # nothing reports it

    def flush(self) -> None:
        """Group commit. What a process left that has ended is nobody's: the next one would take it for its own."""
        if self.is_flushing or not self.flushes or not self.is_running:
            return
        self.is_flushing = True
        batch = list(self.flushes)
        self.flushes.clear()
        options, random, life = self.world.options, self.rng.random, self.life
        first, second = int(random() * options.sync_ms), int(random() * options.sync_ms * 2)
        if random() < 0.05:
            second += options.slow_sync_ms

        failed: dict[int, DiskError] = {}

        def save() -> None:
            if life == self.life and self.is_running:
                try:
                    self.make_durable(batch, failed)
                except DiskError as error:
                    self.disk_failed(error)
                except PowerLost:
                    self.power_cut()

        def report() -> None:
            self.is_flushing = False
            for number, effect in enumerate(batch):
                token, why = effect.token, failed.get(number)
                if why is not None and not isinstance(why, DiskFull):
                    self.disk.break_down(effect.paths[0] if isinstance(effect, Sync) else effect.path)
                event = Synced(token) if why is None else SyncFailed(token, str(why), is_full=isinstance(why, DiskFull))
                self.deliver(life, lambda event=event: self.event(event))  # type: ignore[misc]  # the default's type is not inferred
            self.flush()

        time = self.world.time
        time.later(first, save)
        time.later(first + second, lambda: self.deliver(life, report))

    def make_durable(self, batch: list[Sync | Save], failed: dict[int, DiskError]) -> None:
        """What the node can do without is noted in `failed`, by its place in the batch."""
        known = self.disk.broken.copy()
        for number, effect in enumerate(batch):
            try:
                if isinstance(effect, Sync):
                    self.disk.sync(effect.paths)
                else:
                    self.disk.save_since(effect.path, effect.content, effect.since)
            except DiskError as error:
                if not isinstance(effect.token, ReplicaToken):
                    raise
                failed[number], self.disk.broken = error, known.copy()  # the node learns it by a report
            if self.node is not None and type(effect.token) is LogSynced:
                self.metadata_durable = self.node.metadata_log.log_end_offset

    # --- what may happen to it

    @property
    def has_offline_directories(self) -> bool:
        return self.node is not None and self.node.broker is not None and bool(self.node.broker.directories.offline)

    def repaired(self) -> None:
        """What an operator does after seeing to a disk: a directory that failed comes back with the next process."""
        if self.has_offline_directories:
            self.kill()
        self.start()

    def has_lost(self, hosted: Hosted) -> bool:
        """Did somebody delete the folder of this log while the process has it? Then nobody can compare its records."""
        return bool(self.changed) and hosted.at in self.changed and self.disk.names.find(hosted.log.directory) is None

    @property
    def has_registered(self) -> bool:
        """This process has; it knows its broker epoch, and can write it down when it stops."""
        broker = None if self.node is None else self.node.broker
        return broker is not None and broker.lifecycle.last_epoch >= 0

    def without_directory(self, root: str) -> None:
        """An operator takes a log directory out of the configuration, and its disk, from the next start on."""
        rest = [path for path in self.log_dirs if path != root]
        self.settings = self.settings | {"log.dirs": ",".join(rest)}
        self.config = NodeConfig.from_properties(self.settings)

    def make_room(self) -> None:
        self.disk.capacity = None
        self.disk.filled.clear()

    def replace_disk(self, root: str) -> None:
        self.touches += 1
        self.make_room()
        self.disk.sync_faults.clear()
        self.disk.fuse, self.disk.tinder = -1, ("", 0)  # whoever does this has seen to the power
        self.disk.wipe(root)
        self.format(root)

    @property
    def log_dirs(self) -> list[str]:
        return list(self.config.log_dirs)

    def gone(self, *, power: bool) -> None:
        self.world.laws.forget(self)
        if not (self.has_left and self.has_registered):
            self.world.damage.stops(self.node_id)
        self.node = None
        self.disk.abandon()
        self.vanish(power=power)

    def stop(self, why: str) -> None:
        self.note(Kind.HALTED, f"halts: {why}")
        self.gone(power=False)

    def disk_failed(self, error: DiskError) -> None:
        """As the real driver does: the next start must not believe that the system has everything."""
        try:
            distrust(self.disk, self.log_dirs)
        except PowerLost:
            self.power_cut()
            return
        if isinstance(error, DiskFull):
            self.stop_without_room(error)
        else:
            self.stop(str(error))

    def stop_without_room(self, error: DiskFull) -> None:
        """As the real driver does: the process stays, and begins a node anew when there is room."""
        self.stop(f"disk full: {error}")
        self.waits_for_room = True
        room.wait_without_node(self)

    def await_room(self, paths: tuple[str, ...]) -> None:
        """As the real driver does: when there has been room for a while, the node stops in order and begins anew."""
        self.awaited = paths
        room.wait_with_node(self, paths)

    def begin_anew(self) -> None:
        with self.world.holding("there is room"):
            self.world.laws.comes_back(self)
        self.comes_back = True
        self.shut_down()

    def kill(self) -> None:
        self.waits_for_room = self.comes_back = False
        if self.is_running:
            self.note(Kind.KILLED, "is killed")
            self.gone(power=False)

    def power_cut(self) -> None:
        self.note(Kind.POWER_LOST, "loses power")
        self.waits_for_room = self.comes_back = False
        if not self.has_left:
            self.world.damage.lost(self.node_id, "lost power")
        if self.is_running:
            self.gone(power=True)
        self.is_powered = False
        self.disk.crash(self.rng)

    def pause(self) -> None:
        if self.is_running and not self.is_paused:
            self.note(Kind.PAUSED, "stands still")
            self.is_paused = True

    def go_on(self) -> None:
        if self.is_paused:
            self.note(Kind.RESUMED, "goes on")
            self.resume()

    def shut_down(self) -> None:
        if self.is_running and not self.is_paused:
            self.note(Kind.REPORT, "begins a controlled shutdown")
            self.run("shutdown", lambda node, now: node.shutdown(now))


def take_steps(node: Node, limit: int) -> None:
    """Have what goes in steps go in small ones."""
    node.committed.step_records = limit
    if node.controller is not None:
        node.controller.config = structs.replace(node.controller.config, changes_per_step=limit)
