"""ElectLeaders: somebody wants leaders elected now (KIP-460).

Preferred: the first replica, if it may lead. Unclean: any replica that lives, where nobody leads, whatever the topic
allows; what only others had is lost.

A request that would change more than 10,000 partitions changes none, as in Kafka: POLICY_VIOLATION.
"""

from msgspec.structs import replace

from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import TopicIdPartition
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.controller.partition import Election, LastResort, Wish, plan_change
from strandline.metadata.image import Partition, Topic
from strandline.metadata.records import PartitionChangeRecord
from strandline.wire.messages.topics.elect_leaders import (
    PREFERRED,
    UNCLEAN,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

E = ErrorCode


def plan_elections(request: ElectLeadersRequest, basis: Basis) -> Plan:
    """Null asks for all partitions; then those that have the wished leader are not named in the answer."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        return Plan((), ElectLeadersResponse(error_code=E.INVALID_REQUEST))
    asked = request.topic_partitions
    if asked is None:
        wanted = [(topic.name, tuple(topic.partitions)) for topic in basis.image.topics.values()]
    else:
        wanted = [(row.topic, tuple(row.partitions)) for row in asked]
    records: dict[TopicIdPartition, PartitionChangeRecord] = {}
    topics: list[ReplicaElectionResult] = []
    for name, indexes in wanted:
        results: list[PartitionResult] = []
        for index in indexes:
            outcome = plan_election(name, index, request.election_type, request.asked_by, basis)
            error, message = E.NONE, None
            if isinstance(outcome, Refusal):
                error, message = outcome.error, outcome.message
                if asked is None and error is E.ELECTION_NOT_NEEDED:
                    continue
            else:
                records[TopicIdPartition(outcome.topic_id, outcome.partition_id)] = outcome
                if len(records) > basis.config.max_partitions_per_request:
                    return Plan((), ElectLeadersResponse(error_code=E.POLICY_VIOLATION))
            results.append(PartitionResult(partition_id=index, error_code=error, error_message=message))
        if results or asked is not None:
            topics.append(ReplicaElectionResult(topic=name, partition_result=tuple(results)))
    assert len(records) <= basis.config.max_partitions_per_request
    return Plan(tuple(records.values()), ElectLeadersResponse(replica_election_results=tuple(topics)))


def sought(name: str, index: int, basis: Basis) -> tuple[Topic, Partition] | Refusal:
    """The partition that needs a leader."""
    topic = basis.image.topic_named(name)
    if topic is None:
        return Refusal(E.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        return Refusal(E.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return topic, partition


def plan_election(name: str, index: int, kind: int, asked_by: str, basis: Basis) -> PartitionChangeRecord | Refusal:
    assert kind in (PREFERRED, UNCLEAN), "refused before"
    found = sought(name, index, basis)
    if isinstance(found, Refusal):
        return found
    topic, old = found
    is_there = old.leader == old.replicas[0] if kind == PREFERRED else old.leader >= 0
    if is_there:
        return Refusal(E.ELECTION_NOT_NEEDED, message_of(E.ELECTION_NOT_NEEDED))
    rules = basis.rules(topic)
    if kind == UNCLEAN:
        rules = replace(rules, last_resort=LastResort.ANYBODY)
    cause = "unclean election, asked for" + (f" by {asked_by}" if asked_by else "")
    wish = Wish(election=Election.PREFERRED) if kind == PREFERRED else Wish(cause=cause)
    change = plan_change(TopicIdPartition(topic.topic_id, index), old, wish, rules)
    if change is not None:
        return change
    why = E.PREFERRED_LEADER_NOT_AVAILABLE if kind == PREFERRED else E.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return Refusal(why, message_of(why))
