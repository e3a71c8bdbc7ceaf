"""Every planted bug that the model is said to find is found, on two brokers already, and by the law that it breaks."""

import subprocess
import sys

import pytest
from msgspec.structs import replace

from strandline.sim.model import Setup, explore
from strandline.sim.planted import PLANTED
from strandline.sim.planted.planted import MODEL

TWO = Setup(brokers=2, min_isr=2, shutdown=False, unregister=False, reassign=False)
REASSIGNED = replace(TWO, reassign=True, fewest=1)
REASSIGNED_WITHOUT_ELR = replace(REASSIGNED, min_isr=1, elr=False)

MAY_LACK = "may lack committed records, and could be elected as if nothing were missing"
SHARED = "ISR, ELR and last known ELR share a member"
FOUND: dict[str, tuple[Setup, str]] = {
    "unclean-stop-unnoticed": (TWO, f"broker 1 {MAY_LACK}"),
    "lost-tail-stays-eligible": (TWO, f"broker 1 {MAY_LACK}"),
    "fenced-eligible-replica-elected": (TWO, "the leader is not active"),
    "dead-broker-elected-as-last-resort": (TWO, "RECOVERING without an unclean election"),
    "eligible-while-isr-suffices": (TWO, f"broker 1 {MAY_LACK}"),
    "in-sync-and-eligible": (TWO, SHARED),
    "eligible-forgotten": (TWO, "ISR, ELR and last known ELR have fewer than 2 members together"),
    "lost-tail-not-remembered": (TWO, "ISR, ELR and last known ELR have fewer than 2 members together"),
    "eligible-after-unclean-election": (TWO, f"broker 1 {MAY_LACK}"),
    "elected-eligible-stays-eligible": (TWO, SHARED),
    "unclean-election-unsaid": (
        TWO,
        "broker 2 may lack committed records, and was elected without being RECOVERING",
    ),
    "min-isr-change-begins-no-epoch": (TWO, f"broker 2 {MAY_LACK}"),
    "clearing-forgets-the-last-eligible": (TWO, "ISR, ELR and last known ELR have fewer than 1 members together"),
    "reassignment-ends-uncleanly": (
        REASSIGNED_WITHOUT_ELR,
        "a reassignment ended with an added replica out of sync",
    ),
    "reassignment-ends-thin": (REASSIGNED, "a reassignment ended with an ISR of 1, below min ISR 2"),
    "reassignment-end-overtakes-metadata": (REASSIGNED, "the leader epoch grew by 0, and should by 1"),
}

PROGRAM = """
from strandline.sim.planted import install
install({name!r})
from strandline.sim.model import Setup, explore
print(*explore({setup}).counterexample or ["nothing was noticed"], sep="\\n")
"""


def test_every_bug_for_the_model_is_here() -> None:
    assert set(FOUND) == {name for name, planted in PLANTED.items() if planted.found_by == MODEL}


@pytest.mark.parametrize("name", FOUND)
def test_it_is_found(name: str) -> None:
    """In a process of its own: a module is changed before it is imported."""
    setup, why = FOUND[name]
    program = PROGRAM.format(name=name, setup=setup)
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1:] == [f"wrong: {why}"], done.stdout + done.stderr


@pytest.mark.parametrize("setup", [TWO, REASSIGNED, REASSIGNED_WITHOUT_ELR])
def test_nothing_is_found_where_no_bug_is(setup: Setup) -> None:
    found = explore(setup).counterexample
    assert found is None, "\n".join(found or ())
