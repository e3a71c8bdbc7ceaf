"""What is read together, and what of a log directory is read at all."""

import json
import os
import pickle
from pathlib import Path

import pytest
from spark.tests.unit.replica.logs import (
    bases,
    batch,
    batches,
    change,
    directory,
    faults,
    log_file,
    pieces,
    rows,
    write_log,
)
from tests.rows import each

from strandline_spark.errors import BadOption, StrandlineError
from strandline_spark.replica import places, planning
from strandline_spark.replica.options import BOOTSTRAP, parse
from strandline_spark.replica.planning import Pieces, plan

SIZE = len(batch(0))


@pytest.fixture(autouse=True)
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SPLIT_BYTES_MIN", 1)
    monkeypatch.setattr(places, "PAUSE_SECONDS", 0.0)


def splits(**options: str) -> list[Pieces]:
    found = plan(parse(options))
    assert all(isinstance(split, Pieces) for split in found)
    return [split for split in found if isinstance(split, Pieces)]


# --- splits


def test_every_byte_is_in_one_piece_and_pieces_begin_with_batches(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 50), batches(200, 3))
    write_log(at, "t-1", batches(0, 2))
    for target in (1, 2 * SIZE, 7 * SIZE, 1 << 20):
        covered: dict[str, list[tuple[int, int]]] = {}
        for piece in pieces(at, splitBytes=str(target)):
            covered.setdefault(piece.file.path, []).append((piece.start, piece.end))
            assert piece.start % SIZE == 0
        assert sorted(covered) == sorted(str(each) for each in at.rglob("*.log"))
        for name, parts in covered.items():
            assert [0, *(end for _, end in parts)] == [*(start for start, _ in parts), os.path.getsize(name)]
        assert (len(covered[str(log_file(path))]) > 1) == (target < 25 * SIZE)


def test_small_segments_are_packed_and_directories_kept_apart(tmp_path: Path) -> None:
    for node in (1, 2):
        at = directory(tmp_path, node)
        for partition in range(6):
            write_log(at, f"t-{partition}", batches(0, 2))
    found = splits(path=f"{tmp_path}/*", splitBytes=str(5 * SIZE), minPartitions="1")
    assert [len(split.pieces) for split in found] == [2] * 6
    assert [{piece.replica.broker for piece in split.pieces} for split in found] == [{1}] * 3 + [{2}] * 3
    assert len(splits(path=f"{tmp_path}/*", minPartitions="1")) == 2
    assert len(splits(path=f"{tmp_path}/*", minPartitions="4")) == 4
    assert pickle.loads(pickle.dumps(found[0])).pieces == found[0].pieces


def test_an_index_that_is_wrong_is_not_believed(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 40), interval=1)
    index = path / f"{0:020d}.index"
    entries = index.read_bytes()
    # Every position is a little off; then positions are right, and offsets are not.
    for wrong in (entries[:4] + entries[8:12] + entries[12:], bytes(8) + entries):
        index.write_bytes(wrong)
        assert bases(rows(at, splitBytes=str(4 * SIZE))) == list(range(0, 160, 4))
    index.write_bytes(b"".join(entries[i : i + 4] + b"\0\0\0\7" for i in range(0, len(entries), 8)))
    assert [(piece.start, piece.end) for piece in pieces(at, splitBytes=str(4 * SIZE))] == [(0, 40 * SIZE)]
    index.unlink()
    assert len(pieces(at, splitBytes=str(4 * SIZE))) == 1


def test_a_rotten_batch_is_no_place_to_begin(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 12), interval=1)
    second = pieces(at, splitBytes=str(4 * SIZE))[1].start
    change(log_file(path), second + 100, b"rot")
    assert pieces(at, splitBytes=str(4 * SIZE))[1].start == second + SIZE
    assert faults(rows(at, splitBytes=str(4 * SIZE))) == [(second, "crc")]


def test_zeros_that_kafka_allots_to_an_index_are_no_entries(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 12), interval=1)
    with (path / f"{0:020d}.index").open("ab") as index:
        index.write(bytes(4096))
    assert len(pieces(at, splitBytes=str(4 * SIZE))) == 3


def test_nothing_there_is_no_split_and_an_empty_segment_no_piece(tmp_path: Path) -> None:
    at = directory(tmp_path)
    assert splits(path=str(at)) == []
    write_log(at, "t-0", [])
    assert splits(path=str(at)) == []
    assert rows(at) == []


# --- which logs


