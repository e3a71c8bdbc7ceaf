"""The metadata log under power cuts: what was synced is found again, and what is found is a log."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.time import Instant
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.metadata_log import MetadataLog
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import build

NOW = Instant(1)


def value_at(offset: int, epoch: int) -> bytes:
    return b"%d in %d" % (offset, epoch)


def append(log: MetadataLog, epoch: int, count: int) -> None:
    base = log.log_end_offset
    drafts = [(NOW, None, value_at(base + n, epoch), ()) for n in range(count)]
    log.append_as_leader(build(drafts, base_offset=base, leader_epoch=epoch))


def synced(log: MetadataLog, disk: SimDisk) -> int:
    end = log.log_end_offset
    disk.sync(log.take_unsynced())
    log.mark_synced(end)
    return end


def records(log: MetadataLog) -> dict[int, tuple[int, bytes]]:
    found = log.committed_batches(0, log.log_end_offset)
    return {batch.base_offset + n: (batch.epoch, value) for batch in found for n, value in enumerate(batch.records)}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_power_cuts(seed: int) -> None:
    rng = Random(seed)
    disk = SimDisk()
    log = MetadataLog.open(disk, "/d", NOW)
    epoch, durable = 1, 0
    for _ in range(4):
        for _ in range(rng.randrange(1, 12)):
            match rng.randrange(0, 8):
                case 0:
                    durable = synced(log, disk)
                case 1:
                    epoch += 1
                case 2 if durable > log.log_start_offset:
                    at = log.end_of_epoch(rng.randrange(0, epoch + 1))
                    if durable <= at.end_offset <= log.log_end_offset:
                        log.truncate_to(at.end_offset)
                case 3 if durable > log.log_start_offset:
                    held = records(log)
                    # Only what is committed is ever in a snapshot, and here that is what was synced.
                    log.write_snapshot(durable, held[durable - 1][0], [b"state"], NOW)
                case _:
                    append(log, epoch, rng.randrange(1, 4))
            log.check()
        before = records(log)
        start_before = log.log_start_offset
        disk.crash(rng)
        log = MetadataLog.open(disk, "/d", NOW)
        log.check()
        assert log.log_end_offset >= durable
        assert log.log_start_offset <= max(durable, start_before)
        after = records(log)
        assert sorted(after) == list(range(log.log_start_offset, log.log_end_offset))
        for offset in range(log.log_start_offset, durable):
            if offset in before:
                assert after[offset] == before[offset]
        snapshot = log.latest_snapshot()
        assert snapshot is None or list(log.read_snapshot(snapshot)) == [b"state"]
        assert log.log_start_offset == 0 or isinstance(snapshot, SnapshotId)
        durable, epoch = log.log_end_offset, max(epoch, log.last_epoch) + 1
