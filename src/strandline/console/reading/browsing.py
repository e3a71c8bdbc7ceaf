"""Records of a topic, read for a person: few of them, within bounds of bytes and time, whatever the topic has."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Protocol

from strandline.base.value import Value
from strandline.client.cluster import EARLIEST, LATEST
from strandline.client.errors import CorruptRecords
from strandline.client.fetching import Fetched
from strandline.client.metadata import Partition
from strandline.client.offsets import Found
from strandline.wire.batch import BatchHeader, batches
from strandline.wire.compress import Corrupt
from strandline.wire.record import Record, records

BYTES_MAX = 16 << 20  # that are fetched for one page
FETCH_BYTES = 1 << 20
BATCH_BYTES_MAX = 32 << 20  # of one batch, decompressed
TIME_S = 5.0
LIMIT_MAX = 500
PARTITIONS_MAX = 50  # that are read for one page
UNCOMMITTED = 0
LOOK_EVERY = 256  # records between two looks at the clock


class Offsets(Protocol):
    """What is asked of `client.cluster.Cluster`."""

    def list_offsets(
        self, asked: Mapping[Partition, int], isolation: int | None = None, *, patience_ms: int | None = None
    ) -> dict[Partition, Found]: ...

    def read(
        self, topic: str, partition: int, start: int, end: int, *, patience_ms: int | None = None, **how: int
    ) -> Generator[Fetched, None, None]: ...


class Wanted(Value, frozen=True):
    """`positions`: the offset to go on at in each partition; else `start`: "earliest", "latest", "offset" or "time",
    with `number`, the offset or the time in ms. `key`: only records with this key."""

    topic: str
    partitions: tuple[int, ...]
    start: str = "latest"
    number: int = 0
    positions: Mapping[int, int] = {}
    key: bytes | None = None
    limit: int = 50


class Seen(Value, frozen=True):
    partition: int
    record: Record
    is_transactional: bool = False


class Page(Value, frozen=True):
    """`next`: where the following page begins in each partition. `unread`: batches that could not be read, and why.
    `stopped`: why not all was read that was asked for; empty if it was."""

    seen: tuple[Seen, ...] = ()
    next: Mapping[int, int] = {}
    ends: Mapping[int, int] = {}
    examined: int = 0
    unread: tuple[str, ...] = ()
    stopped: str = ""


class Budget:
    """What may still be spent on a page."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.until = clock() + TIME_S
        self.bytes = BYTES_MAX
        self.examined = 0

    @property
    def left_ms(self) -> int:
        return max(int((self.until - self.clock()) * 1000), 1)

    @property
    def why_over(self) -> str:
        if self.bytes <= 0:
            return f"{BYTES_MAX >> 20} MiB were read"
        return f"{TIME_S:.0f} s are over" if self.clock() >= self.until else ""


def browse(cluster: Offsets, wanted: Wanted, budget: Budget) -> Page:
    """Raises StrandlineError if the cluster refuses. The oldest first; each partition has its share of the limit, so
    that one with many records does not hide the others."""
    starts, ends = edges(cluster, wanted, budget)
    share = -(-wanted.limit // len(wanted.partitions))
    seen: list[Seen] = []
    unread: list[str] = []
    following: dict[int, int] = dict(starts)
    stopped = ""
    for partition in wanted.partitions:
        begin, end = starts[partition], ends[partition]
        if begin >= end:
            continue
        stopped = stopped or budget.why_over
        if stopped:
            break
        found, following[partition], why = read_partition(cluster, wanted, partition, begin, end, share, budget)
        seen += found
        unread += why
        if len(found) < share and following[partition] < end:
            stopped = budget.why_over
    seen.sort(key=lambda one: (one.record.timestamp, one.partition, one.record.offset))
    return Page(tuple(seen), following, ends, budget.examined, tuple(unread), stopped)


def edges(cluster: Offsets, wanted: Wanted, budget: Budget) -> tuple[dict[int, int], dict[int, int]]:
    """Where each partition is read from, and up to where."""

    def asked(timestamp: int) -> dict[int, int]:
        rows = {(wanted.topic, index): timestamp for index in wanted.partitions}
        answer = cluster.list_offsets(rows, UNCOMMITTED, patience_ms=budget.left_ms)
        return {index: answer[wanted.topic, index].offset for index in wanted.partitions}

    first, ends = asked(EARLIEST), asked(LATEST)
    if wanted.positions:
        begin = {index: wanted.positions.get(index, ends[index]) for index in wanted.partitions}
    elif wanted.start == "earliest":
        begin = first
    elif wanted.start == "offset":
        begin = dict.fromkeys(wanted.partitions, wanted.number)
    elif wanted.start == "time":
        begin = {index: at if at >= 0 else ends[index] for index, at in asked(wanted.number).items()}
    else:
        share = -(-wanted.limit // len(wanted.partitions))
        begin = {index: end - share for index, end in ends.items()}
    return {index: min(max(at, first[index]), ends[index]) for index, at in begin.items()}, ends


def read_partition(
    cluster: Offsets, wanted: Wanted, partition: int, begin: int, end: int, limit: int, budget: Budget
) -> tuple[list[Seen], int, list[str]]:
    """What was found, the offset to go on at, and what could not be read."""
    found: list[Seen] = []
    unread: list[str] = []
    position = begin
    fetches = cluster.read(
        wanted.topic, partition, begin, end, patience_ms=budget.left_ms, max_bytes=FETCH_BYTES, isolation=UNCOMMITTED
    )
    try:
        for fetched in fetches:
            budget.bytes -= len(fetched.records)
            for header in batches(fetched.records):
                try:
                    position = read_batch(
                        fetched.records, header, wanted, partition, (begin, end), limit, found, budget
                    )
                except Corrupt as error:
                    unread.append(f"partition {partition}, batch at offset {header.base_offset}: {error}")
                    position = header.last_offset + 1
                if len(found) >= limit or (budget.why_over and position <= header.last_offset):
                    return found, position, unread
            position = max(position, fetched.next_offset)
            if budget.why_over:
                break
    except CorruptRecords as error:
        unread.append(error.problem)
    finally:
        fetches.close()
    return found, min(position, end), unread


def read_batch(
    buffer: memoryview,
    header: BatchHeader,
    wanted: Wanted,
    partition: int,
    bounds: tuple[int, int],
    limit: int,
    found: list[Seen],
    budget: Budget,
) -> int:
    """The offset to go on at: behind the batch, unless something stops in it."""
    begin, end = bounds
    if header.is_control:
        return header.last_offset + 1
    for record in records(header, buffer, BATCH_BYTES_MAX):
        if record.offset < begin:
            continue
        if record.offset >= end:
            return end
        budget.examined += 1
        if budget.examined % LOOK_EVERY == 0 and budget.clock() >= budget.until:
            return record.offset
        if wanted.key is None or record.key == wanted.key:
            found.append(Seen(partition, record, header.is_transactional))
            if len(found) >= limit:
                return record.offset + 1
    return header.last_offset + 1


def partitions_in(text: str, known: Sequence[int]) -> tuple[int, ...] | None:
    """Those that are named, or all (empty). None: there is no such one."""
    if not text:
        return tuple(known)
    return (int(text),) if text.isdecimal() and int(text) in known else None
