"""Replicas over the wire: what each broker that has one shows of its own log, up to its own high watermark.

Followers answer for themselves (KIP-392), so that replicas can be compared without their disks. Segments, positions
and directories are not known here, and neither is what lies above the high watermark.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql.datasource import InputPartition

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import (
    CorruptRecords,
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    TimedOut,
    TopicIdChanged,
    UnknownTopic,
    Unreachable,
)
from strandline.wire.messages.topics.metadata import MetadataRequest
from strandline_spark.decode import Origin, walk
from strandline_spark.decode.heads import BASE, DELTA
from strandline_spark.replica.errors import LogChanged
from strandline_spark.replica.located import Replica
from strandline_spark.replica.options import Request
from strandline_spark.replica.planning import Unplanned
from strandline_spark.replica.walking import BAD_CRC, CORRUPT, MISPLACED, SOUND, Damage, Judged, crcs_ok, fallen
from strandline_spark.replica.windows import Window

FETCH_BYTES = 4 << 20
RANGES_MAX = 1024  # of one replica
FETCHED_AT_PLANNING = 1 << 16
PATIENCE_MS = 5_000  # with one broker, while a read is planned
HURRY_MS = 500  # with each further log, once a broker that answers did not give one
CHANGES = (OffsetOutOfRange, LogTruncated, TopicIdChanged, UnknownTopic)


class Offsets(NamedTuple):
    """Batches of a replica whose last offsets lie in [start, end)."""

    replica: Replica
    start: int
    end: int

    @property
    def origin(self) -> Origin:
        r = self.replica
        return Origin(r.topic, r.partition, None, None, r.broker, None, r.topic_id)


class Ranges(InputPartition):
    """One split."""

    def __init__(self, ranges: list[Offsets]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


# --- planning


class Doubts(NamedTuple):
    """What a plan has learned of logs that it did not get, so as not to wait for each that is like them."""

    silent: dict[int, KafkaError]  # brokers
    patience_ms: dict[int, int]  # with brokers that answer
    gone: dict[str, LogChanged]  # topics


def plan(request: Request, config: ClientConfig) -> list[InputPartition]:
    """One split for each replica that is wanted, more for large ones. Raises `KafkaError`: `Unreachable` for a broker
    that has a replica and does not answer, unless the request wants it as a row."""
    with Cluster(config) as cluster:
        topics = cluster.topics(list(asked_for(request)) or None)
        missing = [name for name in asked_for(request) if name not in topics]
        if missing and must_be_there(request):
            raise UnknownTopic(missing[0])
        doubts = Doubts({}, {}, {})
        splits: list[InputPartition] = []
        for name in sorted(topics):
            for partition, view in sorted(topics[name].partitions.items()):
                if not request.wanted.has(name, partition):
                    continue
                for broker in sorted(view.replicas):
                    replica = Replica(broker, "", name, topics[name].topic_id or None, partition, "")
                    splits += ranges_of(cluster, replica, request, doubts)
    return splits


def asked_for(request: Request) -> tuple[str, ...]:
    """Topics by their names; none: all of them."""
    return request.wanted.topics or tuple(topic for topic, _ in request.wanted.assigned)


def must_be_there(request: Request) -> bool:
    """A topic that a user names. Who is told of changes names partitions, and topics of records, that were there a
    moment ago."""
    return not request.reports_changes or (request.level == "batch" and bool(request.wanted.topics))


def ranges_of(cluster: Cluster, replica: Replica, request: Request, doubts: Doubts) -> Iterator[InputPartition]:
    assert replica.broker is not None
    known = doubts.silent.get(replica.broker) or doubts.gone.get(replica.topic)
    if known is not None:
        yield Unplanned(replica, known)
        return
    try:
        start, end, size = extent(cluster, replica, doubts.patience_ms.get(replica.broker, PATIENCE_MS))
    except (Unreachable, TimedOut) as error:
        if not request.reports_changes:
            raise Unreachable(
                f"the replica of {replica.topic}-{replica.partition} on broker {replica.broker} cannot be read: "
                f"{error.problem}",
                "start the broker; or read the log directories; or get a row about it: option('whenChanged', 'report')",
            ) from None
        if answers(cluster, replica.broker):
            doubts.patience_ms[replica.broker] = HURRY_MS
        else:
            doubts.silent[replica.broker] = error
        yield Unplanned(replica, error)
        return
    except CHANGES as error:
        if not request.reports_changes:
            raise
        changed = changed_log(replica, error)
        view = cluster.topics([replica.topic]).get(replica.topic)
        if view is None or (view.topic_id or None) != replica.topic_id:
            doubts.gone[replica.topic] = changed
        yield Unplanned(replica, changed)
        return
    if start >= end:
        return
    count = min(RANGES_MAX, end - start, max(1, round(size / request.split_bytes)))
    edges = [start + (end - start) * i // count for i in range(count + 1)]
    for low, high in pairwise(edges):
        yield Ranges([Offsets(replica, low, high)])


def answers(cluster: Cluster, broker: int) -> bool:
    """Is it the broker that is silent, or one log that it does not give, whose disk is gone?"""
    try:
        cluster.ask(broker, MetadataRequest(topics=()), timeout_ms=PATIENCE_MS)
    except KafkaError:
        return False
    return True


def extent(cluster: Cluster, replica: Replica, patience_ms: int) -> tuple[int, int, int]:
    """Where the replica's log starts, its high watermark, and about how many bytes lie between."""
    assert replica.broker is not None
    at = (replica.topic, replica.partition)
    more: dict[str, Any] = {
        "replica": replica.broker,
        "max_bytes": FETCHED_AT_PLANNING,
        "wait_ms": 0,
        "topic_id": replica.topic_id,
    }
    offset = 0
    while True:
        try:
            fetched = cluster.fetch(*at, offset, patience_ms=patience_ms, isolation=0, **more)
        except OffsetOutOfRange as error:
            if error.log_start_offset <= offset:
                raise
            offset = error.log_start_offset
            continue
        except CorruptRecords as error:
            return max(error.log_start_offset, offset), error.high_watermark, 0
        start, end = max(fetched.log_start_offset, offset), fetched.high_watermark
        sample = fetched.next_offset - offset
        size = len(fetched.records) * (end - start) // sample if sample > 0 else 0
        return start, end, size


