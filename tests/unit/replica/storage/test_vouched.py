"""Files that somebody changed after a clean stop: what takes no record away costs a replica nothing."""

from collections.abc import Callable

import pytest
from tests.unit.replica.conftest import AT, World, a_batch
from tests.unit.replica.losses.test_withdrawing import FOLDER, ME, found, log_of, stopped

from strandline.base.ids import TopicPartition
from strandline.log.checkpoints import format_offsets
from strandline.log.directory import read_topic_id, write_partition_metadata
from strandline.replica.hosting.rows import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS

NAME = TopicPartition("t", 0)
LAST = f"{FOLDER}/{4:020d}"


@pytest.fixture
def world() -> World:
    """t-0 with 6 records of one producer in three segments, all committed. Broker 2 follows."""
    made = World()
    made.create(segment_bytes="150")
    made.run(1_000)
    for sequence in range(6):
        made.produce(1, batch=a_batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence))
    made.run(70_000)
    assert len(log_of(made).segments) == 3
    return made


def other_epochs(world: World) -> None:
    world.disks[ME].write_file(f"{FOLDER}/leader-epoch-checkpoint", b"0\n1\n0 4\n")


def no_epochs(world: World) -> None:
    world.disks[ME].remove(f"{FOLDER}/leader-epoch-checkpoint")


def other_index(world: World) -> None:
    world.disks[ME].write_file(f"{FOLDER}/{2:020d}.index", world.disks[ME].read_file(f"{FOLDER}/{0:020d}.index") or b"")
    world.disks[ME].write_file(f"{FOLDER}/{0:020d}.timeindex", b"x")


def other_producers(world: World) -> None:
    """Those of another partition: whole, and in Kafka's format."""
    disk = world.disks[ME]
    empty = World()
    empty.create()
    empty.run(1_000)
    empty.produce(1, batch=a_batch(1, producer_id=9, producer_epoch=0, base_sequence=0))
    stopped(empty)
    foreign = empty.disks[ME].read_file(f"{FOLDER}/{1:020d}.snapshot")
    assert foreign is not None
    disk.write_file(f"{FOLDER}/{6:020d}.snapshot", foreign)


def no_topic_id(world: World) -> None:
    world.disks[ME].remove(f"{FOLDER}/partition.metadata")


def other_topic_id(world: World) -> None:
    write_partition_metadata(world.disks[ME], FOLDER, AT.topic_id[::-1])  # type: ignore[arg-type]


def other_checkpoints(world: World) -> None:
    """Swapped or of another day: they would show records that are not committed, or hide some that are."""
    for file, offset in ((HIGH_WATERMARKS, 2), (RECOVERY_POINTS, 1), (LOG_STARTS, 5), (CLEANED, 6)):
        world.disks[ME].write_file(f"/data2/{file}", format_offsets({NAME: offset}))


def torn_checkpoints(world: World) -> None:
    for file in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANED):
        world.disks[ME].write_file(f"/data2/{file}", b"0\n1\nt 0")


HARMLESS: dict[str, Callable[[World], None]] = {
    one.__name__: one
    for one in (
        other_epochs,
        no_epochs,
        other_index,
        other_producers,
        no_topic_id,
        other_topic_id,
        other_checkpoints,
        torn_checkpoints,
    )
}


@pytest.mark.parametrize("damage", HARMLESS.values(), ids=list(HARMLESS))
def test_what_only_helps_to_find_records_is_built_again_and_costs_no_place(
    world: World, damage: Callable[[World], None]
) -> None:
    before = world.row(2)
    epochs, producers = list(log_of(world).epochs.entries), dict(log_of(world).producers.known)
    left = stopped(world)
    damage(world)
    world.start(ME, left=left)
    assert found(world) == {}
    hosted = world.nodes[ME].host.partitions.find(AT)
    assert hosted is not None
    log = hosted.log
    assert (hosted.high_watermark, log.log_start_offset, log.log_end_offset, log.has_gaps) == (6, 0, 6, False)
    assert list(log.epochs.entries) == epochs
    assert {who: one.batches for who, one in log.producers.known.items()} == {
        who: one.batches for who, one in producers.items()
    }
    assert read_topic_id(world.disks[ME], FOLDER) == AT.topic_id
    world.run(1_000)
    assert world.row(2) == before


def test_a_file_of_epochs_that_was_replaced_while_the_broker_ran_is_not_vouched_for(world: World) -> None:
    """The stop would have vouched for it, and the start would have believed it."""
    epochs = list(log_of(world).epochs.entries)
    other_epochs(world)
    world.start(ME, left=stopped(world))
    assert found(world) == {}
    assert list(log_of(world).epochs.entries) == epochs


def test_a_segment_that_is_not_the_logs_own_is_kept_out_of_the_way(world: World) -> None:
    left = stopped(world)
    disk = world.disks[ME]
    foreign = b"y" * 200
    disk.write_file(f"{LAST}.log", foreign)
    world.start(ME, left=left)
    assert log_of(world).log_end_offset == 4
    (aside,) = [path for path in disk.files if "-stray/" in path]
    assert aside == f"/data2/t-0.1-stray/{4:020d}.log"
    assert disk.read_file(aside) == foreign


def test_a_folder_that_is_another_partitions_is_kept_out_of_the_way_and_its_replica_is_missing(world: World) -> None:
    left = stopped(world)
    disk = world.disks[ME]
    other_topic_id(world)
    disk.write_file(f"{FOLDER}/{0:020d}.log", b"z" * 100)
    world.start(ME, left=left)
    assert AT in found(world)
    assert disk.read_file(f"/data2/t-0.1-stray/{0:020d}.log") == b"z" * 100
