"""Transactions are read whole or not at all, over all keys."""

from tests.rows import each

from strandline.base.ids import Uuid
from strandline.history.atomicity import find
from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write

ONE, TWO = (Key("t", Uuid(b"id of topic t 16"), index) for index in range(2))
FINALS = {ONE: "last-1", TWO: "last-2"}


def transaction(outcome: Outcome) -> Operation:
    writes = (Write(ONE, b"a", 0), Write(TWO, b"b", 5))
    return Operation("p", Kind.SEND, 0, 1, outcome, writes=writes, transactional_id="id")


def poll(process: str, key: Key, offset: int, value: bytes, *, committed: bool = True) -> Operation:
    reads = (Read(key, offset, value),)
    return Operation(process, Kind.POLL, 2, 3, Outcome.OK, reads=reads, is_read_committed=committed)


A, B = poll("last-1", ONE, 0, b"a"), poll("last-2", TWO, 5, b"b")


@each(
    ("outcome", "reads", "named"),
    [
        (Outcome.OK, (A, B), []),
        (Outcome.OK, (A,), ["fractured-transaction"]),
        (Outcome.OK, (), ["fractured-transaction"]),
        (Outcome.UNKNOWN, (A, B), []),
        (Outcome.UNKNOWN, (B,), ["fractured-transaction"]),
        (Outcome.UNKNOWN, (), []),
        (Outcome.FAIL, (), []),
        (Outcome.FAIL, (B,), ["G1a"]),
        (Outcome.FAIL, (poll("another", ONE, 0, b"a"),), ["G1a"]),
        (Outcome.FAIL, (poll("another", ONE, 0, b"a", committed=False),), []),
        (Outcome.OK, (A, poll("another", TWO, 5, b"b")), ["fractured-transaction"]),
    ],
)
def test_what_is_wrong_by_what_the_producer_knows(
    outcome: Outcome, reads: tuple[Operation, ...], named: list[str]
) -> None:
    assert [anomaly.name for anomaly in find([transaction(outcome), *reads], FINALS)] == named


def test_nothing_is_asked_of_what_is_lost_or_was_deleted() -> None:
    operations = [transaction(Outcome.OK), A]
    assert find(operations, FINALS, excused=(TWO,)) == []
    assert find(operations, FINALS, trimmed={TWO: 6}) == []
    assert find(operations, FINALS, trimmed={TWO: 5})
    assert find(operations, {ONE: "last-1"}) == [], "nobody has read the other to its end"
