"""The metadata quorum: who leads it, and how far each of its members is, as its leader reports."""

from strandline.base.value import Value
from strandline.client.ask import Servers, ask_any
from strandline.wire.messages.cluster.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    ReplicaState,
    TopicData,
)

QUORUM_VERSION = 1
METADATA_PARTITION = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))


class QuorumMember(Value, frozen=True):
    node: int
    is_voter: bool
    end_offset: int  # of its metadata log; -1: unknown
    fetched_ms: int  # when it fetched last, and when it was caught up last, since 1970; -1: unknown
    caught_up_ms: int


class Quorum(Value, frozen=True):
    leader: int  # -1: none is known
    epoch: int
    high_watermark: int
    members: tuple[QuorumMember, ...]


def describe_quorum(bootstrap: Servers) -> Quorum:
    """Raises StrandlineError, also if no active controller is reached."""
    answer = ask_any(bootstrap, DescribeQuorumRequest(topics=(METADATA_PARTITION,)), QUORUM_VERSION)
    ((row,),) = (topic.partitions for topic in answer.topics)
    members = (*(member(one, True) for one in row.current_voters), *(member(one, False) for one in row.observers))
    return Quorum(row.leader_id, row.leader_epoch, row.high_watermark, members)


def member(state: ReplicaState, is_voter: bool) -> QuorumMember:
    return QuorumMember(
        state.replica_id, is_voter, state.log_end_offset, state.last_fetch_timestamp, state.last_caught_up_timestamp
    )
