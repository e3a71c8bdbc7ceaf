"""How far Spark's work is, on a terminal's stderr; nothing where nobody looks."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S = 0.3


@contextmanager
def progress(spark: "SparkSession", title: str) -> Iterator[None]:
    """A bar over the tasks of the stages that run, as long as the block does."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    over = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        watcher = threading.Thread(target=watch, args=(spark, bar, task, over), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def watch(spark: "SparkSession", bar: Progress, task: TaskID, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(EVERY_S):
        stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number))]
        total = sum(stage.numTasks for stage in stages)
        done = sum(stage.numCompletedTasks for stage in stages)
        bar.update(task, completed=done, total=total or None)
