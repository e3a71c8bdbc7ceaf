"""A path through the model as a story: what happened, what the controller wrote, and where that left the partition."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from strandline.controller.partition import Election
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERING
from strandline.metadata.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from strandline.sim.model.events import Event, Kind, Start
from strandline.sim.model.requests import StaleProposal
from strandline.sim.model.setup import STRATEGIES, Setup
from strandline.sim.model.state import ACTIVE, AWAY, STATUS, UNREPORTED, Ids, State
from strandline.sim.model.step import Step


class Transition(NamedTuple):
    """A step, and the names that its brokers had at first: the model renames them on the way."""

    step: Step
    names: Ids
    first: int  # the replica that was made the preferred one before, 0 for none


def transcript(setup: Setup, steps: Sequence[Transition], why: str) -> list[str]:
    lines = [f"model {setup.title}: {setup.limits()}"]
    lines.append(f"  at first: {show_state(steps[0].step.old, steps[0].names, setup)}")
    for number, (step, names, first) in enumerate(steps, 1):
        order = f"with {show_ids(step.old.replicas, names)} in this order, " if first else ""
        matters = len(setup.strategies) > 1 and -1 in (step.old.leader, step.new.leader)
        strategy = f"with the strategy {STRATEGIES[step.old.strategy]}, " if matters else ""
        lines.append(f"{number}. {strategy}{order}{show_event(step, names)}")
        lines += [f"     wrote {show_record(record, names)}" for record in step.records]
        lines.append(f"  so: {show_state(step.new, names, setup)}")
    names = steps[-1].names
    lines.append("wrong: " + re.sub(r"\bbroker (\d+)", lambda found: f"broker {names[int(found[1])]}", why))
    return lines


def show_ids(ids: Iterable[int], names: Ids) -> str:
    return "[" + ",".join(str(names[n]) for n in ids) + "]"


def show_leader(leader: int, names: Ids) -> str:
    return str(names[leader]) if leader > 0 else "none"


def show_event(step: Step, names: Ids) -> str:
    event, old = step.event, step.old
    node = names[event.node] if 0 < event.node < len(names) else 0
    match event.kind:
        case Kind.FENCE:
            return f"broker {node} is fenced: its session ended"
        case Kind.UNFENCE:
            return f"broker {node} has caught up with its registration, and is unfenced"
        case Kind.SHUT_DOWN:
            return f"broker {node} asks to shut down"
        case Kind.CLEAN:
            return f"broker {node} registers after a clean stop{without(event)}"
        case Kind.UNCLEAN_START:
            return f"broker {node} registers after an unclean stop{without(event)}"
        case Kind.TORN_START:
            return f"broker {node} registers after a clean stop, and its replica lost records"
        case Kind.FINDS:
            return f"broker {node} lives, and its replica lost records"
        case Kind.UNREGISTER:
            return f"broker {node} is unregistered"
        case Kind.ALTER:
            leader = show_leader(old.leader, names)
            state = ", RECOVERING" if event.node == RECOVERING else ""
            return f"leader {leader} proposes the ISR {show_ids(event.ids, names)}{state}"
        case Kind.STALE:
            assert isinstance(event.how, StaleProposal)
            return f"a proposal {event.how.value} arrives, of the ISR {show_ids(event.ids, names)}"
        case Kind.CATCH_UP:
            return f"leader {node} learns the min ISR"
        case Kind.DIRECTORY_FAILS:
            return f"broker {node} lives, and the log directory of its replica is offline"
        case Kind.LIES_AWAY:
            return f"broker {node} says that its replica lies in a directory that is offline"
        case Kind.MOVED:
            return f"broker {node} says that its replica lies in another directory, moved there as it was"
        case Kind.BEGINS_EMPTY:
            return f"broker {node} says that its replica lies in another directory, where it began anew"
        case _:
            return show_order(event, node, names)


def without(event: Event) -> str:
    return ", without the log directory of its replica" if event.how is Start.WITHOUT_DIRECTORY else ""


def show_order(event: Event, node: int, names: Ids) -> str:
    """What operators and the controller's own clock ask for."""
    match event.kind:
        case Kind.MIN_ISR:
            return f"min.insync.replicas is set to {event.node}"
        case Kind.RECOVER:
            return f"of all whom a recovery has asked broker {node} has the most data, and its time is up"
        case Kind.DESIGNATE:
            return f"an operator names broker {node}"
        case Kind.ANYBODY:
            return "an operator has anybody elected"
        case Kind.COMPLETE:
            return "reassignments that may end do"
        case Kind.SWEEP:
            return "leaderless partitions are looked at" if event.how is Election.KEEP else "leaders are rebalanced"
        case Kind.REASSIGN:
            return f"a reassignment to {show_ids(event.ids, names)} begins"
        case Kind.CANCEL:
            return "the reassignment is cancelled"
        case _:
            return f"the replicas are put in the order {show_ids(event.ids, names)}"


