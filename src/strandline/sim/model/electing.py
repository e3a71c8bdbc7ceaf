"""Laws of elections where nobody may lead cleanly: who may, what is written of it, and who led last."""

from collections.abc import Iterable

from strandline.sim.model.events import Kind
from strandline.sim.model.ghosts import holders, unclean_leader
from strandline.sim.model.setup import AGGRESSIVE, BALANCED, STRATEGIES
from strandline.sim.model.state import LEADER_EPOCH, NO_ONE, State
from strandline.sim.model.step import Step


def naming(nodes: Iterable[int]) -> str:
    """Brokers by the word that a transcript puts their first names behind."""
    return " and ".join(f"broker {node}" for node in sorted(nodes) if node > 0) or "nobody"


def last_led(step: Step) -> int:
    """Who led last before the election, if it still counts: it has a replica, and that has not begun anew in another
    directory. Nobody keeps it without ELR."""
    old, new, event = step.old, step.new, step.event
    node = old.leader if old.leader > 0 else old.last_leader
    has_begun_anew = event.kind is Kind.BEGINS_EMPTY and event.node == node
    return node if step.setup.elr and node in new.replicas and not has_begun_anew else NO_ONE


def may_recover(state: State) -> bool:
    """May a managed recovery elect by now? The decision table of KIP-966: Aggressive at any time, Balanced once nobody
    is eligible, and all who last were are known, and live."""
    if state.strategy == AGGRESSIVE:
        return True
    is_known = bool(state.last_known) and all(state.lives(n) for n in state.last_known)
    return state.strategy == BALANCED and not (state.isr or state.elr) and is_known


def why_too_early(step: Step, leader: int) -> str | None:
    if step.event.kind is Kind.DESIGNATE or may_recover(step.old):
        return None
    return f"broker {leader} was elected by a recovery ({STRATEGIES[step.old.strategy]}) that may not end yet"


def must_recover(step: Step) -> bool:
    return may_recover(step.old) and is_known(step.old, step.event.node)


def is_known(state: State, node: int) -> bool:
    """Replicas that are being added, and never were in sync, may have nothing: no recovery takes one."""
    return node not in state.adding or node in (*state.isr, *state.elr, *state.last_known)


def why_not_allowed(step: Step) -> str | None:
    """Uncleanly leads whom somebody has designated; else, where no recovery is managed, what the strategy says: with
    Balanced who led last, once nobody is eligible; with Aggressive anybody, but then too who led last before others."""
    event, new, setup = step.event, step.new, step.setup
    leader = unclean_leader(*step[:4])
    if leader == NO_ONE:
        return None
    if event.kind is Kind.RECOVER and not is_known(step.old, leader):
        return f"broker {leader} was elected by a recovery, and is only being added"
    if event.kind is Kind.DESIGNATE or (event.kind is Kind.RECOVER and is_known(step.old, event.node)):
        if leader == event.node:
            return why_too_early(step, leader)
        return f"broker {event.node} was designated, and broker {leader} elected"
    if event.kind is Kind.RECOVER:
        return why_too_early(step, leader)
    first = last_led(step)
    has_first = first != NO_ONE and not (holders(*step[:4]) & set(new.replicas)) and new.lives(first)
    strategy = AGGRESSIVE if event.kind is Kind.ANYBODY else step.old.strategy
    if event.kind is not Kind.ANYBODY and setup.managed:
        return f"broker {leader} was elected uncleanly, though recoveries are managed"
    if strategy == AGGRESSIVE and (leader == first or not has_first):
        empty = (*new.adding, *((event.node,) if event.kind is Kind.BEGINS_EMPTY else ()))
        is_worse = (
            leader != first and leader in new.adding and any(new.lives(n) for n in new.replicas if n not in empty)
        )
        return f"broker {leader} was elected, and is only being added, while others live" if is_worse else None
    if strategy == AGGRESSIVE:
        return f"broker {leader} was elected before who led last"
    if strategy == BALANCED and has_first and leader == first:
        return None
    return f"broker {leader} was elected uncleanly, which {STRATEGIES[strategy]} does not allow"


def why_still_leaderless(step: Step) -> str | None:
    """What the strategy asks for happens when somebody comes back, and when leaderless partitions are looked at; and
    whoever is designated leads, or somebody who may cleanly."""
    event, new, setup = step.event, step.new, step.setup
    if new.leader > 0:
        return None
    if event.kind is Kind.DESIGNATE or (event.kind is Kind.RECOVER and must_recover(step)):
        return f"broker {event.node} was designated, and nobody leads"
    if event.kind is not Kind.ANYBODY and (setup.managed or event.kind not in (Kind.SWEEP, Kind.UNFENCE)):
        return None
    strategy = AGGRESSIVE if event.kind is Kind.ANYBODY else new.strategy
    if strategy == AGGRESSIVE and any(new.lives(n) for n in new.replicas):
        return "nobody leads although anybody may"
    if strategy == BALANCED and not (new.isr or new.elr) and new.last_leader > 0 and new.lives(new.last_leader):
        return "nobody leads although who led last lives, and nobody is eligible"
    return None


def why_unsaid(step: Step) -> str | None:
    """An unclean election has an entry in the loss ledger, in the record that makes it; nothing else has."""
    leader = unclean_leader(*step[:4])
    losses = [loss for change in step.changes for loss in change.losses]
    if leader == NO_ONE:
        return "a loss was written down without an unclean election" if losses else None
    if len(losses) != 1:
        return f"broker {leader} was elected uncleanly, and the loss ledger has {len(losses)} entries of it"
    loss = losses[0]
    if (loss.replica, loss.old_epoch, loss.new_epoch) != (leader, LEADER_EPOCH, LEADER_EPOCH + 1) or not loss.cause:
        return f"broker {leader} was elected uncleanly, and the loss ledger says something else: {loss}"
    return None


def why_last_leader_wrong(step: Step) -> str | None:
    """With a leader there is no last leader; without one, it is the broker that led last (T10, L9)."""
    new = step.new
    if new.leader > 0:
        return None if new.last_leader == NO_ONE else "there is a last known leader while somebody leads"
    if new.last_leader == last_led(step):
        return None
    return f"the last known leader is {naming([new.last_leader])}, and {naming([last_led(step)])} led last"


ELECTING = (why_unsaid, why_not_allowed, why_still_leaderless, why_last_leader_wrong)
