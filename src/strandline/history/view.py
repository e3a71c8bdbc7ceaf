"""A history, sorted for one key: every check looks at one key at a time, so that large histories can be split by it."""

from collections.abc import Iterable

from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write, by_key


class Session:
    """What one process read from one place on, without being sent elsewhere."""

    def __init__(self, process: str, began_ms: int) -> None:
        self.process = process
        self.began_ms = began_ms
        self.polls: list[Operation] = []

    @property
    def ended_ms(self) -> int:
        return self.polls[-1].ended_ms

    def reads(self) -> Iterable[Read]:
        for operation in self.polls:
            yield from operation.reads


class Sent:
    """One value that somebody tried to write."""

    __slots__ = ("is_acknowledged", "operation", "write")

    def __init__(self, operation: Operation, write: Write) -> None:
        self.operation = operation
        self.write = write
        self.is_acknowledged = operation.outcome is Outcome.OK and operation.acks != 0

    @property
    def is_transactional(self) -> bool:
        return bool(self.operation.transactional_id)


class View:
    """Everything of one key, from the operations on it (and on nothing else) in the order in which they ended.

    `trimmed`: records below this offset may have been deleted at a user's wish. `final`: a process that has read all of
    the key, from the log's start to its end, after everything else was over; empty if nobody has.

    A right log has one value at each offset, and each value at one offset. So the first of each is kept plainly, and
    the others, if there are any, apart.
    """

    def __init__(self, key: Key, operations: Iterable[Operation], trimmed: int = 0, final: str = "") -> None:
        self.key = key
        self.trimmed = trimmed
        self.final = final
        self.sent: list[Sent] = []
        self.sessions: list[Session] = []
        self.open: dict[str, Session] = {}  # by process
        self.writers: dict[bytes, Sent] = {}
        self.values: dict[int, bytes] = {}  # by offset: what was first read there
        self.readers: dict[int, Operation] = {}  # by offset: who read that
        self.offsets: dict[bytes, int] = {}  # by value: where it was first read
        self.rivals: dict[int, dict[bytes, Operation]] = {}  # by offset: what else was read there, and who did first
        self.copies: dict[bytes, list[int]] = {}  # by value: where else it was read
        self.committed: dict[int, None] = {}  # offsets of which a read_committed reader got something
        for operation in operations:
            self.take(operation)
        self.version_order = sorted(self.values)
        self.committed_order = sorted(offset for offset in self.values if self.is_committed(offset))

    def take(self, operation: Operation) -> None:
        for write in operation.writes:
            sent = Sent(operation, write)
            self.sent.append(sent)
            self.writers[write.value] = sent
        if operation.kind is Kind.ASSIGN:
            self.open.pop(operation.process, None)
        if not operation.reads:
            return
        session = self.open.get(operation.process)
        if session is None:
            session = self.open[operation.process] = Session(operation.process, operation.began_ms)
            self.sessions.append(session)
        session.polls.append(operation)
        for read in operation.reads:
            self.read(operation, read.offset, read.value)

    def read(self, operation: Operation, offset: int, value: bytes) -> None:
        if operation.is_read_committed:
            self.committed[offset] = None
        known = self.values.setdefault(offset, value)
        if known != value:
            self.rivals.setdefault(offset, {}).setdefault(value, operation)
        elif offset not in self.readers:
            self.readers[offset] = operation
        place = self.offsets.setdefault(value, offset)
        if place != offset:
            copies = self.copies.setdefault(value, [])
            if offset not in copies:
                copies.append(offset)

    # --- questions

    @property
    def final_session(self) -> Session | None:
        """None also if the final reader found nothing."""
        own = [session for session in self.sessions if self.final and session.process == self.final]
        return own[-1] if own else None

    def is_read(self, value: bytes) -> bool:
        return value in self.offsets

    def is_committed(self, offset: int) -> bool:
        """Must a read_committed reader get what stands there? For an open or aborted transaction that is unknown."""
        if offset in self.committed:
            return True
        writer = self.writers.get(self.values[offset])
        return writer is None or not writer.is_transactional or writer.operation.outcome is Outcome.OK

    def offsets_of(self, value: bytes) -> tuple[int, ...]:
        """Where it was read."""
        return (self.offsets[value], *self.copies.get(value, ())) if value in self.offsets else ()

    def values_at(self, offset: int) -> tuple[bytes, ...]:
        """What was read there."""
        return (self.values[offset], *self.rivals.get(offset, ())) if offset in self.values else ()

    def reader_of(self, offset: int, value: bytes) -> Operation:
        """Who read that there first."""
        return self.readers[offset] if self.values[offset] == value else self.rivals[offset][value]

    def writers_of(self, *values: bytes) -> tuple[Operation, ...]:
        return tuple(self.writers[value].operation for value in values if value in self.writers)


def views(
    operations: Iterable[Operation], trimmed: dict[Key, int] | None = None, finals: dict[Key, str] | None = None
) -> Iterable[View]:
    """One after another, so that only one is in memory at a time."""
    starts, last = trimmed or {}, finals or {}
    for key, own in by_key(operations).items():
        yield View(key, own, starts.get(key, 0), last.get(key, ""))
