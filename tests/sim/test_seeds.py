"""Seeds that once found a bug, and a few that never did."""

from pathlib import Path

import pytest

from strandline.sim.runs.plan import read_plan
from strandline.sim.runs.run import RunResult, run_plan, run_seed

HERE = Path(__file__).parent
KNOWN = [
    int(line.split("|")[0])
    for line in (HERE / "seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def hold(outcome: RunResult) -> None:
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
    assert outcome.operations > 50


@pytest.mark.parametrize("seed", KNOWN)
def test_a_plan_that_once_found_a_bug_finds_none(seed: int) -> None:
    """As it was drawn then: what a seed stands for may change, a plan that was written down does not."""
    hold(run_plan(read_plan((HERE / "plans" / f"{seed}.json").read_bytes())))


@pytest.mark.parametrize("seed", range(5000, 5010))
def test_a_seed_breaks_no_law(seed: int) -> None:
    hold(run_seed(seed))
