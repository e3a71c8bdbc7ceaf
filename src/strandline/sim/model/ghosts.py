"""Who has everything, and what the model counts though the controller does not.

Between events of a partition everything that was committed is with the ISR and the ELR (`laws`); `holders` says with
whom it is after an event, before anybody is elected. The ghosts are about the time since the ISR was last as large as
min ISR demands. From that moment on nothing is committed, and min ISR replicas at least have all that was. So while
fewer than that have lost their tails, somebody who has everything is left, in the ISR or the ELR; and while all who
lost theirs are known, a recovery knows whom to ask (MinIsrRecoveryQuorum). Both hold until one of these, and each of
them really ends it:
  - min.insync.replicas changes: who was eligible was so by the old one;
  - an unclean election: whatever the others hold, the leader's log is the log;
  - a reassignment takes away a replica of the last known ELR: it is not asked any more. (Of the second alone.)
No exception are a broker that is unregistered (it has lost everything, and is remembered as long as it has a replica)
and a reassignment by which min ISR counts more replicas, or fewer.
"""

from strandline.sim.model.events import LOSSES, Event, Kind
from strandline.sim.model.setup import Setup
from strandline.sim.model.state import NO_ONE, UNDECIDED, State


def holders(setup: Setup, event: Event, old: State, new: State) -> set[int]:
    """Who holds all that was committed, before the election; the old state's ISR and ELR all did."""
    holding = {*old.isr, *old.elr}
    if event.kind in LOSSES:
        if not is_last_standing(setup, event, old, new):
            holding.discard(event.node)
    elif event.kind is Kind.ALTER and set(new.isr) - set(old.isr):
        holding |= set(event.ids)
    return holding


def is_last_standing(setup: Setup, event: Event, old: State, new: State) -> bool:
    """Without ELR the last member stays in the ISR, whatever became of its log. The model looks away, unless asked."""
    return not setup.elr and not setup.last_standing and old.isr == new.isr == (event.node,)


def unclean_leader(setup: Setup, event: Event, old: State, new: State) -> int:
    """Who begins to lead and may lack committed records, or nobody."""
    begins_anew = event == Event(Kind.FINDS, new.leader)  # after what it lost
    goes_on = new.leader == old.leader and not begins_anew
    if new.leader <= 0 or goes_on or new.leader in holders(setup, event, old, new):
        return NO_ONE
    return new.leader


def ghosts(setup: Setup, event: Event, old: State, new: State) -> tuple[int, bool]:
    """`lossy` and `remembers` after an event."""
    minimum = new.effective_min_isr
    if len(new.isr) >= minimum:
        return 0, True
    if old.lossy == UNDECIDED or event.kind is Kind.MIN_ISR or unclean_leader(setup, event, old, new) != NO_ONE:
        return UNDECIDED, True
    is_loss = event.kind in LOSSES and event.node in (*old.isr, *old.elr)
    remembers = old.remembers and set(old.last_known) <= set(new.replicas)
    return min(old.lossy + is_loss, minimum), remembers
