"""A history is split by key, so that each key can be judged on its own."""

from tests.unit.history.making import KEY, OTHER, assign, names, poll, send

from strandline.base.ids import Uuid
from strandline.history.operation import History, Key, Kind, Operation, Outcome, Read, Write


def history(*operations: Operation) -> History:
    recorded = History()
    for operation in operations:
        recorded.record(operation)
    return recorded


def test_each_key_gets_its_own_operations_in_order() -> None:
    first, other, second = send("p", "a", at=0), send("p", "x", at=0, key=OTHER), poll("c", (0, "a"))
    assert history(first, other, second).by_key() == {KEY: [first, second], OTHER: [other]}


def test_an_operation_on_several_keys_is_parted_and_nothing_else_of_it_changes() -> None:
    whole = Operation(
        process="t",
        kind=Kind.POLL,
        began_ms=1,
        ended_ms=2,
        outcome=Outcome.UNKNOWN,
        acks=1,
        is_idempotent=True,
        writes=(Write(OTHER, b"w", 3),),
        reads=(Read(KEY, 0, b"a"), Read(OTHER, 5, b"x"), Read(KEY, 1, b"b")),
        error="REQUEST_TIMED_OUT",
        transactional_id="tx",
        is_read_committed=True,
    )
    split = history(whole).by_key()
    assert list(split) == [OTHER, KEY]
    [mine], [others] = split[KEY], split[OTHER]
    assert (mine.reads, mine.writes) == ((whole.reads[0], whole.reads[2]), ())
    assert (others.reads, others.writes) == ((whole.reads[1],), whole.writes)
    for field in Operation.__struct_fields__:
        if field not in ("reads", "writes"):
            assert getattr(mine, field) == getattr(others, field) == getattr(whole, field), field


def test_a_new_start_concerns_the_keys_that_the_process_was_reading_and_no_others() -> None:
    anew, stranger = assign("c"), assign("d")
    split = history(poll("c", (0, "a")), send("c", "x", at=0, key=OTHER), anew, stranger, assign("c")).by_key()
    assert anew in split[KEY]
    assert split[KEY].count(anew) == 1 and len(split[KEY]) == 2
    assert len(split[OTHER]) == 1


def test_topics_of_one_name_are_different_keys() -> None:
    again = Key(KEY.topic, Uuid(bytes([1]) * 16), KEY.partition)
    assert str(again) == str(KEY) == "orders-0"
    assert len(history(poll("c", (0, "a")), poll("c", (0, "z"), key=again)).by_key()) == 2
    assert names(poll("c", (0, "a")), poll("c", (0, "z"), key=again)) == []


def test_the_split_is_computed_once_and_again_after_more_was_recorded() -> None:
    recorded = history(send("p", "a", at=0))
    once = recorded.by_key()
    assert recorded.by_key() is once
    recorded.record(send("p", "b", at=1))
    assert len(recorded.by_key()[KEY]) == 2