def test_what_is_deleted_set_aside_or_only_coming_is_no_replica(tmp_path: Path) -> None:
    at = directory(tmp_path)
    write_log(at, "t-0", batches(0, 1))
    for name in ("t-1.0a0a-delete", "t-2.0b0b-future", "t-3.0c0c-stray", "__cluster_metadata-0", "a-file-7"):
        write_log(at, name, batches(0, 1))
    (at / "x-8").write_text("a file")
    assert [(row["topic"], row["partition"]) for row in rows(at)] == [("a-file", 7), ("t", 0)]
    assert [row["topic"] for row in rows(at, subscribe="__cluster_metadata")] == ["__cluster_metadata"]


def test_topics_and_partitions_are_chosen(tmp_path: Path) -> None:
    at = directory(tmp_path)
    for name in ("one-0", "one-1", "two-0", "two-3", "three-0"):
        write_log(at, name, batches(0, 1))

    def chosen(**options: str) -> list[str]:
        return [f"{row['topic']}-{row['partition']}" for row in rows(at, **options)]

    assert chosen(subscribe="one, three") == ["one-0", "one-1", "three-0"]
    assert chosen(subscribePattern="t.*") == ["three-0", "two-0", "two-3"]
    assert chosen(subscribePattern="o") == []
    assert chosen(assign=json.dumps({"one": [1], "two": [3, 9]})) == ["one-1", "two-3"]


def test_whose_directory_it_is(tmp_path: Path) -> None:
    at = directory(tmp_path, 4)
    write_log(at, "t-0", batches(0, 1))
    assert {row["broker"] for row in rows(at)} == {4}
    (at / "meta.properties").unlink()
    assert {row["broker"] for row in rows(at)} == {None}
    assert {row["broker"] for row in rows(at, node="9")} == {9}
    (at / "meta.properties").write_text("version=0\nbroker.id=1\n")
    with pytest.raises(StrandlineError, match="version 0 is not supported"):
        rows(at)
    other = directory(tmp_path, 5)
    write_log(other, "t-0", batches(0, 1))
    for folder in (at, other):
        (folder / "meta.properties").unlink()
    with pytest.raises(BadOption, match=r".*node4 and .*node5 have no meta.properties"):
        splits(path=f"{at},{other}")


def test_a_path_that_is_no_log_directory(tmp_path: Path) -> None:
    (tmp_path / "node1").mkdir()
    with pytest.raises(BadOption, match="is not a log directory"):
        splits(path=str(tmp_path))
    for path in (f"{tmp_path}/none", f"{tmp_path}/none*"):
        with pytest.raises(BadOption, match=r"none.* is not a directory"):
            splits(path=path)


def test_a_swap_that_a_death_left_half_done_counts_as_done(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 2), batches(8, 2), batches(16, 1))
    swapped = batch(0, count=1, offset_deltas=[2], last_offset_delta=3) + batch(12)
    (path / f"{0:020d}.log.swap").write_bytes(swapped)
    assert bases(rows(at)) == [0, 12, 16]
    log_file(path, 8).unlink()
    assert bases(rows(at)) == [0, 12, 16]
    (path / f"{0:020d}.log.cleaned").write_bytes(b"not yet")
    assert bases(rows(at)) == [0, 12, 16]


# --- options


def test_paths_are_one_text_or_a_list() -> None:
    assert parse({"path": "/a, /b,"}).paths == ("/a", "/b")
    assert parse({"paths": '["/a", "/b"]'}).paths == ("/a", "/b")


@each(
    ("options", "problem"),
    [
        ({}, "no log directories and no brokers are named"),
        ({"path": "/x", BOOTSTRAP: "a:1"}, "both path and"),
        ({"path": "/x", "level": "bytes"}, "'bytes' is not one of batch, record, segment"),
        ({BOOTSTRAP: "a:1", "level": "epoch"}, "cannot be read over the wire"),
        ({"path": "/x", "splitBytes": "1k"}, "splitBytes = '1k' is not a number"),
        ({"path": "/x", "splitBytes": "0"}, "splitBytes = '0' is not a number of at least 1"),
        ({"path": "/x", "splitByte": "5"}, "no option 'splitbyte'.*\n.*did you mean splitBytes"),
        ({"path": "/x", "colour": "5"}, "no option 'colour'"),
        ({"path": "/x", "subscribe": "a", "assign": "{}"}, "only one of"),
        ({"path": "/x", "subscribe": " ,"}, "names no topic"),
        ({"path": "/x", "subscribePattern": "("}, "not a regular expression"),
        ({"path": "/x", "assign": "[1]"}, "cannot be read"),
        ({"path": "/x", "assign": '{"a": 1}'}, "cannot be read"),
        ({"path": "/x", "assign": "{}"}, "names no partition"),
        ({"path": "/x", "mode": "permissive"}, "not one of FAILFAST, DROPMALFORMED"),
        ({"path": "/x", "level": "record", "whenChanged": "report"}, "whenChanged"),
    ],
)
def test_options_that_are_invalid(options: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        parse({name.lower(): value for name, value in options.items()})
