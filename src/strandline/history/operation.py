"""What clients did, and which answers they got: the raw material of every judgement (Jepsen's histories).

An operation has one process, two instants and an outcome. `FAIL` says that it certainly did not happen; `UNKNOWN` that
it may have happened, or may yet. Topics of one name are different keys: a topic that was deleted and made again is
another one.
"""

from collections.abc import Iterable
from enum import StrEnum

from strandline.base.ids import Uuid
from strandline.base.value import Value


class Outcome(StrEnum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    SEND = "send"
    POLL = "poll"
    ASSIGN = "assign"  # the process starts reading somewhere: polls before and after it are not in one order
    COMMIT = "commit"


class Key(Value, frozen=True, order=True):
    """One partition of one topic."""

    topic: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Write(Value, frozen=True):
    key: Key
    value: bytes
    offset: int = -1  # −1: not known


class Read(Value, frozen=True):
    key: Key
    offset: int
    value: bytes


class Operation(Value, frozen=True):
    process: str
    kind: Kind
    began_ms: int
    ended_ms: int
    outcome: Outcome
    acks: int = -1
    is_idempotent: bool = False
    writes: tuple[Write, ...] = ()
    reads: tuple[Read, ...] = ()
    error: str = ""  # the last one that the client got
    transactional_id: str = ""
    is_read_committed: bool = False  # a poll's isolation.level


class History:
    """Operations in the order in which they ended."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.split: dict[Key, list[Operation]] = {}
        self.split_count = 0  # how many operations `split` covers

    def record(self, operation: Operation) -> None:
        self.operations.append(operation)

    def by_key(self) -> dict[Key, list[Operation]]:
        """Computed once for what is recorded so far."""
        if self.split_count != len(self.operations):
            self.split, self.split_count = by_key(self.operations), len(self.operations)
        return self.split


def by_key(operations: Iterable[Operation]) -> dict[Key, list[Operation]]:
    """What concerns each key, in one pass.

    Of an operation on several keys, each key gets its own part. A new start of a process goes to the keys that it has
    read since its last one, since there it parts the polls before from those after.
    """
    split: dict[Key, list[Operation]] = {}
    reading: dict[str, dict[Key, None]] = {}  # by process
    for operation in operations:
        if operation.kind is Kind.ASSIGN:
            for key in reading.pop(operation.process, {}):
                split[key].append(operation)
        for key, part in parts(operation):
            split.setdefault(key, []).append(part)
            if part.reads:
                reading.setdefault(operation.process, {})[key] = None
    return split


def parts(operation: Operation) -> Iterable[tuple[Key, Operation]]:
    writes: dict[Key, list[Write]] = {}
    reads: dict[Key, list[Read]] = {}
    for write in operation.writes:
        writes.setdefault(write.key, []).append(write)
    for read in operation.reads:
        reads.setdefault(read.key, []).append(read)
    keys = dict.fromkeys((*writes, *reads))
    if len(keys) == 1:
        return [(key, operation) for key in keys]
    return [(key, narrowed(operation, tuple(writes.get(key, ())), tuple(reads.get(key, ())))) for key in keys]


def narrowed(operation: Operation, writes: tuple[Write, ...], reads: tuple[Read, ...]) -> Operation:
    """The same operation as one key sees it."""
    return Operation(
        process=operation.process,
        kind=operation.kind,
        began_ms=operation.began_ms,
        ended_ms=operation.ended_ms,
        outcome=operation.outcome,
        acks=operation.acks,
        is_idempotent=operation.is_idempotent,
        writes=writes,
        reads=reads,
        error=operation.error,
        transactional_id=operation.transactional_id,
        is_read_committed=operation.is_read_committed,
    )
