"""A campaign from folder to summary, whoever runs its blocks."""

from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from time import sleep

import pytest
from msgspec import structs
from rich.console import Console

from strandline_spark import progress
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.simulate import store, watch
from strandline_spark.jobs.simulate.block import Written
from strandline_spark.jobs.simulate.code import code_version
from strandline_spark.jobs.simulate.definition import AGAIN, Campaign, Task, sampled
from strandline_spark.jobs.simulate.engine import on_this_machine, run_campaign, summary_of
from strandline_spark.jobs.simulate.seed_row import SeedRow, did_the_same

CAMPAIGN = Campaign("code", again_per_10000=2000)


class Quick:
    """Runs nothing: every seed is ok but those that it is told of."""

    def __init__(self, *bad: int, differing: int = -1, last: int = 1 << 30) -> None:
        self.bad = bad
        self.differing = differing
        self.last = last  # then it is killed
        self.ran: list[tuple[str, int]] = []

    def __call__(self, tasks: Sequence[Task], folder: Path) -> Iterator[Written]:
        for task in tasks:
            block = task.block
            if block.first > self.last:
                raise KeyboardInterrupt
            seeds = list(range(block.first, block.last + 1))
            if block.run == AGAIN:
                seeds = sampled(seeds, task.campaign.again_per_10000)
            self.ran += [(block.run, seed) for seed in seeds]
            rows = [self.row(task, seed) for seed in seeds]
            store.write_rows(folder, block, rows)
            yield Written(block.run, block.first, block.last, len(rows), 0, 0)

    def row(self, task: Task, seed: int) -> SeedRow:
        is_other = task.block.run == AGAIN and seed == self.differing
        row = SeedRow(
            seed, task.block.run, "ok", digest="other" if is_other else f"d{seed}", ms=seed, faults={"kill": 2}
        )
        return structs.replace(row, verdict="failed", check="a law\nmore") if seed in self.bad else row


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    first = Quick(last=5)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(CAMPAIGN, range(1, 11), tmp_path, first, 2)
    assert [seed for _, seed in first.ran] == [1, 2, 3, 4, 5]
    so_far = summary_of(tmp_path, CAMPAIGN, range(1, 11))
    assert (so_far.seeds, so_far.is_complete, so_far.status) == (5, False, 3)
    second = Quick()
    done = run_campaign(CAMPAIGN, range(1, 11), tmp_path, second, 2)
    assert [seed for run, seed in second.ran if run == "first"] == [6, 7, 8, 9, 10]
    assert (done.seeds, done.ok, done.is_complete, done.status) == (10, 10, True, 0)
    third = Quick()
    assert run_campaign(CAMPAIGN, range(1, 11), tmp_path, third, 2) == done
    assert third.ran == []


def test_a_campaign_without_its_second_runs_is_not_complete(tmp_path: Path) -> None:
    class FirstOnly(Quick):
        def __call__(self, tasks: Sequence[Task], folder: Path) -> Iterator[Written]:
            yield from super().__call__([task for task in tasks if task.block.run != AGAIN], folder)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_campaign(CAMPAIGN, range(1, 11), tmp_path, FirstOnly(), 2)
    so_far = summary_of(tmp_path, CAMPAIGN, range(1, 11))
    assert (so_far.ok, so_far.again, so_far.status) == (10, 0, 3)
    done = run_campaign(CAMPAIGN, range(1, 11), tmp_path, Quick(), 2)
    assert done.again > 0
    assert done.status == 0


def test_more_seeds_join_those_that_are_there(tmp_path: Path) -> None:
    run_campaign(CAMPAIGN, range(1, 4), tmp_path, Quick(), 2)
    more = Quick()
    summary = run_campaign(CAMPAIGN, range(1, 7), tmp_path, more, 5)
    assert [seed for run, seed in more.ran if run == "first"] == [4, 5, 6]
    assert summary.seeds == 6
    assert summary_of(tmp_path, CAMPAIGN, range(2, 4)).seeds == 2


def test_failures_and_seeds_that_differ_are_reported_with_their_commands(tmp_path: Path) -> None:
    differing = sampled(list(range(10)), 2000)[0]
    summary = run_campaign(CAMPAIGN, range(10), tmp_path, Quick(4, differing=differing), 2)
    assert [(f.seed, f.verdict, f.check) for f in summary.failures] == [(4, "failed", "a law")]
    assert [(d.seed, d.digest, d.other) for d in summary.differences] == [(differing, f"d{differing}", "other")]
    assert summary.differences[0].replay == f"strandline sim --seeds {differing}..{differing} --twice"
    assert summary.again == len(sampled(list(range(10)), 2000))
    assert summary.status == 2
    assert run_campaign(CAMPAIGN, range(10), tmp_path, Quick(), 2).status == 2, "from the rows that are there"


def test_the_summary_names_the_kinds_of_faults_that_no_seed_met(tmp_path: Path) -> None:
    summary = run_campaign(CAMPAIGN, range(3), tmp_path, Quick(), 2)
    kinds = {row.kind: row for row in summary.coverage}
    assert (kinds["kill"].seeds, kinds["kill"].strikes) == (3, 6)
    assert kinds["last replica"].strikes == 0
    assert {row.drawn for row in summary.coverage} == {"all", "with moves", "with ELR"}


def test_a_folder_that_the_workers_do_not_share_is_noticed(tmp_path: Path) -> None:
    def elsewhere(tasks: Sequence[Task], folder: Path) -> list[Written]:
        return [Written(task.block.run, task.block.first, task.block.last, 1, 0, 0) for task in tasks]

    with pytest.raises(StrandlineError, match=r"blocks were written .* and are not there"):
        run_campaign(CAMPAIGN, range(3), tmp_path, elsewhere, 2)


def test_runs_are_compared_but_for_where_and_how_long() -> None:
    row = SeedRow(1, "first", "ok", digest="d", ms=1, place="a:1", events=3)
    again = structs.replace(row, run="again", ms=2, place="b:2")
    assert did_the_same(row, again)
    assert not did_the_same(row, structs.replace(again, events=4))
    assert not did_the_same(row, structs.replace(again, verdict="failed"))
    assert did_the_same(row, structs.replace(again, verdict="timed out", digest="")), "that proves nothing"


def test_processes_of_this_machine_run_a_campaign(tmp_path: Path) -> None:
    campaign = Campaign(code_version())
    summary = run_campaign(campaign, range(40, 42), tmp_path, on_this_machine(2), 1)
    assert (summary.seeds, summary.ok, summary.again, summary.differences) == (2, 2, 1, ())
    rows = [row for block in store.done(tmp_path) for row in store.rows_in(tmp_path, block)]
    assert len({row.place for row in rows}) == 3


def test_a_bar_reports_what_is_done_and_what_failed(tmp_path: Path) -> None:
    run_campaign(CAMPAIGN, range(2), tmp_path, Quick(), 2)
    seen = watch.Watch(tmp_path, range(8))
    assert (seen.done, seen.ran) == (2, 0)
    run_campaign(CAMPAIGN, range(6), tmp_path, Quick(3), 2)
    seen.look()
    assert (seen.done, seen.failed) == (6, 1)
    assert seen.ran >= 4
    screen = StringIO()
    with watch.watched(tmp_path, range(8), Console(file=screen, force_terminal=True, width=120)):
        sleep(4 * progress.EVERY_S)
    assert "6/8" in screen.getvalue()
    assert "1 failed" in screen.getvalue()
