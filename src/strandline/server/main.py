"""One node as a process: the loop, the driver's parts wired together, signals, the exit status.

Start-up order matters: the log directories are locked before anything reads them, ports are bound before the node
starts (it advertises them), and clients are let in only after it has started.

The first SIGTERM or SIGINT begins a controlled shutdown; a second one ends the process at once, as a crash would. A
node that another process started for itself (`strandline up`) shuts down in order when that process is gone.

A node that cannot go on for lack of room stops at once, and lets go of its ports: the others notice, elect, and go on.
What it wrote last may be there in part, so its next life begins as after a crash: in the same process, when there is
room. It keeps its directories' locks meanwhile.

A node that goes on without a log directory for lack of room shuts down in order when there is some, and begins anew at
once: its other logs are as a clean stop leaves them.
"""

import asyncio
import gc
import logging
import os
import random
import resource
import signal
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import uvloop

from strandline.base.effects import AwaitRoom, Endpoint, Save, Sync
from strandline.base.ports import Disk, DiskError, DiskFull, Rng
from strandline.broker.config import NodeConfig
from strandline.broker.node import Node as ClusterNode
from strandline.log.evidence.wholeness import distrust
from strandline.metadata.configs.sasl_configs import OAUTHBEARER
from strandline.metadata.image import BROKER_RESOURCE
from strandline.replica.tokens import ReplicaToken
from strandline.security.secret import SECRET_MECHANISM, ClusterSecret
from strandline.server import lifeline
from strandline.server.clock import Clock
from strandline.server.metrics.metrics import MetricsServer
from strandline.server.network.limits_config import CurrentLimits, limits_of
from strandline.server.network.net import Listener, Net, NetConfig
from strandline.server.network.peers import Peers
from strandline.server.pump import CRASHED, OUT_OF_ROOM, Node, Pump
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.flusher import Flusher
from strandline.server.storage.lock import InUse, lock_directory
from strandline.server.storage.private import close_to_others
from strandline.server.storage.remover import Remover
from strandline.server.storage.room import LOOKS, OF_DIRECTORY, Steady, next_pause, why_no_room
from strandline.server.storage.secret_file import secret_of
from strandline.server.storage.warmer import Warmer
from strandline.server.tls.listener_tls import Tls
from strandline.server.tls.of_node import tls_of, unprotected
from strandline.server.tls.stores import BadStore

log = logging.getLogger("strandline")

# Builds the node from its configuration, disk, randomness, and where its listeners (by name) really are.
MakeNode = Callable[[NodeConfig, Disk, Rng, Mapping[str, Endpoint], ClusterSecret | None], Node]

# The disk below these directories.
DiskOf = Callable[[Sequence[str]], RealDisk]

RECEIVE_KEY = "sasl.server.max.receive.size"
MECHANISMS_OF_NODES = ("sasl.mechanism.inter.broker.protocol", "sasl.mechanism.controller.protocol")
INSTALL_OAUTH = "pip install 'strandline[oauth]'"
CANNOT_START = 1
INTERRUPTED = 130


def real_disk(roots: Sequence[str]) -> RealDisk:
    return RealDisk()


def serve(config: NodeConfig, make_node: MakeNode, disk_of: DiskOf = real_disk) -> int:
    """Run one node until it halts; returns the exit status."""
    log_to_stderr()
    raise_file_limit()
    for name in sorted(config.unknown):
        log.warning("unknown configuration key %s is ignored", name)
    locks = []
    line = lifeline.inherited()
    for path in sorted({*config.log_dirs, config.metadata_log_dir}):
        try:
            locks.append(lock_directory(path, line.starter if line else 0))
        except DiskError as error:
            if isinstance(error, InUse) or path == config.metadata_log_dir:
                log.error("cannot start: %s", error)
                return CANNOT_START
            log.error("a log directory may be offline: %s", error)
    close_to_others(config.metadata_log_dir)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        status = runner.run(run(config, make_node, disk_of))
    for lock in locks:
        os.close(lock)
    return status


async def run(config: NodeConfig, make_node: MakeNode, disk_of: DiskOf = real_disk) -> int:
    """The node's lives inside a running loop: it begins anew where it ran out of room, as soon as there is some. For
    `serve`, and for tests that have a loop already."""
    return await NodeRunner(asyncio.get_running_loop(), config, make_node, disk_of).run()


