"""How far long work is, on a terminal's stderr; nothing where nobody looks."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S = 0.3


@contextmanager
def watched(
    title: str,
    look: Callable[[], dict[str, Any]],
    *,
    more: Sequence[ProgressColumn] = (),
    console: Console | None = None,
    **at_first: Any,
) -> Iterator[None]:
    """A bar as long as the block runs. `look` says now and then what `rich.progress` is to show; `at_first` before."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *more, TimeElapsedColumn())
    over = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, **{"total": None, **at_first})

        def follow() -> None:
            while not over.wait(EVERY_S):
                bar.update(task, **look())

        watcher = threading.Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def progress(spark: "SparkSession", title: str) -> AbstractContextManager[None]:
    """A bar over the tasks of the stages that run, as long as the block does."""
    tracker = spark.sparkContext.statusTracker()

    def look() -> dict[str, Any]:
        stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number))]
        total = sum(stage.numTasks for stage in stages)
        return {"completed": sum(stage.numCompletedTasks for stage in stages), "total": total or None}

    return watched(title, look)
