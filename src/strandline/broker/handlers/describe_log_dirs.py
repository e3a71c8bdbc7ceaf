"""DescribeLogDirs: this broker's log directories, the logs in them, and what room there is (KIP-113, KIP-827).

A directory that is offline is a row with KAFKA_STORAGE_ERROR, and nothing is known of what lies in it.

Kafka's offset lag of a replica is behind the high watermark that it has heard of, which may be as old as its log. So
who asks for followers is told by leaders how far each one out of sync is behind the leader's log: by the same offsets
that decide who is in sync.
"""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort, broker_of
from strandline.log.log import Log
from strandline.replica.config import LogDir
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader, ReplicaState
from strandline.replica.storage.cordoned import cordoned
from strandline.replica.storage.moving.future import Future
from strandline.wire.messages.cluster.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
    FollowerOutOfSync,
)

Wanted = dict[str, tuple[int, ...]]


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    broker = broker_of(node)
    request: DescribeLogDirsRequest = received.message
    wanted: Wanted | None = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            wanted[topic.topic] = wanted.get(topic.topic, ()) + topic.partitions
    host = broker.replicas.host
    moving = broker.replicas.futures.moving
    lying: dict[str, list[tuple[str, DescribeLogDirsPartition]]] = {}
    for hosted in host.partitions.all():
        if wanted is not None and hosted.name.partition not in wanted.get(hosted.name.topic, ()):
            continue
        lying.setdefault(hosted.directory.path, []).append((hosted.name.topic, row_of(hosted, request.with_followers)))
        future = moving.get(hosted.at)
        if future is not None:
            lying.setdefault(future.directory.path, []).append((hosted.name.topic, future_row(hosted, future)))
    directories = broker.directories
    closed = cordoned(host)
    known = {*(log_dir.path for log_dir in directories.live), *directories.offline}
    assert lying.keys() <= known, "each log lies in a directory that is described"
    results = [describe(node, log_dir, lying.get(log_dir.path, []), log_dir in closed) for log_dir in directories.live]
    results += [offline(log_dir) for log_dir in directories.offline.values()]
    assert len({row.log_dir for row in results}) == len(results), "each directory is described once"
    results.sort(key=lambda row: row.log_dir)
    return [Reply(received.to, DescribeLogDirsResponse(results=tuple(results)))]


def offline(log_dir: LogDir) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir.path)


def describe(
    node: NodePort, log_dir: LogDir, logs: list[tuple[str, DescribeLogDirsPartition]], is_cordoned: bool
) -> DescribeLogDirsResult:
    broker = broker_of(node)
    try:
        total, usable = broker.disk.usage(log_dir.path)
    except DiskError:
        return offline(log_dir)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for topic, row in logs:
        topics.setdefault(topic, []).append(row)
    return DescribeLogDirsResult(
        log_dir=log_dir.path,
        topics=tuple(DescribeLogDirsTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()),
        total_bytes=total,
        usable_bytes=usable,
        is_cordoned=is_cordoned,
    )


def row_of(hosted: Hosted, with_followers: bool) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=hosted.name.partition,
        partition_size=hosted.log.size_bytes,
        offset_lag=max(0, hosted.high_watermark - hosted.log.log_end_offset),
        followers=out_of_sync(hosted.role) if with_followers and isinstance(hosted.role, Leader) else None,
    )


def out_of_sync(leader: Leader) -> tuple[FollowerOutOfSync, ...]:
    """The followers outside the ISR, and what each lacks of the log."""
    return tuple(
        FollowerOutOfSync(replica_id=node) if state.log_end_offset < 0 else lacking(leader.log, node, state)
        for node, state in leader.followers.items()
        if node not in leader.isr.isr
    )


def lacking(log: Log, node: NodeId, state: ReplicaState) -> FollowerOutOfSync:
    """In offsets: where a cleaner was at work there are fewer records."""
    assert state.log_end_offset >= 0, "what it has is known"
    has = max(state.log_end_offset, log.log_start_offset)
    try:
        lag_bytes = log.bytes_from(has)
    except DiskError:
        lag_bytes = -1  # who appends or reads next finds that, and takes the directory offline
    return FollowerOutOfSync(
        replica_id=node,
        log_end_offset=state.log_end_offset,
        lag_records=max(0, log.log_end_offset - has),
        lag_bytes=lag_bytes,
    )


def future_row(hosted: Hosted, future: Future) -> DescribeLogDirsPartition:
    """Its lag is what it still has to copy of the current log."""
    return DescribeLogDirsPartition(
        partition_index=hosted.name.partition,
        partition_size=future.log.size_bytes,
        offset_lag=max(0, hosted.log.log_end_offset - future.log.log_end_offset),
        is_future_key=True,
    )
