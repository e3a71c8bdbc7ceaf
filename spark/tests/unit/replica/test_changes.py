"""A broker goes on with a log while it is read: what was planned is read, or `LogChanged` says that it cannot be."""

import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from spark.tests.unit.replica.logs import (
    DISK,
    bases,
    batch,
    batches,
    change,
    directory,
    faults,
    log_file,
    rows,
    write_log,
)

from strandline.base.time import Instant
from strandline.log.checkpoints import format_epochs
from strandline.log.config import LogConfig
from strandline.log.epochs import EpochStart
from strandline.log.log import Log
from strandline.wire.batch import build
from strandline_spark.replica import LogChanged, walking, windows
from strandline_spark.replica.options import SCHEMAS, parse
from strandline_spark.replica.source import ReplicaReader

SIZE = len(batch(0))
Planned = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_BYTES", 2 * SIZE)
    monkeypatch.setattr(walking, "GRACE_SECONDS", (0.001, 0.001))


def planned(at: Path, level: str = "batch", **options: str) -> Planned:
    """A plan of now, and how to read it later."""
    reader = ReplicaReader(parse({"path": str(at), "level": level, **options}), SCHEMAS[level])
    splits = reader.partitions()
    return lambda: [row for split in splits for part in reader.read(split) for row in part.to_pylist()]


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """A log of two segments: offsets 0 to 39, and from 40 on."""
    write_log(directory(tmp_path), "t-0", batches(0, 10), batches(40, 6))
    return tmp_path / "node1"


ALL = list(range(0, 64, 4))


def test_what_was_appended_after_the_plan_is_not_read(at: Path) -> None:
    read = planned(at)
    with log_file(at / "t-0", 40).open("ab") as file:
        file.write(batch(64))
    assert bases(read()) == ALL
    assert bases(rows(at)) == [*ALL, 64]


def test_a_write_that_was_under_way_is_no_torn_tail(at: Path) -> None:
    """The plan saw half a batch; the rest comes before it is read."""
    coming = batch(64)
    with log_file(at / "t-0", 40).open("ab") as file:
        file.write(coming[:100])
        file.flush()
        read = planned(at)
        assert faults(read()) == [(6 * SIZE, "torn")]
        file.write(coming[100:])
        file.flush()
    found = read()
    assert (bases(found), faults(found)) == (ALL, [])


