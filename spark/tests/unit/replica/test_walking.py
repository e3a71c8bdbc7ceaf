"""The batches of logs on disk, sound and damaged."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark.tests.unit.replica.logs import (
    TOPIC_ID,
    bases,
    batch,
    batches,
    change,
    directory,
    faults,
    log_file,
    pieces,
    rows,
    rows_of,
    write_log,
)

from strandline.base.ids import uuid_text
from strandline.wire.batch import CRC_AT, HEADER_SIZE, read_header
from strandline_spark.replica import walking, windows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that batches lie across their edges."""
    monkeypatch.setattr(windows, "WINDOW_BYTES", 5000)
    monkeypatch.setattr(walking, "SEARCH_BYTES", 3000)
    monkeypatch.setattr(walking, "GRACE_SECONDS", (0.001,))


def test_a_row_says_what_the_header_says(tmp_path: Path) -> None:
    at = directory(tmp_path, 3)
    one = batch(0, producer_id=5, producer_epoch=2, base_sequence=40)
    two = batch(4, count=1, epoch=2, log_append_time=7000)
    write_log(at, "t-9", [one, two])
    first, second = rows(at)
    header = read_header(one)
    assert first == {
        "broker": 3,
        "directory": str(at),
        "topic": "t",
        "topic_id": uuid_text(TOPIC_ID),
        "partition": 9,
        "segment": 0,
        "position": 0,
        "size": len(one),
        "base_offset": 0,
        "last_offset": 3,
        "leader_epoch": 1,
        "records": 4,
        "producer_id": 5,
        "producer_epoch": 2,
        "base_sequence": 40,
        "attributes": 0,
        "crc": header.crc,
        "crc_ok": True,
        "base_timestamp": EPOCH + timedelta(milliseconds=1000),
        "max_timestamp": EPOCH + timedelta(milliseconds=1003),
        "fault": None,
    }
    assert (second["position"], second["leader_epoch"], second["attributes"]) == (len(one), 2, 8)
    assert second["max_timestamp"] == EPOCH + timedelta(milliseconds=7000)


def test_batches_larger_than_a_window(tmp_path: Path) -> None:
    at = directory(tmp_path)
    write_log(at, "t-0", [batch(0, value=bytes(9000)), batch(4), batch(8, value=bytes(40000)), batch(12)])
    assert (bases(rows(at)), faults(rows(at))) == ([0, 4, 8, 12], [])


# --- damage


def damaged(tmp_path: Path, position: int, content: bytes) -> tuple[list[int], list[tuple[int, str]]]:
    """Ten batches of one size, some bytes changed."""
    at = directory(tmp_path)
    shutil.rmtree(at / "t-0", ignore_errors=True)
    change(log_file(write_log(at, "t-0", batches(0, 10))), position, content)
    return bases(rows(at)), faults(rows(at))


SIZE = len(batch(0))
ALL = list(range(0, 40, 4))


def without(*offsets: int) -> list[int]:
    return [base for base in ALL if base not in offsets]


def test_bit_rot(tmp_path: Path) -> None:
    assert damaged(tmp_path, 3 * SIZE + 100, b"\0\1\2") == (without(12), [(3 * SIZE, "crc")])


def test_a_rotten_row_keeps_what_its_header_says(tmp_path: Path) -> None:
    at = directory(tmp_path)
    change(log_file(write_log(at, "t-0", batches(0, 3))), SIZE + 100, b"\0\1\2")
    row = rows(at)[1]
    assert (row["base_offset"], row["last_offset"], row["crc_ok"], row["records"]) == (4, 7, False, 4)


def test_a_length_that_is_too_large(tmp_path: Path) -> None:
    """Whether it ends in the file or not, the batches behind are found."""
    for length in (SIZE + 20, 3 * SIZE + 5, 9 * SIZE, 1 << 20, (1 << 31) - 1):
        sound, wrong = damaged(tmp_path, 2 * SIZE + 8, length.to_bytes(4, "big"))
        assert sound == without(8)
        assert wrong[0][0] == 2 * SIZE
        assert {fault for _, fault in wrong} <= {"crc", "corrupt"}


def test_a_length_that_spans_whole_batches_hides_none(tmp_path: Path) -> None:
    assert damaged(tmp_path, 2 * SIZE + 8, (3 * SIZE - 12).to_bytes(4, "big")) == (without(8), [(2 * SIZE, "crc")])
    (row,) = [row for row in rows(tmp_path / "node1") if row["fault"]]
    assert row["size"] == SIZE


def test_no_batch_begins_where_one_should(tmp_path: Path) -> None:
    assert damaged(tmp_path, 4 * SIZE, bytes(SIZE)) == (without(16), [(4 * SIZE, "corrupt")])
    assert damaged(tmp_path, 0, bytes(3 * SIZE)) == (without(0, 4, 8), [(0, "corrupt")])
    at = tmp_path / "node1"
    (row,) = [row for row in rows(at) if row["fault"]]
    assert (row["size"], row["base_offset"], row["crc_ok"]) == (3 * SIZE, None, None)


def test_zeros_to_the_end(tmp_path: Path) -> None:
    assert damaged(tmp_path, 7 * SIZE, bytes(3 * SIZE)) == (ALL[:7], [(7 * SIZE, "corrupt")])


