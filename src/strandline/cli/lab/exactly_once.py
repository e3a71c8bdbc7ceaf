"""`strandline demo exactly-once`: a bank's workers and nodes are killed, and then its money is counted."""

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from confluent_kafka import KafkaException
from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from strandline.cli.connect import Json, check_at_least, fail, misuse
from strandline.cli.signals import interrupted_by_signals
from strandline.client.errors import StrandlineError
from strandline.client.librdkafka import why
from strandline.demo.demonstration import folder_for, kept
from strandline.demo.exactly_once.count import Count
from strandline.demo.exactly_once.page import page
from strandline.demo.exactly_once.play import NODES, PROPERTIES, Event, ExactlyOnceResult, Play, Wish
from strandline.demo.exactly_once.reading import Stalled
from strandline.demo.exactly_once.words import MARKS, facts, verdict
from strandline.testing.local_cluster import LocalCluster, StartFailed

EACH = 500  # transfers for each kill, and so many more


def exactly_once(
    *,
    kills: int = 6,
    accounts: int = 100,
    transfers: int | None = None,
    workers: int = 3,
    html: Annotated[Path, Parameter(help="write the page to this file")] = Path("exactly-once.html"),
    dir: Annotated[Path | None, Parameter(help="keep the nodes' folders here")] = None,  # noqa: A002  # the option's name
    json_output: Json = False,
) -> int:
    """Move money between accounts in transactions, while workers and nodes are killed with SIGKILL, and count it.

    Workers read transfers from a topic, write a debit and a credit for each, and commit their offsets in the same
    transaction. The same loop without transactions runs beside it, under the same kills. Exit status 1 if the loop with
    transactions booked a transfer twice, or not, or if the sum of all accounts has changed.

    Parameters
    ----------
    kills
        how often a worker of each loop, or a node, is killed. Every second kill ends a node: a leader, a transaction
        coordinator, the group's coordinator
    accounts
        number of accounts
    transfers
        number of transfers; 500 for each kill and 500 more, if it is not given
    workers
        number of workers of each loop
    """
    check_at_least(0, kills=kills)
    check_at_least(1, workers=workers)
    check_at_least(2, accounts=accounts)
    wish = Wish(accounts, EACH * (kills + 1) if transfers is None else transfers, workers, kills)
    if wish.transfers < kills + 1:
        misuse(
            f"--transfers must be at least {kills + 1}, and is {wish.transfers}",
            "there is one for each kill, and one more",
        )
    interrupted_by_signals()
    folder = folder_for(dir, "strandline-exactly-once-")
    console = Console(stderr=json_output)
    try:
        with LocalCluster(folder, NODES, properties=PROPERTIES) as cluster:
            outcome = played(cluster, wish, folder, console)
            cluster.stop()
    except (KafkaException, StrandlineError, StartFailed, Stalled, OSError) as error:
        fail(why(error) if isinstance(error, KafkaException) else str(error), kept(folder))
    html.write_text(page(outcome), "utf-8")
    if json_output:
        print(json.dumps(as_json(outcome)))
    else:
        show(outcome, console)
        console.print(f"The same as a page: {html}", soft_wrap=True)
    if not outcome.holds:
        print(kept(folder), file=sys.stderr)
    elif dir is None:
        shutil.rmtree(folder)
    return 0 if outcome.holds else 1


def as_json(outcome: ExactlyOnceResult) -> dict[str, object]:
    known: dict[str, object] = msgspec.to_builtins(outcome)
    return {**known, "holds": outcome.holds}


# --- in the terminal


def played(cluster: LocalCluster, wish: Wish, folder: Path, console: Console) -> ExactlyOnceResult:
    """Each event is a line as soon as it happens; below them is how far the loops are."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f}"), TimeElapsedColumn())
    progress = Progress(*columns, console=console, disable=not console.is_terminal)
    tasks = [progress.add_task(name, total=wish.transfers) for name in ("with transactions", "without")]

    def say(event: Event) -> None:
        console.print(line(event), soft_wrap=True)

    def booked(done: tuple[int, int]) -> None:
        for task, count in zip(tasks, done, strict=True):
            progress.update(task, completed=count)

    with progress:
        return Play(cluster, wish, folder / "workers", say, booked).run()


def line(event: Event) -> Text:
    mark, style = MARKS[event.kind]
    return Text.assemble(
        (f"{event.at_s:6.1f} s  ", "dim"),
        (f"{mark} {event.text}", style),
        (f"   ({event.booked[0]:,} and {event.booked[1]:,} booked)", "dim"),
    )


def show(outcome: ExactlyOnceResult, console: Console) -> None:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("", style="dim")
    table.add_column("with transactions", justify="right")
    table.add_column("without", justify="right")
    both = outcome.with_transactions, outcome.without
    for name, *cells in facts(outcome):
        table.add_row(name, *(Text(cell, style_of(count)) for cell, count in zip(cells, both, strict=True)))
    console.print(table)
    console.print(verdict(outcome), style="green" if outcome.holds else "red")


def style_of(count: Count) -> str:
    return "green" if count.holds else "red"
