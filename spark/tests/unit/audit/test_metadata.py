"""What an audit finds beside a metadata log: one damage at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from spark.tests.unit.audit.test_directories import STOPPED_IN, stopped
from spark.tests.unit.replica.logs import DISK, directory

from strandline.base.ids import NodeId, Uuid
from strandline.base.time import Instant
from strandline.log.directory import DirectoryMeta, write_meta
from strandline.metadata.framing import encode_record
from strandline.metadata.records import RegisterBrokerRecord
from strandline.quorum.elections.election_state import SHORT, VOTES_LOST, ElectionState, encode_election
from strandline.quorum.storage.metadata_log import DIRECTORY, QUORUM_STATE, MetadataLog
from strandline.quorum.storage.snapshot_file import encode_snapshot
from strandline.wire.batch import build
from strandline_spark.jobs.audit.metadata.state import beside_the_log
from strandline_spark.jobs.audit.subjects.presence import by_directory
from strandline_spark.replica.options import parse

NOW = Instant(1_700_000_000_000)
OLD, NEW, END, EPOCH = 10, 20, 30, 3
Damage = Callable[[Path], object]
Found = list[tuple[str, str, int, int]]


def snapshot_path(folder: Path, end: int) -> Path:
    return folder / f"{end:020d}-{EPOCH:010d}.checkpoint"


def say(folder: Path, epoch: int = EPOCH, applied: int = END, leader: int = 1) -> None:
    state = ElectionState(epoch, NodeId(leader), NodeId(1))
    (folder / QUORUM_STATE).write_bytes(encode_election(state, "c", (NodeId(1),), applied))


def trimmed(root: Path, node: int = 1, value: bytes = b"x") -> Path:
    """A log of two segments, each with a batch of ten, from 10 to 30; two snapshots, and what the voter promised."""
    path = directory(root, node)
    log = MetadataLog.open(DISK, str(path), NOW)
    log.log.truncate_fully_and_start_at(OLD)
    for base in range(OLD, END, 10):
        drafts = [(NOW, None, value, ()) for _ in range(10)]
        log.append_as_leader(build(drafts, base_offset=base, leader_epoch=EPOCH))
        log.log.roll(log.log_end_offset)
    folder = path / DIRECTORY
    for end in (OLD, NEW):
        snapshot_path(folder, end).write_bytes(encode_snapshot([b"record"], EPOCH, NOW))
    say(folder)
    return folder


def found(folder: Path) -> Found:
    rows = beside_the_log(str(folder.parent), 1)
    return [(row["rule"], row["severity"], row["offset"], row["end"]) for row in rows]


def cut(path: Path, less: int = 1) -> None:
    path.write_bytes(path.read_bytes()[:-less])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def drop_snapshots(folder: Path) -> None:
    for end in (OLD, NEW):
        snapshot_path(folder, end).unlink()


def cut_log(folder: Path) -> None:
    cut(folder / f"{NEW:020d}.log")


ALL, SNAPSHOT, STATE = (0, END), ("metadata-snapshot", "error"), ("quorum-state", "error")
DAMAGES: dict[str, tuple[Damage, Found]] = {
    "newest snapshot cut": (lambda at: cut(snapshot_path(at, NEW)), [(*SNAPSHOT, 0, NEW)]),
    "older snapshot changed": (lambda at: flip(snapshot_path(at, OLD)), [(*SNAPSHOT, 0, OLD)]),
    "snapshots deleted": (drop_snapshots, [(*SNAPSHOT, 0, OLD)]),
    "quorum-state cut": (lambda at: cut(at / QUORUM_STATE), [(*STATE, *ALL)]),
    "quorum-state missing": (lambda at: (at / QUORUM_STATE).unlink(), [(*STATE, *ALL)]),
    "quorum-state of an older epoch": (lambda at: say(at, epoch=EPOCH - 1), [(*STATE, *ALL)]),
    "quorum-state names no node": (lambda at: say(at, leader=-2), [(*STATE, *ALL)]),
    "end of the log cut": (cut_log, [(*STATE, NEW, END)]),
    "metadata lost before": (lambda at: say(at, applied=SHORT), [("quorum-state", "warning", *ALL)]),
    "votes lost before": (lambda at: say(at, applied=VOTES_LOST), [("quorum-state", "warning", *ALL)]),
}


def test_a_log_that_was_snapshotted_and_trimmed_has_no_finding(tmp_path: Path) -> None:
    assert found(trimmed(tmp_path)) == []


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(tmp_path: Path, name: str) -> None:
    plant, expected = DAMAGES[name]
    folder = trimmed(tmp_path)
    plant(folder)
    assert found(folder) == expected


def test_a_later_epoch_and_a_lagging_commit_are_no_damage(tmp_path: Path) -> None:
    folder = trimmed(tmp_path)
    say(folder, epoch=EPOCH + 1, applied=NEW, leader=-1)
    assert found(folder) == []


def test_a_snapshot_that_was_not_installed_yet_is_no_damage(tmp_path: Path) -> None:
    folder = trimmed(tmp_path)
    snapshot_path(folder, END + 10).write_bytes(encode_snapshot([], EPOCH, NOW))
    assert found(folder) == []


LOG = ("metadata-log", "error")
CLOSED: dict[str, Damage] = {
    "a closed segment changed": lambda at: flip(at / f"{OLD:020d}.log"),
    "a closed segment cut": lambda at: cut(at / f"{OLD:020d}.log"),
    "a closed segment emptied": lambda at: (at / f"{OLD:020d}.log").write_bytes(b""),
}


def rules(*folders: Path, topic: str = "t") -> Found:
    rows = by_directory(parse({"path": ",".join(str(folder.parent) for folder in folders), "subscribe": topic}))
    return [(row["rule"], row["severity"], row["offset"], row["end"]) for row in rows]


@pytest.mark.parametrize("name", CLOSED)
def test_damage_of_a_closed_segment_is_found(tmp_path: Path, name: str) -> None:
    folder = trimmed(tmp_path)
    CLOSED[name](folder)
    assert rules(folder) == [(*LOG, OLD, NEW)]


def test_a_closed_segment_that_is_gone_is_found(tmp_path: Path) -> None:
    folder = trimmed(tmp_path)
    for end in (END, END + 10):
        log = MetadataLog.open(DISK, str(folder.parent), NOW)
        drafts = [(NOW, None, b"x", ()) for _ in range(10)]
        log.append_as_leader(build(drafts, base_offset=end, leader_epoch=EPOCH))
        log.log.roll(log.log_end_offset)
        log.close()
    (folder / f"{NEW:020d}.log").unlink()
    assert rules(folder) == [(*LOG, NEW, END)]


def test_a_snapshot_with_the_content_of_another_one_is_found(tmp_path: Path) -> None:
    folder = trimmed(tmp_path)
    snapshot_path(folder, NEW).write_bytes(encode_snapshot([b"record"], EPOCH, NOW, OLD))
    assert found(folder) == [(*SNAPSHOT, 0, NEW)]


def test_committed_records_that_another_node_has_otherwise_are_found(tmp_path: Path) -> None:
    first, other = trimmed(tmp_path), trimmed(tmp_path, 2, b"y")
    assert rules(first, other) == [(*LOG, OLD, NEW), (*LOG, NEW, END)]
    say(other, applied=OLD)
    assert rules(first, other) == [], "they may be cut: they are not known to be committed"
    assert rules(first, trimmed(tmp_path, 3)) == []


def registered(folder: Path, broker: int, epoch: int) -> None:
    log = MetadataLog.open(DISK, str(folder.parent), NOW)
    record = encode_record(RegisterBrokerRecord(broker_id=broker, broker_epoch=epoch))
    log.append_as_leader(build([(NOW, None, record, ())], base_offset=log.log_end_offset, leader_epoch=EPOCH))
    log.close()


@pytest.mark.parametrize(
    ("broker", "epoch", "is_stale"),
    [(2, STOPPED_IN + 1, True), (2, STOPPED_IN, False), (2, STOPPED_IN - 1, False), (3, STOPPED_IN + 1, False)],
)
def test_a_directory_whose_marker_is_of_an_earlier_registration_is_found(
    tmp_path: Path, broker: int, epoch: int, *, is_stale: bool
) -> None:
    """By the metadata of another node: that in the directory itself may be as old."""
    folder, left = trimmed(tmp_path), stopped(tmp_path, 2)
    registered(folder, broker, epoch)
    registered(folder, broker, 1)
    assert rules(folder, left / "t-0") == [("stale-directory", "error", 0, 80)] * (3 * is_stale)


def test_a_registration_in_a_snapshot_counts_too(tmp_path: Path) -> None:
    folder, left = trimmed(tmp_path), stopped(tmp_path, 2)
    record = encode_record(RegisterBrokerRecord(broker_id=2, broker_epoch=STOPPED_IN + 1))
    snapshot_path(folder, NEW).write_bytes(encode_snapshot([record], EPOCH, NOW, NEW))
    assert len(rules(folder, left / "t-0")) == 3


def test_a_registration_of_another_cluster_does_not_count(tmp_path: Path) -> None:
    folder, left = trimmed(tmp_path), stopped(tmp_path, 2)
    registered(folder, 2, STOPPED_IN + 1)
    write_meta(DISK, str(folder.parent), DirectoryMeta("another", 1, Uuid(bytes([1]) * 16)))
    assert rules(folder, left / "t-0") == []


def test_a_directory_without_a_metadata_log_has_no_finding(tmp_path: Path) -> None:
    assert list(beside_the_log(str(directory(tmp_path, 1)), 1)) == []


def test_the_audit_reads_it_whatever_topic_is_named(tmp_path: Path) -> None:
    folder = trimmed(tmp_path)
    (folder / QUORUM_STATE).unlink()
    rows = by_directory(parse({"path": str(folder.parent), "subscribe": "t"}))
    assert [row["rule"] for row in rows] == ["quorum-state"]
