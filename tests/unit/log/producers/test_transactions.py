"""What a leader appends of transactions, and what it refuses (KIP-98, KIP-890, Kafka's ProducerAppendInfo)."""

import pytest
from tests.unit.log.compaction.compacting import begin as begin_pass
from tests.unit.log.compaction.compacting import compact, compacted, finish, keyed, pairs, reopen, roll
from tests.unit.log.logs import NOW, ROOT, append, content, open_log, produced

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.log.files.swapping import CLEANED, SWAP
from strandline.log.indexes.aborted import ENTRY, AbortedTransaction
from strandline.log.log import Appended, Log
from strandline.log.refusals import Refused
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches, build
from strandline.wire.control import EndTxnMarker, read_marker

HOUR = 3_600_000
COMMIT, ABORT = EndTxnMarker(True, 0), EndTxnMarker(False, 0)


def write(
    log: Log, producer: tuple[int, int, int], key: str = "k", *, may_begin: bool = True, transactional: bool = True
) -> Appended | Refused:
    producer_id, epoch, sequence = producer
    batch = build(
        [(NOW, key.encode(), b"v", ())],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return log.append_as_leader(bytearray(batch), 0, NOW, may_begin=may_begin)


def end(log: Log, producer_id: int, epoch: int, marker: EndTxnMarker, version: int = 2) -> Appended | Refused:
    done = log.append_marker(producer_id, epoch, marker, 0, NOW, version)
    log.check()
    return done


def error_of(done: Appended | Refused) -> ErrorCode:
    return done.error if isinstance(done, Refused) else ErrorCode.NONE


# --- what may be appended


def test_a_transactional_batch_begins_a_transaction_only_if_it_was_verified(log: Log) -> None:
    assert error_of(write(log, (1, 0, 0), may_begin=False)) is ErrorCode.INVALID_TXN_STATE
    assert error_of(write(log, (1, 0, 0))) is ErrorCode.NONE
    assert error_of(write(log, (1, 0, 1), may_begin=False)) is ErrorCode.NONE, "it is open here"
    end(log, 1, 1, COMMIT)
    assert error_of(write(log, (1, 1, 0), may_begin=False)) is ErrorCode.INVALID_TXN_STATE


def test_a_batch_outside_its_producers_open_transaction_is_refused(log: Log) -> None:
    write(log, (1, 0, 0))
    assert error_of(write(log, (1, 0, 1), transactional=False)) is ErrorCode.INVALID_TXN_STATE
    assert error_of(write(log, (2, 0, 0), transactional=False)) is ErrorCode.NONE, "another producer's"
    end(log, 1, 1, ABORT)
    assert error_of(write(log, (1, 1, 0), transactional=False)) is ErrorCode.NONE


def test_a_batch_of_a_newer_epoch_never_joins_the_transaction_that_waits_for_its_marker(log: Log) -> None:
    """The client has its new epoch as soon as the end is decided. If the batch joined, the marker, which has this epoch
    too, would be refused as late, and the transaction would stay open for ever."""
    write(log, (1, 0, 0))
    for may_begin in (False, True):
        assert error_of(write(log, (1, 1, 0), may_begin=may_begin)) is ErrorCode.INVALID_TXN_STATE
    assert error_of(end(log, 1, 1, COMMIT)) is ErrorCode.NONE
    assert error_of(write(log, (1, 1, 0))) is ErrorCode.NONE
    assert log.transactions.open == {1: 2}


def test_a_fenced_producer_writes_no_more(log: Log) -> None:
    write(log, (1, 0, 0))
    end(log, 1, 1, ABORT)
    assert error_of(write(log, (1, 0, 1))) is ErrorCode.INVALID_PRODUCER_EPOCH


# --- markers


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "version", "error"),
    [
        (4, 7, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, 7, 2, ErrorCode.INVALID_PRODUCER_EPOCH),  # late: each end has an epoch of its own
        (6, 7, 2, ErrorCode.NONE),
        (4, 7, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, 7, 1, ErrorCode.NONE),
        (6, 6, 2, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (6, 8, 2, ErrorCode.NONE),
    ],
)
def test_a_marker_of_a_former_epoch_or_coordinator_is_refused(
    log: Log, epoch: int, coordinator_epoch: int, version: int, error: ErrorCode
) -> None:
    end(log, 1, 4, EndTxnMarker(True, 7))
    write(log, (1, 5, 0))
    before = log.log_end_offset
    assert error_of(end(log, 1, epoch, EndTxnMarker(True, coordinator_epoch), version)) is error
    assert log.log_end_offset == before + (error is ErrorCode.NONE)
    assert log.transactions.is_open(1) == (error is not ErrorCode.NONE)


