"""What may happen in a state, and the records that the controller writes because of it.

The controller's own functions decide, from the requests that brokers and operators really send. Only another order of
the replicas is written here: it stands for a reassignment to the same replicas.

Beside the events that may change something there are proposals that must not: those of leaders and followers of the
past (`stale`). They are tried in every state with a leader.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

from strandline.base.ids import NodeId, Uuid
from strandline.controller.basis import Basis, ControllerConfig
from strandline.controller.brokers import plan_fencing, plan_heartbeat, plan_registration, plan_unregistration
from strandline.controller.configs import MIN_ISR_KEY, SET, plan_alter_configs
from strandline.controller.isr import plan_alter_partition
from strandline.controller.partition import Election
from strandline.controller.reassignments import plan_reassignments
from strandline.metadata.features import SUPPORTED_FEATURES, ranges
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERED, RECOVERING, TOPIC_RESOURCE, Image
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.strategy import UNCLEAN_KEY
from strandline.sim.model.setup import Setup
from strandline.sim.model.state import (
    ACTIVE,
    BROKER_EPOCH,
    FENCED,
    GONE,
    LEADER_EPOCH,
    LEAVING,
    NEXT_OFFSET,
    NOW,
    PARTITION_EPOCH,
    STOPPED,
    TOPIC,
    TOPIC_ID,
    Ids,
    State,
)
from strandline.wire.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from strandline.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.broker_registration import BrokerRegistrationRequest
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.unregister_broker import UnregisterBrokerRequest

CONFIG = ControllerConfig()
RNG = Random(0)  # nothing here draws from it
ALTER_VERSION = 3
LEAVES = (LEAVING, STOPPED, GONE)
OFFSET_OF_A_RESTART = 60  # of a registration since: an epoch that a proposal from before it cannot know

# Kinds of events.
FENCE, UNFENCE, SHUT_DOWN, CLEAN, UNCLEAN_START, UNREGISTER = (
    "fence",
    "unfence",
    "shut down",
    "clean start",
    "unclean start",
    "unregister",
)
ALTER, STALE, MIN_ISR, ALLOW, SWEEP, REASSIGN, CANCEL, REORDER, CATCH_UP = (
    "alter",
    "stale",
    "min isr",
    "allow",
    "sweep",
    "reassign",
    "cancel",
    "reorder",
    "catch up",
)
LIVES = (FENCE, UNFENCE, SHUT_DOWN, CLEAN, UNCLEAN_START, UNREGISTER)  # of one broker, `node`
LOSSES = (UNCLEAN_START, UNREGISTER)  # what the broker had is gone
MOVES = (REASSIGN, CANCEL)  # of replicas, by an operator


class Event(NamedTuple):
    kind: str
    node: int = 0  # the broker, or the number that is set
    ids: Ids = ()  # the ISR that is proposed, the replicas that are wanted
    how: str = ""


def events(state: State, setup: Setup) -> Iterator[Event]:
    yield from lives(state, setup)
    if state.leader > 0:
        yield from proposals(state)
    for value in setup.allowed_min_isrs:
        yield Event(MIN_ISR, value)
    if setup.unclean:
        yield Event(ALLOW, not state.unclean)
    yield Event(SWEEP, how="KEEP")
    yield Event(SWEEP, how="PREFERRED")
    if setup.reassign:
        is_moving = bool(state.adding or state.removing)
        if is_moving:
            yield Event(CANCEL)
        if setup.redirect or not is_moving:
            yield from reassignments(state, setup)
    if setup.reorder:
        staying = [n for n in state.replicas if n not in state.removing]
        for first in staying[1:]:
            yield Event(REORDER, ids=(first, *(n for n in state.replicas if n != first)))
    if state.known_min != state.effective_min_isr:
        yield Event(CATCH_UP, state.leader)


def lives(state: State, setup: Setup) -> Iterator[Event]:
    """What may happen to each broker. A process may be restarted whatever the controller believes of it."""
    may_leave = setup.crowded or not any(status in LEAVES for status in state.statuses)
    for node, status in enumerate(state.statuses, 1):
        if status in (ACTIVE, LEAVING):
            yield Event(FENCE, node)
            if setup.shutdown and (status == LEAVING or may_leave):
                yield Event(SHUT_DOWN, node)
        elif status == FENCED:
            yield Event(UNFENCE, node)
        if status == GONE:
            yield Event(UNCLEAN_START, node)  # it has no epoch to have stopped cleanly in
            continue
        yield Event(CLEAN, node)
        yield Event(UNCLEAN_START, node)
        if setup.unregister and (status in LEAVES or may_leave):
            yield Event(UNREGISTER, node)


def proposals(state: State) -> Iterator[Event]:
    """Every ISR that the leader could want, and what it could not."""
    leader, others = state.leader, [n for n in state.replicas if n != state.leader]
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            yield Event(ALTER, RECOVERED, tuple(n for n in state.replicas if n == leader or n in chosen))
    yield Event(ALTER, RECOVERING, (leader,))
    everyone = tuple(n for n in state.replicas if state.is_active(n))
    for how in STALE_PROPOSALS:
        yield Event(STALE, leader, everyone if len(everyone) != len(state.isr) else (leader,), how)


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
                yield Event(REASSIGN, ids=target)


def subsets(nodes: Sequence[int]) -> Iterator[Ids]:
    for size in range(len(nodes) + 1):
        yield from combinations(nodes, size)


# --- what the controller makes of it


def basis_of(image: Image) -> Basis:
    return Basis(image, CONFIG, {}, RNG, NEXT_OFFSET, NOW)


def records_of(event: Event, state: State, basis: Basis) -> Sequence[Any]:
    kind, node = event.kind, NodeId(event.node)
    if kind == ALTER:
        return plan_alter_partition(proposal(state.leader, event.ids, node), basis, ALTER_VERSION).records
    if kind == STALE:
        return plan_alter_partition(stale(state, event), basis, ALTER_VERSION).records
    if kind == FENCE:
        return plan_fencing(basis.image.brokers[node], basis)
    if kind in (UNFENCE, SHUT_DOWN):
        return plan_heartbeat(heartbeat(node, kind == SHUT_DOWN), basis).records
    if kind in (CLEAN, UNCLEAN_START):
        return plan_registration(registration(node, kind == CLEAN), basis, False).records
    if kind == UNREGISTER:
        return plan_unregistration(UnregisterBrokerRequest(broker_id=node), basis).records
    if kind == MIN_ISR:
        return plan_alter_configs(setting(MIN_ISR_KEY, str(event.node)), basis).records
    if kind == ALLOW:
        return plan_alter_configs(setting(UNCLEAN_KEY, "true" if event.node else "false"), basis).records
    if kind == SWEEP:
        return basis.elections(1, Election[event.how])
    if kind in MOVES:
        return plan_reassignments(moving(event.ids if kind == REASSIGN else None), basis).records
    if kind == REORDER:
        return (ordered(state, event.ids),)
    assert kind == CATCH_UP
    return ()


def ordered(state: State, replicas: Ids) -> PartitionChangeRecord:
    """The same replicas in another order. Sets keep the replicas' order."""
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