def test_a_write_is_waited_for(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coming, path = batch(64), log_file(at / "t-0", 40)
    with path.open("ab") as file:
        file.write(coming[:100])
    read = planned(at)
    waiting = threading.Event()

    def write_on(seconds: float) -> None:
        waiting.set()
        with path.open("ab") as file:
            file.write(coming[100:])

    monkeypatch.setattr(walking.time, "sleep", write_on)
    found = read()
    assert waiting.is_set()
    assert (bases(found), faults(found)) == (ALL, [])


def test_a_segment_was_cut(at: Path) -> None:
    for level in ("batch", "record"):
        read = planned(at, level)
        os.truncate(log_file(at / "t-0", 40), 3 * SIZE)
        with pytest.raises(LogChanged, match=rf"40.log was cut from {6 * SIZE} to {3 * SIZE} bytes\n  read again"):
            read()
        (at / "t-0" / f"{40:020d}.log").write_bytes(b"".join(batches(40, 6)))


def test_retention_took_a_segment(at: Path) -> None:
    """While its file is there under another name, it is read; then nothing is."""
    read = planned(at)
    gone = log_file(at / "t-0")
    gone.rename(f"{gone}.deleted")
    assert bases(read()) == ALL
    os.remove(f"{gone}.deleted")
    with pytest.raises(LogChanged, match="is gone: retention"):
        read()
    assert bases(rows(at)) == ALL[10:]


def test_an_open_segment_outlives_retention(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = planned(at, subscribe="t")
    judge = walking.judge

    def remove_first(*arguments: Any) -> Any:
        log_file(at / "t-0").unlink(missing_ok=True)
        return judge(*arguments)

    monkeypatch.setattr(walking, "judge", remove_first)
    assert bases(read()) == ALL


def test_compaction_put_another_file_in_its_place(at: Path) -> None:
    read = planned(at)
    other = at / "t-0" / "other"
    other.write_bytes(log_file(at / "t-0").read_bytes())
    other.rename(log_file(at / "t-0"))
    with pytest.raises(LogChanged, match="is another file now: compaction"):
        read()


def test_a_segment_that_was_sealed_is_written_to(at: Path) -> None:
    """Truncation made it the active one again."""
    read = planned(at)
    change(log_file(at / "t-0"), 9 * SIZE, batch(36, epoch=2))
    os.utime(log_file(at / "t-0"), ns=(1, 1))
    with pytest.raises(LogChanged, match="was written to, though it was not the active segment"):
        read()


def test_the_topic_was_deleted(at: Path) -> None:
    read = planned(at)
    (at / "t-0").rename(at / "t-0.0a-delete")
    with pytest.raises(LogChanged, match="is gone"):
        read()


def test_a_log_was_cut_and_has_grown_again(at: Path) -> None:
    """Sizes tell nothing; leader epochs do."""
    path = at / "t-0"
    read = planned(at)
    half = planned(at)
    os.truncate(log_file(path, 40), 2 * SIZE)
    with log_file(path, 40).open("ab") as file:
        for each in batches(48, 8, epoch=5):
            file.write(each)
    (path / "leader-epoch-checkpoint").write_bytes(format_epochs([EpochStart(1, 0), EpochStart(5, 48)]))
    found = read()  # all of it was read after the change, and is what the checkpoint says
    assert (bases(found), faults(found)) == (ALL, [])
    # Now as if the windows before the cut had been read before it.
    content = b"".join(batches(40, 6))
    log_file(path, 40).write_bytes(content + batch(64, epoch=5))
    with pytest.raises(LogChanged, match=r"t-0 in .*node1 was cut, and written again from 48 on in epoch 5"):
        half()


def test_a_new_leader_is_no_change(at: Path) -> None:
    path = at / "t-0"
    read = planned(at)
    with log_file(path, 40).open("ab") as file:
        file.write(batch(64, epoch=5))
    (path / "leader-epoch-checkpoint").write_bytes(format_epochs([EpochStart(1, 0), EpochStart(5, 64)]))
    assert bases(read()) == ALL


def test_epochs_that_were_wrong_all_along_are_no_change(at: Path) -> None:
    (at / "t-0" / "leader-epoch-checkpoint").write_bytes(format_epochs([EpochStart(1, 0), EpochStart(7, 20)]))
    assert bases(planned(at)()) == ALL


def test_a_change_can_be_a_row(at: Path) -> None:
    """For who would rather know which log it was than try again."""
    read = planned(at, whenChanged="report")
    os.truncate(log_file(at / "t-0", 40), 3 * SIZE)
    found = read()
    assert bases(found) == ALL[:10]
    assert [(row["segment"], row["position"], row["fault"]) for row in found if row["fault"]] == [(40, 0, "changed")]


@pytest.mark.parametrize("cuts", [False, True], ids=["grows", "is cut"])
def test_while_a_broker_does_all_it_does_no_row_is_wrong(
    tmp_path: Path, cuts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appends, rolls, retention, and truncations with new epochs: thirty things while each read goes on."""
    monkeypatch.undo()
    log_dir = directory(tmp_path)
    config = LogConfig(segment_bytes=1 << 20)
    log = Log.open(DISK, f"{log_dir}/t-0", config, Instant(1), clean=True, recovery_point=0, log_start_offset=0)
    stop, pace, random = threading.Event(), threading.Semaphore(200), Random(3)

    def broker() -> None:
        epoch = step = 0
        while pace.acquire() and not stop.is_set():
            step += 1
            value = random.randbytes(random.choice((10, 1000, 60_000)))
            batch = bytearray(build([(1, None, value, [])] * random.randrange(1, 4)))
            log.append_as_leader(batch, epoch, Instant(step))
            if cuts and step % 40 == 0:
                log.truncate_to(max(log.log_start_offset + 1, log.log_end_offset - random.randrange(1, 60)))
                epoch += 1
                log.begin_epoch(epoch)
                log.save_begun_epoch()
            if step % 200 == 0:
                log.advance_log_start(max(log.log_start_offset, log.log_end_offset - 300))
                log.delete_old_segments(Instant(step), log.log_end_offset)

    writer = threading.Thread(target=broker)
    writer.start()
    read = 0
    try:
        for turn in range(70):
            level = ("batch", "record")[turn % 2]
            if turn < 50:
                pace.release(30)
            elif turn == 50:
                time.sleep(2)  # then the broker rests, and what it has made of the log is read too
            try:
                found = rows(log_dir, level)
            except LogChanged:
                continue
            first, last = ("base_offset", "last_offset") if level == "batch" else ("offset", "offset")
            assert [row for row in found if level == "batch" and row["fault"] is not None] == []
            for one, two in pairwise(found):
                assert (one[last] + 1, one["leader_epoch"]) <= (two[first], two["leader_epoch"])
                assert one[last] + 1 == two[first]
            read += bool(found)
    finally:
        stop.set()
        pace.release()
        writer.join()
    assert read > 5
