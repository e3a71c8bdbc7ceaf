"""A cut takes a transaction's marker away: what it ended is open again, also when all was read from a snapshot."""

from tests.unit.log.logs import NOW, append, open_log, produced

from strandline.log.log import Appended
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import build
from strandline.wire.control import EndTxnMarker

COMMIT = EndTxnMarker(commits=True, coordinator_epoch=0)


def test_a_marker_that_is_cut_after_a_restart_opens_its_transaction_again() -> None:
    disk = SimDisk()
    log = open_log(disk)
    batch = bytearray(
        build([(NOW, None, b"v", ())], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    )
    assert isinstance(log.append_as_leader(batch, 0, NOW, may_begin=True), Appended)
    append(log, produced())
    assert isinstance(log.append_marker(7, 1, COMMIT, 0, NOW, 2), Appended)
    assert (log.transactions.open, log.producers.known[7].epoch) == ({}, 1)
    log.roll(log.log_end_offset)
    log.close()
    log = open_log(disk)
    log.truncate_to(2)
    assert (log.transactions.open, log.producers.known[7].epoch) == ({7: 0}, 0)
    assert log.last_stable_offset(2) == 0
