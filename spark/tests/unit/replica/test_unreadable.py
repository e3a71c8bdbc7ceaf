"""A disk gives an error for one file: it is told which one, and all else is read. Links to themselves and folders in a
file's place stand for bad sectors: the system refuses to open the first, and to read the second."""

import os
from pathlib import Path

import pytest
from spark.tests.unit.replica.logs import bases, batches, directory, log_file, rows, write_log

from strandline_spark.errors import sentence_of
from strandline_spark.jobs.audit.levels import Unread, small
from strandline_spark.jobs.audit.rows import Key
from strandline_spark.replica import LogChanged, UnreadableLog
from strandline_spark.replica.files import log_end_offset
from strandline_spark.replica.located import SegmentFile
from strandline_spark.replica.options import SCHEMAS, parse
from strandline_spark.replica.source import ReplicaReader
from strandline_spark.replica.windows import File


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """Two logs of two segments: offsets 0 to 39, and from 40 on."""
    at = directory(tmp_path)
    for name in ("t-0", "u-0"):
        write_log(at, name, batches(0, 10), batches(40, 6))
    return at


def spoil(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def unread(found: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(row["topic"], row["segment"], row["fault"]) for row in found if row["fault"] is not None]


def test_a_segment_that_cannot_be_read(at: Path) -> None:
    path = log_file(at / "u-0")
    path.unlink()
    (path / "within").mkdir(parents=True)
    with pytest.raises(UnreadableLog, match=rf"^{path}: Is a directory\n  check the disk"):
        rows(at)
    found = rows(at, whenChanged="report")
    assert unread(found) == [("u", 0, "unreadable")]
    assert bases(found) == [*range(0, 64, 4), *range(40, 64, 4)]
    assert len(rows(at, "record", whenChanged="skip")) == 64 + 24


def test_a_segment_that_cannot_be_opened_any_more(at: Path) -> None:
    request = parse({"path": str(at), "whenChanged": "report"})
    reader = ReplicaReader(request, SCHEMAS["batch"])
    splits = reader.partitions()
    spoil(log_file(at / "u-0", 40))
    found = [row for split in splits for part in reader.read(split) for row in part.to_pylist()]
    assert unread(found) == [("u", 40, "unreadable")]


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", f"{0:020d}.log"])
def test_a_log_that_cannot_even_be_planned(at: Path, name: str) -> None:
    spoil(at / "u-0" / name)
    with pytest.raises(UnreadableLog, match=rf"u-0/{name}: Too many levels of symbolic links"):
        rows(at)
    found = rows(at, whenChanged="report")
    assert unread(found) == [("u", None, "unreadable")]
    assert bases(found) == list(range(0, 64, 4))
    assert len(rows(at, "record", whenChanged="skip")) == 64


def test_an_index_that_cannot_be_read(at: Path) -> None:
    every = [row for row in rows(at, "index") if row["topic"] == "t"]
    spoil(at / "u-0" / f"{0:020d}.index")
    with pytest.raises(UnreadableLog, match=r"u-0/0*\.index: "):
        rows(at, "index")
    assert rows(at, "index", whenChanged="skip") == every
    assert unread(rows(at, whenChanged="report")) == []  # batches do not need it


@pytest.mark.parametrize(
    ("name", "level"),
    [(f"{0:020d}.timeindex", "segment"), ("leader-epoch-checkpoint", "epoch"), (f"{40:020d}.log", "checkpoint")],
)
def test_small_files_that_cannot_be_read_are_reported_with_their_names(at: Path, name: str, level: str) -> None:
    spoil(at / "u-0" / name)
    reported: dict[Key, Unread] = {}
    assert {row["topic"] for row in small({"path": str(at)}, level, reported)} == {"t"}
    ((key, (fault, why)),) = reported.items()
    assert (key[1], key[2], fault) == (str(at), "u", "unreadable")
    assert why == f"{at}/u-0/{name}: Too many levels of symbolic links"


def test_what_is_raised_in_a_process_of_spark_is_reported_in_its_own_words(at: Path) -> None:
    spoil(log_file(at / "u-0"))
    with pytest.raises(UnreadableLog) as raised:
        rows(at)
    text = f"Traceback\n{type(raised.value).__module__}.UnreadableLog: {raised.value}\n"
    assert sentence_of(RuntimeError(text)).problem == raised.value.problem


def test_a_log_that_is_deleted_while_its_checkpoints_are_read_has_no_end(at: Path) -> None:
    file = SegmentFile.of(str(log_file(at / "t-0", 40)), 40, None)
    assert log_end_offset(file) == 64
    os.rename(at / "t-0", at / "t-0.0a-delete")
    assert log_end_offset(file) is None


def test_a_segment_that_is_another_one_when_it_is_opened_is_closed_again(at: Path) -> None:
    path = log_file(at / "t-0")
    file = SegmentFile.of(str(path), 0, 40)
    path.rename(at / "kept")
    path.write_bytes((at / "kept").read_bytes())
    before = os.listdir("/proc/self/fd")
    with pytest.raises(LogChanged, match="is another file now"), File(file):
        pass
    assert len(os.listdir("/proc/self/fd")) == len(before)
