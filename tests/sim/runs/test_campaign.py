"""Many seeds on several processes, and what happens when something is wrong with them."""

from strandline.sim.runs.campaign import alike, outcomes
from strandline.sim.runs.run import RunResult, run_seed

SEEDS = (40, 49)  # quick ones
FINE = RunResult(7, "", "", "d1", 1, 2, 3, 0, ())


def test_a_seed_does_the_same_in_fresh_processes_that_hash_differently() -> None:
    found = sorted(outcomes(SEEDS, 1, twice=True), key=lambda outcome: outcome.seed)
    assert [(outcome.seed, outcome.check) for outcome in found] == [(seed, "") for seed in SEEDS]
    assert found[0].digest == run_seed(SEEDS[0]).digest
    assert len({outcome.digest for outcome in found}) == len(found)


def test_runs_of_one_seed_that_differ_are_a_failure() -> None:
    other = RunResult(7, "", "", "d2", 1, 2, 3, 0, ())
    assert alike([FINE, FINE]).is_ok
    assert "not deterministic: digest d1, and d2" in alike([FINE, other]).check


def test_what_failed_is_reported_before_what_differs() -> None:
    failed = RunResult(7, "a law", "why", "d2", 1, 2, 3, 0, ())
    assert alike([failed, FINE]).check == "a law"


def test_a_process_that_dies_fails_its_seed_and_no_other() -> None:
    """A planted bug that does not exist ends the process before it runs anything."""
    [outcome] = outcomes(range(1, 2), 1, prepare="tests.planted:no-such-bug")
    assert outcome.check == "the process that ran this seed died"


def test_campaigns_can_be_left_before_their_end() -> None:
    running = outcomes(range(SEEDS[0], SEEDS[0] + 100), 1)
    assert next(running).seed == SEEDS[0]
    running.close()
