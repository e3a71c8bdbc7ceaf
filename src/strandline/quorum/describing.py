"""DescribeQuorum (KIP-595, KIP-836, KIP-853): who votes, who follows, and how far each has come. The leader answers."""

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, NodeId
from strandline.base.time import Instant
from strandline.quorum import messages
from strandline.quorum.roles import Leader, Progress
from strandline.quorum.state import QuorumState
from strandline.wire.messages.cluster.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionDataResponse,
    ReplicaState,
    TopicDataResponse,
)

OBSERVER_SESSION_MS = 300_000  # an observer that is silent for longer is forgotten


def answer(quorum: QuorumState, request: DescribeQuorumRequest, now: Instant) -> DescribeQuorumResponse:
    if messages.only_partition(request.topics) is not None:
        return describe(quorum, now)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=tuple(
            TopicDataResponse(
                topic_name=topic.topic_name,
                partitions=tuple(
                    PartitionDataResponse(partition_index=asked.partition_index, error_code=unknown)
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def describe(quorum: QuorumState, now: Instant) -> DescribeQuorumResponse:
    match quorum.role:
        case Leader() as role:
            partition = PartitionDataResponse(
                leader_id=quorum.me,
                leader_epoch=quorum.epoch,
                high_watermark=quorum.high_watermark,
                current_voters=tuple(
                    myself(quorum, now) if voter == quorum.me else state(voter, role.progress[voter])
                    for voter in role.voters
                ),
                observers=tuple(
                    state(replica, progress)
                    for replica, progress in sorted(role.progress.items())
                    if replica not in role.voters and progress.last_fetch + OBSERVER_SESSION_MS > now
                ),
            )
        case _:
            partition = PartitionDataResponse(
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=quorum.leader_id, leader_epoch=quorum.epoch
            )
    topic = TopicDataResponse(topic_name=METADATA_TOPIC, partitions=(partition,))
    nodes = tuple(
        Node(voter, (Listener(messages.LISTENER, endpoint.host, endpoint.port),))
        for voter, endpoint in quorum.voters.items()
    )
    return DescribeQuorumResponse(topics=(topic,), nodes=nodes)


def myself(quorum: QuorumState, now: Instant) -> ReplicaState:
    assert quorum.is_leader
    return ReplicaState(quorum.me, quorum.directory_id, quorum.log.log_end_offset, now, now)


def state(replica: NodeId, progress: Progress) -> ReplicaState:
    return ReplicaState(
        replica, progress.directory_id, progress.end_offset, progress.last_fetch, progress.last_caught_up
    )
