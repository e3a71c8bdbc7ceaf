"""Setups of the model that tests explore: small enough for a second or a few."""

from msgspec.structs import replace

from strandline.controller.partition import plan_change
from strandline.metadata.records import PartitionChangeRecord
from strandline.sim.model import Setup, explore
from strandline.sim.model.exploration import Planner
from strandline.sim.model.setup import NONE

Change = PartitionChangeRecord | None

SMALL = Setup(shutdown=False, unregister=False, reassign=False)
MANAGED = replace(SMALL, managed=True, by_hand=False)
CLEAN = replace(SMALL, strategies=(NONE,), by_hand=False)  # nobody is ever elected uncleanly
PLAIN = replace(SMALL, elr=False)
GIVEN_UP = replace(CLEAN, shutdown=True, unregister=True)
REASSIGNED = replace(CLEAN, reassign=True)
STORED = replace(CLEAN, directories=True, symmetry=True)
FOUR = replace(CLEAN, brokers=4, min_isr=3, symmetry=True)


def transcript_of(setup: Setup, planner: Planner = plan_change) -> list[str]:
    found = explore(setup, planner=planner).counterexample
    assert found is not None, "nothing was noticed"
    return found
