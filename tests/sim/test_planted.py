"""What the simulator is worth: it finds the bugs that are planted into the code."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.planted import PLANTED, Planted

from strandline.sim.runs.campaign import Worker
from strandline.sim.runs.run import RunResult

ROWS = [row for row in PLANTED.values() if row.found_by == "sim"]
WITH_PLAN = list({row.path: row for row in ROWS if row.path is not None}.values())  # one for each plan
JOBS = 2
BROKEN = ("the process that ran this seed died", "the simulator crashed")  # that proves nothing


def is_violation(outcome: RunResult) -> bool:
    return not outcome.is_ok and not outcome.check.startswith(BROKEN)


def hunt(row: Planted) -> RunResult | None:
    """The run that finds it, in a process of its own that has the bug."""
    worker = Worker(f"tests.planted.hunted:{row.name}", plan=row.path, workload=row.workload, secured=row.secured)
    try:
        return next((outcome for seed in row.tries if is_violation(outcome := worker.run(seed))), None)
    finally:
        worker.stop()


@pytest.mark.long  # minutes of processor time
@pytest.mark.timeout(600)
def test_nine_in_ten_planted_bugs_are_found_where_they_were_found_before() -> None:
    """Code that changes may move what a seed meets, so each has a few more to try, and some may be missed."""
    with ThreadPoolExecutor(JOBS) as pool:
        found = dict(zip(ROWS, pool.map(hunt, ROWS), strict=True))
    missed = [row.name for row, outcome in found.items() if outcome is None]
    print("missed:", *missed)
    assert len(found) - len(missed) >= 0.9 * len(found), missed


@pytest.mark.long  # a run for each plan, that proves something about the plan and nothing about the code
@pytest.mark.parametrize("row", WITH_PLAN, ids=[row.name for row in WITH_PLAN])
def test_a_plan_for_a_planted_bug_finds_nothing_without_it(unharmed: Worker, row: Planted) -> None:
    assert row.path is not None
    assert row.seeds is not None
    unharmed.plan = row.path
    outcome = unharmed.run(row.seeds[0])
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])


@pytest.fixture(scope="module")
def unharmed() -> Iterator[Worker]:
    worker = Worker("tests.planted.hunted:")
    yield worker
    worker.stop()


def test_nearly_all_say_where_they_are_found() -> None:
    assert len(ROWS) >= 25
    assert sum(row.seeds is not None for row in ROWS) >= 0.9 * len(ROWS)