def test_a_marker_that_is_written_again_is_appended_and_ends_nothing(log: Log) -> None:
    """Its answer was lost, or its coordinator came back (KIP-1228)."""
    write(log, (1, 0, 0))
    for _ in range(2):
        assert error_of(end(log, 1, 1, ABORT)) is ErrorCode.NONE
    assert log.aborted(0, 3, NOW) == [AbortedTransaction(1, 0, 1, 2)]


def test_a_transaction_begun_with_the_last_epoch_can_be_ended(log: Log) -> None:
    write(log, (1, 32767, 0))
    assert error_of(end(log, 1, 32767, ABORT)) is ErrorCode.NONE
    assert not log.transactions.open


# --- what is kept on disk


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_knows_open_transactions_and_coordinators(disk: SimDisk, is_clean: bool) -> None:
    log = open_log(disk)
    end(log, 1, 0, EndTxnMarker(True, 9))
    write(log, (1, 1, 0))
    roll(log, disk)
    append(log, produced(1))
    if is_clean:
        disk.sync(log.write_all())
        log.mark_synced(log.log_end_offset)
        log.close()
    again = open_log(disk, clean=is_clean, recovery_point=3)
    assert again.transactions.open == {1: 1}
    assert again.last_stable_offset(3) == 1
    assert error_of(end(again, 1, 2, EndTxnMarker(True, 8))) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_producer_with_an_open_transaction_is_never_idle(disk: SimDisk) -> None:
    log = open_log(disk)
    write(log, (1, 0, 0))
    write(log, (2, 0, 0), transactional=False)
    log.producer_state.forget_idle(Instant(NOW + (1 << 40)))
    assert list(log.producers.known) == [1]


def test_a_truncation_takes_the_aborted_transactions_whose_markers_it_takes(disk: SimDisk, log: Log) -> None:
    write(log, (1, 0, 0))
    write(log, (2, 0, 0))
    end(log, 1, 1, ABORT)
    end(log, 2, 1, ABORT)
    assert log.aborted(0, 4, NOW) == [AbortedTransaction(1, 0, 2, 1), AbortedTransaction(2, 1, 3, 4)]
    log.truncate_to(3)
    assert log.aborted(0, 3, NOW) == [AbortedTransaction(1, 0, 2, 1)]
    assert log.transactions.open == {2: 1}
    end(log, 2, 1, COMMIT)
    assert log.aborted(0, 4, NOW) == [AbortedTransaction(1, 0, 2, 1)]


@pytest.mark.parametrize("entry", [0, 1])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_damaged_index_is_built_again_from_the_batches(disk: SimDisk, entry: int, is_clean: bool) -> None:
    log = open_log(disk)
    for number in range(2):
        write(log, (1, number, 0))
        end(log, 1, number + 1, ABORT)
    wanted = log.aborted(0, 4, NOW)
    disk.sync(log.write_all())
    log.mark_synced(4)
    log.close()
    file = disk.open(log.active.aborted.path)
    content = bytes(file.read(0, file.size()))
    file.truncate(entry * ENTRY.size)
    file.append([b"\xff" * ENTRY.size, content[(entry + 1) * ENTRY.size :]])
    file.close()
    again = open_log(disk, clean=is_clean, recovery_point=4)
    assert again.aborted(0, 4, NOW) == wanted
    write(again, (1, 2, 0))
    end(again, 1, 3, ABORT)
    once_more = open_log(disk, clean=False, recovery_point=4)
    assert once_more.aborted(0, 6, NOW) == [*wanted, AbortedTransaction(1, 4, 5, 6)]


# --- compaction


def test_aborted_records_go_and_do_not_take_the_place_of_committed_ones(disk: SimDisk, log: Log) -> None:
    append(log, keyed(("k", "1"), ("other", "1")))
    write(log, (1, 0, 0), "k")
    end(log, 1, 1, ABORT)
    roll(log, disk)
    compact(log, disk)
    assert [row for row in pairs(log) if row[1] in ("k", "other")] == [(0, "k", "1"), (1, "other", "1")]


def test_a_marker_goes_when_nothing_of_its_transaction_is_left_and_readers_had_their_time(disk: SimDisk) -> None:
    log = open_log(disk, compacted(delete_retention_ms=HOUR))
    append(log, keyed(("a", "1")))
    write(log, (1, 0, 0), "stays")
    end(log, 1, 1, COMMIT)
    write(log, (1, 1, 0), "goes")
    end(log, 1, 2, ABORT)
    write(log, (1, 2, 0), "later")
    end(log, 1, 3, COMMIT)
    append(log, keyed(("b", "1")))
    roll(log, disk)
    log.producers.known.clear()  # as if it had been idle
    aborted = log.segments[0].aborted.path

    def left() -> list[int]:
        log.tail.clear()
        piece = content(log)
        headers = [header for header in batches(piece) if header.is_control]
        return [h.base_offset for h in headers if read_marker(memoryview(piece)[h.position : h.end]) is not None]

    for now in (NOW, NOW + HOUR - 1):
        compact(log, disk, now=now)
        assert left() == [2, 4, 6]
        assert len(log.aborted(0, 8, NOW)) == 1
    compact(log, disk, now=NOW + HOUR)
    assert left() == [2, 6]
    assert log.aborted(0, 8, NOW) == [], "a consumer would skip 'later'"
    assert not disk.exists(aborted)
    again = reopen(disk, log.config, clean=True)
    assert again.aborted(0, 8, NOW) == []


