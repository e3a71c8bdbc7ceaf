"""`strandline up`: a cluster for daily use, with a live view, until Ctrl-C."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from strandline.base.ports import DiskError
from strandline.base.value import Value
from strandline.cli.admin.topics import table_of
from strandline.cli.connect import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, fail, misuse
from strandline.cli.nodes.client_settings import greeting
from strandline.cli.nodes.console import AllowChanges, lines_of, opened
from strandline.cli.show import Column, Fitted
from strandline.cli.signals import interrupted_by_signals
from strandline.client.admin.partitions import PartitionState, pages, states_of
from strandline.client.ask import ask, config_of
from strandline.client.errors import StrandlineError
from strandline.diagnosis.partitions import as_json
from strandline.server.storage.formatting import NotFormattable
from strandline.server.storage.lock import InUse, holder_of, lock_directory
from strandline.testing.certificates import NoCertificate
from strandline.testing.cluster_folder import (
    Occupied,
    await_leftovers,
    nodes_in,
    properties_in,
    refuse_busy_ports,
    refuse_running,
    running,
)
from strandline.testing.local_cluster import HOST, PATIENCE_S, LocalCluster, NodeProcess, StartFailed
from strandline.testing.secured import ADMIN, ALICE, PREFIX, SecuredFolder, was_made_secure
from strandline.wire.frame import Malformed

if TYPE_CHECKING:  # the extra may not be installed
    from strandline.console.serving import Serving

REFRESH_S = 1.0
TOPIC_ROWS_MAX = 30
PORT_MAX = 65_535
PROPERTIES = {"transaction.two.phase.commit.enable": "true"}  # for Spark's exactly-once sink
NODES, NODES_MAX = 3, 20
INTERRUPTED = 130


def up(
    *,
    nodes: int | None = None,
    dir: Path = Path("strandline-data"),  # noqa: A002  # the option's name
    port: int = 9092,
    secure: Annotated[bool, Parameter(negative="")] = False,
    console: Annotated[bool, Parameter(negative="")] = False,
    allow_changes: AllowChanges = False,
) -> int:
    """Run a cluster on this machine until Ctrl-C, which shuts it down in order. A second Ctrl-C kills it.

    Data stays in the folder, and the same command continues with it. If this process dies, its nodes shut down by
    themselves. Nodes that were started by hand (`strandline node`) are shown and left alone.

    Parameters
    ----------
    nodes
        number of nodes, each broker and controller; 3, or as many as the folder has
    dir
        folder for configurations, logs and data
    port
        the first node's port; controllers and the other nodes take the next ones, metrics those after them
    secure
        with TLS, SASL (SCRAM-SHA-512) and ACLs: makes certificates, the users admin and alice, and prints how clients
        connect. A folder that was made so stays so
    console
        show it in the browser too: prints the address, which has the first port that is left
    """
    interrupted_by_signals()
    if allow_changes and not console:
        misuse("--allow-changes is about the console", "add --console, or leave it out")
    terminal = Console()
    folder = dir.absolute()
    try:
        refuse_running(folder)
        count = wanted_nodes(nodes, folder)
        is_secure = wants_security(secure, folder)
        ports = wanted_ports(port, count, console)
        metrics_ports = ports[2 * count : 3 * count]
        cluster = LocalCluster(
            folder,
            count,
            ports=ports[: 2 * count],
            metrics_ports=metrics_ports,
            properties=PROPERTIES,
            is_secure=is_secure,
        )
        refuse_busy_ports(cluster)
        lock = taken(folder)
        with terminal.status("waiting for nodes of an earlier `strandline up` to stop"):
            await_leftovers(cluster)
        refuse_busy_ports(cluster)
    except Occupied as refused:
        fail(refused.problem, refused.advice)
    try:
        return run(cluster, terminal, ConsoleWanted(ports[-1], allow_changes) if console else None)
    finally:
        os.close(lock)


def wanted_nodes(nodes: int | None, folder: Path) -> int:
    there = nodes_in(folder)
    if nodes is not None and not 1 <= nodes <= NODES_MAX:
        misuse(f"--nodes must be between 1 and {NODES_MAX}, and is {nodes}", f"{NODES} nodes survive the loss of one")
    if there and nodes not in (None, there):
        fail(
            f"the cluster in {folder} has {there} nodes, and that cannot be changed",
            "leave --nodes out, or make another cluster with --dir",
            status=2,
        )
    return there or nodes or NODES


def wants_security(asked: bool, folder: Path) -> bool:
    """A cluster stays what it was made as: users and certificates are there from its beginning."""
    made = was_made_secure(properties_in(folder, 1))
    if asked and not made and nodes_in(folder):
        fail(
            f"the cluster in {folder} was made without --secure",
            "make another cluster with --dir; docs/security.md says how to secure one by hand",
            status=2,
        )
    return asked or made


def wanted_ports(port: int, nodes: int, has_console: bool = False) -> list[int]:
    """Of brokers and controllers, of metrics, and of the console."""
    count = 3 * nodes + has_console
    last = PORT_MAX - count + 1
    if not 1 <= port <= last:
        misuse(f"--port must be between 1 and {last}, and is {port}", f"{nodes} nodes need {count} ports from there on")
    return [port + i for i in range(count)]


def taken(folder: Path) -> int:
    """The descriptor that holds the folder's lock."""
    if folder.exists() and not folder.is_dir():
        fail(f"{folder} is not a folder", "name another with --dir")
    try:
        return lock_directory(str(folder))
    except InUse:
        raise running(folder, holder_of(str(folder))) from None
    except DiskError as error:
        return fail(f"the cluster's folder cannot be used: {error}", "name another with --dir")


