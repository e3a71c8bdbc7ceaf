"""Where offsets are reset to, and which partitions are meant, as options and files say it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.rows import each

from strandline.cli.groups.listing import known
from strandline.cli.groups.reset_options import To, read_offsets
from strandline.client.admin.groups.described import STATES
from strandline.client.admin.groups.scope import is_in, scope_of
from strandline.client.admin.partitions import Place
from strandline.client.errors import BadOption
from strandline.diagnosis.groups.plans import Target
from strandline.diagnosis.groups.times import parsed_duration, parsed_time, to_ms


@each(
    ("to", "target"),
    [
        (To(to_earliest=True), Target.EARLIEST),
        (To(to_offset=0), Target.OFFSET),
        (To(shift_by=-1), Target.SHIFT),
        (To(from_file=Path("x")), Target.FILE),
    ],
)
def test_one_option_says_where_to(to: To, target: Target) -> None:
    assert to.target is target


@each("to", [To(), To(to_earliest=True, to_latest=True), To(to_offset=0, shift_by=0)])
def test_none_or_two_are_rejected(to: To) -> None:
    with pytest.raises(BadOption, match="name one of --to-earliest, --to-latest"):
        assert to.target


@each(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-02T00:00:00Z", 86_400_000),
        ("1969-01-01T00:00:00", 0),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, ms: int) -> None:
    assert to_ms(parsed_time(text)) == ms


@each(
    ("text", "expected"),
    [
        ("P1D", timedelta(days=1)),
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("P2DT3H4M5.5S", timedelta(days=2, hours=3, minutes=4, seconds=5.5)),
        ("-PT1H", -timedelta(hours=1)),
    ],
)
def test_a_duration_goes_back_from_now(text: str, expected: timedelta) -> None:
    assert parsed_duration(text) == expected
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert To(by_duration=text).timestamp_ms(now) == to_ms(now - expected)


@each("text", ["", "P", "PT", "1D", "P1H", "P1D2H", "yesterday"])
def test_what_is_no_duration_is_rejected(text: str) -> None:
    with pytest.raises(BadOption, match="PT1H30M"):
        parsed_duration(text)


@each("text", ["P36501D", "P999999999999D", f"P{'9' * 5000}D", f"PT{'9' * 400}.0S"])
def test_a_duration_of_more_than_a_century_is_rejected(text: str) -> None:
    with pytest.raises(BadOption, match="is longer than 36500 days"):
        parsed_duration(text)


def test_what_is_no_time_is_rejected() -> None:
    with pytest.raises(BadOption, match="'noon' is not a time"):
        parsed_time("noon")


def test_a_topic_may_name_partitions() -> None:
    scope = scope_of(["a", "b:0,2"])
    assert scope == {"a": None, "b": (0, 2)}
    assert [is_in(Place(*at), scope) for at in (("a", 9), ("b", 2), ("b", 1), ("c", 0))] == [True, True, False, False]


@each("texts", [[""], [":1"], ["t:"], ["t:x"], ["t:-1"], ["t:1,"], ["t", "t:1"]])
def test_what_names_no_partitions_is_rejected(texts: list[str]) -> None:
    with pytest.raises(BadOption):
        scope_of(texts)


def test_states_are_known_in_any_case_and_with_commas() -> None:
    assert known(["stable,EMPTY", "Dead"], STATES, "state") == ["Stable", "Empty", "Dead"]
    assert known(None, STATES, "state") == []
    with pytest.raises(SystemExit):
        known(["stabel"], STATES, "state")


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.csv"
    path.write_text(text)
    return path


@each(
    ("text", "groups", "expected"),
    [
        ("t,0,5\n\nt,1,6\n", ["g"], {"g": {Place("t", 0): 5, Place("t", 1): 6}}),
        ('"t",0,5\n', ["g"], {"g": {Place("t", 0): 5}}),
        ("g,t,0,5\nh,t,0,7\n", ["g", "h"], {"g": {Place("t", 0): 5}, "h": {Place("t", 0): 7}}),
        ("g,t,0,5\n", ["g", "h"], {"g": {Place("t", 0): 5}, "h": {}}),
    ],
)
def test_a_file_names_offsets(text: str, groups: list[str], expected: object, tmp_path: Path) -> None:
    assert read_offsets(written(tmp_path, text), groups) == expected


@each(
    ("text", "groups", "why"),
    [
        ("", ["g"], "has no rows"),
        ("t,0\n", ["g"], "is not topic,partition,offset"),
        ("t,0,-5\n", ["g"], "is not topic,partition,offset"),
        ("t,x,5\n", ["g"], "is not topic,partition,offset"),
        ("t,0,5\nt,0,6\n", ["g"], "t-0 is named twice"),
        ("other,t,0,5\n", ["g"], "not about a group that was named"),
        ("t,0,5\n", ["g", "h"], "not about a group that was named"),
    ],
)
def test_a_wrong_file_is_rejected(
    text: str, groups: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        read_offsets(written(tmp_path, text), groups)
    assert end.value.code == 2
    assert why in capsys.readouterr().err
