"""The quorum's messages about the one partition that it replicates: built, and taken apart.

Every message of Raft's has a list of topics with a list of partitions; ours are always exactly one of each.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NodeId, Uuid
from strandline.base.time import Instant
from strandline.quorum.ports import EpochEnd, SnapshotId
from strandline.wire.control import LeaderChangeMessage, Voter, build_control
from strandline.wire.messages.quorum import begin_quorum_epoch as begin
from strandline.wire.messages.quorum import end_quorum_epoch as end
from strandline.wire.messages.quorum import fetch_snapshot as snap
from strandline.wire.messages.quorum import vote
from strandline.wire.messages.records import fetch
from strandline.wire.schema import RecordsValue

VOTE, BEGIN, END, FETCH, FETCH_SNAPSHOT = 2, 1, 1, 18, 1  # the versions that we send
LISTENER = "CONTROLLER"


def only_partition(topics: Sequence[Any]) -> Any | None:
    """The partition that a message is about; None if it is not about the metadata partition alone."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    name = getattr(topic, "topic_name", "") or getattr(topic, "topic", "") or getattr(topic, "name", "")
    if name != METADATA_TOPIC and getattr(topic, "topic_id", None) != METADATA_TOPIC_ID:
        return None
    index = getattr(partition, "partition_index", None)
    index = getattr(partition, "partition", None) if index is None else index
    index = getattr(partition, "index", None) if index is None else index
    return partition if index == 0 else None


class Leading:
    """The leader, which every answer names."""

    __slots__ = ("endpoint", "epoch", "leader")

    def __init__(self, leader: NodeId, epoch: int, endpoint: Endpoint | None) -> None:
        self.leader = leader
        self.epoch = epoch
        self.endpoint = endpoint


# --- Vote


def vote_request(
    *, cluster_id: str, voter: NodeId, me: NodeId, directory_id: Uuid, epoch: int, last: EpochEnd, pre_vote: bool
) -> vote.VoteRequest:
    partition = vote.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=me,
        replica_directory_id=directory_id,
        last_offset_epoch=last.epoch,
        last_offset=last.end_offset,
        pre_vote=pre_vote,
    )
    topic = vote.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return vote.VoteRequest(cluster_id=cluster_id, voter_id=voter, topics=(topic,))


def vote_refused(error: ErrorCode) -> vote.VoteResponse:
    assert error is not ErrorCode.NONE
    return vote.VoteResponse(error_code=error)


def vote_response(error: ErrorCode, who: Leading, granted: bool) -> vote.VoteResponse:
    assert not granted or error is ErrorCode.NONE
    partition = vote.PartitionDataResponse(
        partition_index=0, error_code=error, leader_id=who.leader, leader_epoch=who.epoch, vote_granted=granted
    )
    topic = vote.TopicDataResponse(topic_name=METADATA_TOPIC, partitions=(partition,))
    nodes = () if who.endpoint is None else (vote.NodeEndpoint(who.leader, who.endpoint.host, who.endpoint.port),)
    return vote.VoteResponse(topics=(topic,), node_endpoints=nodes)


# --- BeginQuorumEpoch, EndQuorumEpoch


def begin_request(
    *, cluster_id: str, voter: NodeId, me: NodeId, epoch: int, endpoint: Endpoint
) -> begin.BeginQuorumEpochRequest:
    assert epoch > 0, "a leader was elected"
    partition = begin.PartitionData(partition_index=0, leader_id=me, leader_epoch=epoch)
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter,
        topics=(begin.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=(begin.LeaderEndpoint(LISTENER, endpoint.host, endpoint.port),),
    )


def begin_refused(error: ErrorCode) -> begin.BeginQuorumEpochResponse:
    assert error is not ErrorCode.NONE
    return begin.BeginQuorumEpochResponse(error_code=error)


def begin_response(error: ErrorCode, who: Leading) -> begin.BeginQuorumEpochResponse:
    partition = begin.PartitionDataResponse(
        partition_index=0, error_code=error, leader_id=who.leader, leader_epoch=who.epoch
    )
    topic = begin.TopicDataResponse(topic_name=METADATA_TOPIC, partitions=(partition,))
    nodes = () if who.endpoint is None else (begin.NodeEndpoint(who.leader, who.endpoint.host, who.endpoint.port),)
    return begin.BeginQuorumEpochResponse(topics=(topic,), node_endpoints=nodes)


def end_request(
    *, cluster_id: str, me: NodeId, epoch: int, successors: Sequence[NodeId], endpoint: Endpoint
) -> end.EndQuorumEpochRequest:
    assert me not in successors
    partition = end.PartitionData(
        partition_index=0,
        leader_id=me,
        leader_epoch=epoch,
        preferred_successors=tuple(successors),
        preferred_candidates=tuple(end.ReplicaInfo(candidate_id=node) for node in successors),
    )
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=(end.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=(end.LeaderEndpoint(LISTENER, endpoint.host, endpoint.port),),
    )


