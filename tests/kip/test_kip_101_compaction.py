"""KIP-101 and compaction: what leader epochs say of records that a cleaner has taken.

The text has the cleaner remove the entries of epochs of which no record is left. Kafka's never has: a follower that
still has those records would be told that its log diverges where it does not, and cut what is committed. So entries go
with the log's start, and with its end, alone.
"""

from tests.kip.scenes import World, epochs_on_disk, log_of, lose_power
from tests.kip.test_kip_101 import A, B, end_of_epoch, three_epochs
from tests.unit.log.compacting import begin, compacted

from strandline.base.ids import NodeId
from strandline.base.time import Instant


def compact(world: World, node: NodeId) -> None:
    """Records without keys: a cleaner takes them all, but for the last batch."""
    log = log_of(world, node)
    log.reconfigure(compacted(segment_bytes=1 << 20))
    log.roll(log.log_end_offset)
    log.mark_synced(log.log_end_offset)
    run = begin(log, now=Instant(world.now))
    while not run.is_done:
        run.go_on(1 << 20)
        run.swap()
    log.tail.clear()


def test_entries_whose_records_compaction_takes_stay_and_answer() -> None:
    world = three_epochs()
    compact(world, B)
    log = log_of(world, B)
    batches = [(header.base_offset, header.record_count) for header in log.headers(0)]
    assert batches == [(0, 0), (3, 0), (6, 0)], "without records, but who copies them learns where epochs begin"
    assert epochs_on_disk(world, B)[:3] == [(0, 0), (1, 3), (2, 6)]
    assert end_of_epoch(world, B, 0)[1:] == (0, 3)
    assert end_of_epoch(world, B, 1)[1:] == (1, 6)


def test_a_follower_that_still_has_those_records_cuts_nothing() -> None:
    world = three_epochs()
    lose_power(world, A, keep=6)
    compact(world, B)
    world.start(A, clean=False)
    world.run(3_000)
    follower = world.nodes[A].host.named("t", 0)
    assert follower is not None
    assert follower.role is not None
    assert follower.role.cuts == 0
    assert [h.base_offset for h in log_of(world, A).headers(0)] == [0, 3, 6]


def test_entries_go_when_the_logs_start_passes_them() -> None:
    world = three_epochs()
    compact(world, B)
    log_of(world, B).advance_log_start(6)
    assert epochs_on_disk(world, B)[0] == (2, 6)
