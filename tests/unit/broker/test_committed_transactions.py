"""Transactions in the metadata log (KIP-868), over batches, snapshots, restarts and a new controller."""

from tests.unit.authorizing.one_node import OneNode
from tests.unit.broker.test_committed import GOOD, NOW, UNKNOWN, opened, state, write

from strandline.base.ids import Uuid
from strandline.base.time import Instant
from strandline.broker.committed import Committed
from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.image import Image
from strandline.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    TopicRecord,
)
from strandline.quorum.ports import EpochEnd, SnapshotId
from strandline.quorum.storage.snapshot_file import encode_snapshot
from strandline.sim.world.disk import SimDisk

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
T = Uuid(b"t" * 16)


def test_records_count_with_the_batch_that_ends_their_transaction() -> None:
    log = opened()
    committed = Committed(log)
    found = []
    for batch in ((GOOD[0], BEGIN, GOOD[1]), (GOOD[2],), (END, GOOD[3]), (BEGIN, GOOD[0]), (ABORT,)):
        write(log, *batch)
        committed.advance(log.log_end_offset, NOW)
        found.append(state(committed))
    assert found == [(3, 7), (4, 7), (6, 10), (8, 10), (9, 10)]
    assert not committed.image.delta.reloaded


def test_no_snapshot_ends_within_a_transaction() -> None:
    log = opened()
    committed = Committed(log, snapshot_bytes=1)
    for batch in ((GOOD[0],), (BEGIN, GOOD[1]), (GOOD[2],)):
        write(log, *batch)
        committed.advance(log.log_end_offset, NOW)
    assert log.snapshots == [SnapshotId(1, 1)]
    committed.snapshot_ms = 1
    write(log, GOOD[3])
    committed.advance(log.log_end_offset, Instant(NOW + 10))
    assert log.snapshots == [SnapshotId(1, 1)], "nor by age"
    write(log, END)
    committed.advance(log.log_end_offset, NOW)
    assert log.snapshots == [SnapshotId(1, 1), SnapshotId(log.log_end_offset, 1)]
    image = Image()
    for payload in log.read_snapshot(log.snapshots[-1]):
        image.apply(decode_record(payload))
    assert image.features == committed.image.features != {}


def test_a_snapshot_that_has_a_transaction_is_not_loaded() -> None:
    log = opened()
    committed = Committed(log)
    write(log, GOOD[0])
    committed.advance(1, NOW)
    snapshot = SnapshotId(5, 1)
    log.begin_part(snapshot)
    records = [encode_record(record) for record in (GOOD[1], BEGIN, GOOD[2], END)]
    log.append_part(snapshot, encode_snapshot(records, 1, NOW))
    assert log.name_part(snapshot) is None
    log.install_snapshot(snapshot)
    committed.advance(5, NOW)
    assert committed.unfit is not None
    assert "record 1 of the metadata snapshot" in committed.unfit.text
    assert state(committed) == (1, 7)


def test_a_restart_within_a_transaction_goes_on_with_it() -> None:
    disk = SimDisk()
    log = opened(disk)
    write(log, GOOD[0], BEGIN)
    middle = write(log, GOOD[1])
    log.close()
    for known in (middle, middle + 1):  # how far the log is known to be committed when the node starts
        log = opened(disk)
        committed = Committed(log)
        assert committed.found is None
        committed.advance(known, NOW)
        assert state(committed) == (known, 7)
        if known == middle + 1:
            write(log, END)
            committed.advance(log.log_end_offset, NOW)
            assert state(committed) == (known + 1, 8)
        log.close()


def test_what_does_not_fit_ends_the_image_within_the_transaction_too() -> None:
    log = opened()
    committed = Committed(log)
    write(log, GOOD[0], BEGIN)
    write(log, GOOD[1])
    base = write(log, GOOD[2], UNKNOWN)
    committed.advance(log.log_end_offset, NOW)
    assert committed.unfit is not None
    assert (committed.unfit.offset, committed.unfit.sound) == (base + 1, EpochEnd(1, base))
    assert state(committed) == (base, 7)
    assert committed.image.transaction is not None
    assert committed.image.transaction.features == {"metadata.version": 8}


def test_a_transaction_that_a_dead_controller_left_open_is_aborted_by_the_next_one_and_topics_of_it_can_be_made() -> (
    None
):
    first = OneNode()
    log = first.node.metadata_log
    left = log.log_end_offset
    epoch = first.node.quorum.leader_epoch
    write(log, BEGIN, TopicRecord(name="t", topic_id=T), epoch=epoch)
    write(log, TopicRecord(name="u", topic_id=Uuid(b"u" * 16)), epoch=epoch)
    first.disk.sync(log.take_unsynced())
    log.close()
    second = OneNode(first.disk)
    assert not second.node.image.topics
    assert second.node.image.transaction is None
    log = second.node.metadata_log
    batches = log.committed_batches(left, second.node.committed.end)
    kinds = [type(decode_record(payload)) for batch in batches for payload in batch.records]
    assert kinds[:4] == [BeginTransactionRecord, TopicRecord, TopicRecord, AbortTransactionRecord]
    second.create("t")
    assert second.topic_id("t") != T
