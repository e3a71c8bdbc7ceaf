"""Histories in a few words: `send("p", "a", at=0)`, `poll("c", (0, "a"), (1, "b"))`."""

from itertools import count

from strandline.base.ids import Uuid
from strandline.history.anomaly import Anomaly
from strandline.history.judge import anomalies
from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write
from strandline.history.view import views

KEY = Key("orders", Uuid(bytes(16)), 0)
OTHER = Key("orders", Uuid(bytes(16)), 1)
clock = count(1)


def send(
    process: str,
    *values: str,
    at: int = -1,
    outcome: Outcome = Outcome.OK,
    acks: int = -1,
    key: Key = KEY,
    began: int | None = None,
    is_idempotent: bool = True,
    offsets: tuple[int, ...] = (),
    transaction: str = "",
) -> Operation:
    places = offsets or tuple(at + i if at >= 0 else -1 for i in range(len(values)))
    writes = tuple(Write(key, value.encode(), place) for value, place in zip(values, places, strict=True))
    now = next(clock)
    return Operation(
        process=process,
        kind=Kind.SEND,
        began_ms=now if began is None else began,
        ended_ms=now,
        outcome=outcome,
        acks=acks,
        is_idempotent=is_idempotent,
        writes=writes,
        transactional_id=transaction,
    )


def poll(
    process: str,
    *reads: tuple[int, str],
    key: Key = KEY,
    transaction: str = "",
    wrote: str = "",
    is_committed: bool = False,
) -> Operation:
    now = next(clock)
    return Operation(
        process=process,
        kind=Kind.POLL,
        began_ms=now,
        ended_ms=now,
        outcome=Outcome.OK,
        reads=tuple(Read(key, offset, value.encode()) for offset, value in reads),
        writes=(Write(key, wrote.encode(), -1),) if wrote else (),
        transactional_id=transaction,
        is_read_committed=is_committed,
    )


def assign(process: str) -> Operation:
    now = next(clock)
    return Operation(process=process, kind=Kind.ASSIGN, began_ms=now, ended_ms=now, outcome=Outcome.OK)


def found(*operations: Operation, trimmed: int = 0, final: str = "") -> list[Anomaly]:
    """All anomalies of all keys."""
    return [anomaly for view in views(operations, {KEY: trimmed}, {KEY: final}) for anomaly in anomalies(view)]


def names(*operations: Operation, trimmed: int = 0, final: str = "") -> list[str]:
    return [anomaly.name for anomaly in found(*operations, trimmed=trimmed, final=final)]
