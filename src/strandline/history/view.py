"""A history, sorted for one key: every check looks at one key at a time, so that large histories can be split by it."""

from collections.abc import Iterable

from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write


class Session:
    """What one process read from one place on, without being sent elsewhere."""

    def __init__(self, process: str, began_ms: int) -> None:
        self.process = process
        self.began_ms = began_ms
        self.polls: list[tuple[Operation, tuple[Read, ...]]] = []

    def reads(self) -> Iterable[Read]:
        for _, reads in self.polls:
            yield from reads


class Sent:
    """One value that somebody tried to write."""

    __slots__ = ("operation", "write")

    def __init__(self, operation: Operation, write: Write) -> None:
        self.operation = operation
        self.write = write

    @property
    def is_acknowledged(self) -> bool:
        return self.operation.outcome is Outcome.OK and self.operation.acks != 0


class View:
    """Everything of one key. `trimmed`: records below this offset may have been deleted at a user's wish."""

    def __init__(self, key: Key, trimmed: int = 0) -> None:
        self.key = key
        self.trimmed = trimmed
        self.sent: list[Sent] = []  # in the order in which the operations ended
        self.sessions: list[Session] = []
        self.open: dict[str, Session] = {}  # by process
        self.offsets: dict[bytes, dict[int, None]] = {}  # where each value was read
        self.values: dict[int, dict[bytes, None]] = {}  # what was read at each offset
        self.writers: dict[bytes, Operation] = {}
        self.order: list[int] | None = None

    def sends(self, operation: Operation, write: Write) -> None:
        self.sent.append(Sent(operation, write))
        self.writers[write.value] = operation

    def polls(self, operation: Operation, reads: tuple[Read, ...]) -> None:
        session = self.open.get(operation.process)
        if session is None:
            session = self.open[operation.process] = Session(operation.process, operation.began_ms)
            self.sessions.append(session)
        session.polls.append((operation, reads))
        for read in reads:
            self.offsets.setdefault(read.value, {})[read.offset] = None
            self.values.setdefault(read.offset, {})[read.value] = None

    def is_read(self, value: bytes) -> bool:
        return value in self.offsets

    @property
    def version_order(self) -> list[int]:
        """The offsets at which something was read, sorted: what stands between two of them may be nothing."""
        if self.order is None or len(self.order) != len(self.values):
            self.order = sorted(self.values)
        return self.order

    def writers_of(self, *values: bytes) -> tuple[Operation, ...]:
        return tuple(self.writers[value] for value in values if value in self.writers)


def views(operations: Iterable[Operation], trimmed: dict[Key, int] | None = None) -> dict[Key, View]:
    """The views of all keys, in one pass."""
    starts = trimmed or {}
    found: dict[Key, View] = {}

    def view(key: Key) -> View:
        if key not in found:
            found[key] = View(key, starts.get(key, 0))
        return found[key]

    for operation in operations:
        for write in operation.writes:
            view(write.key).sends(operation, write)
        if operation.kind is Kind.ASSIGN:
            for known in found.values():
                known.open.pop(operation.process, None)
        by_key: dict[Key, list[Read]] = {}
        for read in operation.reads:
            by_key.setdefault(read.key, []).append(read)
        for key, reads in by_key.items():
            view(key).polls(operation, tuple(reads))
    return found
