"""What an audit finds in log directories of stopped brokers before it reads a batch: one damage at a time."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.rows import each

pytest.importorskip("pyspark")

from spark.tests.unit.replica.logs import DISK, TOPIC_ID, batches, change, checkpoint, directory, log_file, write_log

from strandline.base.ids import Uuid, uuid_text
from strandline.log.directory import read_meta, write_partition_metadata
from strandline.log.evidence.clean_shutdown import FILE as MARKER
from strandline.log.evidence.clean_shutdown import Place, write_clean_shutdown
from strandline.log.evidence.inventory import Left, finders_in, segments_in
from strandline.log.producers.producer_snapshot import encode
from strandline.log.producers.producers import Producers, Remembered
from strandline.replica.hosting.rows import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.small_files import damaged_files
from strandline_spark.jobs.audit.subjects.beside import unusable_files
from strandline_spark.jobs.audit.subjects.presence import by_directory, topic_ids
from strandline_spark.jobs.audit.subjects.watermarks import other_checkpoints
from strandline_spark.replica.beside import TIME, beside_rows
from strandline_spark.replica.options import Request, parse
from strandline_spark.replica.places import replicas

FIRST, SECOND, END = 0, 40, 80  # the segments of each log, and where it ends
STOPPED_IN = 7  # the broker epoch
OTHER_ID = Uuid(bytes(range(16, 32)))
Found = list[tuple[str, str, str, int, int, int, int]]


def stopped(root: Path, node: int = 1, cleaned_to: int | None = None) -> Path:
    """A log directory that its broker left in order: three logs of two segments, with records of different sizes."""
    path = directory(root, node)
    rows = []
    for at, name in enumerate(("t-0", "t-1", "u-0")):
        value = bytes(100 + at)
        write_log(path, name, batches(FIRST, 10, value=value), batches(SECOND, 10, value=value), interval=200)
        topic, _, partition = name.partition("-")
        files = tuple(segments_in(DISK, f"{path}/{name}"))
        offsets = (0, END, END, cleaned_to)
        finders = finders_in(DISK, f"{path}/{name}")
        rows.append(Left(topic, uuid_text(TOPIC_ID), int(partition), *offsets, files, finders))
    everywhere = dict.fromkeys(("t-0", "t-1", "u-0"), END)
    for file in (HIGH_WATERMARKS, RECOVERY_POINTS, *([CLEANED] if cleaned_to is not None else [])):
        checkpoint(path, file, everywhere if cleaned_to is None or file != CLEANED else dict.fromkeys(everywhere, 20))
    checkpoint(path, LOG_STARTS, {})
    meta = read_meta(DISK, str(path))
    assert meta is not None
    place = Place(meta.cluster_id, meta.node_id, ((str(path), meta.directory_id),))
    write_clean_shutdown(DISK, place, STOPPED_IN, {str(path): tuple(rows)})
    return path


def request(*paths: Path, **options: str) -> Request:
    return parse({"path": ",".join(map(str, paths)), **options})


def found_in(*paths: Path, **options: str) -> Found:
    names = ("rule", "severity", "topic", "partition", "broker", "offset", "end")
    return [tuple(row[name] for name in names) for row in by_directory(request(*paths, **options))]  # type: ignore[misc]


def said_in(path: Path) -> str:
    (one,) = by_directory(request(path))
    return str(one["what"])


# --- after a stop in order


@pytest.mark.parametrize("cleaned_to", [None, 20])
def test_what_a_stop_left_is_as_it_was(tmp_path: Path, cleaned_to: int | None) -> None:
    assert found_in(stopped(tmp_path, cleaned_to=cleaned_to)) == []
    assert list(damaged_files(f"{tmp_path}/node1")) == []


class Damage(NamedTuple):
    plant: Callable[[Path], object]
    expected: list[tuple[str, int, int, int]]  # severity, partition of `t`, offset, end


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(batches(END, 1)[0])


def older(at: Path) -> None:
    """The folder as it was when its first segment was half written."""
    log_file(at / "t-0", SECOND).unlink()
    cut(log_file(at / "t-0"), log_file(at / "t-0").stat().st_size // 2)
    (at / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


WHOLE = (0, END)
FINDERS = [("warning", 0, *WHOLE)]
INDEX, TIME_INDEX, EPOCHS = f"{0:020d}.index", f"{0:020d}.timeindex", "leader-epoch-checkpoint"
DAMAGES = {
    "last segment truncated": Damage(lambda at: cut(log_file(at / "t-0", SECOND), 100), [("error", 0, SECOND, END)]),
    "closed segment truncated": Damage(
        lambda at: cut(log_file(at / "t-0"), log_file(at / "t-0").stat().st_size // 10 * 9),
        [("error", 0, FIRST, SECOND)],
    ),
    "segment deleted": Damage(lambda at: log_file(at / "t-0").unlink(), [("error", 0, FIRST, SECOND)]),
    "folder deleted": Damage(lambda at: shutil.rmtree(at / "t-0"), [("error", 0, *WHOLE)]),
    "segments swapped between partitions": Damage(
        lambda at: swap(log_file(at / "t-0"), log_file(at / "t-1")),
        [("error", 0, FIRST, SECOND), ("error", 1, FIRST, SECOND)],
    ),
    "folders swapped": Damage(lambda at: swap(at / "t-0", at / "t-1"), [("error", 0, *WHOLE), ("error", 1, *WHOLE)]),
    "folder as it was some time ago": Damage(older, [("error", 0, *WHOLE)]),
    "segment of the same size": Damage(lambda at: change(log_file(at / "t-0"), 20, b"????"), [("error", 0, 0, SECOND)]),
    "written to after the stop": Damage(lambda at: grow(log_file(at / "t-0", SECOND)), [("warning", 0, END, END + 1)]),
    "another segment": Damage(lambda at: log_file(at / "t-0", 60).write_bytes(b""), [("error", 0, 60, 61)]),
    "partition.metadata missing": Damage(lambda at: (at / "t-0" / "partition.metadata").unlink(), FINDERS),
    "partition.metadata truncated": Damage(lambda at: cut(at / "t-0" / "partition.metadata", 20), FINDERS),
    "partition.metadata of another topic": Damage(
        lambda at: write_partition_metadata(DISK, str(at / "t-0"), OTHER_ID), FINDERS
    ),
    "index missing": Damage(lambda at: (at / "t-0" / INDEX).unlink(), FINDERS),
    "index truncated": Damage(lambda at: cut(at / "t-0" / INDEX, 8), FINDERS),
    "time index missing": Damage(lambda at: (at / "t-0" / TIME_INDEX).unlink(), FINDERS),
    "time index truncated": Damage(lambda at: cut(at / "t-0" / TIME_INDEX, 0), FINDERS),
    "epochs missing": Damage(lambda at: (at / "t-0" / EPOCHS).unlink(), FINDERS),
    "epochs stale": Damage(lambda at: (at / "t-0" / EPOCHS).write_text("0\n1\n0 0\n"), FINDERS),
    "snapshot that was not there": Damage(
        lambda at: (at / "t-0" / f"{40:020d}.snapshot").write_bytes(encode(Producers())), FINDERS
    ),
    "high watermarks stale": Damage(
        lambda at: checkpoint(at, HIGH_WATERMARKS, {"t-0": 5, "t-1": END, "u-0": END}), FINDERS
    ),
    "high watermarks deleted": Damage(
        lambda at: (at / HIGH_WATERMARKS).unlink(), [("warning", 0, *WHOLE), ("warning", 1, *WHOLE)]
    ),
    "recovery points stale": Damage(lambda at: checkpoint(at, RECOVERY_POINTS, {"t-1": END, "u-0": END}), FINDERS),
    "log starts of another time": Damage(lambda at: checkpoint(at, LOG_STARTS, {"t-0": 30}), FINDERS),
    "cleaner's offsets": Damage(lambda at: checkpoint(at, CLEANED, {"t-0": 30}), FINDERS),
    "a log from elsewhere": Damage(lambda at: write_log(at, "t-9", batches(0, 1)), [("warning", 9, 0, 1)]),
}


@each("name", DAMAGES)
def test_a_directory_that_is_not_what_its_marker_says_is_found(tmp_path: Path, name: str) -> None:
    damage = DAMAGES[name]
    path = stopped(tmp_path)
    damage.plant(path)
    expected = [
        ("changed-since-stop", severity, "t", at, 1, start, end) for severity, at, start, end in damage.expected
    ]
    assert found_in(path, subscribe="t") == expected
    assert found_in(path, subscribe="u") == [
        ("changed-since-stop", "warning", "u", 0, 1, *WHOLE) for _ in range(name == "high watermarks deleted")
    ]


def test_a_cleaners_checkpoint_that_is_gone_is_found(tmp_path: Path) -> None:
    path = stopped(tmp_path, cleaned_to=20)
    (path / CLEANED).unlink()
    assert found_in(path, assign='{"t":[1]}') == [("changed-since-stop", "warning", "t", 1, 1, *WHOLE)]


def test_the_sentence_says_all_that_changed(tmp_path: Path) -> None:
    path = stopped(tmp_path)
    log_file(path / "t-0").unlink()
    cut(log_file(path / "t-0", SECOND), 100)
    assert "segment 0 is gone; segment 40 was cut from" in said_in(path)


def test_a_directory_that_can_only_be_read_stays_as_it_is(tmp_path: Path) -> None:
    path = stopped(tmp_path)
    shutil.rmtree(path / "t-0")
    before = sorted(each.name for each in path.iterdir())
    assert len(found_in(path)) == 1
    assert sorted(each.name for each in path.iterdir()) == before


def test_a_broker_that_starts_during_the_look_is_not_judged_by_its_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stopped(tmp_path)
    log_file(path / "t-0").unlink()
    from strandline_spark.jobs.audit.subjects import stopped as subject

    def finders(*_: object) -> int:
        (path / MARKER).unlink(missing_ok=True)
        return -2

    monkeypatch.setattr(subject, "finders_in", finders)
    assert found_in(path) == []


# --- the marker itself


def test_without_a_marker_or_with_a_useless_one_a_stop_was_just_not_clean(tmp_path: Path) -> None:
    one, other = stopped(tmp_path), stopped(tmp_path, node=2)
    log_file(one / "t-0").unlink()
    content = (one / MARKER).read_bytes()
    (one / MARKER).unlink()
    assert (found_in(one), list(damaged_files(str(one)))) == ([], [])
    (one / MARKER).write_bytes(b"")
    assert (found_in(one), list(damaged_files(str(one)))) == ([], [])
    (one / MARKER).write_text('{"version":0,"brokerEpoch":5}')  # Kafka's
    assert (found_in(one), list(damaged_files(str(one)))) == ([], [])
    for content_now, why in (
        (content[:-9], "is damaged"),
        (content.replace(b'"t"', b'"s"', 1), "is damaged"),
        ((other / MARKER).read_bytes(), "is that of another log directory"),
    ):
        (one / MARKER).write_bytes(content_now)
        assert found_in(one) == []
        (said,) = damaged_files(str(one))
        assert why in said


# --- after a stop that was not in order


def killed(root: Path, node: int = 1) -> Path:
    path = stopped(root, node)
    (path / MARKER).unlink()
    return path


def test_a_log_that_a_checkpoint_names_and_that_has_no_folder_is_found(tmp_path: Path) -> None:
    one, other = killed(tmp_path), killed(tmp_path, 2)
    assert found_in(one, other) == []
    shutil.rmtree(one / "t-1")
    assert found_in(one, other) == [("missing-replica", "error", "t", 1, 1, 0, END)]
    (one / HIGH_WATERMARKS).unlink()
    assert found_in(one, other) == [("missing-replica", "error", "t", 1, 1, 0, END)]
    assert found_in(one, other, subscribe="u") == []


def test_a_topic_that_was_deleted_and_a_log_that_moved_to_another_directory_are_not_missed(tmp_path: Path) -> None:
    one, other = killed(tmp_path), killed(tmp_path, 2)
    for path in (one, other):
        shutil.rmtree(path / "u-0")
    assert found_in(one, other) == []
    second = directory(tmp_path / "more")
    (one / "t-1").rename(second / "t-1")
    assert found_in(one, other, second) == []


def known(broker: int, topic: str = "t", topic_id: str = "id", partition: int = 0, **others: Any) -> Known:
    key = (broker, f"/{broker}", topic, topic_id, partition)
    return Known(key, 0, 10, others.get("end", 10), None, True, False, 3, 100, 2, 10)


@pytest.mark.parametrize(
    ("odd", "severity"),
    [
        (known(3, topic_id=""), "error"),
        (known(3, topic_id="of u"), "error"),
        (known(2, topic_id="new", partition=1), "error"),  # the broker has another partition of the old one
        (known(3, topic_id="new"), "warning"),  # it may have been down while the topic was made anew
    ],
)
def test_a_topic_id_that_is_not_that_of_the_topics_other_replicas_is_found(odd: Known, severity: str) -> None:
    usual = [known(1), known(2), known(1, "u", "of u"), known(2, "u", "of u")]
    assert list(topic_ids(usual)) == []
    (found,) = topic_ids([*usual, odd])
    assert (found["rule"], found["severity"], found["broker"]) == ("topic-id", severity, odd.key[0])


def test_old_logs_without_topic_ids_are_alike() -> None:
    assert list(topic_ids([known(1, topic_id=""), known(2, topic_id="")])) == []


@pytest.mark.parametrize("name", ["recovery_point", "log_start_offset", "cleaned_to"])
def test_a_checkpoint_above_the_logs_end_is_found_and_one_at_it_is_not(name: str) -> None:
    def judged(offset: int | None) -> list[dict[str, Any]]:
        names = ("broker", "directory", "topic", "topic_id", "partition")
        row = dict(zip(names, known(1).key, strict=True))
        offsets = {"recovery_point": None, "log_start_offset": 0, "cleaned_to": None, name: offset}
        return list(other_checkpoints([known(1)], [{**row, **offsets}]))

    assert judged(10) == []
    (found,) = judged(12)
    assert (found["rule"], found["offset"], found["end"]) == ("checkpoint", 10, 12)


# --- indexes and snapshots


def unusable(path: Path, recovery_point: int = END) -> list[tuple[str, str, int, int]]:
    (replica,) = replicas(request(path, assign='{"t":[0]}'))
    rows = [{**replica._asdict(), **row} for row in beside_rows(replica)]
    durable = [{**replica._asdict(), "recovery_point": recovery_point}]
    names = ("rule", "severity", "offset", "end")
    return [tuple(row[name] for name in names) for row in unusable_files(rows, durable)]  # type: ignore[misc]


def snapshot(at: Path, offset: int, last_offset: int) -> Path:
    producers = Producers()
    producers.restore(7, 0, [Remembered(0, 3, last_offset - 3, last_offset, 0)], 0)  # type: ignore[arg-type]
    path = at / "t-0" / f"{offset:020d}.snapshot"
    path.write_bytes(encode(producers))
    return path


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "index missing": (lambda at: (at / "t-0" / INDEX).unlink(), "index"),
    "index cut": (lambda at: cut(at / "t-0" / INDEX, 9), "index"),
    "time index missing": (lambda at: (at / "t-0" / TIME_INDEX).unlink(), "time-index"),
    "time index cut": (lambda at: cut(at / "t-0" / TIME_INDEX, 7), "time-index"),
    "time index out of order": (
        lambda at: (at / "t-0" / TIME_INDEX).write_bytes(bytes(11) + b"\5" + bytes(12)),
        "time-index",
    ),
    "time index of later offsets": (
        lambda at: (at / "t-0" / TIME_INDEX).write_bytes(bytes(11) + bytes([SECOND])),
        "time-index",
    ),
    "snapshot cut": (lambda at: cut(snapshot(at, SECOND, 30), 20), "producer-snapshot"),
    "snapshot of a later time": (lambda at: snapshot(at, SECOND, SECOND), "producer-snapshot"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_nobody_can_use_is_found_unless_a_crash_may_have_left_it(tmp_path: Path, name: str) -> None:
    plant, rule = UNUSABLE[name]
    path = killed(tmp_path)
    snapshot(path, END, END - 1)
    assert unusable(path) == []
    plant(path)
    (found,) = unusable(path)
    assert found[:2] == (rule, "warning")
    assert unusable(path, recovery_point=SECOND - 1) == []


def test_a_time_index_ends_with_its_segments_largest_timestamp(tmp_path: Path) -> None:
    path = killed(tmp_path)
    (replica,) = replicas(request(path, assign='{"t":[0]}'))
    entries = [row for row in beside_rows(replica) if row["kind"] == TIME]
    assert [(row["segment"], row["timestamp_ms"], row["offset"]) for row in entries] == [(0, 1003, 3), (40, 1003, 43)]