def end_refused(error: ErrorCode) -> end.EndQuorumEpochResponse:
    assert error is not ErrorCode.NONE
    return end.EndQuorumEpochResponse(error_code=error)


def end_response(error: ErrorCode, who: Leading) -> end.EndQuorumEpochResponse:
    partition = end.PartitionDataResponse(
        partition_index=0, error_code=error, leader_id=who.leader, leader_epoch=who.epoch
    )
    topic = end.TopicDataResponse(topic_name=METADATA_TOPIC, partitions=(partition,))
    nodes = () if who.endpoint is None else (end.NodeEndpoint(who.leader, who.endpoint.host, who.endpoint.port),)
    return end.EndQuorumEpochResponse(topics=(topic,), node_endpoints=nodes)


# --- Fetch


def fetch_request(
    *,
    cluster_id: str,
    me: NodeId,
    directory_id: Uuid,
    epoch: int,
    last: EpochEnd,
    log_start_offset: int,
    high_watermark: int,
    wait_ms: int,
    size_max: int,
) -> fetch.FetchRequest:
    assert last.end_offset >= log_start_offset
    assert wait_ms >= 0
    assert size_max > 0
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=last.end_offset,
        last_fetched_epoch=last.epoch,
        log_start_offset=log_start_offset,
        partition_max_bytes=size_max,
        replica_directory_id=directory_id,
        high_watermark=high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_id=me,
        replica_state=fetch.ReplicaState(replica_id=me),
        max_wait_ms=wait_ms,
        min_bytes=0,
        max_bytes=size_max,
        topics=(fetch.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
    )


def fetch_refused(error: ErrorCode) -> fetch.FetchResponse:
    assert error is not ErrorCode.NONE
    return fetch.FetchResponse(error_code=error)


def fetch_response(
    error: ErrorCode,
    who: Leading,
    *,
    high_watermark: int = -1,
    log_start_offset: int = -1,
    records: RecordsValue = b"",
    diverging: EpochEnd | None = None,
    snapshot: SnapshotId | None = None,
) -> fetch.FetchResponse:
    assert diverging is None or snapshot is None, "one way to go on"
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        diverging_epoch=fetch.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset)
        if diverging
        else fetch.EpochEndOffset(),
        current_leader=fetch.LeaderIdAndEpoch(leader_id=who.leader, leader_epoch=who.epoch),
        snapshot_id=fetch.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
        if snapshot
        else fetch.SnapshotId(),
        records=records,
    )
    topic = fetch.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    names_leader = error is not ErrorCode.NONE and who.endpoint is not None
    nodes = (
        (fetch.NodeEndpoint(who.leader, who.endpoint.host, who.endpoint.port),) if names_leader and who.endpoint else ()
    )
    return fetch.FetchResponse(responses=(topic,), node_endpoints=nodes)


# --- FetchSnapshot


def snapshot_request(
    *,
    cluster_id: str,
    me: NodeId,
    directory_id: Uuid,
    epoch: int,
    snapshot: SnapshotId,
    position: int,
    size_max: int,
) -> snap.FetchSnapshotRequest:
    assert position >= 0
    assert size_max > 0
    partition = snap.PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=snap.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=directory_id,
    )
    topic = snap.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    return snap.FetchSnapshotRequest(cluster_id=cluster_id, replica_id=me, max_bytes=size_max, topics=(topic,))


def snapshot_refused(error: ErrorCode) -> snap.FetchSnapshotResponse:
    assert error is not ErrorCode.NONE
    return snap.FetchSnapshotResponse(error_code=error)


def snapshot_response(
    error: ErrorCode,
    who: Leading,
    *,
    snapshot: SnapshotId,
    size: int = 0,
    position: int = 0,
    content: RecordsValue = b"",
) -> snap.FetchSnapshotResponse:
    assert 0 <= position <= size
    partition = snap.PartitionSnapshotResponse(
        index=0,
        error_code=error,
        snapshot_id=snap.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        current_leader=snap.LeaderIdAndEpoch(leader_id=who.leader, leader_epoch=who.epoch),
        size=size,
        position=position,
        unaligned_records=content,
    )
    topic = snap.TopicSnapshotResponse(name=METADATA_TOPIC, partitions=(partition,))
    nodes = () if who.endpoint is None else (snap.NodeEndpoint(who.leader, who.endpoint.host, who.endpoint.port),)
    return snap.FetchSnapshotResponse(topics=(topic,), node_endpoints=nodes)


def leader_change(
    me: NodeId, voters: Iterable[NodeId], granting: Iterable[NodeId], base_offset: int, epoch: int, now: Instant
) -> bytes:
    """The control batch with which a leader begins its epoch."""
    assert epoch > 0, "a leader was elected"
    assert base_offset >= 0
    record = LeaderChangeMessage(
        leader_id=me,
        voters=tuple(Voter(voter_id=voter) for voter in voters),
        granting_voters=tuple(Voter(voter_id=voter) for voter in granting),
    )
    return build_control([record], timestamp=now, base_offset=base_offset, leader_epoch=epoch)
