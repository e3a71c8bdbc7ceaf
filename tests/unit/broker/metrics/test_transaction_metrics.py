"""What a node's metrics say of transactions, computed from machines that really run."""

from typing import Any

from tests.unit.replica.serving.test_transactions import TxnWorld
from tests.unit.txn.world import T0, T1, U0
from tests.unit.txn.world import World as Coordinating

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.broker.metrics.gauges import partition_readings
from strandline.broker.metrics.of_transactions import LATE_MS, NONE_OPEN, TRANSACTIONAL_IDS, families

TIMEOUT_MS = 900_000  # transaction.max.timeout.ms


def gauges_of(world: Coordinating, at: TxnWorld | None = None, written: tuple[int, ...] = (), now: int = 0) -> Any:
    at = at or TxnWorld()
    verifying = at.nodes[NodeId(1)].producing.verifying
    found = {}
    for family in families(world.transactions, verifying, written, Instant(now)):
        if family.metric is TRANSACTIONAL_IDS:
            found |= {labels[0]: value for labels, value in family.samples}
        else:
            found[family.metric.name.removesuffix("_total").split("_")[-1]] = family.samples[0][1]
    return found


def written_to(world: TxnWorld, node: int = 1) -> int:
    (reading,) = [row for row in partition_readings(world.nodes[NodeId(node)]) if row.topic == "t"]
    return reading.written_to


def test_a_partition_is_late_when_its_oldest_transaction_rests_for_longer_than_any_may() -> None:
    written = 5_000_000
    bound = written + TIMEOUT_MS + LATE_MS
    for now, count in ((bound, 0), (bound + 1, 1)):
        late = gauges_of(Coordinating(), written=(written, NONE_OPEN, bound), now=now)
        assert late["PartitionsWithLateTransactionsCount"] == count


def test_the_oldest_transaction_counts_by_its_last_batch_and_only_where_it_is_led() -> None:
    world = TxnWorld()
    assert written_to(world) == NONE_OPEN
    world.write()
    world.answer()
    world.run(1_000)
    assert written_to(world) == world.log.producers.known[7].batches[-1].timestamp
    assert written_to(world, 2) == NONE_OPEN, "a follower"
    world.mark()
    world.run(1_000)
    assert written_to(world) == NONE_OPEN


def test_markers_wait_for_a_leader() -> None:
    world = Coordinating()
    producer = world.begun(T0, T1, U0)
    world.move(T1, -1)
    assert gauges_of(world)["UnknownDestinationQueueSize"] == 0, "nothing is decided"
    world.end(producer)
    assert gauges_of(world)["UnknownDestinationQueueSize"] == 1
    world.move(T1, 2)
    assert gauges_of(world)["UnknownDestinationQueueSize"] == 0


def test_a_transaction_with_all_its_markers_waits_to_be_written_down() -> None:
    world = Coordinating()
    world.end(world.begun(T0))
    world.write_markers()
    assert gauges_of(world)["LogAppendRetryQueueSize"] == 0, "it is being written"
    world.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert gauges_of(world)["LogAppendRetryQueueSize"] == 1
    world.wait(5_000)
    world.run_until_idle()
    assert gauges_of(world)["LogAppendRetryQueueSize"] == 0


def test_partitions_that_a_coordinator_does_not_confirm_are_counted() -> None:
    world = TxnWorld()
    world.write()
    world.answer(ErrorCode.INVALID_TXN_STATE)
    world.write()
    world.answer()
    assert gauges_of(Coordinating(), world)["VerificationFailureRate"] == 1


def test_ids_are_counted_by_their_state() -> None:
    world = Coordinating()
    world.start("a")
    world.begun()
    found = gauges_of(world)
    assert (found["Empty"], found["Ongoing"], found["PrepareAbort"]) == (1, 1, 0)
    assert "Dead" not in found
