"""When does an unclean election lose nothing? Only the loss ledger asks: nobody is elected by it, or is not.

A replica is whole if its log has everything that it had when it was in sync last, and since
(`replica/hosting/wholeness.py`). Whoever was in the ISR or eligible has all that was committed, and while LastKnownElr
has members, nothing more is. So one of these that is whole has it still. Of two logs the one with the higher (last
written epoch, end offset) begins with what is committed in the other, and so has it too:

  - if the epochs are equal, both are beginnings of one leader's log;
  - if its own is later, the leader of that epoch had all that had been committed before, or its election is in the
    ledger; and in that epoch nothing was committed, or the other log would have some of it.

One that is whole would do. All of them must be, and the elected one too, so that no single wrong word hides a loss.
"""

from collections.abc import Mapping

from strandline.base.ids import NodeId
from strandline.controller.partitions.inquiries import Answer
from strandline.metadata.image import Partition


def loses_nothing(partition: Partition, elected: NodeId, known: Mapping[NodeId, Answer]) -> bool:
    """`known`: the answers that count, the elected one's among them. Where it is not known who was eligible last, all
    replicas must have answered, for the ISR was among them."""
    assert elected in known
    eligible = (*partition.isr, *partition.elr, *partition.last_known_elr) or partition.replicas
    if not all(node in known and known[node].is_whole for node in (elected, *eligible)):
        return False
    best = known[elected].evidence
    return all(
        answer.evidence.rank <= best.rank and answer.evidence.high_watermark <= best.end_offset
        for answer in known.values()
    )
