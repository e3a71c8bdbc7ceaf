"""Producer snapshots: Kafka's format, when they are written, and when they are not believed."""

from random import Random
from struct import pack

import pytest
from crc32c import crc32c
from tests.unit.log.logs import NOW, ROOT, append, content, fill, open_log, produced, small

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.log.config import DAY_MS
from strandline.log.log import Appended, Log
from strandline.log.producers.producer_snapshot import Damaged, decode, encode, offsets_in
from strandline.log.producers.producers import Producers
from strandline.log.refusals import Refused
from strandline.sim.world.disk import SimDisk


def send(log: Log, sequence: int, *, epoch: int = 0, pid: int = 7, size: int = 10) -> Appended | ErrorCode:
    done = log.append_as_leader(bytearray(produced(1, producer=(pid, epoch, sequence), size=size)), 0, NOW)
    log.check()
    return done.error if isinstance(done, Refused) else done


def is_duplicate(log: Log, sequence: int, pid: int = 7) -> bool:
    done = send(log, sequence, pid=pid)
    return isinstance(done, Appended) and done.duplicate


def known_to(producers: Producers) -> dict[int, tuple[int, list[object]]]:
    return {pid: (one.epoch, list(one.batches)) for pid, one in sorted(producers.known.items())}


def stop(log: Log, disk: SimDisk) -> None:
    disk.sync(log.write_all())
    log.mark_synced(log.log_end_offset)
    log.close()


# --- the format


def test_a_snapshot_of_kafka_is_read_field_by_field() -> None:
    body = pack(">i", 2)
    body += pack(">qhiqiqiq", 11, 3, 9, 109, 4, 1234, -1, -1)  # five records, sequences 5 to 9, offsets 105 to 109
    body += pack(">qhiqiqiq", 12, 1, -1, -1, 0, -1, 5, -1)  # only a marker was seen of this one
    found = decode(pack(">hI", 1, crc32c(body)) + body, NOW)
    one = found.known[11].batches[0]
    assert (one.first_sequence, one.last_sequence, one.base_offset, one.last_offset, one.timestamp) == (
        5,
        9,
        105,
        109,
        1234,
    )
    assert (found.known[12].epoch, found.known[12].batches) == (1, [])
    assert found.end_offset == 110


def test_what_kafka_believes_of_a_snapshot_is_the_last_batch_of_each_producer() -> None:
    log = open_log(SimDisk())
    for sequence in range(3):
        send(log, sequence)
    written = encode(log.producers)
    assert written[:2] == pack(">h", 1)
    assert int.from_bytes(written[2:6]) == crc32c(written[6:])
    assert int.from_bytes(written[6:10]) == 3
    assert written[10 + 2 * 46 :] == pack(">qhiqiqiq", 7, 0, 2, 2, 0, NOW, -1, -1)


def test_a_batch_whose_sequences_wrap_is_read_as_it_was_written() -> None:
    log = open_log(SimDisk())
    append(log, produced(4, producer=(7, 0, (1 << 31) - 2)))
    assert known_to(decode(encode(log.producers), NOW)) == known_to(log.producers)


@pytest.mark.parametrize("at", [0, 1, 3, 9, 20, -1])
def test_a_damaged_snapshot_is_noticed(at: int) -> None:
    log = open_log(SimDisk())
    send(log, 0)
    written = bytearray(encode(log.producers))
    written[at] ^= 4
    with pytest.raises(Damaged):
        decode(bytes(written), NOW)
    with pytest.raises(Damaged):
        decode(encode(log.producers)[:-1], NOW)


# --- when they are written


def test_one_is_written_where_each_segment_begins_and_synced_with_what_is_before_it() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for sequence in range(24):
        send(log, sequence)
    assert len(log.segments) > 2
    assert offsets_in(disk, ROOT) == log.producer_state.snapshots == log.bases[1:]
    for offset in log.producer_state.snapshots:
        assert f"{ROOT}/{offset:020d}.snapshot" in log.unsynced()
    assert ROOT in log.unsynced()


def test_after_a_clean_stop_no_batch_is_read_to_know_the_producers() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(200):
        send(log, sequence, size=1000)
    known = known_to(log.producers)
    stop(log, disk)
    assert offsets_in(disk, ROOT) == [200]
    disk.bytes_read = 0
    log = open_log(disk)
    assert known_to(log.producers) == known
    assert disk.bytes_read < 20_000
    assert is_duplicate(log, 195)
    assert send(log, 194) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_snapshot_of_a_stop_goes_when_a_later_one_is_there() -> None:
    disk = SimDisk()
    for stopped in range(3):
        log = open_log(disk)
        send(log, stopped)
        stop(log, disk)
    open_log(disk)
    assert offsets_in(disk, ROOT) == [3]


def test_an_empty_log_that_stops_has_none() -> None:
    disk = SimDisk()
    stop(open_log(disk), disk)
    assert offsets_in(disk, ROOT) == []


# --- when they are not believed


def test_a_damaged_snapshot_is_removed_and_the_one_before_it_taken() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for sequence in range(24):
        send(log, sequence)
    known = known_to(log.producers)
    stop(log, disk)
    newest = offsets_in(disk, ROOT)[-1]
    disk.flip(f"{ROOT}/{newest:020d}.snapshot", 12, 0)
    log = open_log(disk, small())
    assert known_to(log.producers) == known
    assert newest not in offsets_in(disk, ROOT)


