"""Seeds that once found a bug, and a few that never did."""

from pathlib import Path

import pytest

from strandline.sim.run import run_seed

KNOWN = [
    int(line.split("|")[0])
    for line in Path(__file__).with_name("seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("seed", [*KNOWN, *range(5000, 5010)])
def test_a_seed_breaks_no_law(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
    assert outcome.operations > 50