class NodeRunner:
    """One node, from start to start. Whoever ends the process while the node waits for room ends it at once."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: NodeConfig, make_node: MakeNode, disk_of: DiskOf
    ) -> None:
        self.loop = loop
        self.config = config
        self.make_node = make_node
        self.disk = disk_of([*config.log_dirs, config.metadata_log_dir])
        self.driver: Driver | None = None  # None: it waits
        self.called_off = asyncio.Event()
        self.patience_s = 0.0  # with directories that are full

    async def run(self) -> int:
        loop = self.loop
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.interrupted, number)
        line = lifeline.inherited()
        if line is not None:
            lifeline.watch(loop, line.end, self.abandoned)
        pause_s = 0.0
        while True:
            began = loop.time()
            status, comes_back = await self.live()
            if comes_back and not self.called_off.is_set():
                continue
            if status != OUT_OF_ROOM or self.called_off.is_set():
                return status
            pause_s = next_pause(pause_s, loop.time() - began)
            if not await self.wait_for_room(pause_s):
                return status

    async def live(self) -> tuple[int, bool]:
        """How it ended, and whether that was in order, to begin anew."""
        assert self.driver is None, "one life after the other"
        halted: asyncio.Future[int] = self.loop.create_future()

        def stop(status: int, why: str) -> None:
            log.log(logging.ERROR if status else logging.INFO, "node %d stops: %s", self.config.node_id, why)
            if not halted.done():
                halted.set_result(status)

        driver = self.driver = Driver(self.loop, self.config, self.make_node, self.disk, stop)
        try:
            await driver.start()
        except DiskFull as error:
            stop(OUT_OF_ROOM, f"disk full: {error}")
        except (OSError, DiskError, BadStore) as error:
            log.error("cannot start: %s", error)
            await driver.close()
            return CANNOT_START, False
        tune_garbage_collection()
        recall = self.loop.create_task(self.recall(driver, self.loop.time()))
        status = await halted
        recall.cancel()
        await driver.close()
        with suppress(asyncio.CancelledError):
            await recall  # if it has failed, that is not lost
        gc.unfreeze()  # the node that was
        if driver.interruptions:
            self.called_off.set()
        assert halted.done()
        self.driver = None
        return status, driver.comes_back and status == 0

    async def recall(self, driver: "Driver", began: float) -> None:
        """For a directory that the node goes on without: when it has had space for a while, the node stops cleanly."""
        await driver.is_short.wait()
        self.patience_s = next_pause(self.patience_s, self.loop.time() - began, OF_DIRECTORY)
        steady, found = Steady(), None
        # Nodes that get room at the same time should not all leave at the same time.
        pause_s = random.uniform(1.0, 1.5) * self.patience_s / LOOKS
        while found not in driver.full:
            await asyncio.sleep(pause_s)
            found = await asyncio.to_thread(steady.look, driver.full)
        assert found is not None
        assert self.driver is driver, "recalled while it lives"
        driver.come_back(found)

    async def wait_for_room(self, pause_s: float) -> bool:
        """False: somebody ends the process instead."""
        assert pause_s > 0
        assert self.driver is None, "the node that had no room is closed"
        roots = sorted({*self.config.log_dirs, self.config.metadata_log_dir})
        node = self.config.node_id
        why = why_no_room(roots) or f"in {pause_s:.0f} s, since there is space now"
        log.error("node %d waits, and restarts by itself: %s", node, why)
        while True:
            try:
                await asyncio.wait_for(self.called_off.wait(), pause_s)
            except TimeoutError:
                if why_no_room(roots) is None:
                    log.info("node %d restarts: there is space again", node)
                    return True
            else:
                return False

    def interrupted(self, number: int) -> None:
        if self.driver is not None:
            self.driver.interrupted(number)
        else:
            self.call_off(signal.Signals(number).name)

    def abandoned(self) -> None:
        if self.driver is not None:
            self.driver.abandoned()
        else:
            self.call_off("the process that started this node is gone")

    def call_off(self, why: str) -> None:
        assert self.driver is None, "it waits"
        log.info("%s: node %d waits no longer", why, self.config.node_id)
        self.called_off.set()


class Driver:
    """The parts that perform one node's effects."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: NodeConfig,
        make_node: MakeNode,
        disk: RealDisk,
        on_stop: Callable[[int, str], None],
    ) -> None:
        self.loop = loop
        self.config = config
        self.make_node = make_node
        self.on_stop = on_stop
        self.interruptions = 0
        self.pump: Pump | None = None
        self.make_pump: Callable[..., Pump] = Pump
        self.net = Net(loop, net_config(config), self.event)
        self.limits = CurrentLimits(config, self.net.limits)
        self.metrics: MetricsServer | None = None
        self.peers = Peers(loop, f"strandline-{config.node_id}", self.event, self.tls_to)
        self.tls: Tls | None = None
        self.watching: asyncio.Task[None] | None = None  # for other certificates
        self.oauth: Any = None  # an OAuth, if a listener enables OAUTHBEARER
        self.disk = disk
        # Two threads: the metadata log's fsync must not wait for a gigabyte of somebody's records.
        self.flusher = Flusher(loop, self.disk, self.event, self.crash)
        self.data_flusher = Flusher(loop, self.disk, self.event, self.crash, is_vital=False)
        self.warmer = Warmer(loop, self.event)
        self.remover = Remover(self.disk)
        self.full: tuple[str, ...] = ()  # log directories that the node goes on without
        self.is_short = asyncio.Event()  # of one
        self.comes_back = False  # it stops for a directory that has room again

    async def start(self) -> None:
        assert self.pump is None, "started once"
        self.loop.set_exception_handler(self.unhandled)
        tls = self.tls = tls_of(self.config)
        self.read_token_keys()
        where = self.net.bind(listeners_of(self.config, tls))
        metrics_at = self.bind_metrics()
        secret = self.peers.secret = secret_of(self.config)
        node = self.make_node(self.config, self.disk, random.SystemRandom(), where, secret)
        if isinstance(node, ClusterNode):
            self.lend_libraries(node)
        pump = self.pump = self.make_pump(node, self.loop, Clock(), self.on_stop, self.distrust)
        pump.connect(
            self.net.reply,
            self.net.authenticated,
            self.net.throttle,
            self.net.close_one,
            self.net.refuse_one,
            self.peers.send,
            self.peers.probe,
            self.flush,
            self.warmer.submit,
            self.remover.submit,
            self.await_room,
        )
        if isinstance(node, ClusterNode):
            self.net.watch.on_look = self.read_limits
            if node.broker is not None:
                self.net.answers = node.broker.replicas.host.answers
        pump.start()
        if pump.stopped:
            return
        await self.net.serve()
        for name, endpoint in where.items():
            log.info("node %d listens on %s://%s:%d", self.config.node_id, name, endpoint.host, endpoint.port)
        if open_to_all := unprotected(self.config, list(where.items())):
            log.warning(
                "whoever can reach %s can read, write and administer this cluster: these listeners are PLAINTEXT and"
                " not on loopback. Use SSL or SASL_SSL, or listen on 127.0.0.1",
                ", ".join(open_to_all),
            )
        for key in MECHANISMS_OF_NODES:
            if self.config.text(key) not in ("", SECRET_MECHANISM):
                log.warning("%s has no effect: nodes prove the cluster's secret to one another", key)
        if tls.by_name:
            self.watching = self.loop.create_task(tls.watch(self.dynamic_settings))
        if self.metrics is not None and metrics_at is not None:
            assert isinstance(node, ClusterNode), "metrics are those of a node"
            await self.metrics.serve(node)
            log.info("node %d serves http://%s:%d/metrics", self.config.node_id, metrics_at.host, metrics_at.port)

    def read_limits(self) -> None:
        node = self.pump.node if self.pump is not None else None
        assert isinstance(node, ClusterNode)
        self.limits.update(node.image.configs)
        self.limits.update_rates(node.image.quotas)

    def read_token_keys(self) -> None:
        """Where a listener enables OAUTHBEARER; other nodes need not have what it is made of. Raises OSError."""
        listeners = map(self.config.settings_of, self.config.sasl_listener_names)
        if not any(OAUTHBEARER in settings.texts("sasl.enabled.mechanisms") for settings in listeners):
            return
        try:
            from strandline.server.oauth.of_node import OAuth
        except ImportError as error:
            raise OSError(f"OAUTHBEARER needs PyJWT, and {error.name} is missing: {INSTALL_OAUTH}") from None
        self.oauth = OAuth(self.config)
        self.oauth.watch(self.loop)

    def lend_libraries(self, node: ClusterNode) -> None:
        """Before it starts: those that not every installation has, and that the node uses if it gets them."""
        if self.oauth is not None:
            node.authenticating.tokens = self.oauth.tokens
        if self.metrics is not None:
            self.metrics.show_telemetry(node)

    def bind_metrics(self) -> Endpoint | None:
        """Before anybody can connect: connections are measured from the first one on."""
        assert not self.net.acceptors, "nobody is connected yet"
        at = self.config.metrics_listener
        if at is None:
            return None
        self.metrics = MetricsServer(at, self.net)
        self.make_pump = self.metrics.long_steps.pump
        return self.metrics.bind()

    def tls_to(self, endpoint: Endpoint) -> ssl.SSLContext | None:
        assert self.tls is not None, "known before anything is sent"
        return self.tls.to(endpoint)

    def dynamic_settings(self) -> Mapping[str, str]:
        """What this broker was given while it runs (KIP-226)."""
        node = self.pump.node if self.pump is not None else None
        resource = (BROKER_RESOURCE, str(self.config.node_id))
        return node.image.configs.get(resource, {}) if isinstance(node, ClusterNode) else {}

    async def close(self) -> None:
        if self.watching is not None:
            self.watching.cancel()
        if self.oauth is not None:
            self.oauth.close()
        if self.metrics is not None:
            await self.metrics.close()
        await self.net.close()
        self.peers.close()
        self.flusher.close()
        self.data_flusher.close()
        self.warmer.close()
        self.remover.close()
        self.disk.abandon()

    def flush(self, effect: Sync | Save) -> None:
        (self.data_flusher if isinstance(effect.token, ReplicaToken) else self.flusher).submit(effect)

    def await_room(self, effect: AwaitRoom) -> None:
        self.full = effect.paths
        if effect.paths:
            self.is_short.set()

    def come_back(self, path: str) -> None:
        assert path in self.full
        assert not self.comes_back, "once"
        self.comes_back = True
        self.shut_down(f"there is space in {path} again", ", and restarts")

    def event(self, event: Any) -> None:
        assert self.pump is not None, "nothing happens before the node exists"
        self.pump.event(event)

    def crash(self, error: BaseException, event: object) -> None:
        assert self.pump is not None, "nothing happens before the node exists"
        self.pump.crash(error, event)

    def distrust(self) -> None:
        """A flush may have failed: nobody knows what the system dropped, of these files or of others."""
        distrust(self.disk, self.config.log_dirs)

    def unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody caught is a defect of the driver: as fatal as one of the node."""
        error = context.get("exception")
        if self.pump is None or error is None:
            log.error("%s: %s", context.get("message"), error)
        else:
            self.pump.crash(error, context.get("message"))

    def interrupted(self, number: int) -> None:
        self.interruptions += 1
        name = signal.Signals(number).name
        if self.interruptions > 1 and self.pump is not None:
            self.pump.stop(INTERRUPTED, f"{name} again")
        else:
            self.shut_down(name, "; once more to stop at once")

    def abandoned(self) -> None:
        if not self.interruptions:
            self.interruptions = 1
            self.shut_down("the process that started this node is gone")

    def shut_down(self, why: str, hint: str = "") -> None:
        assert why
        if self.pump is None:
            self.on_stop(INTERRUPTED, f"{why} before the node started")
        else:
            log.info("%s: node %d shuts down%s", why, self.config.node_id, hint)
            self.pump.shutdown()


def listeners_of(config: NodeConfig, tls: Tls) -> list[Listener]:
    controllers = config.controller_listener_names
    return [
        Listener(
            at.name,
            at.host or "127.0.0.1",
            at.port,
            at.name in controllers,
            tls.of(at.name),
            config.settings_of(at.name).whole(RECEIVE_KEY) if at.name in config.sasl_listener_names else None,
        )
        for at in config.listeners
    ]


def net_config(config: NodeConfig) -> NetConfig:
    return NetConfig(
        request_bytes_max=config.integer("socket.request.max.bytes"),
        send_buffer_bytes=config.integer("socket.send.buffer.bytes"),
        receive_buffer_bytes=config.integer("socket.receive.buffer.bytes"),
        backlog=config.integer("socket.listen.backlog.size"),
        idle_ms_max=config.integer("connections.max.idle.ms"),
        believes_strangers=not config.boolean("cluster.secret.required"),
        setup_ms_max=config.integer("strandline.connection.setup.timeout.ms"),
        queued_request_bytes_max=config.integer("queued.max.request.bytes"),
        limits=limits_of(config),
    )


def tune_garbage_collection() -> None:
    """What exists now (code, tables, the loaded image) lives as long as the process: take it out of every later
    collection. Messages and events are free of cycles and die by reference count, so collections find little, and what
    they cost is looking at what has come to stay: twice at each such object, and at all of them in the rare full run.
    Small young generations cut the same work into steps of milliseconds, as when a coordinator loads its groups."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 4, 2_000)


def raise_file_limit() -> None:
    """Every log keeps a file open: as many as the system allows without asking anybody, not the 1,024 of a shell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # some systems name a limit that they do not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def log_to_stderr() -> None:
    """One line per event: time, level, text."""
    target = logging.StreamHandler(sys.stderr)
    target.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    log.addHandler(target)
    log.setLevel(logging.INFO)
    log.propagate = False


__all__ = ["CANNOT_START", "CRASHED", "INTERRUPTED", "OUT_OF_ROOM", "Driver", "MakeNode", "run", "serve"]