class ConsoleWanted(Value, frozen=True):
    port: int
    allow_changes: bool


def run(cluster: LocalCluster, console: Console, browser: ConsoleWanted | None = None) -> int:
    """Start, show and stop it; the exit status."""
    try:
        return run_in_order(cluster, console, browser)
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        cluster.kill()
        print("interrupted again: the nodes that still ran were killed", file=sys.stderr)
        return INTERRUPTED


def run_in_order(cluster: LocalCluster, console: Console, browser: ConsoleWanted | None) -> int:
    started = time.monotonic()
    try:
        cluster.start()
    except KeyboardInterrupt:
        cluster.stop_together()
        print("interrupted while the cluster started; all its nodes are stopped", file=sys.stderr)
        return INTERRUPTED
    except (StartFailed, NotFormattable, NoCertificate, StrandlineError, DiskError, OSError) as error:
        cluster.stop_together()
        logs = "the logs of the nodes are in its folders node-N"
        fail(str(error), "" if isinstance(error, StrandlineError) else f"the cluster is in {cluster.folder}: {logs}")
    try:
        console.print(f"ready after {time.monotonic() - started:.1f} s; data in {cluster.folder}", soft_wrap=True)
        greet(cluster, console)
        with ExitStack() as serving:
            if browser is not None:
                serving.enter_context(shown_in_browser(cluster, console, browser))
            watch(cluster, console)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        stop_all(cluster)
        raise
    return stop(cluster, console)


def greet(cluster: LocalCluster, console: Console) -> None:
    console.print(f"bootstrap address: [bold]{cluster.bootstrap}[/bold]", soft_wrap=True)
    console.print(f"metrics for Prometheus: http://{HOST}:{cluster.nodes[0].metrics_port}/metrics and the next ports\n")
    if cluster.secured is not None:
        console.print(greeting(cluster.secured, cluster.bootstrap), soft_wrap=True, highlight=False, markup=False)
        console.print()
    for command in hints(cluster.nodes[0].address, cluster.secured):
        console.print(f"  {command}", soft_wrap=True, highlight=False)
    console.print()


