"""What must hold in every state, and of every transition. Each law is a function that says what is wrong, or None.

No committed record is lost without an unclean election. The model has no records; it knows who certainly holds all that
was committed (`holders`), supposing the worst:
  - whenever a leader's ISR is large enough it commits at once, and then only the ISR has everything. Large enough is
    what the leader takes for it: when a proposal of its own is answered, it may not have heard of a later min ISR;
  - so of the others only the ELR is believed to have everything: since it left the ISR nothing was committed;
  - a broker that a leader proposes for the ISR has caught up (the leader promises that, and other tests hold it to it);
  - a broker that starts uncleanly, or is given up, has lost its tail;
  - after an unclean election the leader's log is the log, and the loss is on record: RECOVERING.
Every member of the ISR and of the ELR must be a holder: any of them may be elected next, and called clean.
"""

from typing import Any

from strandline.base.ids import NodeId
from strandline.metadata.image import RECOVERED, RECOVERING
from strandline.sim.model.electing import ELECTING, naming, why_last_leader_wrong, why_still_leaderless
from strandline.sim.model.events import LOSSES, MOVES, PLACES, REPORTS, STARTS, Kind
from strandline.sim.model.ghosts import holders, unclean_leader
from strandline.sim.model.requests import StaleProposal
from strandline.sim.model.setup import Setup
from strandline.sim.model.state import LEADER_EPOCH, NEXT_OFFSET, NO_ONE, PARTITION_EPOCH, UNDECIDED, State
from strandline.sim.model.step import Step

# --- of a transition


def why_not_silent(step: Step) -> str | None:
    """Nothing is emitted when nothing changes, and nothing at all for a proposal of the past."""
    if step.event.kind is Kind.STALE and step.records:
        assert isinstance(step.event.how, StaleProposal)
        return f"a proposal {step.event.how.value} was accepted"
    if not step.is_changed or step.event.kind in (Kind.REORDER, *PLACES, *REPORTS) or has_renewed_epoch(step):
        return None  # Where a replica lies is written, too, and what it lost: no part of the shape.
    if shape(step.old) == shape(step.new):
        return "the partition was written although nothing changes"
    return None


def why_rewritten(step: Step) -> str | None:
    """A set is not written for its order."""
    if step.event.kind is Kind.REORDER:
        return None
    old = step.old
    for change in step.changes:
        for name, was, now in (
            ("ISR", old.isr, change.isr),
            ("ELR", old.elr, change.eligible_leader_replicas),
            ("last known ELR", old.last_known, change.last_known_elr),
        ):
            if now is not None and sorted(now) == sorted(was):
                return f"the {name} was written although it stays"
    return None


def why_moved_with_effect(step: Step) -> str | None:
    """A replica that lies in another directory, and is alive there as it was, changes nothing else (T9)."""
    old, new = step.old, step.new
    if step.event.kind is not Kind.MOVED or old.leader < 0 or old.adding or old.removing:
        return None
    return None if shape(old) == shape(new) else "a replica moved to another directory, and more was changed than that"


def has_renewed_epoch(step: Step) -> bool:
    """With ELR another effective min ISR is reason enough to begin a partition epoch."""
    is_other = step.old.effective_min_isr != step.new.effective_min_isr
    return step.setup.elr and step.event.kind is Kind.MIN_ISR and is_other


def shape(state: State) -> tuple[Any, ...]:
    """A partition, where the order of sets means nothing; that of replicas means who leads."""
    sets = tuple(tuple(sorted(s)) for s in (state.isr, state.elr, state.last_known, state.adding, state.removing))
    return (sets, state.replicas, state.leader, state.recovery)


def why_epochs_wrong(step: Step) -> str | None:
    """The partition epoch grows by one with a change. The leader epoch grows by one with a change of the leader, and if
    a led partition loses a replica, and if min ISR counts more of them, and never otherwise: not when the ISR shrinks,
    not with another configuration. And if a broker says that its replica lost records."""
    old, new, partition = step.old, step.new, step.partition
    grown = partition.partition_epoch - PARTITION_EPOCH
    if grown != step.is_changed:
        return f"the partition epoch grew by {grown}"
    opened = partition.leader_epoch - LEADER_EPOCH
    counts_more = new.effective_min_isr > old.effective(new.min_isr)
    has_lost = not set(old.replicas) <= set(new.replicas)
    has_reported = step.event.kind in REPORTS and step.is_changed
    must_open = new.leader != old.leader or (new.leader > 0 and (has_lost or counts_more or has_reported))
    if step.event.kind is not Kind.REORDER and opened != must_open:
        return f"the leader epoch grew by {opened}, and should by {int(must_open)}"
    if step.event.kind in STARTS:
        epoch = step.image.brokers[NodeId(step.event.node)].epoch
        if epoch < NEXT_OFFSET:
            return f"broker {step.event.node} registered anew with the old epoch {epoch}"
    return None


