"""Samples of a live cluster: who reads what, how far, and how old the next record is.

The ends are asked for after the positions: a reader that is quick shows no lag that never was, one at the end shows a
lag of what came meanwhile at most.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from strandline.pipeline.client import (
    EARLIEST,
    LATEST,
    Cluster,
    CorruptRecords,
    KafkaError,
    OffsetOutOfRange,
    Unreachable,
)
from strandline.pipeline.client.errors import refused
from strandline.pipeline.jobs.lag.positions import Positions
from strandline.pipeline.jobs.lag.queries import progress_of
from strandline.pipeline.jobs.lag.samples import GROUP, QUERY, TOPIC, Ends, Sample, delay_of, sampled
from strandline.wire.batch import BatchHeader, batches
from strandline.wire.messages.list_groups import ListGroupsRequest
from strandline.wire.record import timestamps

PEEK_BYTES = 1  # a broker sends the first batch whole, however large
KNOWN_MAX = 10_000  # timestamps that are remembered
Partition = tuple[str, int]


class Reader:
    """One group or query at one time."""

    def __init__(self, kind: str, name: str, positions: Positions, batch: int | None = None) -> None:
        self.kind = kind
        self.name = name
        self.positions = positions
        self.batch = batch


class Sampler:
    """What is watched. `groups`: None for all that there are; `queries`: name -> checkpoint folder; `topics`: watched
    also where nobody reads them, and only these if `groups` and `queries` name no others."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        groups: Sequence[str] | None = (),
        queries: Mapping[str, str] | None = None,
        topics: Sequence[str] = (),
        isolation: int = 0,
        commit_to: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cluster = cluster
        self.groups = groups
        self.queries = dict(queries or {})
        self.topics = tuple(topics)
        self.isolation = isolation
        self.commit_to = commit_to  # a group that is told the positions of the queries
        self.clock = clock
        self.known: dict[tuple[Partition, int], int | None] = {}  # timestamp of the record at an offset

    def sample(self) -> list[Sample]:
        """One sample of each reader and partition, and one of each watched partition. Raises PipelineError."""
        readers = list(self.readers())
        topics = sorted({topic for reader in readers for topic, _ in reader.positions} | set(self.topics))
        ends = self.ends(topics)
        now = int(self.clock() * 1000)
        made = [sampled(now, TOPIC, "", topic, partition, ends[topic, partition], None) for topic, partition in ends]
        for reader in readers:
            made += self.of_reader(reader, ends, now)
        return made

    def readers(self) -> Iterator[Reader]:
        for group in group_names(self.cluster) if self.groups is None else self.groups:
            committed = self.cluster.offset_fetch(group)
            yield Reader(GROUP, group, {at: row.offset for at, row in committed.items() if row.offset >= 0})
        for name, checkpoint in self.queries.items():
            progress = progress_of(checkpoint)
            if self.commit_to is not None:
                commit_progress(self.cluster, self.commit_to, progress.done)
            yield Reader(QUERY, name, progress.done, progress.batch)

    def ends(self, topics: Sequence[str]) -> dict[Partition, Ends]:
        """Of all partitions that there are; what was deleted meanwhile is left out."""
        found = self.cluster.topics(topics)
        partitions = [(name, number) for name, view in sorted(found.items()) for number in sorted(view.partitions)]
        starts = self.cluster.list_offsets(dict.fromkeys(partitions, EARLIEST), self.isolation)
        latest = self.cluster.list_offsets(dict.fromkeys(partitions, LATEST), self.isolation)
        return {at: Ends(starts[at].offset, latest[at].offset) for at in partitions}

    def of_reader(self, reader: Reader, ends: Mapping[Partition, Ends], now: int) -> Iterator[Sample]:
        own = {topic for topic, _ in reader.positions}
        for (topic, partition), end in ends.items():
            if topic not in own:
                continue
            position = reader.positions.get((topic, partition))
            sample = sampled(now, reader.kind, reader.name, topic, partition, end, position)
            delay = None
            if sample.lag is not None and position is not None:
                first = max(position, end.log_start_offset)
                stamp = self.timestamp_at((topic, partition), first) if sample.lag else None
                delay = delay_of(now, stamp, sample.lag)
            yield replace(sample, delay_ms=delay, batch=reader.batch)

    def timestamp_at(self, where: Partition, offset: int) -> int | None:
        """When the first record at or after `offset` was written, by its timestamp; None if it cannot be told."""
        if (where, offset) not in self.known:
            if len(self.known) >= KNOWN_MAX:
                self.known.clear()
            self.known[where, offset] = self.peek(where, offset)
        return self.known[where, offset]

    def peek(self, where: Partition, offset: int) -> int | None:
        try:
            fetched = self.cluster.fetch(*where, offset, max_bytes=PEEK_BYTES, wait_ms=0, isolation=self.isolation)
        except (OffsetOutOfRange, CorruptRecords):
            return None  # the first: deleted since the ends were asked for
        for header in batches(fetched.records):
            if header.next_offset > offset and not header.is_control:
                return stamp_in(header, fetched.records, offset)
        return None


def stamp_in(header: BatchHeader, records: memoryview, offset: int) -> int:
    """The timestamp of the record at `offset`; where compaction took records of the batch, its first timestamp."""
    if header.is_log_append_time:
        return header.max_timestamp
    stamps = timestamps(header, records) if header.record_count == header.last_offset_delta + 1 else None
    return stamps[max(0, offset - header.base_offset)] if stamps else header.base_timestamp


def group_names(cluster: Cluster) -> list[str]:
    """All groups of consumers, on all brokers that answer: of one that is dead, others have the groups soon. Raises
    KafkaError."""
    found: dict[str, None] = {}
    for broker in sorted(cluster.brokers()):
        try:
            answer = cluster.ask(broker, ListGroupsRequest())
        except Unreachable:
            continue
        if answer.error_code:
            raise refused(answer.error_code, f"broker {broker} does not list its groups")
        found |= {group.group_id: None for group in answer.groups if group.protocol_type in ("consumer", "")}
    return sorted(found)


def commit_progress(cluster: Cluster, group: str, positions: Positions) -> None:
    """Let a group's committed offsets be these, so that tools which show groups show the query. Nobody may be a member
    of the group. Raises KafkaError."""
    if positions:
        try:
            cluster.offset_commit(group, dict(positions))
        except KafkaError as error:
            raise KafkaError(error.code, error.problem, COMMIT_ADVICE) from None


COMMIT_ADVICE = "the group must be one that no consumer is a member of: give it a name of its own"
