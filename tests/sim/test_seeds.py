"""Seeds that once found a bug."""

from pathlib import Path

import pytest

from strandline.sim.runs.plan import read_plan
from strandline.sim.runs.run import run_plan

HERE = Path(__file__).parent
OUR_BUGS, OF_THE_SIMULATOR = (
    [int(line.split("|")[0]) for line in part.splitlines() if line and not line.startswith("#")]
    for part in (HERE / "seeds.txt").read_text().split("# Where the simulator itself was wrong:")
)
# These take four seconds or more, and what they found has a quicker test: of scenarios (2, 2210), of proofs that a file
# of epochs is the partition's (4000066), of cuts in gaps of the cleaner (8000715), of timeouts (21000474), of repairs
# (21001030).
LONG = (*OF_THE_SIMULATOR, 2, 2210, 4000066, 8000715, 21000474, 21001030)
QUICK = [seed for seed in OUR_BUGS if seed not in LONG]


@pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.long) for seed in LONG)])
def test_a_plan_that_once_found_a_bug_finds_none(seed: int) -> None:
    """As it was drawn then: what a seed stands for may change, a plan that was written down does not."""
    outcome = run_plan(read_plan((HERE / "plans" / f"{seed}.json").read_bytes()))
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
    assert outcome.operations > 50
