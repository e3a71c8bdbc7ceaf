"""Bugs that Kafka's partition leaders and followers have had with transactions, by their numbers, and what KIP-890 asks
of a leader."""

from typing import Any

import pytest
from tests.unit.log.compaction.compacting import compact, compacted, headers, roll
from tests.unit.log.logs import NOW, open_log
from tests.unit.replica.conftest import AT
from tests.unit.replica.serving.test_transactions import TxnWorld, begun

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch, NodeId
from strandline.log.log import Appended
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import build
from strandline.wire.control import EndTxnMarker


@pytest.fixture
def world() -> TxnWorld:
    return TxnWorld()


def error_of(answer: Any) -> E:
    return E(answer().error_code)


def test_kafka_18202_the_first_batch_of_a_newer_clients_transaction_has_sequence_0(world: TxnWorld) -> None:
    """Each of its transactions has an epoch of its own. The log does not know the producer: it would take any sequence,
    and refuse the first batch, which is late."""
    second = world.write(1)
    world.answer()
    assert (error_of(second), world.log.log_end_offset) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    answers = [world.write(0), world.write(1)]
    world.answer()
    world.run(1_000)
    assert [(answer().error_code, answer().base_offset) for answer in answers] == [(E.NONE, 0), (E.NONE, 1)]


def test_kafka_18202_an_older_clients_sequences_go_on_from_one_transaction_to_the_next(world: TxnWorld) -> None:
    """The log may have forgotten the producer meanwhile (KIP-360)."""
    answer = world.write(5, version=11)
    world.answer()
    world.run(1_000)
    assert error_of(answer) is E.NONE


@pytest.mark.parametrize("version", [11, 12])
def test_kafka_18042_and_19690_a_batch_of_an_older_epoch_is_refused_as_such_and_its_coordinator_is_not_asked(
    version: int, world: TxnWorld
) -> None:
    """Its transaction was aborted by a timeout, for instance. INVALID_TXN_STATE would end the client."""
    begun(world)
    world.mark(commits=False, epoch=1)
    late = world.write(1, version=version)
    assert world.questions == []
    assert (error_of(late), world.log.log_end_offset) == (E.INVALID_PRODUCER_EPOCH, 2)


def test_kafka_5376_a_consumer_that_waited_learns_which_transaction_was_aborted(world: TxnWorld) -> None:
    begun(world)
    answer = world.read(offset=0, max_wait_ms=60_000)
    assert answer() is None
    world.mark(commits=False)
    world.run(1_000)
    assert answer().records, "the records are there"
    assert [(one.producer_id, one.first_offset) for one in answer().aborted_transactions] == [(7, 0)]


def test_the_last_stable_offset_of_a_follower_waits_for_the_transactions_end_too(world: TxnWorld) -> None:
    begun(world)
    world.produce(1)
    world.run(5_000)
    rows = [world.read(node, offset=0, committed=False)() for node in (1, 2)]
    assert [(row.high_watermark, row.last_stable_offset) for row in rows] == [(2, 0), (2, 0)]
    assert not world.read(2, offset=0)().records
    world.mark()
    world.run(5_000)
    row = world.read(2, offset=0)()
    assert (row.last_stable_offset, bool(row.records)) == (3, True)


def test_a_follower_that_becomes_leader_waits_for_the_end_of_what_is_open(world: TxnWorld) -> None:
    """It has learned from the batches what is open, and who may end it."""
    begun(world)
    world.run(5_000)
    world.change(leader=2, isr=(2, 3))
    world.run(1_000)
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    assert hosted.log.transactions.open == {7: 0}
    assert world.read(2, offset=0)().last_stable_offset == 0
    late = world.mark(node=2, epoch=0)
    assert late() is E.INVALID_PRODUCER_EPOCH, "of the transaction before"
    mark = world.mark(node=2, epoch=1)
    world.run(1_000)
    assert mark() is E.NONE
    assert not hosted.log.transactions.open


def test_a_broker_that_restarts_waits_still_for_a_marker_that_is_not_committed(world: TxnWorld) -> None:
    begun(world)
    world.cut = {NodeId(2), NodeId(3)}
    world.mark()
    stopped = world.nodes[NodeId(1)].host.partitions.find(AT)
    assert stopped is not None
    assert (stopped.high_watermark, stopped.log.log_end_offset) == (1, 2)
    world.perform(NodeId(1), world.nodes[NodeId(1)].shutdown(world.now))
    world.nodes[NodeId(1)].close()
    world.kill(NodeId(1))
    world.start(NodeId(1))
    again = world.nodes[NodeId(1)].host.partitions.find(AT)
    assert again is not None
    assert again.role is not None
    assert (again.high_watermark, again.role.last_stable_offset) == (1, 0)


def test_kafka_6003_a_follower_takes_what_its_leader_has_whoever_the_producer_is() -> None:
    log = open_log(SimDisk())
    for offset, sequence in enumerate((41, 43)):
        batch = build(
            [(NOW, None, b"v", ())],
            base_offset=offset,
            leader_epoch=0,
            producer_id=7,
            producer_epoch=3,
            base_sequence=sequence,
            transactional=True,
        )
        log.append_as_follower(memoryview(bytearray(batch)), LeaderEpoch(0), NOW)
    assert (log.log_end_offset, log.transactions.open) == (2, {7: 0})


def test_kafka_8335_no_empty_batches_stay_of_offsets_that_transactions_have_committed() -> None:
    """A group's coordinator numbers no batches: by their sequences all of them seem to be a producer's last one."""
    disk = SimDisk()
    log = open_log(disk, compacted(delete_retention_ms=0))
    for epoch in range(6):
        batch = build(
            [(NOW, b"offset", b"%d" % epoch, ())],
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=-1,
            transactional=True,
        )
        assert isinstance(log.append_as_leader(bytearray(batch), 0, NOW, internal=True, may_begin=True), Appended)
        assert isinstance(log.append_marker(7, epoch + 1, EndTxnMarker(True, 0), 0, NOW, 2), Appended)
    roll(log, disk)
    for _ in range(3):
        compact(log, disk)
    left = [header.base_offset for header in headers(log) if not header.is_control]
    assert left == [0, 10], "the first of the leader epoch, and the one that counts"


def test_kafka_12671_and_14402_a_late_batch_of_an_aborted_transaction_begins_none(world: TxnWorld) -> None:
    """An older client's: its epoch is the same in the next transaction, so only the coordinator can tell."""
    answer = world.write(version=11)
    world.answer()
    world.run(1_000)
    assert error_of(answer) is E.NONE
    world.mark(commits=False, epoch=0, version=0)
    late = world.write(1, version=11)
    world.answer(E.TRANSACTION_ABORTABLE)
    world.run(1_000)
    assert error_of(late) is E.TRANSACTION_ABORTABLE
    assert (world.log.transactions.open, world.log.log_end_offset) == ({}, 2)
    row = world.read(offset=0)()
    assert row.last_stable_offset == row.high_watermark == 2
