"""What those who wait are told when a log leaves this broker, and what is kept of it: nothing."""

from typing import Any

from tests.unit.replica.conftest import AT

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, Uuid
from strandline.metadata import records as r

E = ErrorCode


def test_a_produce_that_waits_at_a_leader_which_is_reassigned_away_may_be_written(world: Any) -> None:
    """Another leads on with what it has; only where the topic is gone the record is gone too."""
    world.create()
    world.run(1000)
    world.cut = {NodeId(2), NodeId(3)}
    answer = world.produce(1, 1)
    directories = (bytes([2]) * 16, bytes([3]) * 16)
    world.change(replicas=(2, 3), isr=(2, 3), leader=2, directories=directories)
    assert answer().error_code == E.NOT_LEADER_OR_FOLLOWER


def test_a_produce_that_waits_when_its_topic_is_deleted_fails(world: Any) -> None:
    world.create()
    world.run(1000)
    world.cut = {NodeId(2), NodeId(3)}
    answer = world.produce(1, 1)
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    assert answer().error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_forgets_deleted_topics_whose_follower_is_dead(world: Any) -> None:
    world.kill(NodeId(3))
    for i in range(1, 4):
        topic_id = Uuid(bytes([i]) * 16)
        directories = tuple(bytes([node]) * 16 for node in (1, 2, 3))
        world.commit(
            r.TopicRecord(name=f"t{i}", topic_id=topic_id),
            r.PartitionRecord(
                partition_id=0, topic_id=topic_id, replicas=(1, 2, 3), isr=(1, 2), leader=1, directories=directories
            ),
        )
        assert world.nodes[NodeId(1)].fetching.out_of_sync[NodeId(3)]
        world.commit(r.RemoveTopicRecord(topic_id=topic_id))
        assert not world.nodes[NodeId(1)].fetching.out_of_sync[NodeId(3)]


def test_produces_that_have_timed_out_are_not_kept(world: Any) -> None:
    """The high watermark may stand for hours while a follower is silent and no controller answers."""
    world.create()
    world.run(500)
    world.cut, world.controller_answers = {NodeId(3)}, False
    answers = []
    for _ in range(20):
        answers.append(world.produce(1, 1, timeout_ms=100))
        world.run(200)
    assert {answer().error_code for answer in answers} == {E.REQUEST_TIMED_OUT}
    waiting = world.nodes[NodeId(1)].host.partitions.find(AT).waiting
    assert len(waiting) <= 1
