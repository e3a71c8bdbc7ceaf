"""Records of a topic, read for a person: few of them, within bounds of bytes and time, whatever the topic has."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Protocol

from strandline.base.value import Value
from strandline.client.cluster import EARLIEST, LATEST
from strandline.client.errors import CorruptRecords
from strandline.client.fetching import Fetched
from strandline.client.metadata import Partition
from strandline.client.offsets import Found
from strandline.console.view import INT32_MAX, natural
from strandline.wire.batch import BatchHeader, batches
from strandline.wire.compress import Corrupt
from strandline.wire.record import Record, records

BYTES_MAX = 16 << 20  # that are fetched for one page, and that its records have, decompressed
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

    @property
    def share(self) -> int:
        """How many records each partition may have."""
        return max(self.limit // len(self.partitions), 1)


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
        self.found = 0  # bytes of the page's records
        self.examined = 0

    @property
    def left_ms(self) -> int:
        return max(int((self.until - self.clock()) * 1000), 1)

    @property
    def why_over(self) -> str:
        if self.bytes <= 0:
            return f"{BYTES_MAX >> 20} MiB were read"
        if self.found >= BYTES_MAX:
            return f"the page has {BYTES_MAX >> 20} MiB of records"
        return f"{TIME_S:.0f} s are over" if self.clock() >= self.until else ""


def browse(cluster: Offsets, wanted: Wanted, budget: Budget) -> Page:
    """Raises StrandlineError if the cluster refuses. The oldest first; each partition has its share of the limit, so
    that one with many records does not hide the others."""
    starts, ends = edges(cluster, wanted, budget)
    share = wanted.share
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
        scan = Scan(wanted, partition, begin, end, share, budget)
        scan.read(cluster)
        seen += scan.found
        unread += scan.unread
        following[partition] = scan.position
        if len(scan.found) < share and scan.position < end:
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
        begin = {index: end - wanted.share for index, end in ends.items()}
    return {index: min(max(at, first[index]), ends[index]) for index, at in begin.items()}, ends


class Scan:
    """One partition, from `position` on."""

    def __init__(self, wanted: Wanted, partition: int, begin: int, end: int, limit: int, budget: Budget) -> None:
        assert begin < end and limit > 0
        self.wanted = wanted
        self.partition = partition
        self.position = begin
        self.end = end
        self.limit = limit
        self.budget = budget
        self.found: list[Seen] = []
        self.unread: list[str] = []

    @property
    def is_over(self) -> bool:
        return len(self.found) >= self.limit or self.position >= self.end or bool(self.budget.why_over)

    def read(self, cluster: Offsets) -> None:
        """Raises StrandlineError if the cluster refuses."""
        fetches = cluster.read(
            self.wanted.topic,
            self.partition,
            self.position,
            self.end,
            patience_ms=self.budget.left_ms,
            max_bytes=FETCH_BYTES,
            isolation=UNCOMMITTED,
        )
        with closing(fetches):
            try:
                for fetched in fetches:
                    self.take(fetched)
                    if self.is_over:
                        break
            except CorruptRecords as error:
                self.unread.append(error.problem)
        self.position = min(self.position, self.end)

    def take(self, fetched: Fetched) -> None:
        self.budget.bytes -= len(fetched.records)
        for header in batches(fetched.records):
            try:
                if not self.take_batch(fetched.records, header):
                    return
            except Corrupt as error:
                self.unread.append(f"partition {self.partition}, batch at offset {header.base_offset}: {error}")
            self.position = max(self.position, header.last_offset + 1)
            if self.is_over:
                return  # a few bytes may decompress to much
        self.position = max(self.position, fetched.next_offset)

    def take_batch(self, buffer: memoryview, header: BatchHeader) -> bool:
        """False: it was left before its end, with `position` where to go on."""
        if header.is_control:
            return True
        for record in records(header, buffer, BATCH_BYTES_MAX):
            if record.offset < self.position:
                continue
            if self.budget.examined % LOOK_EVERY == 0 and self.budget.clock() >= self.budget.until:
                return False
            if record.offset >= self.end or len(self.found) >= self.limit or self.budget.found >= BYTES_MAX:
                return False
            self.budget.examined += 1
            self.position = record.offset + 1
            if self.wanted.key is None or record.key == self.wanted.key:
                self.found.append(Seen(self.partition, record, header.is_transactional))
                self.budget.found += size_of(record)
        return True


def size_of(record: Record) -> int:
    """Of its key, its value and its headers' values, in bytes."""
    contents = (record.key, record.value, *(content for _, content in record.headers))
    return sum(len(content) for content in contents if content is not None)


def partitions_in(text: str, known: Sequence[int]) -> tuple[int, ...] | None:
    """Those that are named, or all (empty). None: there is no such one."""
    if not text:
        return tuple(known)
    index = natural(text, INT32_MAX)
    return (index,) if index is not None and index in known else None
