"""Committed metadata and its snapshots, over the log on a disk."""

import pytest

from strandline.base.effects import Report
from strandline.base.ids import Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.broker.committed import Committed
from strandline.metadata.features import METADATA_VERSION
from strandline.metadata.framing import encode_record
from strandline.metadata.records import AccessControlEntryRecord, FeatureLevelRecord
from strandline.quorum.ports import EpochEnd, SnapshotId
from strandline.quorum.storage.metadata_log import UNFIT_SUFFIX, MetadataLog
from strandline.quorum.storage.snapshot_file import encode_snapshot
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import build
from strandline.wire.control import LeaderChangeMessage, build_control
from strandline.wire.schema import Message

NOW = Instant(1_700_000_000_000)


def test_a_snapshot_that_ends_with_a_leaders_first_record_keeps_the_log_behind_it_over_a_restart() -> None:
    disk = SimDisk()
    log = MetadataLog.open(disk, "/d", NOW)
    record = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=1))

    def data(epoch: int) -> None:
        log.append_as_leader(build([(NOW, None, record, ())], base_offset=log.log_end_offset, leader_epoch=epoch))

    def leader_change(epoch: int) -> None:
        message = LeaderChangeMessage(leader_id=1)
        batch = build_control([message], timestamp=NOW, base_offset=log.log_end_offset, leader_epoch=epoch)
        log.append_as_leader(batch)

    leader_change(1)
    data(1)
    leader_change(2)
    committed = Committed(log, snapshot_bytes=1)
    committed.advance(log.log_end_offset, NOW)
    data(2)
    end = log.log_end_offset
    log.close()
    assert MetadataLog.open(disk, "/d", NOW).log_end_offset == end


def test_a_snapshot_is_written_when_the_oldest_record_without_one_is_old() -> None:
    log = MetadataLog.open(SimDisk(), "/d", NOW)
    record = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=1))
    committed = Committed(log, snapshot_ms=1000)

    def newest(at: int) -> int:
        """A record more; where the newest snapshot ends."""
        log.append_as_leader(build([(NOW, None, record, ())], base_offset=log.log_end_offset, leader_epoch=1))
        committed.advance(log.log_end_offset, Instant(NOW + at))
        snapshot = log.latest_snapshot()
        return 0 if snapshot is None else snapshot.end_offset

    assert [newest(at) for at in (0, 500, 999)] == [0, 0, 0]
    assert newest(1000) == 4
    assert [newest(at) for at in (1001, 2000)] == [4, 4], "counted from the first record after it"
    assert newest(2001) == 7
    committed.snapshot_ms = 0
    assert [newest(at) for at in (2002, 90_000)] == [7, 7], "0: never by age"


def test_a_snapshot_bears_the_epoch_of_its_last_record_and_not_that_of_the_log() -> None:
    log = MetadataLog.open(SimDisk(), "/d", NOW)
    record = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=1))
    for epoch in (1, 2):
        log.append_as_leader(build([(NOW, None, record, ())], base_offset=log.log_end_offset, leader_epoch=epoch))
    committed = Committed(log, snapshot_bytes=1)
    committed.advance(1, NOW)
    assert log.latest_snapshot() == SnapshotId(1, 1)


# --- what cannot be applied

GOOD = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=level) for level in (7, 8, 9, 10)]
UNKNOWN = b"\x01\x7f\x00"  # a kind of record that nobody has written so far


def opened(disk: SimDisk | None = None) -> MetadataLog:
    return MetadataLog.open(disk or SimDisk(), "/d", NOW)


def write(log: MetadataLog, *values: Message | bytes, epoch: int = 1) -> int:
    """As one batch; returns where it begins."""
    base = log.log_end_offset
    plain = [value if isinstance(value, bytes) else encode_record(value) for value in values]
    log.append_as_leader(build([(NOW, None, value, ()) for value in plain], base_offset=base, leader_epoch=epoch))
    return base


def state(committed: Committed) -> tuple[int, int | None]:
    return committed.end, committed.image.features.get(METADATA_VERSION)


