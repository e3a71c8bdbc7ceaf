"""GetReplicaLogInfo: how much of each partition's log this broker has (KIP-966).

Who asks wants to elect by it. So the answer says of which incarnation it is (broker epoch), and what the broker knew of
the partition when it answered (current leader epoch): an answer from before the latest election is worth nothing. What
the log ends with is told by the epoch of its last record, not by an epoch that was begun and never written in: of two
logs that end in one epoch, one begins with the other.

At most `PARTITIONS_MAX` are answered; each further one is refused, and to be asked for again. A refusal bears its
partition's index too.
"""

from msgspec import structs

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import ZERO_UUID, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort, broker_of
from strandline.metadata.image import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, Partition, directory_of
from strandline.metadata.registrations import MIGRATING_DIRECTORY
from strandline.replica.hosting.host import Host
from strandline.wire.messages.own.get_replica_log_info import (
    PARTITIONS_MAX,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    TopicPartitionLogInfo,
)


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    broker = broker_of(node)
    request: GetReplicaLogInfoRequest = received.message
    host, repairs = broker.replicas.host, broker.replicas.scrubber.repairs
    uncleanly = broker.lifecycle.identity.previous_broker_epoch < 0
    topics: dict[Uuid, list[PartitionLogInfo]] = {}
    for served, at in enumerate(wanted(host, request)):
        if request.broker_id != node.me:
            row = refused(
                at, ErrorCode.INVALID_REQUEST, f"this is broker {node.me}, and broker {request.broker_id} was asked"
            )
        elif served >= PARTITIONS_MAX:
            row = refused(at, ErrorCode.REQUEST_LIMIT_REACHED, f"a request may ask for {PARTITIONS_MAX} partitions")
        else:
            row = with_damage(row_of(host, at, uncleanly), repairs.first_of(at))
        assert row.partition == at.partition, "also if it is refused"
        topics.setdefault(at.topic_id, []).append(row)
    rows = tuple(
        TopicPartitionLogInfo(topic_id=topic_id, partition_log_info=tuple(found)) for topic_id, found in topics.items()
    )
    epoch = broker.lifecycle.epoch
    return [Reply(received.to, GetReplicaLogInfoResponse(broker_epoch=epoch, topic_partition_log_info_list=rows))]


def wanted(host: Host, request: GetReplicaLogInfoRequest) -> list[TopicIdPartition]:
    if request.topic_partitions is None:
        return list(host.image.hosted.get(host.me, ()))
    return [TopicIdPartition(topic.topic_id, index) for topic in request.topic_partitions for index in topic.partitions]


def row_of(host: Host, at: TopicIdPartition, uncleanly: bool) -> PartitionLogInfo:
    if at.topic_id not in host.image.topics:
        return refused(at, ErrorCode.UNKNOWN_TOPIC_ID)
    partition = host.image.partition(at)
    if partition is None:
        return refused(at, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if host.me not in partition.replicas:
        return refused(at, ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {host.me} has no replica of the partition")
    if at in host.absent:
        return refused(at, why_absent(host, partition))
    hosted = host.partitions.find(at)
    if hosted is None or hosted.role is None:
        return refused(at, ErrorCode.REPLICA_NOT_AVAILABLE, "the replica's log is not in use yet")
    log = hosted.log
    assert log.log_start_offset <= hosted.high_watermark <= log.log_end_offset
    return PartitionLogInfo(
        partition=at.partition,
        last_written_leader_epoch=log.epochs.last_written(log.log_end_offset),
        current_leader_epoch=partition.leader_epoch,
        log_end_offset=log.log_end_offset,
        high_watermark=hosted.high_watermark,
        log_start_offset=log.log_start_offset,
        last_stable_offset=hosted.role.last_stable_offset,
        recovered_uncleanly=uncleanly,
        is_whole=at in host.whole.logs,
    )


def with_damage(row: PartitionLogInfo, damaged: tuple[int, int] | None) -> PartitionLogInfo:
    """What of it cannot be read."""
    if row.error_code or damaged is None:
        return row
    assert damaged[0] < damaged[1]
    return structs.replace(row, damaged_start=damaged[0], damaged_end=damaged[1], is_whole=False)


def why_absent(host: Host, partition: Partition) -> ErrorCode:
    """Its directory is offline, as far as can be known; or it is certainly none that this broker has."""
    directory, offline = directory_of(partition, host.me), host.directories.offline.values()
    has_name = directory not in (UNASSIGNED_DIRECTORY, LOST_DIRECTORY, MIGRATING_DIRECTORY)
    others = [log_dir.directory_id for log_dir in (*host.directories.live, *offline)]
    is_foreign = has_name and directory not in others and ZERO_UUID not in others
    return ErrorCode.LOG_DIR_NOT_FOUND if is_foreign else ErrorCode.KAFKA_STORAGE_ERROR


def refused(at: TopicIdPartition, error: ErrorCode, why: str | None = None) -> PartitionLogInfo:
    assert error is not ErrorCode.NONE
    return PartitionLogInfo(partition=at.partition, error_code=error, error_message=why or message_of(error))