@cache
def moving(target: Ids | None) -> AlterPartitionReassignmentsRequest:
    """Null replicas cancel."""
    row = ReassignablePartition(partition_index=0, replicas=target)
    return AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=TOPIC, partitions=(row,)),))


@cache
def proposal(leader: int, isr: Ids, recovery: int) -> AlterPartitionRequest:
    return altering(leader, isr, recovery_state=recovery)


def altering(
    leader: int,
    isr: Ids,
    *,
    recovery_state: int = RECOVERED,
    leader_epoch: int = LEADER_EPOCH,
    partition_epoch: int = PARTITION_EPOCH,
    of_an_earlier_life: Ids = (),
    broker_epoch: int | None = None,
) -> AlterPartitionRequest:
    members = tuple(
        BrokerState(broker_id=n, broker_epoch=BROKER_EPOCH + n - OFFSET_OF_A_RESTART * (n in of_an_earlier_life))
        for n in isr
    )
    change = PartitionData(
        partition_index=0,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=members,
        leader_recovery_state=recovery_state,
        partition_epoch=partition_epoch,
    )
    return AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=BROKER_EPOCH + leader if broker_epoch is None else broker_epoch,
        topics=(TopicData(topic_id=TOPIC_ID, partitions=(change,)),),
    )


STALE_PROPOSALS = (
    "of an earlier leader epoch",
    "of an earlier partition epoch",
    "of a later leader epoch",
    "of a later partition epoch",
    "of the leader's earlier life",
    "of a follower's earlier life",
    "of another broker",
    "without the leader",
)


def stale(state: State, event: Event) -> AlterPartitionRequest:
    other = next((n for n in state.replicas if n != state.leader and state.is_active(n)), state.leader)
    return stale_proposal(state.leader, event.ids, event.how, other)


@cache
def stale_proposal(leader: int, isr: Ids, how: str, other: int) -> AlterPartitionRequest:
    match how:
        case "of an earlier leader epoch":
            return altering(leader, isr, leader_epoch=LEADER_EPOCH - 1)
        case "of an earlier partition epoch":
            return altering(leader, isr, partition_epoch=PARTITION_EPOCH - 1)
        case "of a later leader epoch":
            return altering(leader, isr, leader_epoch=LEADER_EPOCH + 1)
        case "of a later partition epoch":
            return altering(leader, isr, partition_epoch=PARTITION_EPOCH + 1)
        case "of the leader's earlier life":
            return altering(leader, isr, broker_epoch=BROKER_EPOCH + leader - 1)
        case "of a follower's earlier life":
            return altering(leader, isr, of_an_earlier_life=tuple(n for n in isr if n != leader) or isr)
        case "of another broker":
            return altering(other, isr) if other != leader else altering(leader, ())
        case _:
            return altering(leader, tuple(n for n in isr if n != leader))


@cache
def heartbeat(node: int, want_shut_down: bool) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=node,
        broker_epoch=BROKER_EPOCH + node,
        current_metadata_offset=NEXT_OFFSET - 1,
        want_shut_down=want_shut_down,
    )


@cache
def registration(node: int, is_clean: bool) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=node,
        incarnation_id=Uuid(bytes([node, 255] * 8)),
        features=ranges(SUPPORTED_FEATURES),
        previous_broker_epoch=BROKER_EPOCH + node if is_clean else -1,
    )


@cache
def setting(key: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=key, config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,))
