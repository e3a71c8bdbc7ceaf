"""`strandline demo`: the leader is killed under load, and nothing that was acknowledged is lost."""

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

from confluent_kafka import KafkaException
from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from strandline.cli.app import add_plugins, command
from strandline.cli.connect import Json, check_at_least, fail, misuse
from strandline.cli.signals import interrupted_by_signals
from strandline.client.errors import StrandlineError
from strandline.client.librdkafka import why
from strandline.demo.demonstration import folder_for, kept
from strandline.demo.leader_kill import NODES, RESTART_AFTER_S, STEPS, LeaderKillResult, run
from strandline.testing.local_cluster import LocalCluster, StartFailed

app = App(name="demo", help="Watch a cluster of real processes survive failures.")
command(
    app,
    "last-replica",
    "strandline.cli.lab.last_replica:last_replica",
    "KIP-966's scenario: the last replica loses power, with and without ELR.",
)
command(
    app,
    "exactly-once",
    "strandline.cli.lab.exactly_once:exactly_once",
    "A bank in transactions: workers and nodes are killed, and the money is counted.",
)
add_plugins(app, "strandline.demos", "Events become a table through Spark; a leader and the pipeline are killed.")


@app.default
def demo(
    *,
    seconds: float = 12.0,
    rate: int = 5000,
    partitions: int = 3,
    dir: Annotated[Path | None, Parameter(help="keep the nodes' folders here")] = None,  # noqa: A002  # the option's name
    json_output: Json = False,
) -> int:
    """Kill the leader of a three-node cluster under load, restart it, and check that nothing acknowledged was lost.

    A producer writes with acks=all all the time. At the end everything that was acknowledged is read back, and the
    three nodes' logs are compared byte for byte. Exit status 1 if something is missing or differs.

    Parameters
    ----------
    seconds
        how long to write
    rate
        records a second
    partitions
        number of partitions of the topic; the leader of partition 0 is killed
    """
    if seconds < RESTART_AFTER_S + 1:
        misuse(
            f"--seconds must be at least {RESTART_AFTER_S + 1:.0f}, and is {seconds:g}",
            f"the killed node comes back after {RESTART_AFTER_S:.0f} s",
        )
    check_at_least(1, rate=rate, partitions=partitions)
    interrupted_by_signals()
    folder = folder_for(dir, "strandline-demo-")
    console = Console(stderr=json_output)
    try:
        with LocalCluster(folder, NODES) as cluster:
            outcome = shown(cluster, console, seconds, rate, partitions)
            cluster.stop()
    except (KafkaException, StrandlineError, StartFailed, OSError) as error:
        fail(why(error) if isinstance(error, KafkaException) else str(error), kept(folder))
    if json_output:
        print(json.dumps(as_json(outcome)))
    else:
        show(outcome, console)
    if outcome.holds and dir is None:
        shutil.rmtree(folder)
    elif not outcome.holds:
        print(kept(folder), file=sys.stderr)
    return 0 if outcome.holds else 1


def shown(cluster: LocalCluster, console: Console, seconds: float, rate: int, partitions: int) -> LeaderKillResult:
    """Run it, with what happens on the terminal."""
    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console
    )
    with progress:
        step = progress.add_task("three nodes are up; creating the topic", total=STEPS)

        def say(text: str) -> None:
            progress.update(step, advance=1, description=text)
            if not console.is_terminal:
                console.print(text)

        return run(cluster, say, seconds=seconds, rate=rate, partitions=partitions)


def show(outcome: LeaderKillResult, console: Console) -> None:
    verdict = outcome.verdict
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    good = "green" if verdict.holds else "red"
    table.add_row("acknowledged", f"{verdict.acknowledged:,}")
    table.add_row("read back", f"{verdict.read:,}")
    table.add_row("lost", f"[{good}]{len(verdict.lost)}[/]")
    table.add_row("duplicates, out of order", f"{verdict.duplicates}, {len(verdict.misplaced)}")
    table.add_row("never acknowledged", f"{outcome.unacknowledged:,}")
    table.add_row("writes interrupted for", f"{outcome.interruption_s:.2f} s, where node {outcome.killed} led")
    for p, state in outcome.before.items():
        now = outcome.after[p]
        moved = f"node {state.leader} (epoch {state.leader_epoch}) → node {now.leader} (epoch {now.leader_epoch})"
        table.add_row(f"leader of partition {p}", moved)
    same = f"[green]identical[/], {outcome.bytes_compared:,} bytes" if outcome.logs_equal else "[red]DIFFERENT[/]"
    table.add_row("logs of the three nodes", same)
    table.add_row("all replicas in sync again", f"{outcome.healed_s:.1f} s after the restart")
    console.print(table)
    if outcome.holds:
        console.print("[green]Everything that was acknowledged is there.[/green]")
    else:
        console.print(f"[red]The promise is not shown to hold.[/red] {why_not(outcome)}")


def why_not(outcome: LeaderKillResult) -> str:
    verdict = outcome.verdict
    if verdict.lost:
        return f"First lost (partition, offset): {verdict.lost[:5]}"
    if verdict.duplicates or verdict.misplaced:
        return "Records were read twice, or out of order."
    if not outcome.logs_equal:
        return "The nodes' logs differ, or do not reach the high watermark."
    return "Nothing was acknowledged."


def as_json(outcome: LeaderKillResult) -> dict[str, Any]:
    verdict = outcome.verdict
    return {
        "acknowledged": verdict.acknowledged,
        "read": verdict.read,
        "lost": [list(place) for place in verdict.lost],
        "duplicates": verdict.duplicates,
        "misplaced": [list(place) for place in verdict.misplaced],
        "unacknowledged": outcome.unacknowledged,
        "interruption_s": round(outcome.interruption_s, 3),
        "killed_node": outcome.killed,
        "leaders_before": {p: [s.leader, s.leader_epoch] for p, s in outcome.before.items()},
        "leaders_after": {p: [s.leader, s.leader_epoch] for p, s in outcome.after.items()},
        "healed_s": round(outcome.healed_s, 3),
        "logs_equal": outcome.logs_equal,
        "bytes_compared": outcome.bytes_compared,
        "holds": outcome.holds,
    }