@pytest.mark.parametrize("left", [1, 16, 17, 60, 61, SIZE - 1])
def test_a_torn_tail(tmp_path: Path, left: int) -> None:
    at = directory(tmp_path)
    path = log_file(write_log(at, "t-0", batches(0, 10)))
    with path.open("r+b") as file:
        file.truncate(9 * SIZE + left)
    found = rows(at)
    assert (bases(found), faults(found)) == (ALL[:9], [(9 * SIZE, "torn")])
    assert found[-1]["size"] == left


def test_an_offset_that_is_wrong_is_the_only_one_that_is(tmp_path: Path) -> None:
    """The CRC does not cover it. Whether it is too large or too small, the batches around it are right."""
    for wrong in (0, 9, 17, 30, 4000, 1 << 40, -1):
        content = wrong.to_bytes(8, "big", signed=True)
        assert damaged(tmp_path, 4 * SIZE, content) == (without(16), [(4 * SIZE, "misplaced")])


def test_a_batch_that_is_there_twice(tmp_path: Path) -> None:
    at = directory(tmp_path)
    write_log(at, "t-0", [*batches(0, 3), batch(8), *batches(12, 2)])
    assert faults(rows(at)) == [(3 * SIZE, "misplaced")]


def test_files_of_two_segments_are_swapped(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 3), batches(12, 3), batches(24, 1))
    one, two = log_file(path).read_bytes(), log_file(path, 12).read_bytes()
    log_file(path).write_bytes(two)
    log_file(path, 12).write_bytes(one)
    found = rows(at)
    assert [row["fault"] for row in found] == ["misplaced"] * 6 + [None]


def test_what_compaction_took_is_no_fault(tmp_path: Path) -> None:
    at = directory(tmp_path)
    kept = batch(20, count=1, offset_deltas=[2], last_offset_delta=3)
    write_log(at, "t-0", [batch(0), batch(12), kept, batch(400)])
    assert (bases(rows(at)), faults(rows(at))) == ([0, 12, 20, 400], [])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=st.lists(st.tuples(st.integers(0, 10 * SIZE - 1), st.binary(min_size=1, max_size=30)), max_size=3))
def test_whatever_is_damaged_all_other_batches_are_found(tmp_path: Path, damage: list[tuple[int, bytes]]) -> None:
    at = tmp_path / "node1"
    path = log_file(at / "t-0") if at.exists() else log_file(write_log(directory(tmp_path), "t-0", batches(0, 10)))
    sound = b"".join(batches(0, 10))
    content = bytearray(sound)
    for position, some in damage:
        content[position : position + len(some)] = some
    del content[len(sound) :]
    path.write_bytes(content)
    found = rows(at)
    whole = [
        base for i, base in enumerate(ALL) if content[i * SIZE : (i + 1) * SIZE] == sound[i * SIZE : (i + 1) * SIZE]
    ]
    assert set(whole) <= set(bases(found))
    for base in set(bases(found)) - set(whole):  # the CRC does not cover offset and epoch, nor a changed CRC by chance
        i = ALL.index(base) if base in ALL else -1
        assert i < 0 or content[i * SIZE + CRC_AT : (i + 1) * SIZE] == sound[i * SIZE + CRC_AT : (i + 1) * SIZE]
    if len(whole) == 10:
        assert faults(found) == []


# --- parts of a file


@pytest.mark.parametrize("target", [1, 3000, 9000, 20_000])
def test_the_parts_of_a_file_have_the_rows_of_the_whole(
    tmp_path: Path, target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline_spark.replica.planning.SPLIT_BYTES_MIN", 1)
    at = directory(tmp_path)
    write_log(at, "t-0", batches(0, 40), batches(160, 2))
    parts = pieces(at, splitBytes=str(target))
    assert len(parts) == {1: 42, 3000: 21, 9000: 9, 20_000: 5}[target]
    assert [row for piece in parts for row in rows_of(piece)] == rows(at)
    assert faults(rows(at)) == []


def test_the_first_batch_of_a_part_is_held_against_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline_spark.replica.planning.SPLIT_BYTES_MIN", 1)
    at = directory(tmp_path)
    write_log(at, "t-0", batches(0, 12), interval=1)
    second = pieces(at, splitBytes="7000")[1]
    base = second.start // SIZE * 4
    assert rows_of(second)[0]["base_offset"] == base > 0
    whole = log_file(at / "t-0").read_bytes()
    change(log_file(at / "t-0"), second.start, (base - 4).to_bytes(8, "big"))
    assert faults(rows_of(second._replace(file=pieces(at)[0].file))) == [(second.start, "misplaced")]
    # The last batch of the first part has a wrong offset: that part says so, and the second is right.
    log_file(at / "t-0").write_bytes(whole)
    change(log_file(at / "t-0"), second.start - SIZE, (base + 1).to_bytes(8, "big"))
    first, second = pieces(at, splitBytes="7000")[:2]
    assert (faults(rows_of(first)), faults(rows_of(second))) == ([(second.start - SIZE, "misplaced")], [])


def test_damage_at_the_end_of_a_part_is_not_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline_spark.replica.planning.SPLIT_BYTES_MIN", 1)
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 12), interval=1)
    first = pieces(at, splitBytes="7000")[0]
    change(log_file(path), first.end - SIZE + 8, (SIZE + 40).to_bytes(4, "big"))
    found = rows_of(first._replace(file=pieces(at)[0].file))
    assert faults(found) == [(first.end - SIZE, "corrupt")]
    assert HEADER_SIZE < SIZE
