"""The in-sync replicas as the leader holds them: what the controller committed, and at most one change under way.

`isr` is always the committed set and gates the high watermark; `maximal` is the larger of the sets that the controller
may have committed, and the minimum is taken over it (KIP-497, T21). So a refused change has never cost a record:
  - an expansion counts the newcomer before the controller has agreed;
  - a shrink counts the leaver until the controller has agreed.
"""

from strandline.base.ids import BrokerEpoch, NodeId
from strandline.base.value import Value

UNKNOWN_BROKER_EPOCH = BrokerEpoch(-1)

Proposal = tuple[tuple[NodeId, BrokerEpoch], ...]


class Committed(Value, frozen=True):
    isr: tuple[NodeId, ...]

    @property
    def maximal(self) -> tuple[NodeId, ...]:
        return self.isr


class PendingExpand(Value, frozen=True):
    isr: tuple[NodeId, ...]
    maximal: tuple[NodeId, ...]
    proposal: Proposal


class PendingShrink(Value, frozen=True):
    isr: tuple[NodeId, ...]
    proposal: Proposal

    @property
    def maximal(self) -> tuple[NodeId, ...]:
        return self.isr


Pending = PendingExpand | PendingShrink
IsrState = Committed | PendingExpand | PendingShrink