def test_a_batch_that_stays_empty_keeps_the_marker_of_its_transaction(disk: SimDisk) -> None:
    """Or a replica that reads the log anew would take the transaction for open."""
    log = open_log(disk, compacted(delete_retention_ms=0))
    append(log, keyed(("a", "1")))
    write(log, (1, 0, 0), "k")
    end(log, 1, 0, COMMIT, version=1)
    append(log, keyed(("k", "2")))
    roll(log, disk)
    for _ in range(3):
        compact(log, disk)
    again = reopen(disk, log.config, clean=False)
    assert again.producers.known[1].batches, "a retry is recognized"
    assert not again.transactions.open


def test_the_last_marker_of_a_producer_stays_empty_so_that_its_epoch_is_known(disk: SimDisk) -> None:
    log = open_log(disk, compacted(delete_retention_ms=0))
    append(log, keyed(("a", "1")))
    write(log, (1, 0, 0), "k")
    end(log, 1, 1, ABORT)
    append(log, keyed(("b", "1")))
    roll(log, disk)
    for _ in range(3):
        compact(log, disk)
    again = reopen(disk, log.config, clean=False)
    assert again.producers.known[1].epoch == 1
    assert not again.transactions.open
    assert error_of(write(again, (1, 0, 1))) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_index_renamed_before_its_records_is_built_again(disk: SimDisk, log: Log) -> None:
    """The power fails in the middle of a swap: the snapshot of the next segment must not vouch for this index."""
    append(log, keyed(("a", "1")))
    append(log, keyed(("b", "1")))
    append(log, keyed(("c", "1")))
    write(log, (1, 0, 0), "k")  # above the pass's end, so it stays
    end(log, 1, 1, ABORT)
    roll(log, disk)
    append(log, keyed(("d", "1")))
    roll(log, disk)
    run = begin_pass(log, map_bytes=400)
    while not run.is_copied:
        run.go_on(1000)
    assert run.copy is not None
    disk.sync(run.unsynced())
    run.copy.rename(CLEANED, SWAP)
    path = f"{ROOT}/{0:020d}.txnindex"
    disk.rename(f"{path}{SWAP}", path)
    disk.sync([ROOT])
    disk.abandon()
    again = reopen(disk, log.config, clean=False, recovery_point=log.recovery_point)
    assert again.aborted(0, 5, NOW) == [AbortedTransaction(1, 3, 4, 5)]


def test_a_swap_leaves_the_index_of_the_copy(disk: SimDisk, log: Log) -> None:
    append(log, keyed(("a", "1")))
    for number in range(3):
        write(log, (1, number, 0), "k")
        end(log, 1, number + 1, ABORT)
        roll(log, disk)
    run = begin_pass(log)
    finish(run, disk)
    entries = log.aborted(0, log.log_end_offset, NOW)
    again = reopen(disk, log.config, clean=True)
    assert again.aborted(0, again.log_end_offset, NOW) == entries


@pytest.mark.parametrize("rotten", [0, 1, 2, 5, 1 << 40])
@pytest.mark.parametrize("victim", [1, 3, 5])
def test_a_base_offset_that_has_rotted_ends_no_node(disk: SimDisk, victim: int, rotten: int) -> None:
    """No checksum covers it."""
    log = open_log(disk)
    for number in range(3):
        write(log, (1, number, 0))
        end(log, 1, number + 1, ABORT)
    roll(log, disk)
    append(log, produced(1))
    disk.sync(log.write_all())
    log.mark_synced(log.log_end_offset)
    segment = log.segments[0]
    position = segment.position_of(victim)
    assert position is not None
    content = bytearray(segment.file.read(0, segment.size))
    content[position : position + 8] = rotten.to_bytes(8, "big")
    segment.file.truncate(0)
    segment.file.append([content])
    log.close()
    again = open_log(disk, recovery_point=log.log_end_offset)
    again.producer_state.distrust(0, again.log_end_offset, NOW)
    again.aborted(0, again.log_end_offset, NOW)
    again.last_stable_offset(again.log_end_offset)
