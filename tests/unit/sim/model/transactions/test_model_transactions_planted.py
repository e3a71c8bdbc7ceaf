"""The model of transactions finds bugs of the coordinator: for each law there is one that breaks it."""

import pytest
from msgspec.structs import replace
from tests.planted.tables import BY_FILE
from tests.unit.sim.model.planted_models import verdict
from tests.unit.sim.model.transactions.transactional import CALM, OLD

from strandline.sim.model.transactions import Setup

pytestmark = pytest.mark.slow  # an exploration for each planted bug

CHECK = "the coordinator's own check fails: "
ONE = Setup(starts=1, transactions=1)

FOUND: dict[str, tuple[Setup, str]] = {
    "appended-counts-as-committed": (ONE, "client 1 is given epoch 0, and no committed record says so"),
    "new-coordinator-loads-what-may-be-lost": (
        replace(ONE, failovers=2, timeouts=0),
        "producer epoch 1 is followed by 0",
    ),
    "new-coordinator-forgets-that-it-is-decided": (ONE, "PrepareCommit is committed, and PrepareAbort follows"),
    "new-coordinator-turns-a-commit": (ONE, "a marker is sent, and no committed decision says so"),
    "new-producer-keeps-the-epoch": (replace(CALM, starts=2), "client 2 is given epoch 0 of client 1"),
    "fenced-producer-gets-the-next-epoch": (
        replace(CALM, starts=2, bumps=1),
        "client 1 is given epoch 1 of client 2",
    ),
    "second-partition-replaces-the-first": (
        ONE,
        "partition 0 has records of transaction 1 of client 1, and is not in its decision",
    ),
    "complete-before-the-markers": (ONE, "transaction 1 of client 1 is complete, and open in partition 0"),
    "refused-marker-is-not-sent-again": (
        replace(CALM, transactions=1, losses=1),
        CHECK + "what is put off is tried again",
    ),
    "late-marker-of-the-same-epoch": (
        replace(CALM, losses=1),
        "a marker of transaction 1 of client 1 ends transaction 2 of client 1",
    ),
    "marker-of-an-older-coordinator": (OLD, "coordinator epoch 1 is followed by 0 in a partition"),
    "older-coordinator-confirms-partitions": (
        OLD,
        "partition 0 has a record of transaction 2 of client 1, and the coordinator does not know of it",
    ),
    "older-coordinator-confirms-an-end": (
        OLD,
        "the abort of transaction 2 of client 1 is acknowledged, and not decided",
    ),
    "kept-without-a-new-epoch": (
        Setup(two_phase=True, transactions=1, failovers=0, timeouts=0),
        CHECK + "what is next is larger",
    ),
    "sent-again-opens-the-end-again": (
        replace(CALM, late=1),
        "transaction 1 of client 1 is ended with epoch 1, and once more with 2",
    ),
}


def test_every_bug_of_the_coordinator_is_here() -> None:
    assert set(FOUND) == {row.name for row in BY_FILE["coordinating"]}


@pytest.mark.parametrize("name", FOUND)
def test_it_is_found(name: str) -> None:
    setup, why = FOUND[name]
    found, text = verdict("strandline.sim.model.transactions", name, setup)
    assert found == [f"wrong: {why}"], text
