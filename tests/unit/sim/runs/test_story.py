"""The story of a run: what a person reads first, and what may be told in fewer words."""

import re

from strandline.sim.runs.story import concerned, story, story_lines
from strandline.sim.world.trace import Kind, Moment, Passage, Trace


def trace_of(*moments: Moment) -> Trace:
    trace = Trace()
    trace.moments.extend(moments)
    return trace


def watermark(at_ms: int, offset: int, machine: str = "n1", partition: str = "orders-0", epoch: int = 0) -> Moment:
    text = f"{partition}: high watermark {offset}"
    return Moment(at_ms, machine, Kind.HIGH_WATERMARK, text, partition, offset, offset, epoch)


def lines_of(trace: Trace, *partitions: str, limit: int = 200) -> list[tuple[int, str, str, int]]:
    return [(line.at_ms, line.machine, line.text, line.times) for line in story_lines(trace, partitions, limit).lines]


def test_it_begins_with_what_failed_and_how_to_see_it_again() -> None:
    trace = trace_of(Moment(0, "n1", Kind.STARTED, "starts"), Moment(1234, "", Kind.VIOLATION, "a record is gone"))
    trace.passages.append(Passage(3, 4, "pa", "n1", "Produce", False))
    text = story(
        trace, title="seed 7", verdict_text="a record is gone\nit was at 5", replay="strandline sim --seed 7", limit=9
    )
    assert text == (
        "seed 7\n======\n\n"
        "what failed\n    a record is gone\n    it was at 5\n"
        "replay\n    strandline sim --seed 7\n"
        "the run\n    1,234 ms, 1 messages, 2 moments; node n1; client pa\n"
        "partitions\n    all\n\n"
        "       0 ms  n1       started    starts\n"
        "   1,234 ms  cluster  violation  a record is gone\n"
    )


def test_an_empty_trace_has_a_story_too() -> None:
    assert "no nodes; no clients" in story(Trace(), title="", verdict_text="", replay="")


def test_steps_of_a_high_watermark_are_one_line_until_something_happens() -> None:
    moments = [watermark(at, at) for at in range(10, 20)]
    moments.append(Moment(20, "n2", Kind.KILLED, "is killed"))
    moments += [watermark(at, at) for at in range(21, 30)]
    moments.append(Moment(30, "", Kind.FAULT, "the network is cut"))
    moments += [watermark(at, at) for at in range(31, 40)]
    moments.append(Moment(5000, "", Kind.VIOLATION, "x"))
    assert lines_of(trace_of(*moments)) == [
        (10, "n1", "orders-0: high watermark 10 → 29", 19),
        (20, "n2", "is killed", 1),
        (30, "", "the network is cut", 1),
        (31, "n1", "orders-0: high watermark 31 → 39", 9),
        (5000, "", "x", 1),
    ]


def test_a_machine_that_died_begins_a_new_line_and_so_does_another_epoch_or_partition() -> None:
    moments = [watermark(1, 1), watermark(2, 2), Moment(3, "n1", Kind.KILLED, "is killed")]
    moments += [watermark(4, 2), watermark(5, 3), watermark(6, 9, partition="orders-1"), watermark(7, 4, epoch=1)]
    moments += [watermark(8, 3, "n2"), Moment(9999, "", Kind.VIOLATION, "x")]
    found = [(at, machine, times) for at, machine, _, times in lines_of(trace_of(*moments))]
    assert found == [(1, "n1", 2), (3, "n1", 1), (4, "n1", 2), (6, "n1", 1), (7, "n1", 1), (8, "n2", 1), (9999, "", 1)]


def test_an_election_ends_the_line_of_its_own_partition_only() -> None:
    moments = [watermark(1, 1), watermark(2, 5, partition="orders-1")]
    moments.append(Moment(3, "n2", Kind.LEADS, "leads orders-0", "orders-0"))
    moments += [watermark(4, 2), watermark(5, 6, partition="orders-1"), Moment(9999, "", Kind.VIOLATION, "x")]
    assert [(at, times) for at, _, _, times in lines_of(trace_of(*moments))] == [
        (1, 1),
        (2, 2),
        (3, 1),
        (4, 1),
        (9999, 1),
    ]


def test_just_before_the_end_every_step_is_reported() -> None:
    moments = [watermark(at, at) for at in (*range(10, 20), *range(1600, 1603))]
    assert [line[0] for line in lines_of(trace_of(*moments))] == [10, 1600, 1601, 1602]


