"""`strandline demo last-replica`: an acknowledged record survives the last replica's power cut, or does not."""

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import msgspec
from confluent_kafka import KafkaException
from cyclopts import Parameter
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from strandline.cli.connect import Json, check_at_least, fail
from strandline.cli.signals import interrupted_by_signals
from strandline.client.errors import StrandlineError
from strandline.client.librdkafka import why
from strandline.demo.demonstration import folder_for, kept
from strandline.demo.last_replica.page import page
from strandline.demo.last_replica.story import HAPPENS, Moment, Seen, Story, ledger_words, play, remark
from strandline.testing.local_cluster import StartFailed

SIDE_BY_SIDE_MIN = 80  # columns of a terminal
MARKS = {
    "leader": ("★", "bold green"),
    "in sync": ("●", "green"),
    "eligible": ("◆", "cyan"),
    "out of sync": ("○", "dim"),
}


def last_replica(
    *,
    records: int = 1000,
    html: Annotated[Path, Parameter(help="write the page to this file")] = Path("last-replica.html"),
    dir: Annotated[Path | None, Parameter(help="keep the nodes' folders here")] = None,  # noqa: A002  # the option's name
    json_output: Json = False,
) -> int:
    """Show KIP-966's scenario: two of three brokers are cut off, and the last one loses power.

    It runs twice, on real processes: without Eligible Leader Replicas acknowledged records are lost, with them none is.

    Parameters
    ----------
    records
        how many records each step writes
    """
    check_at_least(1, records=records)
    interrupted_by_signals()
    folder = folder_for(dir, "strandline-last-replica-")
    console = Console(stderr=json_output)
    try:
        off, on = played(folder, records, console)
    except (KafkaException, StrandlineError, StartFailed, OSError) as error:
        fail(why(error) if isinstance(error, KafkaException) else str(error), kept(folder))
    html.write_text(page(off, on), "utf-8")
    if json_output:
        print(json.dumps(as_json(off, on)))
    else:
        show(off, on, console)
        console.print(f"The same as a page: {html}")
    if is_shown(off, on):
        if dir is None:
            shutil.rmtree(folder)
        return 0
    print(kept(folder), file=sys.stderr)
    return 1


def played(folder: Path, records: int, console: Console) -> list[Story]:
    """Both at the same time, since most of it is waiting: without ELR, and with."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, console=console, disable=not console.is_terminal)

    def one(name: str, is_elr_on: bool) -> Story:
        task = progress.add_task(f"ELR {name}")

        def say(text: str) -> None:
            progress.update(task, description=f"ELR {name:3}  {text}")
            if not console.is_terminal:
                console.print(f"ELR {name:3}  {text}", soft_wrap=True)

        return play(folder / f"elr-{name}", is_elr_on, records, say)

    with progress, ThreadPoolExecutor(2) as threads:
        stories = [threads.submit(one, name, is_elr_on) for name, is_elr_on in (("off", False), ("on", True))]
        return [story.result() for story in stories]


def is_shown(off: Story, on: Story) -> bool:
    """Something is lost without, and nothing with. Where nothing was acknowledged nothing is shown."""
    return off.lost > 0 and on.lost == 0 and on.acknowledged > 0


def as_json(off: Story, on: Story) -> dict[str, object]:
    return {"elr_off": msgspec.to_builtins(off), "elr_on": msgspec.to_builtins(on), "holds": is_shown(off, on)}


# --- in the terminal


def show(off: Story, on: Story, console: Console) -> None:
    most = max(
        seen.log_end + seen.missing for story in (off, on) for moment in story.moments for seen in moment.brokers
    )
    bar = max(8, min(30, room(console) - 32))
    console.print()
    console.print(
        Text.assemble(
            *(part for mark in MARKS for part in ((f"{MARKS[mark][0]} ", MARKS[mark][1]), f"{mark}   ")),
            ("█", "green"),
            " on disk  ",
            ("▒", "yellow"),
            " in the page cache only  ",
            ("╳", "red"),
            " acknowledged, but not here",
        )
    )
    for before, after in zip(off.moments, on.moments, strict=True):
        title = before.step if before.step != "before" else "At first"
        console.print()
        console.print(Text.assemble((f" {title} ", "reverse bold"), "  ", (HAPPENS[before.step], "bold")))
        console.print(pair(console, cell(off, before, most, bar), cell(on, after, most, bar)))
    console.print()
    console.print(pair(console, verdict(off), verdict(on)))


def room(console: Console) -> int:
    """The width of a panel: two stand side by side, or one below the other on a narrow terminal."""
    return console.width if console.width < SIDE_BY_SIDE_MIN else console.width // 2


def pair(console: Console, off: Panel, on: Panel) -> RenderableType:
    if console.width < SIDE_BY_SIDE_MIN:
        return Group(off, on)
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(off, on)
    return table


def cell(story: Story, moment: Moment, most: int, bar: int) -> Panel:
    lines = [line(seen, most, bar) for seen in moment.brokers]
    text = Text.assemble(remark(story, moment.step))
    title = "ELR on" if story.is_elr_on else "ELR off"
    return Panel(Group(*lines, Text(), text), title=title, title_align="left", border_style=colour(story, moment))


def colour(story: Story, moment: Moment) -> str:
    if story.lost and moment is story.moments[-1]:
        return "red"
    return "yellow" if moment.leader < 0 or moment.acknowledged < moment.sent else "green"


def line(seen: Seen, most: int, bar: int) -> Text:
    mark, style = MARKS[seen.role]
    trouble = {"cut off": " cut off", "no power": " no power"}.get(seen.condition, "")
    durable, written, wanted = (
        round(bar * n / max(1, most))
        for n in (min(seen.durable_end, seen.log_end), seen.log_end, seen.log_end + seen.missing)
    )
    return Text.assemble(
        (f"{mark} ", style),
        f"broker {seen.broker} ",
        ("█" * durable, "green"),
        ("▒" * (written - durable), "yellow"),
        ("╳" * (wanted - written), "red"),
        " " * (bar - wanted + 1),
        f"{seen.log_end:,}",
        (trouble, "bold red"),
        overflow="ellipsis",
        no_wrap=True,
    )


def verdict(story: Story) -> Panel:
    colour = "red" if story.lost else "green"
    text = Text.assemble((f"{story.lost:,} lost", f"bold {colour}"), f" of {story.acknowledged:,} acknowledged records")
    if story.lost:
        text.append(f": numbers {story.first_lost:,} to {story.last_lost:,}. No broker has them any more")
    text.append(f".\n{ledger_words(story)}")
    return Panel(text, title="ELR on" if story.is_elr_on else "ELR off", border_style=colour)
