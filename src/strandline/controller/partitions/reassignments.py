"""Partitions move to other replicas (KIP-455), and stop moving.

A reassignment is a fact in the partition: replicas that are being added, and some that are to be removed. It ends in
the partition builder, with any change that makes the ISR fit for it. Another one in the middle replaces it, from the
replicas that the partition had before the first; to cancel is to wish for just these, in their order: the first of them
is the preferred leader. Kafka leaves them in the order of the move.

Invariants:
  - what begins and what cancels takes nobody from the ISR or the ELR whom min ISR needs: the high watermark would stand
    still, what was committed would lie on too few replicas, or nobody could lead (KIP-966); and while these two are
    empty, nobody from LastKnownElr: a Balanced recovery waits for all of it;
  - each partition of a request succeeds or fails alone.
"""

from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import NodeId, TopicIdPartition
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.controller.partition import (
    Assignment,
    LastResort,
    Nodes,
    Rules,
    Wish,
    assigned,
    plan_change,
    why_incomplete,
    within,
    without,
)
from strandline.controller.topics.assignment import why_not_registered
from strandline.metadata.image import Partition, effective_min_isr
from strandline.metadata.records import PartitionChangeRecord
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from strandline.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

E = ErrorCode


def plan_reassignments(request: AlterPartitionReassignmentsRequest, basis: Basis) -> Plan:
    records: dict[TopicIdPartition, PartitionChangeRecord] = {}
    topics: list[ReassignableTopicResponse] = []
    for topic in request.topics:
        results: list[ReassignablePartitionResponse] = []
        for row in topic.partitions:
            outcome = plan_one(topic.name, row, request.allow_replication_factor_change, basis, taken=records)
            if isinstance(outcome, PartitionChangeRecord):
                records[TopicIdPartition(outcome.topic_id, outcome.partition_id)] = outcome
            error, message = (outcome.error, outcome.message) if isinstance(outcome, Refusal) else (E.NONE, None)
            results.append(
                ReassignablePartitionResponse(
                    partition_index=row.partition_index, error_code=error, error_message=message
                )
            )
        topics.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(results)))
    assert len(topics) == len(request.topics)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=tuple(topics)
    )
    return Plan(tuple(records.values()), response)


