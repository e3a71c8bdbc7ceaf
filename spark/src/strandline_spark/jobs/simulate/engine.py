"""A campaign from its folder to its summary. Who runs the blocks is given: Spark, or threads of this machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.simulate import store
from strandline_spark.jobs.simulate.block import Written, write_block
from strandline_spark.jobs.simulate.definition import AGAIN, FIRST, Block, Campaign, Task, blocks_left
from strandline_spark.jobs.simulate.summary import Summary, Tally

Engine = Callable[[Sequence[Task], Path], Iterable[Written]]
BLOCK_SEEDS = 20  # a seed takes about a second: so much is lost when a campaign is killed, per process


def run_campaign(campaign: Campaign, seeds: range, folder: Path, engine: Engine, size: int = BLOCK_SEEDS) -> Summary:
    """Run what is left of `seeds`, and add up all of them.

    Raises StrandlineError if the folder has another campaign, or is in use.
    """
    folder = folder.resolve()
    with store.opened(folder, campaign):
        left = blocks_left(seeds, size, campaign.again_per_10000, store.done(folder))
        if left:
            written = list(engine([Task(campaign, block) for block in left], folder))
            check_written(folder, written)
        return summary_of(folder, campaign, seeds)


def check_written(folder: Path, written: Iterable[Written]) -> None:
    there = store.done(folder)
    missing = [row for row in written if Block(FIRST if row.run == FIRST else AGAIN, row.first, row.last) not in there]
    if missing:
        raise StrandlineError(
            f"{len(missing)} blocks were written to {folder} and are not there",
            "name a folder with --out that all machines of the Spark cluster share",
        )


def summary_of(folder: Path, campaign: Campaign, seeds: range) -> Summary:
    """Of what is there of `seeds`; block by block, so that no more than one is in memory."""
    tally = Tally(campaign, seeds)
    there = store.done(folder)
    for run in (AGAIN, FIRST):
        for block in there:
            if block.run == run and block.first < seeds.stop and block.last >= seeds.start:
                for row in store.rows_in(folder, block):
                    tally.take(row)
    is_complete = not blocks_left(seeds, BLOCK_SEEDS, campaign.again_per_10000, there)
    return tally.summary(is_complete=is_complete)


def on_this_machine(jobs: int) -> Engine:
    """Threads, each of which waits for the process of its block."""

    def run(tasks: Sequence[Task], folder: Path) -> Iterator[Written]:
        with ThreadPoolExecutor(jobs) as pool:
            running = [pool.submit(write_block, task, folder) for task in tasks]
            try:
                for future in as_completed(running):
                    yield future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    return run