def why_lost(step: Step) -> str | None:
    """Elections say truly whether they are clean, and whoever is believed to hold everything does."""
    old, new = step.old, step.new
    holding = holders(step.setup, step.event, old, new)
    turned = new.recovery == RECOVERING and (
        old.recovery != RECOVERING or any(change.leader_recovery_state == RECOVERING for change in step.changes)
    )
    is_unclean = unclean_leader(step.setup, step.event, old, new) != NO_ONE
    if turned and not is_unclean:
        return "RECOVERING without an unclean election"
    if is_unclean:
        if new.recovery != RECOVERING:
            return f"broker {new.leader} may lack committed records, and was elected without being RECOVERING"
        if new.isr != (new.leader,):
            return "after an unclean election the ISR has other members than the leader"
        holding = {new.leader}
    if old.recovery == RECOVERING and new.recovery == RECOVERED and step.event.kind is not Kind.ALTER:
        return "RECOVERED without the leader having said so"
    known_min = new.known_min if step.event.kind is Kind.ALTER else new.effective_min_isr
    if new.leader > 0 and len(new.isr) >= known_min:
        holding &= set(new.isr)
    lacking = sorted({*new.isr, *new.elr} - holding)
    if lacking:
        return f"{naming(lacking)} may lack committed records, and could be elected as if nothing were missing"
    return None


def why_misremembered(step: Step) -> str | None:
    """The last known ELR: all who lost their tails while they were in sync or eligible, until the ISR is large enough,
    or an unclean election. Another min ISR changes nothing else, with an empty ISR too (L6)."""
    old, new, event = step.old, step.new, step.event
    if not step.setup.elr:
        return None
    known = set(old.last_known)
    if event.kind in LOSSES and event.node in (*old.isr, *old.elr):
        known.add(event.node)
    is_unclean = unclean_leader(step.setup, event, old, new) != NO_ONE
    if len(new.isr) >= new.effective_min_isr or is_unclean:
        known = set()
    known = (known & set(new.replicas)) - set(new.isr) - set(new.elr)
    if known == set(new.last_known):
        return None
    return f"the last known ELR is {naming(new.last_known)}, and should be {naming(known)}"


def why_dropped(step: Step) -> str | None:
    """Another min ISR ends eligibility only where the ISR has it: else nothing is committed without them (KIP-966)."""
    old, new = step.old, step.new
    # And nobody was elected.
    is_about_it = step.event.kind is Kind.MIN_ISR and step.setup.elr and new.leader == old.leader
    if not is_about_it or len(new.isr) >= new.effective_min_isr:
        return None
    gone = set(old.elr) - set(new.elr) - set(new.isr)
    return f"min ISR is {new.effective_min_isr}, and {naming(tuple(sorted(gone)))} eligible no more" if gone else None


def why_endless(step: Step) -> str | None:
    """A reassignment ends at the latest once all its replicas are in sync."""
    old, new, event = step.old, step.new, step.event
    is_whole = event.kind is Kind.ALTER and event.node == RECOVERED and set(event.ids) == set(old.replicas)
    if is_whole and (new.adding or new.removing) and all(old.lives(n) for n in old.replicas):
        return "a reassignment does not end though all its replicas are in sync"
    return None


def why_ended_thin(step: Step) -> str | None:
    """T40: a reassignment ends with all added replicas in sync, and with an ISR that carries the target's min ISR. One
    that is cancelled ends likewise, unless it costs the ISR nobody, or the loss is allowed, and on record."""
    old, new = step.old, step.new
    target, adding = moved(step)
    is_moving = bool(new.adding or new.removing)
    if target is None:
        return "a reassignment began by itself" if is_moving else None
    if is_moving:
        is_whole = set(new.adding) == set(adding) and target <= set(new.replicas)
        return None if is_whole else "a reassignment ended by half"
    if set(new.replicas) != target:
        return "a reassignment ended with other replicas than wanted"
    if not set(adding) <= set(new.isr):
        return "a reassignment ended with an added replica out of sync"
    is_free = step.event.kind in MOVES and (set(old.isr) <= set(new.isr) or new.recovery == RECOVERING)
    if len(new.isr) < new.effective_min_isr and not is_free:
        return f"a reassignment ended with an ISR of {len(new.isr)}, below min ISR {new.effective_min_isr}"
    return None