def plan_one(
    name: str,
    row: ReassignablePartition,
    may_change_factor: bool,
    basis: Basis,
    taken: dict[TopicIdPartition, PartitionChangeRecord],
) -> PartitionChangeRecord | Refusal | None:
    """The change; None if the partition has these replicas already."""
    topic = basis.image.topic_named(name)
    if topic is None:
        return Refusal(E.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    old = topic.partitions.get(row.partition_index)
    if old is None:
        return Refusal(E.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{row.partition_index}.")
    at = TopicIdPartition(topic.topic_id, row.partition_index)
    if at in taken:
        return Refusal(E.INVALID_REQUEST, f"Partition {name}:{row.partition_index} is named twice.")
    original = old.original_replicas or without(old.replicas, old.adding_replicas)
    if row.replicas is None:
        if not old.is_moving:
            return Refusal(E.NO_REASSIGNMENT_IN_PROGRESS, message_of(E.NO_REASSIGNMENT_IN_PROGRESS))
        target = original
    else:
        target = tuple(NodeId(node) for node in row.replicas)
        why = why_not_registered(target, basis)
        if why is not None:
            return Refusal(E.INVALID_REPLICA_ASSIGNMENT, why)
        factor = len(without(old.replicas, old.removing_replicas))
        if not may_change_factor and len(target) != factor:
            changed = f"The replication factor is changed from {factor} to {len(target)}"
            return Refusal(E.INVALID_REPLICATION_FACTOR, changed)
    rules = basis.rules(topic)
    assignment = towards(old, target, original, basis)
    refused = why_unsafe(f"{name}:{row.partition_index}", old, assignment, rules)
    if refused is not None:
        return Refusal(E.INVALID_REPLICA_ASSIGNMENT, refused)
    return plan_change(at, old, Wish(assignment=assignment), rules)


def towards(old: Partition, target: Nodes, original: Nodes, basis: Basis) -> Assignment:
    """From the replicas that a partition had to those that it will have. Replicas that an earlier reassignment
    was adding, and that are not wanted now, go at once."""
    assert target
    removing = without(original, target)
    replicas = (*target, *removing)
    assert len(set(replicas)) == len(replicas)
    known = dict(zip(old.replicas, old.directories, strict=True))
    directories = tuple(known[node] if node in known else basis.directories((node,))[0] for node in replicas)
    return Assignment(replicas, without(target, original), removing, directories, original)


def why_unsafe(name: str, old: Partition, assignment: Assignment, rules: Rules) -> str | None:
    """Who leaves at once may be in the ISR, or eligible, and hold all that was committed. What is left must carry the
    partition on: the ISR alone if members leave it; and if only eligible replicas leave, these and the ISR together,
    which is too small already."""
    assert len(assignment.replicas) == len(assignment.directories)
    isr, elr, last_known = (within(ids, assignment.replicas) for ids in (old.isr, old.elr, old.last_known_elr))
    keeps_isr, keeps_elr = len(isr) == len(old.isr), len(elr) == len(old.elr)
    if isr or elr:
        if keeps_isr and keeps_elr:
            return None
        there, left = f"in-sync replicas {list(old.isr)}", isr
        if keeps_isr:
            there, left = f"in-sync and eligible replicas {[*old.isr, *old.elr]}", (*isr, *elr)
        needed = effective_min_isr(rules.min_isr, assignment.replicas, assignment.adding)
        if len(left) >= needed:
            return None
        return (
            f"Unable to change the assignment of {name} now: of its {there} only {list(left)} would be left, and "
            f"min.insync.replicas is {needed}. Wait until more replicas are in sync."
        )
    if keeps_isr and keeps_elr and len(last_known) == len(old.last_known_elr):
        return None  # Nobody could lead cleanly before, and all who are known to have had everything are still asked.
    located = zip(assignment.replicas, assignment.directories, strict=True)
    if rules.last_resort is LastResort.ANYBODY and any(rules.is_acceptable(*replica) for replica in located):
        return None
    return f"Unable to revert partition assignment for {name} because it would require an unclean leader election."


def completions(basis: Basis) -> list[PartitionChangeRecord]:
    """Reassignments that may end by now, though nobody has proposed an ISR: min ISR is lower than it was."""
    changes = []
    for topic in basis.image.topics.values():
        for index, partition in topic.partitions.items():
            if partition.is_moving:
                at = TopicIdPartition(topic.topic_id, index)
                changes.append(plan_change(at, partition, Wish(), basis.rules(topic)))
    return [change for change in changes if change is not None]


# --- what goes on


def plan_list(request: ListPartitionReassignmentsRequest, basis: Basis) -> Plan:
    topics: list[OngoingTopicReassignment] = []
    if request.topics is None:
        wanted = [(topic, list(topic.partitions)) for topic in basis.image.topics.values()]
    else:
        named = [(basis.image.topic_named(row.name), list(row.partition_indexes)) for row in request.topics]
        wanted = [(topic, indexes) for topic, indexes in named if topic is not None]
    for topic, indexes in wanted:
        moving = [(i, topic.partitions[i]) for i in indexes if i in topic.partitions and topic.partitions[i].is_moving]
        if moving:
            rows = tuple(ongoing(i, partition, basis.rules(topic), basis) for i, partition in moving)
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=rows))
    return Plan((), ListPartitionReassignmentsResponse(topics=tuple(topics)))


def ongoing(index: int, partition: Partition, rules: Rules, basis: Basis) -> OngoingPartitionReassignment:
    assert partition.is_moving
    return OngoingPartitionReassignment(
        partition_index=index,
        replicas=partition.replicas,
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
        waits_for=why_waiting(partition, rules, basis),
    )


def why_waiting(partition: Partition, rules: Rules, basis: Basis) -> str:
    """For people: what must happen before this reassignment ends (T45)."""
    assert partition.is_moving
    due = why_incomplete(assigned(partition, Wish()), partition.isr, rules)
    if due is None:
        return "a leader from the ISR that it ends with"
    missing, lacking = due
    reasons = [f"replica {node} is not in sync{state_of(node, basis)}" for node in missing]
    if lacking:
        final = without(partition.replicas, partition.removing_replicas)
        needed = effective_min_isr(rules.min_isr, final, ())
        have = list(within(partition.isr, final))
        reasons.append(f"of the replicas that stay {have} are in sync, and min.insync.replicas is {needed}")
    return "; ".join(reasons)


def state_of(node: NodeId, basis: Basis) -> str:
    broker = basis.image.brokers.get(node)
    if broker is None:
        return ", and its broker is not registered"
    return "" if broker.is_active else ", and its broker is fenced or shuts down"
