"""How far a campaign is, on a terminal: blocks that are done, seeds a second, failures so far. It looks at the folder
alone, so it does not matter who runs the blocks."""

import time
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import TextColumn

from strandline_spark import progress
from strandline_spark.jobs.simulate import store
from strandline_spark.jobs.simulate.definition import FIRST, Block


class Watch:
    """Counts what new files hold, each file once."""

    def __init__(self, folder: Path, seeds: range) -> None:
        self.folder = folder
        self.seeds = seeds
        self.known: dict[Block, None] = {}
        self.done = 0  # of the range, whether they counted or not
        self.failed = 0
        self.ran = 0  # since the watch began
        self.began = time.monotonic()
        self.look()
        self.ran = 0

    def look(self) -> None:
        for block in store.done(self.folder):
            if block in self.known:
                continue
            self.known[block] = None
            count, failed = store.counts_of(self.folder, block)
            self.ran += count
            inside = range(max(block.first, self.seeds.start), min(block.last + 1, self.seeds.stop))
            if block.run == FIRST and inside:
                self.done += len(inside)
                self.failed += failed

    @property
    def rate(self) -> float:
        """Seeds a second, of both runs."""
        return self.ran / max(time.monotonic() - self.began, 0.001)


def watched(folder: Path, seeds: range, console: Console | None = None) -> AbstractContextManager[None]:
    """A bar as long as the block runs; nothing where nobody looks."""

    @cache
    def watch() -> Watch:
        return Watch(folder, seeds)

    def look() -> dict[str, Any]:
        try:
            watch().look()
        except (OSError, ValueError):  # the folder's owner reports what is wrong with it
            return {}
        return {"completed": watch().done, "rate": watch().rate, "failed": watch().failed}

    title = f"seeds {seeds.start}..{seeds.stop - 1}"
    rate = TextColumn("{task.fields[rate]:.1f} seeds/s, {task.fields[failed]} failed")
    return progress.watched(title, look, more=[rate], console=console, total=len(seeds), rate=0.0, failed=0)