def test_a_batch_of_which_one_record_cannot_be_applied_leaves_nothing_behind() -> None:
    log = opened()
    committed = Committed(log)
    write(log, GOOD[0], GOOD[1])
    base = write(log, FeatureLevelRecord(name="another", feature_level=1), UNKNOWN)
    write(log, GOOD[3])
    committed.advance(log.log_end_offset, NOW)
    assert state(committed) == (base, 8)
    assert "another" not in committed.image.features
    assert committed.unfit is not None
    assert (committed.unfit.offset, committed.unfit.sound) == (base + 1, EpochEnd(1, base))
    assert committed.image.delta.reloaded, "whoever followed the image has to look at all of it again"
    assert committed.advance(log.log_end_offset, NOW) == []
    assert state(committed) == (base, 8)
    assert committed.faults == 1


def test_no_snapshot_reaches_behind_what_cannot_be_applied() -> None:
    log = opened()
    committed = Committed(log, snapshot_bytes=1)
    write(log, GOOD[0])
    base = write(log, UNKNOWN)
    write(log, GOOD[1])
    committed.advance(log.log_end_offset, NOW)
    assert log.snapshots == [SnapshotId(base, 1)]
    committed.advance(log.log_end_offset, Instant(NOW + 1))
    assert log.snapshots == [SnapshotId(base, 1)]


def test_nor_is_one_written_where_there_is_a_later_one() -> None:
    """Another program, which could apply all of it, wrote that."""
    log = opened()
    write(log, GOOD[0])
    write(log, UNKNOWN)
    write(log, GOOD[1])
    log.write_snapshot(3, 1, [encode_record(GOOD[1])], NOW)
    assert log.log_start_offset == 0
    committed = Committed(log, snapshot_bytes=1)
    committed.advance(log.log_end_offset, NOW)
    assert committed.end == 1
    assert log.snapshots == [SnapshotId(3, 1)]


def test_the_start_looks_at_all_of_the_log_and_applies_nothing_that_is_not_committed() -> None:
    disk = SimDisk()
    log = opened(disk)
    write(log, GOOD[0])
    base = write(log, GOOD[1], UNKNOWN, epoch=2)
    log.close()
    committed = Committed(opened(disk))
    assert committed.found is not None
    assert (committed.found.offset, committed.found.sound) == (base + 1, EpochEnd(1, base))
    assert state(committed) == (0, None)
    assert committed.unfit is None
    committed.advance(base, NOW)
    assert state(committed) == (base, 7)


def test_a_batch_that_rots_while_the_node_runs_is_not_left_out() -> None:
    disk = SimDisk()
    log = opened(disk)
    write(log, GOOD[0])
    base = write(log, GOOD[1])
    write(log, GOOD[2])
    log.close()
    log = opened(disk)
    committed = Committed(log)
    committed.ahead = None
    disk.flip(f"{log.directory}/{0:020d}.log", log.log.active.size - 1, 0)
    committed.advance(log.log_end_offset, NOW)
    assert committed.unfit is not None
    assert state(committed) == (base + 1, 8)
    assert log.log_end_offset == base + 2


def test_what_the_start_replayed_is_taken_when_all_of_it_is_committed() -> None:
    disk = SimDisk()
    log = opened(disk)
    first = write(log, GOOD[0])
    write(log, GOOD[1])
    log.close()
    log = opened(disk)
    committed = Committed(log)
    ahead = committed.ahead
    assert ahead is not None
    assert state(committed) == (0, None)
    committed.advance(log.log_end_offset, NOW)
    assert committed.image is ahead.image
    assert state(committed) == (log.log_end_offset, 8)
    assert committed.image.delta.reloaded
    assert committed.bytes_since_snapshot == ahead.size > 0
    again = Committed(log)
    again.advance(first + 1, NOW)
    assert state(again) == (1, 7), "not before"
    again.advance(log.log_end_offset, NOW)
    assert state(again) == (log.log_end_offset, 8)


