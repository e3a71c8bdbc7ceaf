"""What may happen in a state, and the records that the controller writes because of it.

The controller's own functions decide, from the requests that brokers and operators really send. Only another order of
the replicas is written here: it stands for a reassignment to the same replicas.

Beside the events that may change something there are proposals that must not: those of leaders and followers of the
past (`stale`). They are tried in every state with a leader.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

from strandline.base.ids import NodeId, Uuid
from strandline.controller.basis import Basis, ControllerConfig
from strandline.controller.brokers.brokers import plan_fencing, plan_heartbeat, plan_registration, plan_unregistration
from strandline.controller.brokers.directories import plan_assign_replicas
from strandline.controller.configs import MIN_ISR_KEY, plan_alter_configs
from strandline.controller.partition import Election
from strandline.controller.partitions.elections import plan_elections
from strandline.controller.partitions.isr import plan_alter_partition
from strandline.controller.partitions.reassignments import completions, plan_reassignments
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERED, RECOVERING, Image
from strandline.metadata.records import PartitionChangeRecord
from strandline.sim.model import requests
from strandline.sim.model.recovering import designated, recovered
from strandline.sim.model.requests import StaleProposal
from strandline.sim.model.setup import Setup
from strandline.sim.model.state import (
    ACTIVE,
    AWAY,
    FENCED,
    GONE,
    HERE,
    HOME,
    LEAVING,
    NEXT_OFFSET,
    NOW,
    OTHER,
    SPARE,
    STOPPED,
    TOPIC_ID,
    UNREPORTED,
    Ids,
    State,
)
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest

CONFIGS = {is_managed: ControllerConfig(is_recovery_managed=is_managed) for is_managed in (False, True)}
RNG = Random(0)  # nothing here draws from it
ALTER_VERSION = 3
LEAVES = (LEAVING, STOPPED, GONE)


class Kind(Enum):
    FENCE = "fence"
    UNFENCE = "unfence"
    SHUT_DOWN = "shut down"
    CLEAN = "clean start"
    UNCLEAN_START = "unclean start"
    TORN_START = "torn start"  # a clean start, of a broker that knows what its replica lost
    UNREGISTER = "unregister"
    FINDS = "finds damage"
    ALTER = "alter"
    STALE = "stale"
    MIN_ISR = "min isr"
    SWEEP = "sweep"
    REASSIGN = "reassign"
    CANCEL = "cancel"
    COMPLETE = "complete"
    REORDER = "reorder"
    CATCH_UP = "catch up"
    RECOVER = "recover"  # as a recovery wants it
    DESIGNATE = "designate"  # an operator names the leader
    ANYBODY = "anybody"  # an operator lets anybody lead
    DIRECTORY_FAILS = "directory fails"
    MOVED = "moved"
    LIES_AWAY = "lies away"
    BEGINS_EMPTY = "begins empty"


REPORTS = (Kind.TORN_START, Kind.FINDS)
STARTS = (Kind.CLEAN, Kind.UNCLEAN_START, Kind.TORN_START)
LIVES = (Kind.FENCE, Kind.UNFENCE, Kind.SHUT_DOWN, *STARTS, Kind.UNREGISTER, Kind.FINDS)  # of one broker, `node`
# What the broker had is gone.
LOSSES = (Kind.UNCLEAN_START, Kind.UNREGISTER, Kind.BEGINS_EMPTY, Kind.TORN_START, Kind.FINDS)
MOVES = (Kind.REASSIGN, Kind.CANCEL)  # of replicas, by an operator
# Of a replica: whether its directory is one of the broker's.
PLACES = (Kind.DIRECTORY_FAILS, Kind.MOVED, Kind.LIES_AWAY, Kind.BEGINS_EMPTY)


class Start(Enum):
    """How a broker starts, if not as it was."""

    WITHOUT_DIRECTORY = "without its directory"


How = Start | Election | StaleProposal


class Event(NamedTuple):
    kind: Kind
    node: int = 0  # the broker, or the number that is set
    ids: Ids = ()  # the ISR that is proposed, or the replicas that are wanted
    how: How | None = None


def events(state: State, setup: Setup) -> Iterator[Event]:
    yield from lives(state, setup)
    if state.leader > 0:
        yield from proposals(state)
    for value in setup.allowed_min_isrs:
        yield Event(Kind.MIN_ISR, value)
    if state.leader < 0:
        yield from recoveries(state, setup)
    yield Event(Kind.SWEEP, how=Election.KEEP)
    yield Event(Kind.SWEEP, how=Election.PREFERRED)
    if setup.reassign:
        is_moving = bool(state.adding or state.removing)
        if is_moving:
            yield Event(Kind.CANCEL)
            yield Event(Kind.COMPLETE)
        if setup.redirect or not is_moving:
            yield from reassignments(state, setup)
    if setup.reorder:
        staying = [n for n in state.replicas if n not in state.removing]
        for first in staying[1:]:
            yield Event(Kind.REORDER, ids=(first, *(n for n in state.replicas if n != first)))
    if state.known_min != state.effective_min_isr:
        yield Event(Kind.CATCH_UP, state.leader)


def lives(state: State, setup: Setup) -> Iterator[Event]:
    """What may happen to each broker. A process may be restarted whatever the controller believes of it."""
    may_leave = setup.crowded or not any(status in LEAVES for status in state.statuses)
    for node, status in enumerate(state.statuses, 1):
        if status in (ACTIVE, LEAVING):
            yield Event(Kind.FENCE, node)
            if setup.shutdown and (status == LEAVING or may_leave):
                yield Event(Kind.SHUT_DOWN, node)
        elif status == FENCED:
            yield Event(Kind.UNFENCE, node)
        starts = (None, Start.WITHOUT_DIRECTORY) if setup.directories and stores(state, node) else (None,)
        for how in starts:
            yield Event(Kind.UNCLEAN_START, node, how=how)
            if status != GONE:  # it has an epoch to have stopped cleanly in
                yield Event(Kind.CLEAN, node, how=how)
        if setup.torn and status != GONE and node in state.replicas:
            yield Event(Kind.TORN_START, node)
            if status in (ACTIVE, LEAVING, FENCED):
                yield Event(Kind.FINDS, node)
        if setup.directories and status in (ACTIVE, LEAVING, FENCED) and node in state.replicas:
            yield from placements(state, node)
        if status == GONE:
            continue
        if setup.unregister and (status in LEAVES or may_leave):
            yield Event(Kind.UNREGISTER, node)


def stores(state: State, node: int) -> bool:
    return node in state.replicas and state.places[node - 1] != UNREPORTED


def placements(state: State, node: int) -> Iterator[Event]:
    """What a broker that lives finds out about the directory of its replica."""
    place = state.places[node - 1]
    if place == HERE:
        yield Event(Kind.DIRECTORY_FAILS, node)
    if place == AWAY:
        yield Event(Kind.BEGINS_EMPTY, node)
    else:
        yield Event(Kind.MOVED, node)
        yield Event(Kind.LIES_AWAY, node)


def recoveries(state: State, setup: Setup) -> Iterator[Event]:
    """Unclean elections of whom a recovery, or an operator, may choose."""
    for node in state.replicas:
        if state.lives(node):
            if setup.managed:
                yield Event(Kind.RECOVER, node)
            if setup.by_hand:
                yield Event(Kind.DESIGNATE, node)
    if setup.by_hand:
        yield Event(Kind.ANYBODY)


def proposals(state: State) -> Iterator[Event]:
    """Every ISR that the leader could want, and what it could not."""
    leader, others = state.leader, [n for n in state.replicas if n != state.leader]
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            yield Event(Kind.ALTER, RECOVERED, tuple(n for n in state.replicas if n == leader or n in chosen))
    yield Event(Kind.ALTER, RECOVERING, (leader,))
    everyone = tuple(n for n in state.replicas if state.lives(n))
    for how in StaleProposal:
        yield Event(Kind.STALE, leader, everyone if len(everyone) != len(state.isr) else (leader,), how)


def reassignments(state: State, setup: Setup) -> Iterator[Event]:
    """Other replicas: newcomers in the places of those that go, or behind those that stay."""
    before = [n for n in state.replicas if n not in state.adding]
    rest = [n for n in range(1, setup.brokers + 1) if n not in before and state.statuses[n - 1] != GONE]
    for gone in subsets(before):
        for new in subsets(rest):
            is_one = len(gone) <= 1 and len(new) <= 1
            if not (gone or new) or not (is_one or setup.several):
                continue
            newcomers = iter(new)
            kept = [next(newcomers, 0) if n in gone else n for n in before]
            target = (*(n for n in kept if n), *newcomers)
            if len(target) >= setup.fewest_replicas or len(target) > len(before):
                yield Event(Kind.REASSIGN, ids=target)


def subsets(nodes: Sequence[int]) -> Iterator[Ids]:
    for size in range(len(nodes) + 1):
        yield from combinations(nodes, size)


# --- what the controller makes of it


def basis_of(image: Image, setup: Setup) -> Basis:
    return Basis(image, CONFIGS[setup.managed], {}, RNG, NEXT_OFFSET, NOW)


def records_of(event: Event, state: State, setup: Setup, basis: Basis) -> Sequence[Any]:
    kind, node = event.kind, NodeId(event.node)
    if kind is Kind.ALTER:
        return plan_alter_partition(requests.proposal(state.leader, event.ids, node), basis, ALTER_VERSION).records
    if kind is Kind.STALE:
        return plan_alter_partition(stale(state, event), basis, ALTER_VERSION).records
    if kind is Kind.FENCE:
        return plan_fencing(basis.image.brokers[node], basis)[0]
    if kind in (Kind.UNFENCE, Kind.SHUT_DOWN):
        return plan_heartbeat(requests.heartbeat(node, kind is Kind.SHUT_DOWN), basis).records
    if kind is Kind.FINDS:
        return plan_heartbeat(requests.heartbeat(node, lost=True), basis).records
    if kind in STARTS:
        is_clean, has_lost = kind is not Kind.UNCLEAN_START, kind is Kind.TORN_START
        request = requests.registration(node, is_clean, log_dirs(event, setup), has_lost)
        return plan_registration(request, basis, False).records
    if kind is Kind.UNREGISTER:
        return plan_unregistration(UnregisterBrokerRequest(broker_id=node), basis).records
    if kind in PLACES:
        return located(event, basis)
    if kind is Kind.RECOVER:
        return recovered(state, node, basis)
    if kind is Kind.DESIGNATE:
        return designated(node, basis)
    if kind is Kind.ANYBODY:
        return plan_elections(requests.ANYBODY, basis).records
    return wanted(event, state, basis)


def log_dirs(event: Event, setup: Setup) -> tuple[Uuid, ...]:
    if not setup.directories:
        return ()
    node = event.node
    return (SPARE[node],) if event.how is Start.WITHOUT_DIRECTORY else (HOME[node], SPARE[node])


def located(event: Event, basis: Basis) -> Sequence[Any]:
    kind, node = event.kind, event.node
    if kind is Kind.DIRECTORY_FAILS:
        return plan_heartbeat(requests.heartbeat(node, offline=(HOME[node],)), basis).records
    directory = OTHER[node] if kind is Kind.LIES_AWAY else SPARE[node]
    return plan_assign_replicas(requests.lying(node, directory), basis).records


def wanted(event: Event, state: State, basis: Basis) -> Sequence[Any]:
    """What operators and the controller's own clock ask for."""
    kind = event.kind
    if kind is Kind.MIN_ISR:
        return plan_alter_configs(requests.setting(MIN_ISR_KEY, str(event.node)), basis).records
    if kind is Kind.SWEEP:
        assert isinstance(event.how, Election)
        return basis.elections(1, event.how)
    if kind in MOVES:
        return plan_reassignments(requests.moving(event.ids if kind is Kind.REASSIGN else None), basis).records
    if kind is Kind.COMPLETE:
        return completions(basis)
    if kind is Kind.REORDER:
        return (ordered(state, event.ids),)
    assert kind is Kind.CATCH_UP
    return ()


def stale(state: State, event: Event) -> Any:
    other = next((n for n in state.replicas if n != state.leader and state.lives(n)), state.leader)
    assert isinstance(event.how, StaleProposal)
    return requests.stale_proposal(state.leader, event.ids, event.how, other)


def ordered(state: State, replicas: Ids) -> PartitionChangeRecord:
    """The same replicas in another order, with their directories. Sets keep the replicas' order."""
    sets = [tuple(n for n in replicas if n in ids) for ids in (state.isr, state.elr, state.last_known)]
    isr, elr, last_known = (new if new != old else None for new, old in zip(sets, state[1:4], strict=True))
    return PartitionChangeRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        leader=NO_LEADER_CHANGE,
        replicas=replicas,
        isr=isr,
        eligible_leader_replicas=elr,
        last_known_elr=last_known,
    )
