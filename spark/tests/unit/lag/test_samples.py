"""What one sample says, and files of samples."""

from pathlib import Path

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.samples import Ends, Rate, Sample, append, by_reader, delay_of, rate, read, sampled


def at(time_ms: int, end: int, position: int | None, partition: int = 0) -> Sample:
    return sampled(time_ms, "group", "g", "t", partition, Ends(0, end), position)


def test_lag_is_what_may_be_read_and_was_not() -> None:
    assert at(0, 100, 40).lag == 60
    assert at(0, 100, 100).lag == 0
    assert at(0, 100, 105).lag == 0, "a position beyond the end, after a truncation"


def test_what_was_deleted_unread_is_no_lag() -> None:
    sample = sampled(0, "group", "g", "t", 0, Ends(50, 100), 40)
    assert (sample.lag, sample.expired) == (50, 10)


def test_a_group_without_commits_has_no_lag() -> None:
    sample = at(0, 100, None)
    assert (sample.position, sample.lag, sample.expired) == (None, None, None)


def test_delay_is_the_age_of_the_next_record() -> None:
    assert delay_of(1000, 400, lag=5) == 600
    assert delay_of(1000, 1200, lag=5) == 0, "clocks differ"
    assert delay_of(1000, None, lag=0) == 0
    assert delay_of(1000, None, lag=5) is None
    assert delay_of(1000, -1, lag=5) is None, "a record without a timestamp"


def test_rates_are_between_two_samples() -> None:
    assert rate(at(0, 100, 10), at(500, 150, 20)) == Rate(100.0, 20.0)
    assert rate(None, at(500, 150, 20)) == Rate(None, None)
    assert rate(at(500, 100, 10), at(500, 150, 20)) == Rate(None, None)


def test_what_falls_back_is_no_rate() -> None:
    assert rate(at(0, 100, 50), at(1000, 90, 10)) == Rate(None, None)
    assert rate(at(0, 100, None), at(1000, 110, 10)) == Rate(10.0, None)


def test_samples_come_back_from_their_file_and_more_can_be_appended(tmp_path: Path) -> None:
    path = tmp_path / "lag.jsonl"
    append(path, [at(0, 100, 10), at(0, 50, None, 1)])
    append(path, [at(5, 100, 10)])
    assert list(read(path)) == [at(0, 100, 10), at(0, 50, None, 1), at(5, 100, 10)]


def test_a_line_that_was_cut_off_is_passed_over_and_another_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lag.jsonl"
    append(path, [at(0, 100, 10)])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])
    assert list(read(path)) == [at(0, 100, 10)]
    append(path, [at(5, 100, 20)])
    assert list(read(path)) == [at(0, 100, 10), at(5, 100, 20)]
    path.write_bytes(b'{"a": 1}\n')
    with pytest.raises(StrandlineError, match="line 1, is not a sample of lag"):
        list(read(path))


def test_somebody_elses_file_keeps_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo")
    with pytest.raises(StrandlineError, match=r"notes\.txt is not a file of samples"):
        append(path, [])
    assert path.read_text() == "one\ntwo"


def test_samples_by_reader_are_in_order_of_partitions() -> None:
    rows = [at(0, 1, 0, 2), at(0, 1, 0, 0), sampled(0, "topic", "", "t", 0, Ends(0, 1), None)]
    found = by_reader(rows)
    assert [s.partition for s in found["group", "g", "t"]] == [0, 2]
    assert len(found["topic", "", "t"]) == 1
