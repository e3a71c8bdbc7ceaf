"""What a reset or a deletion would do to a group, and who is in its way."""

from tests.rows import each

from strandline.client.admin.groups.described import GroupState, Member
from strandline.client.admin.groups.offsets import Ends, Position
from strandline.client.admin.partitions import Place
from strandline.client.groups import Committed
from strandline.diagnosis.groups.plans import (
    Reset,
    Target,
    consequence,
    plan_reset,
    readers_of,
    reset_json,
    why_not_inactive,
)

AT = Place("t", 0)
ENDS = Ends(10, 90, 100)
T = Target


def position(committed: int | None, ends: Ends | str = ENDS) -> Position:
    return Position(AT, None if committed is None else Committed(committed), ends)


def planned(committed: int | None, target: Target, wanted: int | None = None) -> Reset:
    plan = plan_reset("g", position(committed), target, wanted)
    assert isinstance(plan, Reset)
    return plan


@each(
    ("committed", "target", "wanted", "new", "skipped", "repeated", "words"),
    [
        (50, T.EARLIEST, None, 10, 0, 40, "reads 40 offsets again"),
        (50, T.LATEST, None, 100, 50, 0, "skips 50 offsets"),
        (50, T.CURRENT, None, 50, 0, 0, "stays"),
        (
            None,
            T.CURRENT,
            None,
            100,
            90,
            0,
            "begins at 100, skips 90 offsets; it has no offset, so it begins at the end",
        ),
        (50, T.OFFSET, 51, 51, 1, 0, "skips 1 offset"),
        (50, T.OFFSET, 9, 10, 0, 40, "reads 40 offsets again; 9 is below the log's start"),
        (50, T.OFFSET, 101, 100, 50, 0, "skips 50 offsets; 101 is above the log's end"),
        (50, T.SHIFT, -3, 47, 0, 3, "reads 3 offsets again"),
        (50, T.SHIFT, 60, 100, 50, 0, "skips 50 offsets; 110 is above the log's end"),
        (50, T.DATETIME, 70, 70, 20, 0, "skips 20 offsets"),
        (50, T.DURATION, None, 100, 50, 0, "skips 50 offsets; no record is that late, so it begins at the end"),
        (50, T.FILE, 20, 20, 0, 30, "reads 30 offsets again"),
        (None, T.EARLIEST, None, 10, 0, 0, "begins at 10"),
        (3, T.EARLIEST, None, 10, 0, 0, "moves to 10"),
        (3, T.LATEST, None, 100, 90, 0, "skips 90 offsets"),
        (200, T.OFFSET, 95, 95, 0, 5, "reads 5 offsets again"),
    ],
)
def test_a_plan_says_where_the_group_goes_on_and_what_that_means(
    committed: int | None, target: Target, wanted: int | None, new: int, skipped: int, repeated: int, words: str
) -> None:
    plan = planned(committed, target, wanted)
    assert (plan.new, plan.skipped, plan.repeated) == (new, skipped, repeated)
    assert consequence(plan) == words


@each(
    ("committed", "ends", "why"),
    [(None, ENDS, "t-0: it has no offset that could be shifted"), (5, "it has no leader", "t-0: it has no leader")],
)
def test_what_cannot_be_planned_says_why(committed: int | None, ends: Ends | str, why: str) -> None:
    assert plan_reset("g", position(committed, ends), T.SHIFT, 1) == why


def test_a_row_has_everything_that_a_script_needs() -> None:
    assert reset_json(planned(50, T.SHIFT, -3), "failed", "why") == {
        "group": "g",
        "topic": "t",
        "partition": 0,
        "old_offset": 50,
        "new_offset": 47,
        "log_start_offset": 10,
        "log_end_offset": 100,
        "skipped": 0,
        "repeated": 3,
        "note": "",
        "outcome": "failed",
        "error": "why",
    }


def group(*members: Member) -> GroupState:
    return GroupState("g", 1, "classic", "Stable" if members else "Empty", members=members)


def test_members_are_in_the_way_by_name() -> None:
    assert why_not_inactive(group()) is None
    one = Member("m1", "app", "/10.0.0.1", instance_id="i1")
    problem, advice = why_not_inactive(group(one)) or ("", "")
    assert problem == "group 'g' is Stable, and has 1 member: m1 (client app at 10.0.0.1, instance i1)"
    assert "stop these consumers" in advice
    many = group(*(Member(f"m{i}", "app", "/h") for i in range(7)))
    assert (why_not_inactive(many) or ("",))[0].endswith("m4 (client app at h); and 2 more")


def test_readers_of_a_topic_are_those_that_subscribe_to_it_or_have_it() -> None:
    state = group(
        Member("a", "c", "/h", subscribed=("t",)), Member("b", "c", "/h", assigned=(AT,)), Member("c", "c", "/h")
    )
    assert [name[0] for name in readers_of(state, "t")] == ["a", "b"]
    assert readers_of(state, "u") == []
