"""Elections by hand that must ask replicas first: ElectLeaders version 3 (KIP-966, Manual leader election).

A designated replica leads, or the one with the longest log, found in the Balanced way or in the Aggressive. Only where
nobody leads. Each is a recovery that somebody waits for (`recovery.py`); the answer comes when all partitions that were
asked for have leaders, or the time of the request is up: then who has answered is chosen from, and what has no leader
even so is given up, as it is when the connection closes. Of two requests for a partition the later one counts.
"""

from collections.abc import Iterator

from msgspec import Struct

from strandline.base.effects import Received, ReplyTo
from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.base.time import NEVER, Instant, after
from strandline.controller.basis import Basis, Refusal
from strandline.controller.partitions.elections import sought
from strandline.controller.partitions.recovery import Recoveries
from strandline.metadata.image import Image
from strandline.metadata.strategy import Strategy
from strandline.wire.messages.topics.elect_leaders import (
    DESIGNATION,
    LONGEST_LOG_AGGRESSIVE,
    LONGEST_LOG_BALANCED,
    OWN_VERSION,
    PARTITIONS_MAX,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

E = ErrorCode
WAYS = {
    DESIGNATION: ("designation", Strategy.AGGRESSIVE),
    LONGEST_LOG_BALANCED: ("longest_log_balanced", Strategy.BALANCED),
    LONGEST_LOG_AGGRESSIVE: ("longest_log_aggressive", Strategy.AGGRESSIVE),
}

Place = tuple[str, int]  # topic, partition


class Asked(Struct):
    """A request that is not answered yet."""

    to: ReplyTo
    request: ElectLeadersRequest
    ends: Instant
    results: dict[Place, PartitionResult]
    waiting: dict[TopicIdPartition, Place]


class Manual:
    def __init__(self, recoveries: Recoveries) -> None:
        self.recoveries = recoveries
        self.asked: list[Asked] = []

    def begin(self, event: Received, basis: Basis) -> None:
        request: ElectLeadersRequest = event.message
        asked = Asked(event.to, request, after(basis.now, request.timeout_ms), {}, {})
        self.asked.append(asked)
        way, strategy = WAYS[request.election_type]
        cause = f"{way} election, asked for by {request.asked_by or event.caller.named}"
        for count, (name, index, designated) in enumerate(wanted(request, basis)):
            outcome = why_not(name, index, designated, request, basis)
            if count >= PARTITIONS_MAX:
                outcome = Refusal(E.REQUEST_LIMIT_REACHED, message_of(E.REQUEST_LIMIT_REACHED))
            if isinstance(outcome, Refusal):
                if request.topic_partitions is not None or outcome.error is not E.ELECTION_NOT_NEEDED:
                    asked.results[(name, index)] = result(index, outcome.error, outcome.message)
                continue
            self.withdraw(outcome)
            assert len(asked.waiting) < PARTITIONS_MAX
            asked.waiting[outcome] = (name, index)
            leader = NOBODY if designated is None else NodeId(designated)
            self.recoveries.begin_manual(outcome, strategy, leader, cause, asked.ends)

    def withdraw(self, at: TopicIdPartition) -> None:
        """Another election is wanted of this partition: what was asked for earlier no longer counts."""
        for asked in self.asked:
            place = asked.waiting.pop(at, None)
            if place is not None:
                why = "another election of it was asked for in the meantime"
                asked.results[place] = result(at.partition, E.ELIGIBLE_LEADERS_NOT_AVAILABLE, why)

    def disconnected(self, connection: int) -> None:
        """Nobody waits any more for what was asked over this connection: what follows is not what somebody wants."""
        for asked in [asked for asked in self.asked if asked.to.connection == connection]:
            self.asked.remove(asked)
            for at in asked.waiting:
                self.recoveries.give_up(at)

    def done(self, image: Image, now: Instant) -> Iterator[tuple[Asked, ElectLeadersResponse]]:
        """The requests that can be answered by now."""
        for asked in list(self.asked):
            for at, (name, index) in list(asked.waiting.items()):
                partition = image.partition(at)
                if partition is None:
                    asked.results[(name, index)] = result(index, E.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted")
                elif partition.leader != NOBODY:
                    asked.results[(name, index)] = result(index, E.NONE, None)
                elif asked.ends <= now:
                    why = "the replicas that must be asked did not all answer in time; no leader was elected"
                    asked.results[(name, index)] = result(index, E.REQUEST_TIMED_OUT, why)
                else:
                    continue
                del asked.waiting[at]
                self.recoveries.give_up(at)
            if not asked.waiting:
                self.asked.remove(asked)
                yield asked, response_of(asked)

    def deadline(self) -> Instant:
        return min([asked.ends for asked in self.asked]) if self.asked else NEVER


def is_manual(request: object, version: int) -> bool:
    return isinstance(request, ElectLeadersRequest) and request.election_type in WAYS and version >= OWN_VERSION


def wanted(request: ElectLeadersRequest, basis: Basis) -> Iterator[tuple[str, int, int | None]]:
    """Topic, partition, and who is designated."""
    if request.topic_partitions is None:
        for topic in basis.image.topics.values():
            for index in topic.partitions:
                yield topic.name, index, None
        return
    for row in request.topic_partitions:
        designated = (request.election_type == DESIGNATION and row.designated_leaders) or ()
        for position, index in enumerate(row.partitions):
            yield row.topic, index, designated[position] if position < len(designated) else None


def why_not(
    name: str, index: int, designated: int | None, request: ElectLeadersRequest, basis: Basis
) -> Refusal | TopicIdPartition:
    """The partition that needs a leader, or why none can be elected."""
    found = sought(name, index, basis)
    if isinstance(found, Refusal):
        return found
    topic, partition = found
    if partition.leader != NOBODY:
        return Refusal(E.ELECTION_NOT_NEEDED, message_of(E.ELECTION_NOT_NEEDED))
    if request.election_type == DESIGNATION:
        if designated is None:
            return Refusal(E.INVALID_REQUEST, f"No leader is designated for {name}-{index}")
        if designated not in partition.replicas:
            return Refusal(E.INVALID_REQUEST, f"Broker {designated} has no replica of {name}-{index}")
        if not basis.image.lives(NodeId(designated), partition):
            return Refusal(
                E.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"The replica of {name}-{index} on {designated} is offline"
            )
    elif request.election_type == LONGEST_LOG_BALANCED and not (
        partition.isr or partition.elr or partition.last_known_elr
    ):
        why = f"The replicas of {name}-{index} that were eligible last are unknown, so Balanced cannot wait for them"
        return Refusal(E.ELIGIBLE_LEADERS_NOT_AVAILABLE, why)
    return TopicIdPartition(topic.topic_id, index)


def result(index: int, error: ErrorCode, message: str | None) -> PartitionResult:
    assert (error is E.NONE) == (message is None)
    return PartitionResult(partition_id=index, error_code=error, error_message=message)


def response_of(asked: Asked) -> ElectLeadersResponse:
    assert not asked.waiting, "all that was asked for has a result"
    topics: dict[str, list[PartitionResult]] = {}
    for (name, _), found in sorted(asked.results.items()):
        topics.setdefault(name, []).append(found)
    return ElectLeadersResponse(
        replica_election_results=tuple(
            ReplicaElectionResult(topic=name, partition_result=tuple(rows)) for name, rows in topics.items()
        )
    )
