"""A topic with many partitions: their logs are made a few in a step."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT

from strandline.base.ids import INTERNAL_TOPICS, TopicIdPartition, TopicPartition
from strandline.metadata import records as r
from strandline.metadata.image import Image
from strandline.replica import assigned

PARTITIONS = 10


@pytest.fixture
def world(world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(assigned, "LOGS_PER_STEP", 4)
    return world


def create(world: Any, name: str = "t") -> None:
    world.commit(
        r.TopicRecord(name=name, topic_id=AT.topic_id),
        *(
            r.PartitionRecord(
                partition_id=index,
                topic_id=AT.topic_id,
                replicas=(1, 2, 3),
                isr=(1, 2, 3),
                leader=1 + index % 3,
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(bytes([node]) * 16 for node in (1, 2, 3)),
            )
            for index in range(PARTITIONS)
        ),
    )


def hosted(world: Any, node: int = 1) -> list[int]:
    return [row.at.partition for row in world.nodes[node].host.partitions.all()]


def change(world: Any, index: int, **fields: Any) -> None:
    world.commit(r.PartitionChangeRecord(partition_id=index, topic_id=AT.topic_id, **fields))


def test_a_step_makes_a_few_logs_and_the_next_ones_the_rest(world: Any) -> None:
    create(world)
    assert hosted(world) == [0, 1, 2, 3]
    world.run(1)
    assert hosted(world) == [0, 1, 2, 3, 4, 5, 6, 7]
    world.run(1)
    assert hosted(world) == list(range(PARTITIONS))
    assert world.nodes[1].assigned.waiting == {}
    assert all(row.role is not None for row in world.nodes[1].host.partitions.all())
    assert not world.nodes[1].host.whole.has_new, "which of them are whole is on disk now"


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_an_internal_topic_is_made_in_one_step_as_its_coordinator_wants_it(world: Any, topic: str) -> None:
    create(world, topic)
    assert hosted(world) == list(range(PARTITIONS))


def test_what_metadata_says_meanwhile_is_what_a_late_log_begins_with(world: Any) -> None:
    create(world)
    change(world, 9, leader=2)
    world.run(10)
    late = TopicIdPartition(AT.topic_id, 9)
    assert [world.nodes[node].host.partitions.find(late).role.epoch for node in (1, 2, 3)] == [1, 1, 1]
    assert world.nodes[2].leads("t", 9) == 1


def test_what_waits_is_overtaken_by_nothing_that_is_newer(world: Any) -> None:
    """A change does not let a waiting partition jump the queue, or a step would make as many logs as changes come."""
    create(world)
    for index in range(4, PARTITIONS):
        change(world, index, leader=3)
    assert hosted(world) == [0, 1, 2, 3]


def test_a_topic_that_is_deleted_meanwhile_leaves_no_log(world: Any) -> None:
    create(world)
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    world.run(10)
    assert hosted(world) == []
    assert [name for name in world.disks[1].list("/data1") if name.startswith("t-")] == []


def test_a_partition_that_is_reassigned_away_meanwhile_is_not_made(world: Any) -> None:
    create(world)
    change(world, 9, replicas=(2, 3), isr=(2, 3), leader=2)
    world.run(10)
    assert hosted(world) == list(range(9))
    assert 9 in hosted(world, 2)


def test_records_for_a_partition_that_waits_are_refused_as_where_metadata_lags(world: Any) -> None:
    create(world)
    (leader,) = [node for node in (1, 2, 3) if node == 1 + 9 % 3]
    why = world.nodes[leader].host.why_not_leader("t", None, 9)
    assert why.name == "NOT_LEADER_OR_FOLLOWER"


def test_followers_that_ask_too_early_ask_again(world: Any) -> None:
    create(world)
    world.run(1_000)
    for node in (1, 2, 3):
        for row in world.nodes[node].host.partitions.leaders():
            assert row[1].followers.keys() == {1, 2, 3} - {node}
            assert all(state.broker_epoch >= 0 for state in row[1].followers.values()), row[0].name


def test_a_late_log_takes_no_checkpoint_of_a_namesake(world: Any) -> None:
    create(world)
    world.run(100_000)
    assert world.nodes[1].storage.checkpoints.listed
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    create(world)
    world.run(100)
    assert hosted(world) == list(range(PARTITIONS))
    assert world.nodes[1].host.partitions.named(*TopicPartition("t", 9)).log.log_end_offset == 0


def test_a_partition_that_waits_is_not_found_under_the_log_of_its_namesake(world: Any) -> None:
    """T39: who asks by name would be told the old log's high watermark."""
    create(world)
    world.run(10)
    world.kill(1)
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    new = bytes(reversed(AT.topic_id))
    world.commit(
        r.TopicRecord(name="t", topic_id=new),
        *(
            r.PartitionRecord(
                partition_id=index, topic_id=new, replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
            )
            for index in range(PARTITIONS)
        ),
    )
    world.start(1)
    assert world.nodes[1].host.partitions.named("t", 9) is None
    world.run(10)
    assert world.nodes[1].host.partitions.named("t", 9).at == TopicIdPartition(new, 9)


def test_a_node_that_starts_anew_makes_what_it_had_not_made(world: Any) -> None:
    create(world)
    world.kill(1)
    world.start(1)
    world.run(100)
    assert sorted(hosted(world)) == list(range(PARTITIONS))


def test_a_snapshot_that_no_longer_has_a_partition_which_waits_ends_the_wait(world: Any) -> None:
    """Its topic was deleted while this broker was behind; nothing names it any more."""
    create(world)
    node = world.nodes[1]
    assert node.assigned.waiting
    image = Image()
    for record in world.records:
        if not isinstance(record, r.TopicRecord | r.PartitionRecord):
            image.apply(record)
    image.take_delta()
    image.delta.reloaded = True
    node.apply(image, image.take_delta(), world.now)
    assert node.assigned.waiting == {}
    assert hosted(world) == []
    node.check()


def test_a_topic_that_is_made_and_deleted_again_and_again_does_not_make_steps_longer(world: Any) -> None:
    for number in range(5):
        create(world)
        if number < 4:
            world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    before = len(hosted(world))
    world.run(1)
    assert len(hosted(world)) - before == 4


def restarted(world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Broker 1, which finds ten logs, and has given roles to four of them."""
    create(world)
    world.run(10)
    world.kill(1)
    monkeypatch.setattr(assigned, "ROLES_PER_STEP", 4)
    world.start(1)
    return world.nodes[1]


def with_role(world: Any) -> list[int]:
    return [row.at.partition for row in world.nodes[1].host.partitions.all() if row.role is not None]


def test_logs_that_a_start_has_found_get_their_roles_in_steps(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    node = restarted(world, monkeypatch)
    assert with_role(world) == [0, 1, 2, 3]
    change(world, 9, isr=(2, 1, 3))
    assert with_role(world) == [0, 1, 2, 3], "a change does not let it jump the queue"
    world.run(1)
    assert with_role(world) == list(range(8))
    world.run(1)
    assert with_role(world) == list(range(PARTITIONS))
    assert not node.assigned.waiting
    node.check()


def test_a_log_that_was_found_and_is_another_brokers_before_its_turn_is_deleted(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = restarted(world, monkeypatch)
    change(world, 9, replicas=(2, 3), directories=tuple(bytes([node]) * 16 for node in (2, 3)), isr=(2, 3))
    assert node.host.partitions.find(TopicIdPartition(AT.topic_id, 9)) is None
    world.run(10)
    assert with_role(world) == list(range(9))
