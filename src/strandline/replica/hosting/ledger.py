"""The loss ledger of a broker: what its replicas cut, lacked or may lack of records that were committed, and why.

Each log directory has its own file: a line that says what went before the lines that are kept, and one line for each
event, in JSON. An event is durable before what it is about is done: `write` waits for the disk. That is rare, and
events that come together are written together.

What elections lose is in the metadata log (`metadata.losses`); here is what a replica alone can know.

Invariants:
  - an event that `write` has taken is in its directory's file, and durable
  - at most `LINES_MAX` events of a directory are kept; of older ones, how many they were and how many records they lost
  - a line that makes no sense is kept in a file beside the ledger, and reported; the others stay
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid, parse_uuid, uuid_text
from strandline.base.ports import Disk
from strandline.base.value import Value
from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END, UNKNOWN
from strandline.metadata.records import LossEvent

FILE = "loss-ledger.json"
ASIDE = "loss-ledger.json.unreadable"
VERSION = 0
LINES_MAX = 10_000


class Lost(Value, frozen=True):
    """One event. The topic's name is kept with it: the topic may be gone when it is read."""

    at: TopicIdPartition
    topic: str
    event: LossEvent

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.at.partition)

    @property
    def records(self) -> int:
        """How many are lost for certain."""
        assert self.event.certainty != EXACTLY or self.event.start <= self.event.end, self.topic
        return self.event.end - self.event.start if self.event.certainty == EXACTLY else 0

    @property
    def timeless(self) -> "Lost":
        """A start that finds what the one before it found adds nothing."""
        return Lost(self.at, self.topic, timed(self.event, -1))


Together = dict[Lost, None]  # a partition's events of one moment, without their time


class Line(msgspec.Struct, frozen=True, rename="camel"):
    """An event in the file."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    certainty: int
    replica: int
    old_epoch: int
    new_epoch: int
    time_ms: int
    cause: str


class LedgerHeader(msgspec.Struct, frozen=True, rename="camel"):
    """The first line of the file."""

    version: int
    earlier_events: int = 0  # that are not kept
    earlier_records: int = 0


class LedgerFile:
    """One directory's ledger. Lines are kept as they were found, with fields that we may not know."""

    __slots__ = ("entries", "head")

    def __init__(self) -> None:
        self.head = LedgerHeader(VERSION)
        self.entries: list[tuple[Lost, bytes]] = []

    def content(self) -> bytes:
        return b"".join(line + b"\n" for line in [msgspec.json.encode(self.head), *(line for _, line in self.entries)])

    def with_more(self, lost: Iterable[Lost]) -> "LedgerFile":
        book = LedgerFile()
        every = [*self.entries, *((one, line_of(one)) for one in lost)]
        gone, book.entries = every[:-LINES_MAX], every[-LINES_MAX:]
        assert len(gone) + len(book.entries) == len(every)
        book.head = LedgerHeader(
            VERSION,
            earlier_events=self.head.earlier_events + len(gone),
            earlier_records=self.head.earlier_records + sum(one.records for one, _ in gone),
        )
        return book