def test_refusals_that_differ_in_numbers_only_are_one_line() -> None:
    moments = [Moment(at, "pa", Kind.CLIENT, f"is refused b'pa-{at}': NOT_LEADER") for at in (1, 2, 3)]
    moments.append(Moment(4, "pb", Kind.CLIENT, "is refused b'pb-1': NOT_LEADER"))
    text = story(trace_of(*moments), title="t", verdict_text="v", replay="r")
    assert "is refused b'pa-1': NOT_LEADER … is refused b'pa-3': NOT_LEADER (×3 until 3 ms)" in text
    assert "b'pa-2'" not in text
    assert "is refused b'pb-1': NOT_LEADER\n" in text


def test_deaths_are_never_told_together() -> None:
    moments = [Moment(at, "n1", Kind.KILLED, "is killed") for at in (1, 2, 3)]
    assert len(lines_of(trace_of(*moments))) == 3


def test_two_controllers_that_take_turns_are_two_lines() -> None:
    moments = [Moment(at, f"n{1 + at % 2}", Kind.CONTROLLER, f"controller, epoch {at % 2}") for at in range(20)]
    assert [(at, times) for at, _, _, times in lines_of(trace_of(*moments))] == [(0, 10), (1, 10)]


def test_other_partitions_are_left_out_and_counted_and_faults_are_not() -> None:
    trace = trace_of(
        watermark(1, 1), watermark(2, 1, partition="orders-1"), Moment(3, "", Kind.FAULT, "the disk fails")
    )
    assert [line[0] for line in lines_of(trace, "orders-1")] == [2, 3]
    assert "left out: 1 × of other partitions" in story(
        trace, title="t", verdict_text="v", replay="r", partitions=("orders-1",)
    )


def test_partitions_are_those_that_the_verdict_names_whole() -> None:
    trace = trace_of(*(watermark(1, 1, partition=name) for name in ("orders-1", "orders-10", "my-orders-1", "a-2")))
    assert concerned(trace, (), "the log of orders-1 on n1") == ("orders-1",)
    assert concerned(trace, (), "orders-10: a record is gone") == ("orders-10",)
    assert concerned(trace, (), "(my-orders-1)") == ("my-orders-1",)
    assert concerned(trace, (), "nothing") == ()
    assert concerned(trace, ("a-2", "a-10"), "orders-1") == ("a-2", "a-10")


def test_with_little_room_reports_go_first_then_steps_and_what_is_gone_is_counted() -> None:
    moments = [Moment(0, "n1", Kind.STARTED, "starts")]
    for at in range(1, 400, 4):
        moments.append(Moment(at, "n1", Kind.REPORT, f"info: {at}"))
        moments.append(Moment(at + 1, "", Kind.FAULT, f"fault {at}"))
        moments.append(watermark(at + 2, at))
    moments.append(Moment(9000, "", Kind.VIOLATION, "x"))
    shown = story_lines(trace_of(*moments), (), 120)
    kinds = [line.kind for line in shown.lines]
    assert len(kinds) == 120
    assert (kinds.count(Kind.FAULT), kinds.count(Kind.REPORT), kinds.count(Kind.HIGH_WATERMARK)) == (100, 0, 18)
    assert shown.left_out == (("high watermark", 82), ("report", 100))
    assert [line.at_ms for line in shown.lines] == sorted(line.at_ms for line in shown.lines)
    assert (kinds[0], kinds[-1]) == (Kind.STARTED, Kind.VIOLATION)


def test_long_texts_are_folded_under_their_own_column_and_odd_letters_do_no_harm() -> None:
    trace = trace_of(Moment(5, "n1", Kind.REPORT, "warning: \x1b[31m" + "word " * 60 + "\nsecond"))
    text = story(trace, title="t", verdict_text="a\tb\x00", replay="r")
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "| second" in text
    assert max(map(len, text.splitlines())) <= 118
    folded = [line for line in text.splitlines() if line.endswith("word")]
    assert len(folded) > 1
    assert len({re.search("word", line).start() for line in folded[1:]}) == 1  # type: ignore[union-attr]


def test_the_same_trace_prints_the_same_story() -> None:
    trace = trace_of(*(watermark(at, at, f"n{at % 3}", f"orders-{at % 5}") for at in range(500)))
    reported = {story(trace, title="t", verdict_text="orders-1", replay="r") for _ in range(3)}
    assert len(reported) == 1
