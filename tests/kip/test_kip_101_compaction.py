"""KIP-101 and compaction: what leader epochs say of records that a cleaner has taken.

The text has the cleaner remove the entries of epochs of which no record is left. Kafka's never has: a follower that
still has those records would be told that its log diverges where it does not, and cut what is committed. So entries go
with the log's start, and with its end, alone.
"""

from tests.kip.scenes import World, epochs, epochs_on_disk, log_of, lose_power
from tests.kip.test_kip_101 import A, B, elect, end_of_epoch, three_epochs, two_brokers
from tests.unit.log.compaction.compacting import begin, compacted, keyed

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
    """Of epoch 1 the leader has no record left, but of epoch 0. If it knew epoch 0 alone, it would name that one to who
    ends with epoch 1, and the follower would cut where its own epoch 0 ends."""
    world = two_brokers()
    for keys in ("abc", "xyz", "xyz"):
        world.produce(B, batch=keyed(*((key, "value") for key in keys)))
        world.run(1_000)
        elect(world, B, B, A)
    world.run(1_000)
    lose_power(world, A, keep=6)
    compact(world, B)
    assert [header.record_count for header in log_of(world, B).headers(0)] == [3, 0, 3]
    world.cut = {A}
    world.start(A, clean=False)
    assert epochs(world, A) == [(0, 0), (1, 3)], "it asks where epoch 1 ends"
    world.cut = set()
    world.run(3_000)
    follower = world.nodes[A].host.partitions.named("t", 0)
    assert follower is not None
    assert follower.role is not None
    assert follower.role.cuts == 0
    headers = [(header.base_offset, header.record_count) for header in log_of(world, A).headers(0)]
    assert headers == [(0, 3), (3, 3), (6, 3)]


def test_a_follower_that_wrote_on_in_such_an_epoch_cuts_what_its_leader_never_had() -> None:
    """The other harm: nobody could say any more where the epoch ended."""
    world = two_brokers()
    elect(world, A, A, B)
    world.produce(A, 3)
    world.run(1_000)
    world.cut = {A}
    world.produce(A, 3, acks=1)
    world.change(leader=B, isr=(B,), skip=(A,))
    world.produce(B, 3)
    world.change(leader=B, isr=(B,), skip=(A,))
    compact(world, B)
    world.cut = set()
    world.catch_up(A)
    world.run(3_000)
    assert [header.partition_leader_epoch for header in log_of(world, A).headers(0)] == [1, 2]


def test_entries_go_when_the_logs_start_passes_them() -> None:
    world = three_epochs()
    compact(world, B)
    log_of(world, B).advance_log_start(6)
    assert epochs_on_disk(world, B)[0] == (2, 6)
