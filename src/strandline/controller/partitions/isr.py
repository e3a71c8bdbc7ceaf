"""AlterPartition: a leader proposes a new ISR, and the controller checks every member (KIP-497, KIP-841, KIP-903).

A proposal is believed only from the current leader, made with its current epochs, and only for brokers that are active
in the very incarnation that the leader saw fetch: one that was restarted in between may have lost its tail (T14).
"""

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition
from strandline.controller.basis import Basis, Plan
from strandline.controller.partition import Wish, plan_change
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERED, RECOVERING, Partition, merged
from strandline.metadata.records import PartitionChangeRecord
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionDataResponse,
    TopicDataResponse,
)

E = ErrorCode
EPOCH_UNKNOWN = -1  # of a leader that does not know the follower's broker epoch: not compared


def plan_alter_partition(request: AlterPartitionRequest, basis: Basis, version: int) -> Plan:
    why = basis.why_stale(request.broker_id, request.broker_epoch)
    if why is not None:
        return Plan((), AlterPartitionResponse(error_code=why))
    records: list[PartitionChangeRecord] = []
    # A request may name a partition twice; the second proposal is judged by what the first made of it.
    ahead: dict[TopicIdPartition, Partition] = {}
    topics: list[TopicDataResponse] = []
    for topic in request.topics:
        results: list[PartitionDataResponse] = []
        for proposal in topic.partitions:
            at = TopicIdPartition(topic.topic_id, proposal.partition_index)
            known = ahead.get(at) or basis.image.partition(at)
            result, change = plan_proposal(at, known, proposal, request.broker_id, basis, version)
            results.append(result)
            if change is not None:
                assert known is not None
                records.append(change)
                ahead[at] = merged(known, change)
        topics.append(TopicDataResponse(topic_id=topic.topic_id, partitions=tuple(results)))
    assert len(topics) == len(request.topics)
    return Plan(tuple(records), AlterPartitionResponse(topics=tuple(topics)))


def plan_proposal(
    at: TopicIdPartition, old: Partition | None, proposal: PartitionData, broker: int, basis: Basis, version: int
) -> tuple[PartitionDataResponse, PartitionChangeRecord | None]:
    states = proposed(proposal, version)
    if at.topic_id not in basis.image.topics:
        return refused(at, E.UNKNOWN_TOPIC_ID), None
    if old is None:
        return refused(at, E.UNKNOWN_TOPIC_OR_PARTITION), None
    why = why_not_altered(old, proposal, states, broker, basis)
    if why is not None:
        return refused(at, why), None
    topic = basis.image.topics[at.topic_id]
    assert broker == old.leader, "else it is refused"
    wish = Wish(isr=tuple(NodeId(s.broker_id) for s in states), recovery_state=proposal.leader_recovery_state)
    change = plan_change(at, old, wish, basis.rules(topic))
    new = old if change is None else merged(old, change)
    if change is not None and change.leader not in (NO_LEADER_CHANGE, broker):
        # The change ended a reassignment that the proposer is no longer part of: it is made, and it must look again.
        return refused(at, E.NEW_LEADER_ELECTED), change
    return (
        PartitionDataResponse(
            partition_index=at.partition,
            leader_id=new.leader,
            leader_epoch=new.leader_epoch,
            isr=new.isr,
            leader_recovery_state=new.leader_recovery_state,
            partition_epoch=new.partition_epoch,
        ),
        change,
    )


def proposed(proposal: PartitionData, version: int) -> tuple[BrokerState, ...]:
    if version >= 3:
        return tuple(proposal.new_isr_with_epochs)
    return tuple(BrokerState(broker_id=node, broker_epoch=EPOCH_UNKNOWN) for node in proposal.new_isr)


def why_not_altered(
    old: Partition, proposal: PartitionData, states: tuple[BrokerState, ...], broker: int, basis: Basis
) -> ErrorCode | None:
    """Why is a proposal refused? None means it is not. A leader that is ahead of us has seen a newer controller."""
    isr = [state.broker_id for state in states]
    if proposal.leader_epoch > old.leader_epoch or proposal.partition_epoch > old.partition_epoch:
        return E.NOT_CONTROLLER
    if proposal.leader_epoch < old.leader_epoch:
        return E.FENCED_LEADER_EPOCH
    if broker != old.leader:
        return E.INVALID_REQUEST
    if proposal.partition_epoch < old.partition_epoch:  # guard: old-partition-epoch-accepted
        return E.INVALID_UPDATE_VERSION
    if not isr or len(set(isr)) != len(isr) or not set(isr) <= set(old.replicas) or old.leader not in isr:
        return E.INVALID_REQUEST
    if proposal.leader_recovery_state not in (RECOVERED, RECOVERING):
        return E.INVALID_REQUEST
    if proposal.leader_recovery_state == RECOVERING and (len(isr) > 1 or old.leader_recovery_state == RECOVERED):
        return E.INVALID_REQUEST
    if any(is_ineligible(state, old, basis) for state in states):
        return E.INELIGIBLE_REPLICA
    return None


def is_ineligible(state: BrokerState, old: Partition, basis: Basis) -> bool:
    node = NodeId(state.broker_id)
    broker = basis.image.brokers.get(node)
    if broker is None or not broker.is_active:  # guard: fenced-broker-accepted
        return True
    if basis.is_departing(broker):
        return True
    if not basis.image.is_online(node, old):
        return True
    return state.broker_epoch not in (EPOCH_UNKNOWN, broker.epoch)  # guard: rebooted-follower-accepted


def refused(at: TopicIdPartition, error: ErrorCode) -> PartitionDataResponse:
    assert error is not E.NONE
    return PartitionDataResponse(partition_index=at.partition, error_code=error)
