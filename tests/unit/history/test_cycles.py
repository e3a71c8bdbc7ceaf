"""Anomalies of transactions among themselves: G0, G1b, G1c."""

from tests.rows import each
from tests.unit.history.making import KEY, OTHER, names

from strandline.history.cycles import find
from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


def transaction(
    name: str,
    *writes: tuple[str, int],
    at: tuple[int, int] = (0, 1),
    reads: tuple[str, ...] = (),
    outcome: Outcome = OK,
    key: Key = KEY,
    process: str = "",
) -> Operation:
    return Operation(
        process or name,
        Kind.SEND,
        *at,
        outcome,
        writes=tuple(Write(key, value.encode(), offset) for value, offset in writes),
        reads=tuple(Read(key, 99, value.encode()) for value in reads),
        transactional_id=name,
        is_read_committed=bool(reads),
    )


def poll(*reads: tuple[int, str], process: str = "c", is_committed: bool = True) -> Operation:
    found = tuple(Read(KEY, offset, value.encode()) for offset, value in reads)
    return Operation(process, Kind.POLL, 90, 91, OK, reads=found, is_read_committed=is_committed)


@each(
    ("first", "second", "is_wrong"),
    [
        ((0, 10), (20, 30), True),
        ((0, 10), (10, 30), False),
        ((0, 25), (20, 30), False),
    ],
)
def test_a_transaction_that_was_over_before_another_began_lies_before_it(
    first: tuple[int, int], second: tuple[int, int], is_wrong: bool
) -> None:
    behind, before = transaction("a", ("a", 8), at=first), transaction("b", ("b", 5), at=second)
    assert ("G0" in names(behind, before)) == is_wrong
    assert "G0" not in names(transaction("a", ("a", 5), at=first), transaction("b", ("b", 8), at=second))


def test_a_transaction_that_did_not_happen_or_may_not_have_is_in_no_order() -> None:
    behind = transaction("a", ("a", 8), at=(0, 10))
    for outcome in (FAIL, UNKNOWN):
        assert "G0" not in names(behind, transaction("b", ("b", 5), at=(20, 30), outcome=outcome))
    unknown = transaction("b", ("b", 5), at=(20, 30), outcome=UNKNOWN)
    assert "G0" in names(behind, unknown, poll((5, "b"), (8, "a"))), "somebody has read it"


@each(
    ("reads", "is_wrong"),
    [
        (((0, "a"), (2, "b"), (3, "c")), False),
        (((0, "a"), (3, "c")), True),
        (((2, "b"), (3, "c")), False),
        (((3, "c"),), False),
        (((0, "a"),), False),
    ],
    ids=["all", "not the second", "begun in the middle", "begun behind it", "not yet further"],
)
def test_a_reader_gets_all_of_a_transaction_that_it_passes(reads: tuple[tuple[int, str], ...], is_wrong: bool) -> None:
    operations = (transaction("t", ("a", 0), ("b", 2)), transaction("u", ("c", 3), at=(5, 6)))
    assert ("G1b" in names(*operations, poll(*reads))) == is_wrong
    assert "G1b" not in names(*operations, poll(*reads, is_committed=False))


def cycles(*operations: Operation, excused: tuple[Key, ...] = ()) -> list[str]:
    return [anomaly.name for anomaly in find(operations, excused)]


def test_two_transactions_that_have_read_from_each_other_cannot_both_be() -> None:
    one, other = transaction("a", ("a", 0), reads=("b",)), transaction("b", ("b", 1), reads=("a",))
    assert cycles(one, other) == ["G1c"]
    assert cycles(one, other, excused=(KEY,)) == []
    assert cycles(one, transaction("b", ("b", 1))) == []
    assert cycles(one, transaction("b", ("b", 1), reads=("a",), outcome=FAIL)) == []


def test_a_cycle_may_go_through_others_and_through_one_process() -> None:
    through = [transaction("a", ("a", 0), reads=("c",)), transaction("b", ("b", 1), reads=("a",))]
    assert cycles(*through, transaction("c", ("c", 2), reads=("b",))) == ["G1c"]
    early = transaction("p", ("x", 3), reads=("y",), process="p")
    late = transaction("p", ("z", 4), at=(5, 6), process="p")
    assert cycles(early, late, transaction("q", ("y", 5), reads=("z",))) == ["G1c"]
    assert cycles(late, early, transaction("q", ("y", 5), reads=("z",))) == [], "the other order"


def test_who_reads_only_what_nobody_has_written_in_a_transaction_is_in_no_cycle() -> None:
    assert cycles(transaction("a", ("a", 0), reads=("a",)), transaction("b", ("b", 1), key=OTHER)) == []
    assert cycles() == []