class Ledger:
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.books: dict[str, LedgerFile] = {}  # by directory; of one that has failed, what was read and written before
        self.latest: dict[TopicIdPartition, Together] = {}  # of each partition
        self.news: dict[str, None] = {}  # directories with events since `is_news` was last called

    # --- writing

    def load(self, directory: str) -> list[str]:
        """Read a directory's file; returns what is to be reported. Raises DiskError if it cannot be read, or if what
        makes no sense in it cannot be kept."""
        path = f"{directory}/{FILE}"
        content = self.disk.read_file(path)
        if content is None:
            self.books[directory] = LedgerFile()
            return []
        found = LedgerFile()
        unreadable = read(found, content)
        book = self.books[directory] = found.with_more(())
        self.latest |= latest_of(lost for lost, _ in book.entries)
        assert len(book.entries) <= LINES_MAX
        if not unreadable:
            return []
        before = self.disk.read_file(f"{directory}/{ASIDE}") or b""
        self.disk.save(f"{directory}/{ASIDE}", before + b"".join(line + b"\n" for line in unreadable))
        self.disk.save(path, book.content())
        lines = "1 line that makes" if len(unreadable) == 1 else f"{len(unreadable)} lines that make"
        return [f"{path} has {lines} no sense, kept in {directory}/{ASIDE}"]

    def write(self, directory: str, lost: Iterable[Lost]) -> list[Lost]:
        """Returns those that are new, durably written. Raises DiskError if they are not: then nothing that they
        are about may be done."""
        new: list[Lost] = []
        by_partition: dict[TopicIdPartition, Together] = {}
        for one in lost:
            key, together = one.timeless, by_partition.setdefault(one.at, {})
            if key not in together and key not in self.latest.get(one.at, {}):
                new.append(one)
            together[key] = None
        if not new:
            return []
        book = self.books.get(directory, LedgerFile()).with_more(new)
        assert len(book.entries) <= LINES_MAX
        self.disk.save(f"{directory}/{FILE}", book.content())
        self.books[directory] = book
        self.news[directory] = None
        self.latest |= {one.at: by_partition[one.at] for one in new}
        assert all(one.timeless in self.latest[one.at] for one in new)
        if len(self.latest) > 2 * LINES_MAX * len(self.books):
            self.latest = latest_of(self.all())
        return new

    def is_news(self, directory: str) -> bool:
        """Was anything written since this was last asked?"""
        was = directory in self.news
        self.news.pop(directory, None)
        return was

    # --- questions

    def all(self) -> Iterator[Lost]:
        for book in self.books.values():
            for lost, _ in book.entries:
                yield lost

    @property
    def events(self) -> int:
        """Since the ledger began."""
        return sum(book.head.earlier_events + len(book.entries) for book in self.books.values())

    @property
    def records(self) -> int:
        """Lost for certain, each replica's counted by itself, since the ledger began."""
        return sum(
            book.head.earlier_records + sum(lost.records for lost, _ in book.entries) for book in self.books.values()
        )

    def check(self) -> None:
        assert self.news.keys() <= self.books.keys()
        for book in self.books.values():
            assert len(book.entries) <= LINES_MAX
            assert book.head.earlier_events >= 0
            assert book.head.earlier_records >= 0


def latest_of(lost: Iterable[Lost]) -> dict[TopicIdPartition, Together]:
    """What came with each partition's last event."""
    latest: dict[TopicIdPartition, Together] = {}
    times: dict[TopicIdPartition, int] = {}
    for one in lost:
        if times.get(one.at) != one.event.time_ms:
            times[one.at], latest[one.at] = one.event.time_ms, {}
        latest[one.at][one.timeless] = None
    return latest


def timed(event: LossEvent, time_ms: int) -> LossEvent:
    return msgspec.structs.replace(event, time_ms=time_ms)


def line_of(lost: Lost) -> bytes:
    event = lost.event
    assert lost.at.partition >= 0 and event.start >= 0, "`lost_in` would not read it back"
    assert event.certainty in (UNKNOWN, AT_MOST, EXACTLY)
    assert event.start <= event.end or (event.end == NO_END and event.certainty != EXACTLY)
    return msgspec.json.encode(
        Line(
            lost.topic,
            uuid_text(lost.at.topic_id),
            lost.at.partition,
            event.start,
            event.end,
            event.certainty,
            event.replica,
            event.old_epoch,
            event.new_epoch,
            event.time_ms,
            event.cause,
        )
    )


def read(book: LedgerFile, content: bytes) -> list[bytes]:
    """Fill `book`; returns the lines that make no sense."""
    unreadable: list[bytes] = []
    for number, line in enumerate(content.split(b"\n")):
        head = head_in(line) if number == 0 else None
        lost = lost_in(line)
        if head is not None:
            book.head = head
        elif lost is not None:
            book.entries.append((lost, line))
        elif line:
            unreadable.append(line)
    return unreadable


def head_in(line: bytes) -> LedgerHeader | None:
    head = decoded(line, LedgerHeader)
    sound = head is not None and head.version == VERSION and head.earlier_events >= 0 and head.earlier_records >= 0
    return head if sound else None


def lost_in(line: bytes) -> Lost | None:
    found = decoded(line, Line)
    if found is None:
        return None
    try:
        topic_id: Uuid = parse_uuid(found.topic_id)
    except ValueError:
        return None
    is_range = 0 <= found.start <= found.end or (found.end == NO_END and found.start >= 0)
    if found.partition < 0 or found.certainty not in (UNKNOWN, AT_MOST, EXACTLY) or not is_range:
        return None
    if found.certainty == EXACTLY and found.end == NO_END:
        return None
    event = LossEvent(
        start=found.start,
        end=found.end,
        certainty=found.certainty,
        replica=found.replica,
        old_epoch=found.old_epoch,
        new_epoch=found.new_epoch,
        time_ms=found.time_ms,
        cause=found.cause,
    )
    return Lost(TopicIdPartition(topic_id, found.partition), found.topic, event)


def decoded(line: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
