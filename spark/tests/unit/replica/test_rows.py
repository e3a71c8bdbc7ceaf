"""Records of replicas, and the levels about a log's other files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import IntegerType, StringType, StructField, StructType
from spark.tests.unit.replica.logs import (
    batch,
    batches,
    change,
    checkpoint,
    directory,
    log_file,
    rows,
    write_log,
)

from strandline.log.evidence.clean_shutdown import FILE as CLEAN_SHUTDOWN
from strandline.wire.batch import CRC_AT, HEADER_SIZE, build
from strandline.wire.compress import Codec
from strandline.wire.control import EndTxnMarker, build_end_txn
from strandline_spark.decode import decoding, heads
from strandline_spark.errors import BadOption
from strandline_spark.replica import DamagedLog, windows
from strandline_spark.replica.options import SCHEMAS, parse
from strandline_spark.replica.source import ReplicaReader, ReplicaSource

SIZE = len(batch(0))
START = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=1)


# --- records


def test_a_row_for_each_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_BYTES", 3000)
    at = directory(tmp_path, 2)
    packed = batch(4, codec=Codec.ZSTD, producer_id=7, producer_epoch=1, base_sequence=9, transactional=True)
    marker = bytearray(
        build_end_txn(EndTxnMarker(commits=True, coordinator_epoch=0), timestamp=1000, producer_id=7, producer_epoch=1)
    )
    marker[7] = 8
    headed = build([(1000, None, b"v", [("h", b"x"), ("n", None)])], base_offset=9, leader_epoch=3)
    write_log(at, "t-5", [batch(0), packed, bytes(marker), headed])
    found = rows(at, "record")
    assert [row["offset"] for row in found] == list(range(10))
    assert [row["position"] for row in found[3:5]] == [0, SIZE]
    assert [row["sequence"] for row in found] == [-1] * 4 + [9, 10, 11, 12] + [-1, -1]
    assert [row["is_transactional"] for row in found] == [False] * 4 + [True] * 5 + [False]
    assert [row["is_control"] for row in found] == [False] * 8 + [True, False]
    last = found[-1]
    assert last["headers"] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    assert (last["timestamp"], last["timestampType"], last["leader_epoch"]) == (START, 0, 3)
    assert (last["broker"], last["directory"], last["partition"], last["segment"]) == (2, str(at), 5, 0)
    assert (last["key"], last["value"], found[0]["key"], len(found[0]["value"])) == (None, b"v", b"k0000", 512)


def test_without_numba_the_rows_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = directory(tmp_path)
    write_log(at, "t-0", [batch(0), batch(4, codec=Codec.LZ4), batch(8, log_append_time=5)])
    compiled = rows(at, "record"), rows(at)
    for module in (decoding, heads):
        monkeypatch.setattr(module, "backend", lambda: "python")
    assert (rows(at, "record"), rows(at)) == compiled


def test_rows_of_many_batches_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline_spark.replica.rows.ROWS_MAX", 3)
    at = directory(tmp_path)
    write_log(at, "t-0", batches(0, 10))
    for changes in ("fail", "report"):
        reader = ReplicaReader(parse({"path": str(at), "whenChanged": changes}), SCHEMAS["batch"])
        parts = [part for split in reader.partitions() for part in reader.read(split)]
        assert [row["base_offset"] for part in parts for row in part.to_pylist()] == list(range(0, 40, 4))
        assert max(part.num_rows for part in parts) == 3


def test_only_the_wanted_columns(tmp_path: Path) -> None:
    at = directory(tmp_path)
    write_log(at, "t-0", batches(0, 2))
    for level, names in (("record", ["offset", "broker"]), ("batch", ["base_offset", "fault"]), ("segment", ["size"])):
        known = ReplicaSource({"path": str(at), "level": level}).schema()
        schema = StructType([known[name] for name in names])
        reader = ReplicaReader(parse({"path": str(at), "level": level}), schema)
        (first, *_) = reader.read(reader.partitions()[0])
        assert (len(first) if level == "segment" else first.schema.names) == (1 if level == "segment" else names)


def test_nothing_to_read_is_a_split_without_rows() -> None:
    """Spark makes one of its own where there is none."""
    reader = ReplicaReader(parse({"path": "/x"}), StructType([]))
    assert list(reader.read(InputPartition(None))) == []


def test_a_column_that_a_level_does_not_have() -> None:
    for wrong, problem in (("colour", "level batch has no column 'colour'"), ("crc", "'crc' is bigint, not int")):
        with pytest.raises(BadOption, match=problem):
            ReplicaReader(parse({"path": "/x"}), StructType([StructField(wrong, IntegerType())]))
    with pytest.raises(BadOption, match="cast it in the query"):
        ReplicaReader(parse({"path": "/x", "level": "record"}), StructType([StructField("key", StringType())]))


def test_damaged_records_are_refused_or_left_out(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = log_file(write_log(at, "t-0", batches(0, 5)))
    change(path, SIZE + 100, b"rot")
    with pytest.raises(
        DamagedLog, match=r"00.log: the batch at offset 4, byte \d+ has the fault 'crc'\n  level = batch"
    ):
        rows(at, "record")
    assert [row["offset"] for row in rows(at, "record", mode="dropMalformed")] == [0, 1, 2, 3, *range(8, 20)]
    change(path, 0, bytes(SIZE))
    with pytest.raises(DamagedLog, match="no batch begins at byte 0"):
        rows(at, "record")
    assert [row["offset"] for row in rows(at, "record", mode="dropMalformed")] == [*range(8, 20)]


def test_records_that_are_invalid_under_a_right_crc(tmp_path: Path) -> None:
    from crc32c import crc32c

    at = directory(tmp_path)
    wrong = bytearray(batch(4))
    wrong[HEADER_SIZE] = 1  # a record of negative length
    wrong[CRC_AT : CRC_AT + 4] = crc32c(bytes(wrong[CRC_AT + 4 :])).to_bytes(4, "big")
    write_log(at, "t-0", [batch(0), bytes(wrong), batch(8)])
    with pytest.raises(DamagedLog, match="the batch at offset 4"):
        rows(at, "record")
    assert [row["offset"] for row in rows(at, "record", mode="DROPMALFORMED")] == [0, 1, 2, 3, 8, 9, 10, 11]


def test_a_torn_end_has_no_records(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 2), batches(8, 2))
    with log_file(path, 8).open("r+b") as file:
        file.truncate(SIZE + 70)
    assert [row["offset"] for row in rows(at, "record")] == list(range(12))
    with log_file(path).open("r+b") as file:  # within the log it is damage
        file.truncate(SIZE + 70)
    with pytest.raises(DamagedLog, match=r"the file ends in a batch at byte \d+ \(70 bytes\)"):
        rows(at, "record")


# --- other files


def test_segments_and_their_indexes(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", batches(0, 10), batches(40, 1), interval=1)
    (path / f"{40:020d}.snapshot").write_bytes(b"")
    first, second = rows(at, "segment")
    assert {name: first[name] for name in ("segment", "size", "is_active", "index_entries")} == {
        "segment": 0,
        "size": 10 * SIZE,
        "is_active": False,
        "index_entries": 9,
    }
    assert (first["index_last_offset"], first["time_index_entries"], first["producer_snapshot"]) == (39, 1, False)
    assert (second["segment"], second["is_active"], second["producer_snapshot"]) == (40, True, True)
    assert (second["index_entries"], second["index_last_offset"]) == (0, None)
    entries = rows(at, "index")
    assert [(row["segment"], row["entry"], row["offset"], row["position"]) for row in entries] == [
        (0, i, 4 * i + 7, (i + 1) * SIZE) for i in range(9)
    ]


def test_checkpoints(tmp_path: Path) -> None:
    at = directory(tmp_path)
    write_log(at, "t-0", batches(0, 10), batches(40, 5), interval=1)
    write_log(at, "t-1", batches(8, 1))
    write_log(at, "u-0", [])
    checkpoint(at, "replication-offset-checkpoint", {"t-0": 56, "t-1": 12})
    checkpoint(at, "recovery-point-offset-checkpoint", {"t-0": 40})
    checkpoint(at, "log-start-offset-checkpoint", {"t-0": 5})
    names = ("high_watermark", "recovery_point", "log_start_offset", "clean_shutdown", "log_end_offset")
    assert [tuple(row[name] for name in names) for row in rows(at, "checkpoint")] == [
        (56, 40, 5, False, 60),
        (12, None, 8, False, 12),
        (None, None, 0, False, 0),
    ]
    (at / CLEAN_SHUTDOWN).write_text("{}")
    (at / "replication-offset-checkpoint").write_bytes(b"0\n1\n")
    assert [(row["high_watermark"], row["clean_shutdown"]) for row in rows(at, "checkpoint")] == [(None, True)] * 3


def test_epochs(tmp_path: Path) -> None:
    at = directory(tmp_path)
    path = write_log(at, "t-0", [batch(0), batch(4), batch(8, epoch=6)])
    write_log(at, "t-1", batches(8, 1))
    found = [(row["partition"], row["leader_epoch"], row["start_offset"]) for row in rows(at, "epoch")]
    assert found == [(0, 1, 0), (0, 6, 8), (1, 1, 8)]
    (path / "leader-epoch-checkpoint").write_bytes(b"nonsense")
    assert [row["partition"] for row in rows(at, "epoch")] == [1]


def test_the_metadata_log_has_its_control_records(tmp_path: Path) -> None:
    from strandline.wire.control import LeaderChangeMessage, build_control

    at = directory(tmp_path)
    change_of_leader = build_control([LeaderChangeMessage(leader_id=1)], timestamp=1, base_offset=0, leader_epoch=1)
    write_log(at, "__cluster_metadata-0", [change_of_leader, batch(1)])
    found = rows(at, "record", subscribe="__cluster_metadata")
    assert [row["is_control"] for row in found] == [True, False, False, False, False]