def show_record(record: Any, names: Ids) -> str:
    match record:
        case PartitionChangeRecord():
            return f"PartitionChangeRecord({show_change(record, names)})"
        case RegisterBrokerRecord():
            return f"RegisterBrokerRecord(broker={names[record.broker_id]}, fenced={record.fenced})"
        case UnregisterBrokerRecord():
            return f"UnregisterBrokerRecord(broker={names[record.broker_id]})"
        case BrokerRegistrationChangeRecord():
            stops = f", in_controlled_shutdown={record.in_controlled_shutdown}" if record.in_controlled_shutdown else ""
            return f"BrokerRegistrationChangeRecord(broker={names[record.broker_id]}, fenced={record.fenced}{stops})"
        case ConfigRecord():
            return f"ConfigRecord({record.name}={record.value})"
        case ClearElrRecord():
            return "ClearElrRecord"
        case _:
            return repr(record)


def show_change(change: PartitionChangeRecord, names: Ids) -> str:
    fields = (
        ("replicas", change.replicas),
        ("adding", change.adding_replicas),
        ("removing", change.removing_replicas),
        ("isr", change.isr),
        ("elr", change.eligible_leader_replicas),
        ("last_known_elr", change.last_known_elr),
    )
    shown = [f"{name}={show_ids(ids, names)}" for name, ids in fields if ids is not None]
    if change.leader != NO_LEADER_CHANGE:
        shown.append(f"leader={show_leader(change.leader, names)}")
    if change.last_known_leader != NO_LEADER_CHANGE:
        shown.append(f"last_known_leader={show_leader(change.last_known_leader, names)}")
    if change.leader_recovery_state >= 0:
        shown.append(f"leader_recovery_state={'RECOVERING' if change.leader_recovery_state else 'RECOVERED'}")
    shown += [f"loss of {show_leader(loss.replica, names)}: {loss.cause}" for loss in change.losses]
    return ", ".join(shown)


def show_state(state: State, names: Ids, setup: Setup) -> str:
    parts = [f"replicas {show_ids(state.replicas, names)}"]
    if state.adding or state.removing:
        parts.append(f"adding {show_ids(state.adding, names)} removing {show_ids(state.removing, names)}")
    parts.append(f"leader {show_leader(state.leader, names)}{' RECOVERING' if state.recovery else ''}")
    parts.append(f"ISR {show_ids(state.isr, names)}")
    if setup.elr:
        parts.append(f"ELR {show_ids(state.elr, names)}")
        if state.last_known:
            parts.append(f"last known {show_ids(state.last_known, names)}")
        if state.last_leader > 0:
            parts.append(f"last led by {show_leader(state.last_leader, names)}")
    parts.append(f"min ISR {state.min_isr}")
    if state.known_min != state.effective_min_isr:
        parts.append(f"of which the leader believes {state.known_min}")
    away = sorted((names[n], STATUS[status]) for n, status in enumerate(state.statuses, 1) if status != ACTIVE)
    parts += [f"{name} {status}" for name, status in away]
    words = {AWAY: "offline", UNREPORTED: "not told yet"}
    placed = sorted((names[n], words[place]) for n, place in enumerate(state.places, 1) if place in words)
    parts += [f"directory of {name} {what}" for name, what in placed]
    return ", ".join(parts)
