"""Every planted bug that the model is said to find is found, mostly on two brokers, and by the law that it breaks."""

import pytest
from msgspec.structs import replace
from tests.planted import PLANTED
from tests.planted.planted import MODEL
from tests.planted.tables import BY_FILE
from tests.unit.sim.model.planted_models import verdict

from strandline.sim.model import Setup, explore
from strandline.sim.model.setup import NONE

pytestmark = pytest.mark.slow  # an exploration for each planted bug

TWO = Setup(brokers=2, min_isr=2, shutdown=False, unregister=False, reassign=False)
TORN = replace(TWO, torn=True)
GIVEN_UP = replace(TWO, unregister=True)
RECOVERED = replace(TWO, managed=True, by_hand=False)
STORED = replace(TWO, directories=True, strategies=(NONE,), by_hand=False)
REASSIGNED = replace(TWO, reassign=True, fewest=1)
ADDED = replace(TWO, brokers=3, replicas=1, reassign=True, several=True, fewest=1, strategies=(NONE,), symmetry=True)
SEVERAL = replace(TWO, brokers=4, replicas=2, reassign=True, several=True, strategies=(NONE,), symmetry=True)
REASSIGNED_WITHOUT_ELR = replace(REASSIGNED, min_isr=1, elr=False)

MAY_LACK = "may lack committed records, and could be elected as if nothing were missing"
SHARED = "ISR, ELR and last known ELR share a member"
FORGOTTEN = "the last known ELR is nobody, and should be"
FOUND: dict[str, tuple[Setup, str]] = {
    "unclean-stop-unnoticed": (TWO, f"broker 1 {MAY_LACK}"),
    "lost-tail-stays-eligible": (TWO, f"broker 1 {MAY_LACK}"),
    "torn-replica-stays-eligible": (TORN, f"broker 1 {MAY_LACK}"),
    "let-in-before-its-losses-are-heard": (TORN, f"broker 1 {MAY_LACK}"),
    "torn-leader-leads-on-in-its-epoch": (TORN, "the leader epoch grew by 0, and should by 1"),
    "fenced-eligible-replica-elected": (TWO, "the leader is not active"),
    "dead-broker-elected-as-last-resort": (TWO, "RECOVERING without an unclean election"),
    "eligible-while-isr-suffices": (TWO, f"broker 1 {MAY_LACK}"),
    "in-sync-and-eligible": (TWO, SHARED),
    "eligible-forgotten": (TWO, f"{FORGOTTEN} broker 1"),
    "lost-tail-not-remembered": (TWO, f"{FORGOTTEN} broker 1"),
    "eligible-after-unclean-election": (TWO, f"broker 1 {MAY_LACK}"),
    "elected-eligible-stays-eligible": (TWO, SHARED),
    "unclean-election-unsaid": (TWO, "broker 2 may lack committed records, and was elected without being RECOVERING"),
    "min-isr-change-begins-no-epoch": (TWO, f"broker 1 {MAY_LACK}"),
    "clearing-forgets-the-last-eligible": (TWO, "min ISR is 1, and broker 1 and broker 2 eligible no more"),
    "eligible-by-another-min-isr": (TWO, f"broker 1 {MAY_LACK}"),
    "unregistered-broker-stays-eligible": (GIVEN_UP, f"broker 1 {MAY_LACK}"),
    "last-known-leader-forgotten": (TWO, "the last known leader is nobody, and broker 2 led last"),
    "last-known-leader-elected-dead": (TWO, "RECOVERING without an unclean election"),
    "last-known-leader-elected-unasked": (TWO, "broker 2 was elected uncleanly, which None does not allow"),
    "last-known-leader-after-a-new-one": (TWO, "there is a last known leader while somebody leads"),
    "unclean-election-not-in-the-ledger": (
        TWO,
        "broker 2 was elected uncleanly, and the loss ledger has 0 entries of it",
    ),
    "preferred-replica-elected-out-of-sync": (TWO, "the leader is not in the ISR"),
    "recovery-without-all-who-were-eligible": (
        RECOVERED,
        "broker 1 was elected by a recovery (Balanced) that may not end yet",
    ),
    "added-replica-elected-before-others": (
        replace(REASSIGNED, brokers=3, replicas=2, by_hand=False),
        "broker 3 was elected, and is only being added, while others live",
    ),
    "added-replica-recovered": (
        replace(REASSIGNED, managed=True, by_hand=False),
        "broker 1 was elected by a recovery, and is only being added",
    ),
    "nobody-elected-anew": (REASSIGNED, "the leader epoch grew by 1, and should by 0"),
    "eligible-in-an-empty-directory": (STORED, f"broker 1 {MAY_LACK}"),
    "move-without-elr": (STORED, "a replica moved to another directory, and more was changed than that"),
    "removed-replica-stays-eligible": (SEVERAL, "the ELR has members that are no replicas"),
    "reassignment-ends-uncleanly": (REASSIGNED_WITHOUT_ELR, "a reassignment ended with an added replica out of sync"),
    "reassignment-ends-thin": (REASSIGNED, "a reassignment ended with an ISR of 1, below min ISR 2"),
    "min-isr-by-replicas-to-be": (ADDED, f"broker 1 {MAY_LACK}"),
    "reassignment-end-overtakes-metadata": (REASSIGNED, "the leader epoch grew by 0, and should by 1"),
}


def test_every_bug_for_the_model_is_here() -> None:
    """Of partitions; `test_model_transactions_planted` has those of transactions."""
    found_by_a_model = {name for name, planted in PLANTED.items() if planted.found_by == MODEL}
    assert set(FOUND) == found_by_a_model - {row.name for row in BY_FILE["coordinating"]}


@pytest.mark.parametrize("name", FOUND)
def test_it_is_found(name: str) -> None:
    setup, why = FOUND[name]
    found, text = verdict("strandline.sim.model", name, setup)
    assert found == [f"wrong: {why}"], text


@pytest.mark.parametrize("setup", [TWO, GIVEN_UP, STORED, REASSIGNED, REASSIGNED_WITHOUT_ELR])
def test_nothing_is_found_where_no_bug_is(setup: Setup) -> None:
    found = explore(setup).counterexample
    assert found is None, "\n".join(found or ())