def test_what_the_start_replayed_is_not_taken_if_other_records_were_committed_in_its_place() -> None:
    disk = SimDisk()
    log = opened(disk)
    write(log, GOOD[0])
    base = write(log, GOOD[1])
    log.close()
    log = opened(disk)
    committed = Committed(log)
    log.truncate_to(base)
    write(log, GOOD[2], epoch=2)
    committed.advance(log.log_end_offset, NOW)
    assert state(committed) == (log.log_end_offset, 9)


def snapshots_of(*states: Message | bytes) -> SimDisk:
    """A log with a snapshot behind each record, which has the record that is given instead."""
    disk = SimDisk()
    log = opened(disk)
    for at, record in enumerate(states):
        write(log, GOOD[at])
        encoded = record if isinstance(record, bytes) else encode_record(record)
        log.write_snapshot(log.log_end_offset, 1, [encoded], NOW)
        disk.sync(log.take_unsynced())
        log.mark_synced(log.log_end_offset)
    write(log, GOOD[len(states)])
    log.close()
    return disk


def test_an_older_snapshot_takes_the_place_of_one_that_cannot_be_applied() -> None:
    disk = snapshots_of(GOOD[0], UNKNOWN)
    log = opened(disk)
    assert log.log_start_offset == 1
    committed = Committed(log)
    (report,) = committed.advance(log.log_end_offset, NOW)[:1]
    assert isinstance(report, Report)
    assert "cannot be applied" in report.text
    assert state(committed) == (3, 9)
    assert log.snapshots == [SnapshotId(1, 1)]
    assert disk.exists(f"{log.snapshot_path(SnapshotId(2, 1))}{UNFIT_SUFFIX}"), "kept for an operator"


def test_without_another_snapshot_the_node_does_not_start_and_says_what_to_do() -> None:
    with pytest.raises(
        DiskError, match=r"record 0 of the metadata snapshot .* cannot be applied.*but quorum-state els"
    ):
        Committed(opened(snapshots_of(UNKNOWN, UNKNOWN)))


def test_a_snapshot_that_a_leader_sent_and_that_cannot_be_applied_leaves_the_image_as_it_was() -> None:
    log = opened()
    committed = Committed(log)
    write(log, GOOD[0])
    committed.advance(1, NOW)
    snapshot = SnapshotId(5, 1)
    log.begin_part(snapshot)
    log.append_part(snapshot, encode_snapshot([encode_record(GOOD[1]), UNKNOWN], 1, NOW))
    assert log.name_part(snapshot) is None
    log.install_snapshot(snapshot)
    committed.advance(5, NOW)
    assert committed.unfit is not None
    assert "record 1 of the metadata snapshot" in committed.unfit.text
    assert state(committed) == (1, 7)


def acl(number: int) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=Uuid(bytes([number] * 16)),
        resource_type=2,
        resource_name=f"t{number}",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )


def test_another_image_has_a_later_version_of_acls_whatever_it_holds() -> None:
    """Whoever has derived something from ACLs compares versions alone: another image may never have the same."""
    disk = SimDisk()
    log = opened(disk)
    write(log, acl(1), acl(2))
    started = Committed(log)
    began = started.image.acls_version
    started.advance(2, NOW)
    assert len(started.image.acls) == 2
    assert started.image.acls_version > began + 2, "as the replay before the start had it"
    known = started.image.acls_version

    snapshot = SnapshotId(5, 1)
    log.begin_part(snapshot)
    log.append_part(snapshot, encode_snapshot([encode_record(acl(3))], 1, NOW))
    assert log.name_part(snapshot) is None
    log.install_snapshot(snapshot)
    started.advance(5, NOW)
    assert [one.resource_name for one in started.image.acls.values()] == ["t3"]
    loaded = started.image.acls_version
    assert loaded > known

    write(log, acl(4), UNKNOWN)
    started.advance(log.log_end_offset, NOW)
    assert started.unfit is not None
    assert [one.resource_name for one in started.image.acls.values()] == ["t3"]
    assert started.image.acls_version > loaded + 1, "a version for the ACL that was taken back"
