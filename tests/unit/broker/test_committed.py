"""Committed metadata and its snapshots, over the log on a disk."""

from strandline.base.time import Instant
from strandline.broker.committed import Committed
from strandline.metadata.framing import encode_record
from strandline.metadata.records import FeatureLevelRecord
from strandline.quorum.metadata_log import MetadataLog
from strandline.quorum.ports import SnapshotId
from strandline.sim.disk import SimDisk
from strandline.wire.batch import build
from strandline.wire.control import LeaderChangeMessage, build_control

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
