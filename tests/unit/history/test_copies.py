"""What copies and the position of their group say of each other."""

from tests.rows import each
from tests.unit.history.making import KEY

from strandline.history.copies import find
from strandline.history.operation import Key, Kind, Operation, Outcome, Read

SOURCE, TARGET = KEY, Key("copies", KEY.topic_id, 0)
FINALS = {SOURCE: "last-source"}, {TARGET: "last-target"}


def read(process: str, key: Key, *rows: tuple[int, str]) -> Operation:
    reads = tuple(Read(key, offset, value.encode()) for offset, value in rows)
    return Operation(process, Kind.POLL, 0, 1, Outcome.OK, reads=reads, is_read_committed=True)


INPUTS = read("last-source", SOURCE, (0, "a"), (1, "b"), (4, "c"))


@each(
    ("copies", "position", "named"),
    [
        (("x:0@0", "y:0@1"), 2, []),
        (("x:0@0", "y:0@1"), 4, []),
        (("x:0@0",), 2, ["lost-transactional-write"]),
        (("x:0@0", "y:0@1"), 5, ["lost-transactional-write"]),
        (("x:0@0", "y:0@1", "z:0@0"), 2, ["duplicated-transactional-write"]),
        (("x:0@0", "y:0@1"), 1, ["offset-without-output"]),
        (("x:0@0", "y:0@1", "z:0@3"), 4, ["offset-without-output"]),
        ((), 0, []),
    ],
)
def test_each_record_below_the_position_has_one_copy(copies: tuple[str, ...], position: int, named: list[str]) -> None:
    outputs = read("last-target", TARGET, *enumerate(copies))
    found = find([INPUTS, outputs], *FINALS, {0: position})
    assert [anomaly.name for anomaly in found] == named


def test_only_who_has_read_all_is_asked_and_only_of_partitions_with_a_position() -> None:
    others = read("another", TARGET, (0, "x:0@0"), (1, "y:0@0"))
    assert find([INPUTS, others], *FINALS, {0: 0}) == []
    assert find([INPUTS, read("last-target", TARGET, (0, "x:0@9"))], *FINALS, {}) == []