def test_after_an_unclean_stop_none_is_believed_from_the_recovery_point_on() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for sequence in range(24):
        send(log, sequence)
    known, bases = known_to(log.producers), list(log.bases)
    for offset in bases[2:]:  # sound, and of another history
        disk.write_file(f"{ROOT}/{offset:020d}.snapshot", encode(Producers()))
    log = open_log(disk, small(), clean=False, recovery_point=bases[2])
    assert known_to(log.producers) == known
    assert offsets_in(disk, ROOT) == bases[1:2]
    assert ROOT in log.unsynced(), "a power loss must not bring them back"


def test_a_snapshot_ahead_of_the_log_is_removed_before_the_log_grows_past_it() -> None:
    disk = SimDisk()
    log = open_log(disk)
    send(log, 0)
    stop(log, disk)
    ahead = f"{ROOT}/{5:020d}.snapshot"
    disk.write_file(ahead, encode(Producers()))
    assert open_log(disk).producer_state.snapshots == [1]
    assert not disk.exists(ahead)


def test_a_snapshot_that_was_half_written_is_swept_away() -> None:
    disk = SimDisk()
    open_log(disk)
    disk.write_file(f"{ROOT}/{5:020d}.snapshot.tmp", b"half")
    open_log(disk)
    assert not [name for name in disk.list(ROOT) if ".snapshot" in name]


# --- following the log


def test_a_truncation_takes_snapshots_and_what_they_know() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for sequence in range(24):
        send(log, sequence)
    cut = log.bases[2] + 1
    log.truncate_to(cut)
    log.check()
    assert offsets_in(disk, ROOT) == log.bases[1:]
    assert is_duplicate(log, cut - 1)
    done = send(log, cut)
    assert isinstance(done, Appended)
    assert not done.duplicate


def test_a_snapshot_that_a_truncation_takes_does_not_come_back_after_a_power_loss() -> None:
    """It is one of a clean stop, in the middle of a segment: no other file goes with it."""
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(5):
        send(log, sequence)
    stop(log, disk)
    assert offsets_in(disk, ROOT) == [5]
    log = open_log(disk, clean=True)
    log.truncate_to(3)
    fill(log, 9)
    end = log.log_end_offset
    disk.sync(log.unsynced())
    log.mark_synced(end)
    disk.crash(Random(1))
    log = open_log(disk, clean=False, recovery_point=end)
    assert offsets_in(disk, ROOT) == []
    assert not is_duplicate(log, 3)


def test_a_truncation_that_takes_no_batch_of_a_producer_reads_none() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(5):
        send(log, sequence)
    fill(log, 50)
    known = log.producers
    log.truncate_to(20)
    assert log.producers is known
    assert is_duplicate(log, 0)


def test_a_follower_that_begins_anew_forgets_all() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for sequence in range(24):
        send(log, sequence)
    log.truncate_fully_and_start_at(500)
    log.check()
    assert offsets_in(disk, ROOT) == []
    assert ROOT in log.unsynced()
    done = send(log, 3)
    assert isinstance(done, Appended)
    assert done.base_offset == 500


@pytest.mark.parametrize("clean", [True, False])
def test_a_producer_of_deleted_records_is_known_after_a_restart(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    send(log, 0, pid=1)
    for sequence in range(24):
        send(log, sequence)
    log.advance_log_start(log.bases[2] + 1)
    assert log.delete_old_segments(NOW, log.log_end_offset) == 2
    log.check()
    assert offsets_in(disk, ROOT) == log.bases
    if clean:
        stop(log, disk)
    where = {"recovery_point": log.log_end_offset, "log_start_offset": log.log_start_offset}
    log = open_log(disk, small(), clean=clean, **where)
    assert is_duplicate(log, 0, pid=1)
    assert send(log, 2, pid=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_idle_producer_without_records_is_forgotten_at_a_restart() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    append(log, produced(1, timestamp=NOW - DAY_MS - 1, producer=(1, 0, 0)))
    append(log, produced(1, timestamp=NOW - DAY_MS + 1, producer=(2, 0, 0)))
    append(log, produced(1, timestamp=NOW - DAY_MS - 1, producer=(3, 0, 0)))
    stop(log, disk)
    assert sorted(open_log(disk, small(), log_start_offset=2).producers.known) == [2, 3]


def test_an_idle_producer_is_forgotten_after_the_span_that_is_configured() -> None:
    log = open_log(SimDisk(), small(producer_id_expiration_ms=1000, retention_ms=-1))
    send(log, 0)
    log.delete_old_segments(Instant(NOW + 1000), 1)
    assert 7 in log.producers.known
    log.delete_old_segments(Instant(NOW + 1001), 1)
    assert 7 not in log.producers.known


def test_a_follower_that_becomes_leader_refuses_what_the_old_leader_refused() -> None:
    leader, disk = open_log(SimDisk(), small()), SimDisk()
    follower = open_log(disk, small())
    for sequence in range(12):
        send(leader, sequence)
        send(leader, sequence, pid=8, epoch=2)
    follower.append_as_follower(content(leader), 0, NOW)
    assert known_to(follower.producers) == known_to(leader.producers)
    stop(follower, disk)
    follower = open_log(disk, small())
    for sequence in range(14):
        mine, his = send(leader, sequence, pid=8, epoch=2), send(follower, sequence, pid=8, epoch=2)
        assert mine == his
    assert send(follower, 12, pid=8, epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH
