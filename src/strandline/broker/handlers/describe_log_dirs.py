"""DescribeLogDirs: this broker's log directories, the logs in them, and what room there is (KIP-113, KIP-827).

A directory that is offline is a row with KAFKA_STORAGE_ERROR, and nothing is known of what lies in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.replica.config import LogDir
from strandline.replica.future import Future
from strandline.replica.hosted import Hosted
from strandline.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from strandline.broker.node import Node

Wanted = dict[str, tuple[int, ...]]


def answer(node: Node, received: Received, now: Instant) -> list[Effect]:
    del now
    assert node.broker is not None, "a node without the broker role has no broker listener"
    request: DescribeLogDirsRequest = received.message
    wanted: Wanted | None = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            wanted[topic.topic] = wanted.get(topic.topic, ()) + topic.partitions
    host = node.broker.replicas.host
    moving = node.broker.replicas.futures.moving
    lying: dict[str, list[tuple[str, DescribeLogDirsPartition]]] = {}
    for hosted in host.all():
        if wanted is not None and hosted.name.partition not in wanted.get(hosted.name.topic, ()):
            continue
        lying.setdefault(hosted.directory.path, []).append((hosted.name.topic, row_of(hosted)))
        future = moving.get(hosted.at)
        if future is not None:
            lying.setdefault(future.directory.path, []).append((hosted.name.topic, future_row(hosted, future)))
    directories = node.broker.directories
    results = [describe(node, log_dir, lying.get(log_dir.path, [])) for log_dir in directories.live]
    results += [offline(log_dir) for log_dir in directories.offline.values()]
    results.sort(key=lambda row: row.log_dir)
    return [Reply(received.to, DescribeLogDirsResponse(results=tuple(results)))]


def offline(log_dir: LogDir) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir.path)


def describe(node: Node, log_dir: LogDir, logs: list[tuple[str, DescribeLogDirsPartition]]) -> DescribeLogDirsResult:
    assert node.broker is not None
    try:
        total, usable = node.broker.disk.usage(log_dir.path)
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
    )


def row_of(hosted: Hosted) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=hosted.name.partition,
        partition_size=hosted.log.size_bytes,
        offset_lag=max(0, hosted.high_watermark - hosted.log.log_end_offset),
    )


def future_row(hosted: Hosted, future: Future) -> DescribeLogDirsPartition:
    """Its lag is what it still has to copy of the current log."""
    return DescribeLogDirsPartition(
        partition_index=hosted.name.partition,
        partition_size=future.log.size_bytes,
        offset_lag=max(0, hosted.log.log_end_offset - future.log.log_end_offset),
        is_future_key=True,
    )