def shown_in_browser(cluster: LocalCluster, console: Console, wanted: ConsoleWanted) -> "Serving":
    """Without it the cluster runs on, so that a port that is taken ends it in order."""
    options = f" --bootstrap-server {cluster.bootstrap}"
    if cluster.secured is not None:
        options += f" --command-config {shlex.quote(str(cluster.secured.properties_path(ADMIN)))}"
    try:
        serving = opened(config_of(cluster.bootstrap, cluster.client), options, HOST, wanted.port, wanted.allow_changes)
    except SystemExit:
        stop_all(cluster)
        raise
    for line in lines_of(serving, wanted.allow_changes):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    console.print()
    return serving


def hints(address: str, secured: SecuredFolder | None = None) -> list[str]:
    """Commands to begin with. They name this cluster, if it is not the default."""
    is_default = os.environ.get(BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP) == address
    where = "" if is_default else f" --bootstrap-server {address}"
    topic = "greetings"
    if secured is not None:
        where += f" --command-config {shlex.quote(str(secured.properties_path(ALICE)))}"
        topic = f"{PREFIX}greetings"
    return [
        f"strandline topics create {topic} --partitions 3{where}",
        f"echo hello | strandline produce {topic}{where}",
        f"strandline consume {topic} --from-beginning{where}",
    ]


def watch(cluster: LocalCluster, console: Console) -> None:
    """Show the cluster until Ctrl-C; if that is not a terminal, one line for each change."""
    if not console.is_terminal:
        known: dict[int, str] = {}
        while True:
            for node in cluster.nodes:
                now = state(node)
                if known.get(node.node_id) != now:
                    known[node.node_id] = now
                    print(f"node {node.node_id} {now}", flush=True)
            time.sleep(REFRESH_S)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(view(cluster), refresh=True)
            time.sleep(REFRESH_S)


def view(cluster: LocalCluster) -> Group:
    table = Fitted(
        Column("node", "right"),
        Column("address"),
        Column("pid", "right", drops=1),
        Column("state", is_text=True),
        Column("leads", "right", drops=3),
        Column("in sync", "right", drops=2),
    )
    partitions = described(cluster)
    for node in cluster.nodes:
        leads = sum(partition.leader == node.node_id for partition in partitions)
        in_sync = sum(node.node_id in partition.isr for partition in partitions)
        other = node.other
        pid = str(node.pid) if node.running else str(other.pid) if other else "–"
        style = "" if node.running or other else "red"
        table.add_row(str(node.node_id), node.address, pid, state(node), str(leads), str(in_sync), style=style)
    shown = [as_json(partition) for partition in partitions if not partition.at.topic.startswith("__")]
    return Group(
        table, table_of(shown[:TOPIC_ROWS_MAX]) if shown else Text(), Text("Ctrl-C stops the cluster", style="dim")
    )


def described(cluster: LocalCluster) -> list[PartitionState]:
    """From the first node that answers; empty if none does."""
    for node in cluster.nodes:
        if node.is_up:
            with suppress(OSError, Malformed):
                config = config_of(node.address, node.client)
                topics = pages(partial(ask, HOST, node.port, version=0, timeout_s=REFRESH_S, config=config))
                return [state for topic in topics for state in states_of(topic)]
    return []


def state(node: NodeProcess) -> str:
    if node.running:
        return "running"
    other = node.other
    return f"running, started by hand (process {other.pid})" if other else f"is down; see {node.log_path}"


def stop(cluster: LocalCluster, console: Console) -> int:
    with console.status("stopping…") as status:
        stopped = stop_all(cluster, status.update)
    for node in cluster.nodes:
        other = node.other
        if other is not None:
            print(f"node {node.node_id} goes on: it was started by hand (process {other.pid})")
    console.print("stopped")
    return 0 if stopped else 1


def stop_all(cluster: LocalCluster, say: Callable[[str], None] = lambda _: None) -> bool:
    """One after another. Did all stop in order?"""
    in_order = True
    for node in cluster.nodes:
        if node.running:
            say(f"stopping node {node.node_id}: its leaderships move first")
            node.terminate()
            if node.wait_stopped(PATIENCE_S) != 0:
                in_order = False
                print(f"node {node.node_id} did not stop in order; see {node.log_path}", file=sys.stderr)
    return in_order