# --- reading


def judged_remotely(cluster: Cluster, offsets: Offsets) -> Iterator[Judged | Damage]:
    """The batches of a range, as a file's, up to the first damage. Raises `LogChanged`."""
    replica, last = offsets.replica, -1
    fetches = cluster.read(
        replica.topic,
        replica.partition,
        offsets.start,
        offsets.end,
        replica=replica.broker,
        topic_id=replica.topic_id,
        isolation=0,
        max_bytes=FETCH_BYTES,
    )
    try:
        for fetched in fetches:
            heads = walk(fetched.records)
            table = heads.table
            ends = table[:, BASE] + table[:, DELTA]
            table = table[(ends >= offsets.start) & (ends < offsets.end)]
            if not len(table):
                continue
            crc_ok = crcs_ok(table, fetched.records)
            faults = np.where(crc_ok, SOUND, BAD_CRC)
            bases, lasts = table[:, BASE].tolist(), (table[:, BASE] + table[:, DELTA]).tolist()
            if bases[0] <= last or any(base <= end for base, end in zip(bases[1:], lasts, strict=False)):
                faults = np.where(crc_ok & fallen(bases, lasts, (~crc_ok).tolist(), last, None), MISPLACED, faults)
            last = max([last, *(end for end, fault in zip(lasts, faults.tolist(), strict=True) if fault == SOUND)])
            yield Judged(Window(fetched.records, 0, heads, None), table, crc_ok, faults)
    except CorruptRecords as error:
        yield Damage(error.offset, error.size, CORRUPT)
    except CHANGES as error:
        raise changed_log(replica, error) from None


def changed_log(replica: Replica, error: KafkaError) -> LogChanged:
    return LogChanged(f"{replica.topic}-{replica.partition} on broker {replica.broker}: {error.problem}")
