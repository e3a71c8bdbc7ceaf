"""A broker that takes over many partitions writes their epochs to their logs' files a few in a step."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World, a_batch

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.base.ports import DiskError
from strandline.log.checkpoints import parse_epochs
from strandline.metadata import records as r
from strandline.replica.storage import epoch_files

PARTITIONS = 10


@pytest.fixture
def world(world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Node 2 leads all partitions in epoch 0, and each has a record."""
    monkeypatch.setattr(epoch_files, "FILES_PER_STEP", 4)
    world.commit(
        r.TopicRecord(name="t", topic_id=AT.topic_id),
        *(
            r.PartitionRecord(
                partition_id=index,
                topic_id=AT.topic_id,
                replicas=(1, 2),
                isr=(1, 2),
                leader=2,
                leader_epoch=0,
                partition_epoch=0,
                directories=(bytes([1]) * 16, bytes([2]) * 16),
            )
            for index in range(PARTITIONS)
        ),
    )
    world.run(10)
    return world


def take_over(world: World) -> None:
    """Node 1 takes over all of them in one step."""
    world.commit(
        *(r.PartitionChangeRecord(partition_id=index, topic_id=AT.topic_id, leader=1) for index in range(PARTITIONS))
    )


def written(world: World) -> list[int]:
    """The partitions whose file has node 1's epoch."""
    found = []
    for index in range(PARTITIONS):
        content = world.disks[NodeId(1)].read_file(f"/data1/t-{index}/leader-epoch-checkpoint")
        if content is not None and parse_epochs(content)[-1].epoch == 1:
            found.append(index)
    return found


def log_of(world: World, index: int) -> Any:
    hosted = world.nodes[NodeId(1)].host.partitions.find(TopicIdPartition(AT.topic_id, index))
    assert hosted is not None
    return hosted.log


def test_a_step_writes_a_few_files_and_the_next_ones_the_rest(world: World) -> None:
    take_over(world)
    assert written(world) == [0, 1, 2, 3]
    world.run(1)
    assert written(world) == list(range(8))
    world.run(1)
    assert written(world) == list(range(PARTITIONS))
    assert not world.nodes[NodeId(1)].epoch_files.waiting


def test_every_log_knows_its_epoch_at_once(world: World) -> None:
    take_over(world)
    assert [log_of(world, index).latest_epoch for index in range(PARTITIONS)] == [1] * PARTITIONS


def test_a_batch_is_not_written_before_the_epoch_that_it_bears(world: World) -> None:
    take_over(world)
    assert 9 not in written(world)
    replicas = world.nodes[NodeId(1)]
    batch = bytearray(a_batch(1))
    replicas.append_internal("t", 9, batch, world.now, lambda *_: [])
    assert 9 in written(world)
    assert log_of(world, 9).log_end_offset == 1


def test_a_clean_stop_writes_what_waits(world: World) -> None:
    take_over(world)
    replicas = world.nodes[NodeId(1)]
    replicas.shutdown(world.now)
    assert written(world) == list(range(PARTITIONS))


def test_what_a_kill_takes_are_epochs_without_records(world: World) -> None:
    take_over(world)
    world.kill(1)
    world.start(NodeId(1))
    assert written(world) == [0, 1, 2, 3]
    assert log_of(world, 9).log_end_offset == 0
    world.commit(*(r.PartitionChangeRecord(partition_id=i, topic_id=AT.topic_id, leader=1) for i in range(PARTITIONS)))
    world.run(10)
    assert [log_of(world, index).latest_epoch for index in range(PARTITIONS)] == [2] * PARTITIONS


def test_a_partition_that_is_deleted_meanwhile_gets_no_file(world: World) -> None:
    take_over(world)
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    world.run(10)
    assert not [name for name in world.disks[NodeId(1)].list("/data1") if name.startswith("t-")]


def test_a_disk_that_refuses_ends_the_node_that_has_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    take_over(world)

    def refuse(path: str, content: bytes) -> None:
        raise DiskError(f"{path}: Input/output error")

    monkeypatch.setattr(world.disks[NodeId(1)], "write_file", refuse)
    with pytest.raises(DiskError, match="t-4/leader-epoch-checkpoint: Input/output error"):
        world.run(1)
