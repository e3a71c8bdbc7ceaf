"""Seeds that once found a bug, and a few that never did."""

from pathlib import Path

import pytest

from strandline.sim.runs.plan import read_plan
from strandline.sim.runs.run import RunResult, run_plan, run_seed

HERE = Path(__file__).parent
OUR_BUGS, OF_THE_SIMULATOR = (
    [int(line.split("|")[0]) for line in part.splitlines() if line and not line.startswith("#")]
    for part in (HERE / "seeds.txt").read_text().split("# Where the simulator itself was wrong:")
)


def hold(outcome: RunResult) -> None:
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
    assert outcome.operations > 50


@pytest.mark.parametrize("seed", [*OUR_BUGS, *(pytest.param(s, marks=pytest.mark.long) for s in OF_THE_SIMULATOR)])
def test_a_plan_that_once_found_a_bug_finds_none(seed: int) -> None:
    """As it was drawn then: what a seed stands for may change, a plan that was written down does not."""
    hold(run_plan(read_plan((HERE / "plans" / f"{seed}.json").read_bytes())))


@pytest.mark.parametrize("seed", range(5000, 5010))
def test_a_seed_breaks_no_law(seed: int) -> None:
    hold(run_seed(seed))