def moved(step: Step) -> tuple[set[int] | None, tuple[int, ...]]:
    """The replicas that an operator wants by now, and those of them that are new. None: as they are."""
    old, event = step.old, step.event
    original = set(old.replicas) - set(old.adding)
    if event.kind is Kind.CANCEL:
        return original, ()
    if event.kind is Kind.REASSIGN:
        return set(event.ids), tuple(n for n in event.ids if n not in original)
    if old.adding or old.removing:
        return set(old.replicas) - set(old.removing), old.adding
    return None, ()


# --- of a state


def why_misshapen(setup: Setup, state: State) -> str | None:
    """ISR and ELR are disjoint sets of replicas; the ELR is empty unless the ISR is too small."""
    replicas, isr, elr, known = set(state.replicas), set(state.isr), set(state.elr), set(state.last_known)
    for name, members, ids in (
        ("ISR", isr, state.isr),
        ("ELR", elr, state.elr),
        ("last known", known, state.last_known),
    ):
        if not members <= replicas:
            return f"the {name} has members that are no replicas"
        if len(members) != len(ids):
            return f"the {name} has a member twice"
    if isr & elr or isr & known or elr & known:
        return "ISR, ELR and last known ELR share a member"
    if not setup.elr:
        if elr or known:
            return "there is an ELR although the feature is off"
        return "the ISR is empty" if not isr else None
    if len(isr) >= state.effective_min_isr and (elr or known):
        return "the ISR is large enough, and the ELR not empty"
    return why_too_few(state)


def why_too_few(state: State) -> str | None:
    """KIP-966: |ISR| + |ELR| + lossy shutdowns ≥ min ISR, so with at most min ISR − 1 of these somebody is electable,
    and has everything. And MinIsrRecoveryQuorum: who lost its tail is remembered. See `ghosts` for how long."""
    minimum, electable = state.effective_min_isr, len(state.isr) + len(state.elr)
    if state.lossy != UNDECIDED and electable + state.lossy < minimum:
        losses = f"{state.lossy} lossy shutdowns"
        return f"ISR and ELR have {electable} members after {losses}, and min ISR is {minimum}"
    enough = minimum if state.lossy != UNDECIDED and state.remembers else 1
    if electable + len(state.last_known) < enough:
        return f"ISR, ELR and last known ELR have fewer than {enough} members together"
    return None


def why_badly_led(setup: Setup, state: State) -> str | None:
    """A leader lives and is in the ISR; there is one if a member may lead; the ISR's members live."""
    leader = state.leader
    living = [n for n in state.isr if state.lives(n)]
    if leader > 0:
        if leader not in state.isr:
            return "the leader is not in the ISR"
        if not state.lives(leader):
            return "the leader is not active"
    elif living or (not state.isr and any(state.lives(n) for n in state.elr)):
        return "there is no leader although a member of the ISR or ELR could lead"
    if len(living) < len(state.isr) and (setup.elr or len(state.isr) > 1):
        return "the ISR has a member that is not active"
    return None


TRANSITIONS = (
    why_not_silent,
    why_rewritten,
    why_moved_with_effect,
    why_lost,
    *ELECTING,
    why_misremembered,
    why_dropped,
    why_ended_thin,
    why_endless,
)


def why_idle(step: Step) -> str | None:
    """Why is it wrong that nothing was written?"""
    return why_still_leaderless(step) or why_endless(step)


def why_wrong(step: Step) -> str | None:
    """Why is a transition, or the state that it leads to, not allowed? None means it is."""
    if step.is_changed:
        try:
            step.image.check()
        except AssertionError:
            structural = why_misshapen(step.setup, step.new) or why_badly_led(step.setup, step.new)
            structural = structural or why_last_leader_wrong(step)
            return structural or "the image's own check fails: an index is not what its partitions say"
    for law in TRANSITIONS:
        why = law(step)
        if why is not None:
            return why
    return why_misshapen(step.setup, step.new) or why_badly_led(step.setup, step.new) or why_epochs_wrong(step)
