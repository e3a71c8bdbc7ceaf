"""`strandline up`: a cluster for daily use, with a live view, until Ctrl-C."""

import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from strandline.cli.connect import fail
from strandline.cli.partitions import PartitionState, as_json, pages, states_of
from strandline.cli.signals import interrupted_by_signals
from strandline.cli.topics import table_of
from strandline.server.ask import ask
from strandline.server.local_cluster import HOST, LocalCluster, NodeProcess, StartFailed, is_port_free
from strandline.server.storage import NotFormattable
from strandline.wire.frame import Malformed

REFRESH_S = 1.0
TOPIC_ROWS_MAX = 30
PORT_MAX = 65_535


def up(*, nodes: int = 3, dir: Path = Path("strandline-data"), port: int = 9092) -> None:  # noqa: A002  # the option's name
    """Run a cluster on this machine until Ctrl-C, which stops it in order.

    Data stays in the folder; the same command goes on with it.

    Parameters
    ----------
    nodes
        how many nodes, each broker and controller
    dir
        the folder for configurations, logs and data
    port
        of the first node; the others take the next even ones, controllers the odd ones between, metrics those after
    """
    console = Console()
    if nodes < 1 or not 1 <= port <= PORT_MAX - 3 * nodes + 1:
        fail(f"--nodes must be at least 1, and three ports for each from --port on at most {PORT_MAX}", status=2)
    ports = [port + i for i in range(3 * nodes)]
    busy = [str(p) for p in ports if not is_port_free(p)]
    if busy:
        fail(f"port {', '.join(busy)} is in use", "is a cluster running already? Choose others with --port")
    interrupted_by_signals()
    cluster = LocalCluster(dir.absolute(), nodes, ports=ports[: 2 * nodes], metrics_ports=ports[2 * nodes :])
    started = time.monotonic()
    try:
        cluster.start()
    except (StartFailed, NotFormattable) as error:
        cluster.kill()
        fail(str(error))
    try:
        console.print(f"ready after {time.monotonic() - started:.1f} s; data in {cluster.folder}")
        console.print(f"bootstrap address: [bold]{cluster.bootstrap}[/bold]")
        console.print(f"metrics for Prometheus: http://{HOST}:{ports[2 * nodes]}/metrics and the next ports\n")
        console.print("  strandline topics create greetings --partitions 3")
        console.print("  echo hello | strandline produce greetings")
        console.print("  strandline consume greetings --from-beginning\n")
        watch(cluster, console)
    except KeyboardInterrupt:
        pass
    finally:
        stop(cluster, console)


def watch(cluster: LocalCluster, console: Console) -> None:
    """Show the cluster until Ctrl-C; on something that is no terminal, one line when something changes."""
    if not console.is_terminal:
        known: dict[int, bool] = {}
        while True:
            for node in cluster.nodes:
                if known.get(node.node_id) != node.running:
                    known[node.node_id] = node.running
                    print(f"node {node.node_id} {state(node)}", flush=True)
            time.sleep(REFRESH_S)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(view(cluster), refresh=True)
            time.sleep(REFRESH_S)


def view(cluster: LocalCluster) -> Group:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("node", "address", "pid", "state", "leads", "in sync"):
        table.add_column(column, justify="right" if column in ("node", "pid", "leads", "in sync") else "left")
    partitions = described(cluster)
    for node in cluster.nodes:
        leads = sum(partition.leader == node.node_id for partition in partitions)
        in_sync = sum(node.node_id in partition.isr for partition in partitions)
        pid = str(node.pid) if node.running else "–"
        style = "" if node.running else "red"
        table.add_row(str(node.node_id), node.address, pid, state(node), str(leads), str(in_sync), style=style)
    shown = [as_json(partition) for partition in partitions if not partition.at.topic.startswith("__")]
    return Group(
        table, table_of(shown[:TOPIC_ROWS_MAX]) if shown else Text(), Text("Ctrl-C stops the cluster", style="dim")
    )


def described(cluster: LocalCluster) -> list[PartitionState]:
    """As the first node tells that answers; nothing if none does."""
    for node in cluster.nodes:
        if node.running:
            with suppress(OSError, Malformed):
                told = pages(partial(ask, HOST, node.port, version=0, timeout_s=REFRESH_S))
                return [state for topic in told for state in states_of(topic)]
    return []


def state(node: NodeProcess) -> str:
    return "running" if node.running else f"is down; see {node.log_path}"


def stop(cluster: LocalCluster, console: Console) -> None:
    with console.status("stopping…") as status:
        for node in cluster.nodes:
            if node.running:
                status.update(f"stopping node {node.node_id}: its leaderships move first")
                node.terminate()
                if node.wait_stopped() != 0:
                    print(f"node {node.node_id} did not stop in order; see {node.log_path}", file=sys.stderr)
    console.print("stopped")
