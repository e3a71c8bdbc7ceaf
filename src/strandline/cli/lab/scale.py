"""`strandline bench scale`: what many partitions cost, on clusters of three that the command starts itself."""

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.status import Status

from strandline.bench.scale_cluster import NotMeasured
from strandline.bench.scale_steps import Say, ScaleConfig, Scaled, Step, measure
from strandline.cli.connect import Json, check_at_least, check_positive, fail, misuse
from strandline.cli.lab.bench import wide
from strandline.cli.show import Column, Fitted
from strandline.testing.local_cluster import StartFailed

HELD_SHOWN = 3
ROWS = {
    "create": "created, led and in sync everywhere",
    "write": "one record in each, acks=all",
    "leaders": "a live leader after SIGKILL of a node",
    "restart": "in sync again after its restart",
    "controller": "a live leader after SIGKILL of the controller",
    "restart_controller": "in sync again after its restart",
    "stop": "a controlled shutdown",
    "start": "in sync again after the clean start",
    "delete": "deleted, and no files left",
}


def scale(
    *,
    partitions: str = "250,1000",
    topics: int = 10,
    idle: float = 20,
    dir: Path | None = None,  # noqa: A002  # the option's name
    json_output: Json = False,
) -> None:
    """Measure what many partitions cost: a cluster of three nodes creates them, loses nodes and gets them back.

    It needs Linux, and up to a minute for 1,000 partitions. Each number of partitions gets a cluster of its own.

    Parameters
    ----------
    partitions
        numbers of partitions, separated by commas
    topics
        number of topics that have them
    idle
        seconds at rest, over which processor time is measured
    dir
        keep the clusters' data in this folder; without it they are deleted
    """
    sizes = sizes_of(partitions)
    check_at_least(1, topics=topics)
    check_positive(idle=idle)
    console = Console(stderr=json_output)
    config = ScaleConfig(topics=topics, idle_s=idle)
    results: list[Scaled] = []
    with tempfile.TemporaryDirectory(prefix="strandline-scale-") as temporary:
        for size in sizes:
            folder = (dir or Path(temporary)).absolute() / f"{size}-partitions"
            if folder.exists():
                fail(f"{folder} exists already", "name another folder with --dir")
            folder.mkdir(parents=True)
            try:
                with console.status("") as status:
                    results.append(measure(size, config, folder, progress(status, size)))
            except (NotMeasured, StartFailed, OSError) as error:
                fail(f"{size} partitions: {error}", f"the logs of the nodes are in {folder}")
            if not json_output:
                console.print(f"{size} partitions: measured")
    if json_output:
        print(json.dumps(as_json(results)))
    else:
        show(console, results)


def progress(status: Status, size: int) -> Say:
    return lambda text: status.update(f"{size:,} partitions: {text}")


def sizes_of(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        misuse(f"--partitions needs numbers separated by commas, not '{text}'", "for example 100,1000")
    if min(sizes) < 1 or len(set(sizes)) < len(sizes):
        misuse(f"--partitions needs positive numbers, each once, not '{text}'", "for example 100,1000")
    return sizes


def as_json(results: list[Scaled]) -> dict[str, Any]:
    return {
        "results": [msgspec.to_builtins(scaled) for scaled in results],
        "growth": {name: growth(results, name) for name in ROWS},
    }


def growth(results: list[Scaled], name: str) -> float | None:
    """The power of the number of partitions with which processor time grew from the smallest to the largest: 1 is
    linear, 2 quadratic, and what is below 1 has a part that does not grow."""
    first, last = min(results, key=lambda s: s.partitions), max(results, key=lambda s: s.partitions)
    before, after = getattr(first, name).cpu_s, getattr(last, name).cpu_s
    if first is last or before <= 0 or after <= 0:
        return None
    return round(math.log(after / before) / math.log(last.partitions / first.partitions), 2)


def show(console: Console, results: list[Scaled]) -> None:
    console = wide(console)
    console.print(table_of(results))
    console.print("What held a node's loop for 10 ms or more at a time (the three causes with the most time):")
    for scaled in results:
        for name, title in ROWS.items():
            held = list(getattr(scaled, name).held.items())[:HELD_SHOWN]
            listed = "; ".join(f"{cause} {ms:,.0f} ms in {times}" for cause, (times, ms) in held)
            console.print(f"  {scaled.partitions:,}: {title}: {listed or '–'}")


def table_of(results: list[Scaled]) -> Fitted:
    largest = max(scaled.partitions for scaled in results)
    table = Fitted(
        Column("seconds (processor time; longest wait for an answer)", is_text=True),
        *(Column(f"{s.partitions:,}", "right", drops=largest - s.partitions) for s in results),
        *([Column("growth", "right")] if len(results) > 1 else []),
    )
    for name, title in ROWS.items():
        power = [] if len(results) < 2 else [f"n^{grown:g}" if (grown := growth(results, name)) is not None else "–"]
        table.add_row(title, *(cell(getattr(scaled, name)) for scaled in results), *power)
        if name == "leaders":
            table.add_row("  part of it: until the node counts as dead", *(f"{s.detected_s:.2f}" for s in results))
        if name == "controller":
            table.add_row(
                "  part of it: until another controller is active", *(f"{s.controller_s:.2f}" for s in results)
            )
    table.add_row("memory of a node per partition", *(f"{s.kib_per_partition:.1f} KiB" for s in results))
    table.add_row("open files of a node", *(f"{s.open_files:,}" for s in results))
    table.add_row("processor use of an idle node", *(f"{s.idle_percent:.2f} %" for s in results))
    return table


def cell(step: Step) -> str:
    return f"{step.seconds:.2f} ({step.cpu_s:.2f}; {step.deaf_s:.2f})"
