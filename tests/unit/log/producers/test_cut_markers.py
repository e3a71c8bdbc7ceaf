"""A cut takes a transaction's marker away: what it ended is open again, also when all was read from a snapshot. And
until its marker is committed a transaction is not over for readers, also after a restart."""

import pytest
from tests.unit.log.logs import NOW, append, open_log, produced

from strandline.log.log import Appended
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import build
from strandline.wire.control import EndTxnMarker

COMMIT = EndTxnMarker(commits=True, coordinator_epoch=0)


def transactional() -> bytearray:
    return bytearray(
        build([(NOW, None, b"v", ())], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    )


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("rolls", [True, False])
def test_a_marker_that_is_not_committed_is_waited_for_after_a_restart_too(rolls: bool, is_clean: bool) -> None:
    """Kafka's readers would get the transaction at once."""
    disk = SimDisk()
    log = open_log(disk)
    assert isinstance(log.append_as_leader(transactional(), 0, NOW, may_begin=True), Appended)
    append(log, produced())
    assert isinstance(log.append_marker(7, 1, COMMIT, 0, NOW, 2), Appended)
    if rolls:
        log.roll(log.log_end_offset)
    append(log, produced())
    assert [log.last_stable_offset(end) for end in (2, 3, 4)] == [0, 3, 4]
    for high_watermark in (2, 1):
        disk.sync(log.write_all())
        log.mark_synced(log.log_end_offset)
        log.close()
        log = open_log(disk, clean=is_clean, recovery_point=4, high_watermark=high_watermark)
        assert log.last_stable_offset(high_watermark) == 0
        assert log.producers.known[7].epoch == 1
    assert [log.last_stable_offset(end) for end in (3, 4)] == [3, 4]


def test_after_a_restart_no_batch_is_read_if_all_markers_are_committed() -> None:
    disk = SimDisk()
    log = open_log(disk)
    assert isinstance(log.append_as_leader(transactional(), 0, NOW, may_begin=True), Appended)
    assert isinstance(log.append_marker(7, 1, COMMIT, 0, NOW, 2), Appended)
    append(log, produced())
    disk.sync(log.write_all())
    log.mark_synced(log.log_end_offset)
    log.close()
    log = open_log(disk, high_watermark=2)
    assert log.producer_state.snapshots == [3], "the snapshot of the stop is believed"
    assert log.last_stable_offset(2) == 2


def test_a_marker_that_is_cut_after_a_restart_opens_its_transaction_again() -> None:
    disk = SimDisk()
    log = open_log(disk)
    assert isinstance(log.append_as_leader(transactional(), 0, NOW, may_begin=True), Appended)
    append(log, produced())
    assert isinstance(log.append_marker(7, 1, COMMIT, 0, NOW, 2), Appended)
    assert (log.transactions.open, log.producers.known[7].epoch) == ({}, 1)
    log.roll(log.log_end_offset)
    log.close()
    log = open_log(disk)
    log.truncate_to(2)
    assert (log.transactions.open, log.producers.known[7].epoch) == ({7: 0}, 0)
    assert log.last_stable_offset(2) == 0


def test_a_cut_behind_a_marker_that_is_not_committed_leaves_it_waited_for() -> None:
    """What is known of producers is read from the snapshot of the last segment then, and that is behind the marker."""
    log = open_log(SimDisk())
    assert isinstance(log.append_as_leader(transactional(), 0, NOW, may_begin=True), Appended)
    append(log, produced())
    assert isinstance(log.append_marker(7, 1, COMMIT, 0, NOW, 2), Appended)
    log.roll(log.log_end_offset)
    append(log, produced())
    append(log, produced(producer=(8, 0, 0)))
    log.truncate_to(4)
    assert list(log.producers.known) == [7]
    assert [log.last_stable_offset(end) for end in (2, 3, 4)] == [0, 3, 4]
