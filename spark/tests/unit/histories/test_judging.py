"""Lines in any order, parted by key and judged key by key, give what the judge gives for the whole history."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.unit.history.making import KEY, OTHER, assign, poll, send
from tests.unit.history.test_random import Play

from strandline.history.judge import judge
from strandline.history.operation import Key, Kind, Operation
from strandline.history.policy import Facts
from strandline.history.recorded import write_lines
from strandline_spark.jobs.histories.judging import Judged, judge_parts
from strandline_spark.jobs.histories.parts import ASSIGNED, Part, lines_of_text, marks_in, parts_in

RANDOM_FACTS = st.builds(
    Facts,
    exceeded=st.sampled_from([(), (KEY,), (KEY, OTHER)]),
    exceeded_ms=st.sampled_from([{}, {KEY: 30}, {KEY: 0, OTHER: 60}]),
    gone=st.sampled_from([(), (OTHER,)]),
    is_duplicating=st.booleans(),
    is_subscribed=st.booleans(),
    ledger=st.sampled_from([None, {}, {KEY: ((0, 10), (20, -1))}]),
)


def spread(lines: Sequence[str]) -> list[Judged]:
    """What Spark does, in a few lines: tasks have lines in any order, starts meet readers, keys are sorted."""
    halves = lines[: len(lines) // 3], lines[len(lines) // 3 :]
    parts = [part for half in halves for part in parts_in(lines_of_text(half))]
    marks = [mark for half in halves for mark in marks_in(lines_of_text(half))]
    readers = {(m.run, m.process, m.topic, m.topic_id, m.partition): None for m in marks if m.content is None}
    for mark in marks:
        if mark.content is not None:
            parts += [
                Part(run, topic, topic_id, partition, mark.index, ASSIGNED, mark.content)  # type: ignore[arg-type]
                for run, process, topic, topic_id, partition in readers
                if (run, process) == (mark.run, mark.process)
            ]
    return list(judge_parts(sorted(parts, key=lambda p: (p.run, p.topic, p.topic_id, p.partition, p.index, p.role))))


def recorded(
    history: Sequence[Operation],
    facts: Facts,
    trimmed: dict[Key, int] | None = None,
    finals: dict[Key, str] | None = None,
    run: str = "",
) -> list[str]:
    return [line.decode() for line in write_lines(history, facts, trimmed, finals, run)]


def verdicts(rows: Sequence[Judged]) -> list[tuple[object, ...]]:
    return sorted((row.partition, row.name, row.text, row.tolerated or "", row.offsets) for row in rows if row.name)


def expected(
    history: Sequence[Operation], facts: Facts, trimmed: dict[Key, int], finals: dict[Key, str]
) -> list[tuple[object, ...]]:
    judgement = judge(history, facts, trimmed, finals)
    found = [(anomaly, "") for anomaly in judgement.violations] + list(judgement.tolerated)
    return sorted((a.key.partition, a.name, a.text, why, a.offsets) for a, why in found)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 80), RANDOM_FACTS, st.integers(1, 5))
def test_the_verdicts_are_those_of_the_judge(seed: int, steps: int, facts: Facts, damage: int) -> None:
    play = Play(seed, steps)
    del play.history[play.rng.randrange(len(play.history) + 1) :: damage]
    lines = recorded(play.history, facts, play.trimmed, play.finals)
    Random(seed).shuffle(lines)
    rows = spread(lines)
    assert verdicts(rows) == expected(play.history, facts, play.trimmed, play.finals)
    assert [row.problem for row in rows if row.problem] == []


def test_damage_is_found_at_all() -> None:
    """So that the test before is about something."""
    plays = [Play(seed, 60) for seed in range(20)]
    for play in plays:
        del play.history[1::3]
    found = [expected(play.history, Facts(exceeded=(OTHER,)), play.trimmed, play.finals) for play in plays]
    names = {row[1] for rows in found for row in rows}
    assert {"lost-write", "poll-skip", "duplicate", "G1a"} & names
    assert {bool(row[3]) for rows in found for row in rows} == {True, False}


def test_a_start_that_reads_at_once_parts_what_it_reads_from_what_came_before() -> None:
    anew = structs.replace(poll("c", (0, "a")), kind=Kind.ASSIGN)
    history = [send("p", "a", at=0), poll("c", (0, "a")), anew]
    assert verdicts(spread(recorded(history, Facts()))) == expected(history, Facts(), {}, {}) == []


def test_what_was_judged_is_counted_per_key() -> None:
    both = send("p", "a", "b", at=0)
    rows = spread(recorded([both, poll("c", (0, "a")), assign("c"), send("q", "x", at=0, key=OTHER)], Facts()))
    about = {row.partition: (row.operations, row.writes, row.reads) for row in rows if row.operations is not None}
    assert about == {0: (2, 2, 1), 1: (1, 1, 0)}


def test_runs_are_judged_apart() -> None:
    """The same value at the same offset of the same key, but in another run."""
    history = [send("p", "a", at=0), poll("c", (0, "a"))]
    other = [send("p", "b", at=0), poll("c", (0, "b"))]
    apart = spread(recorded(history, Facts(), run="one") + recorded(other, Facts(), run="two"))
    assert verdicts(apart) == []
    assert {row.run for row in apart} == {"one", "two"}
    assert verdicts(spread(recorded([*history, *other], Facts())))


def test_lines_that_say_nothing_are_reported_and_the_others_are_judged() -> None:
    rows = spread([*recorded([send("p", "a", at=0)], Facts()), "", "{", '{"record": "operation", "process": 1}'])
    problems = [(row.problem or "").partition(":")[0] for row in rows if row.problem]
    assert sorted(problems) == ["Expected `str`, got `int` - at `$.process`", "Input data was truncated"]
    assert [row.operations for row in rows if row.operations] == [1]


def test_many_bad_lines_are_counted_and_not_all_told() -> None:
    rows = list(judge_parts(parts_in(lines_of_text(["{"] * 1000))))
    assert len(rows) == 21
    assert sum(row.lines or 0 for row in rows) == 1000


def test_a_file_that_is_given_twice_is_no_anomaly_but_a_mistake() -> None:
    lines = recorded([send("p", "a", at=0), poll("c", (0, "a"))], Facts())
    rows = spread([*lines, *lines])
    assert verdicts(rows) == []
    assert [row.problem for row in rows if row.problem] == [
        "two operations have the index 0: was the file given twice?",
        "two operations have the index 1: was the file given twice?",
    ]


def test_two_lines_that_say_different_things_of_a_key_are_reported() -> None:
    history = [send("p", "a", at=0)]
    lines = recorded(history, Facts()) + recorded(history, Facts(gone=(KEY,)))[:1]
    assert "two lines contradict each other about this key" in [row.problem for row in spread(lines)]


@pytest.mark.parametrize("has_line", [True, False])
def test_a_key_of_which_nothing_is_known_is_judged_without_excuse(has_line: bool) -> None:
    history = [send("p", "a", at=0), send("p", "b", at=1), poll("c", (1, "b")), poll("d", (0, "b"))]
    lines = recorded(history, Facts(exceeded=(KEY,)))
    rows = spread(lines if has_line else lines[1:])
    assert {row.tolerated is not None for row in rows if row.name == "duplicate"} == {has_line}
