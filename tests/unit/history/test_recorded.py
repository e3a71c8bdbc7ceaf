"""A history as lines: what is written is what is read, and what makes no sense is said."""

import json

import msgspec
import pytest
from tests.unit.history.making import KEY, OTHER, poll, send

from strandline.base.time import NEVER
from strandline.history.operation import Operation
from strandline.history.policy import Facts
from strandline.history.recorded import Known, Recorded, known, read_line, write_lines

HISTORY = [send("p", "a", "b", at=0, acks=1), poll("c", (0, "a"), (1, "b"), transaction="tx", is_committed=True)]
FACTS = Facts(exceeded=(KEY,), exceeded_ms={KEY: 5}, gone=(OTHER,), is_subscribed=True, ledger={KEY: ((0, 2), (7, -1))})


def test_what_is_written_is_read() -> None:
    [first, *others] = [read_line(line) for line in write_lines(HISTORY, FACTS, {KEY: 3}, {KEY: "last"}, "run")]
    assert isinstance(first, Known)
    assert (first.key, first.run, first.trimmed, first.final) == (KEY, "run", 3, "last")
    for index, (operation, recorded) in enumerate(zip(HISTORY, others, strict=True)):
        assert isinstance(recorded, Recorded)
        assert (recorded.index, recorded.run) == (index, "run")
        for field in Operation.__struct_fields__:
            assert getattr(recorded, field) == getattr(operation, field), field


def test_what_is_known_of_a_key_is_what_the_facts_say_of_it() -> None:
    mine, others = (known(key, FACTS, {}, {}, "").facts for key in (KEY, OTHER))
    assert mine == Facts((KEY,), (), False, True, {KEY: 5}, {KEY: ((0, 2), (7, -1))})
    assert others == Facts((), (OTHER,), False, True, {}, {OTHER: ()})
    always = known(KEY, Facts(exceeded=(KEY,)), {}, {}, "")
    assert always.exceeded_since_ms is None
    assert always.facts.exceeded_ms[KEY] < -NEVER // 2
    assert always.facts.ledger is None


def test_a_key_that_only_the_last_reader_knows_has_its_line() -> None:
    [line] = write_lines([], Facts(), None, {KEY: "last"})
    assert json.loads(line)["final"] == "last"


def damaged(**fields: object) -> str:
    line = json.loads(list(write_lines(HISTORY, FACTS))[-1])
    return json.dumps({**line, **fields})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "truncated"),
        ("[]", "Expected `object`"),
        ('{"record": "rumour"}', "Invalid value 'rumour'"),
        ('{"record": "operation"}', "missing required field `process`"),
        (damaged(kind="guess"), r"Invalid enum value 'guess' - at `\$.kind`"),
        (damaged(outcome="maybe"), "Invalid enum value 'maybe'"),
        (damaged(index=-1), "`index` is below 0"),
        (damaged(began_ms=NEVER), "it ended before it began"),
        (damaged(colour="red"), "unknown field `colour`"),
        (damaged(reads=[{"key": json.loads(msgspec.json.encode(KEY)), "offset": -1, "value": ""}]), "below 0"),
        ('{"record": "key", "key": {"topic": "t", "topic_id": "AAAA", "partition": 0}}', "not of 16 bytes"),
    ],
)
def test_a_line_that_is_invalid_is_refused_with_the_reason(line: str, problem: str) -> None:
    with pytest.raises(msgspec.MsgspecError, match=problem):
        read_line(line)
