"""What clients did, and what they were told: the raw material of every judgement (Jepsen's histories).

An operation has one process, two instants and an outcome. `FAIL` says that it certainly did not happen; `UNKNOWN` that
it may have happened, or may yet. Topics of one name are different keys: a topic that was deleted and made again is
another one.
"""

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
    error: str = ""  # the last one that the client was told
    transactional_id: str = ""


class History:
    """Operations in the order in which they ended."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def record(self, operation: Operation) -> None:
        self.operations.append(operation)
