"""Recoveries in the model: the controller's own (`controller.partitions.recovery`), with answers and with time that is
up.

Who has the most data is not in the model, so any replica that lives may be the best of those that have answered. The
least that could be enough has answered, and there is no more time: where that is not enough, nothing would be.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from strandline.base.ids import NodeId
from strandline.base.time import after
from strandline.controller.basis import Basis
from strandline.controller.partitions.inquiries import Answer
from strandline.controller.partitions.recovery import Recoveries
from strandline.metadata.losses import Evidence
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.strategy import Strategy
from strandline.sim.model.state import AT, BROKER_EPOCH, LEADER_EPOCH, State

OPERATOR = "an operator"
NOBODY_HEARD = ()  # of whom an answer could still be expected


def recovered(state: State, best: int, basis: Basis) -> Sequence[PartitionChangeRecord]:
    """A managed recovery, in which all have answered who were eligible last, and `best` has the most data."""
    recoveries = Recoveries("")
    recoveries.begin(basis.image)
    recoveries.advance(basis, NOBODY_HEARD)
    recoveries.answers[AT] = {
        NodeId(n): answer(n, 9 + (n == best))
        for n in state.replicas
        if state.lives(n) and n in (best, *state.last_known)
    }
    later = replace(basis, now=after(basis.now, basis.config.recovery_timeout_ms))
    changes, _ = recoveries.advance(later, NOBODY_HEARD)
    return changes


def designated(node: int, basis: Basis) -> Sequence[PartitionChangeRecord]:
    """An operator designates a leader, and it has answered."""
    recoveries = Recoveries("")
    recoveries.begin(basis.image)
    recoveries.begin_manual(AT, Strategy.NONE, NodeId(node), OPERATOR, basis.now)
    recoveries.answers[AT] = {NodeId(node): answer(node, 10)}
    changes, _ = recoveries.advance(basis, NOBODY_HEARD)
    return changes


def answer(node: int, end_offset: int) -> Answer:
    return Answer(BROKER_EPOCH + node, LEADER_EPOCH, Evidence(LEADER_EPOCH - 1, end_offset, 5))
