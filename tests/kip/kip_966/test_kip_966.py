"""KIP-966, section "Additional High Watermark advancement requirement": the high watermark moves only while the ISR has
min.insync.replicas members. What the KIP says about Eligible Leader Replicas is in `traps/test_eligible.py`."""

import pytest
from tests.kip.traps.scene import LAG_MS, Leading, nodes
from tests.unit.controller.cluster import Cluster
from tests.unit.replica.conftest import World

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, PartitionEpoch
from strandline.base.time import Instant
from strandline.metadata.records import FeatureLevelRecord
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

E = ErrorCode


def alone(world: World) -> None:
    """Broker 1 leads, its ISR is itself and too small, and the others are long silent. 2 records are committed."""
    world.create(min_insync_replicas="2")
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    for node in (2, 3):
        world.kill(NodeId(node))
    world.run(2 * LAG_MS)
    world.change(isr=(1,))
    assert world.row(1)[2:] == (2, 2, (1,))


@pytest.mark.parametrize("acks", [0, 1])
def test_what_is_written_with_acks_0_or_1_is_not_committed_either_while_the_isr_is_too_small(acks: int) -> None:
    world = World()
    alone(world)
    world.produce(1, 3, acks=acks)
    world.run(2 * LAG_MS)
    assert world.row(1)[2:4] == (2, 5)


def test_acks_1_is_acknowledged_all_the_same() -> None:
    world = World()
    alone(world)
    assert world.produce(1, 3, acks=1)().error_code == E.NONE
    assert world.produce(1, 3)().error_code == E.NOT_ENOUGH_REPLICAS


def test_consumers_see_what_is_below_the_high_watermark_only_and_the_rest_when_the_isr_is_large_again() -> None:
    world = World()
    alone(world)
    world.produce(1, 3, acks=1)
    assert len(world.consume(1, 2)().records) == 0
    world.start(NodeId(2))
    world.run(3_000)
    assert world.row(1)[2:] == (5, 5, (1, 2))
    assert len(world.consume(1, 2)().records) > 0


def test_the_isr_that_counts_is_what_the_controller_has_persisted() -> None:
    """Common question: ISR 1, ELR 2 unreachable, and 3 caught up and about to be added."""
    leading = Leading(1, min_isr=2, records=4)
    leading.fetch(3, 4)
    pending = leading.leader.propose_expansion(NodeId(3), leading.now)
    assert pending is not None
    leading.leader.advance(leading.now)
    assert (leading.leader.isr.maximal, leading.high_watermark) == ((1, 3), 0)
    leading.leader.committed(nodes(1, 3), PartitionEpoch(1))
    leading.leader.advance(leading.now)
    assert leading.high_watermark == 4


def test_what_the_maximal_isr_lacks_is_not_committed() -> None:
    leading = Leading(1, 2, min_isr=2, records=4)
    leading.fetch(2, 4)
    leading.fetch(3, 4)
    assert leading.leader.propose_expansion(NodeId(3), leading.now) is not None
    leading.append(2)
    leading.fetch(2, 6)
    assert leading.high_watermark == 4
    # Nor when the newcomer falls silent, so that only the proposal speaks for it: the controller may have agreed.
    leading.now = Instant(leading.now + 2 * LAG_MS)
    leading.fetch(2, 6)
    leading.leader.advance(leading.now)
    assert leading.high_watermark == 4
    leading.fetch(3, 6)
    assert leading.high_watermark == 6


def test_more_than_there_are_replicas_is_as_many_as_there_are() -> None:
    """Compatibility: such a topic can be created, and its records would never be seen."""
    world = World()
    world.create(replicas=(1, 2), min_insync_replicas="5")
    world.run(1_000)
    answer = world.produce(1, 3)
    world.run(1_000)
    assert answer().error_code == E.NONE
    assert world.row(1)[2] == 3


def test_what_a_consumer_has_seen_is_not_out_of_range_at_the_next_leader() -> None:
    """The last replica standing is not the next leader: without the rule, its consumers would have seen more."""
    world = World()
    alone(world)
    world.produce(1, 5, acks=1)
    seen = world.consume(1, 0)().high_watermark
    world.kill(NodeId(1))
    world.start(NodeId(2))
    world.change(leader=2, isr=(2,))
    assert world.row(2)[3] == seen
    assert world.consume(2, seen)().error_code == E.NONE


def test_a_topic_may_ask_for_more_in_sync_replicas_than_it_has_and_than_there_are_brokers() -> None:
    """As before, for compatibility; what counts of it is the number of its replicas."""
    cluster = Cluster(brokers=3)
    rows = (CreatableTopicConfig(name="min.insync.replicas", value="7"),)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=2, configs=rows)
    (result,) = cluster.ask(CreateTopicsRequest(topics=(topic,)), version=7).topics
    assert result.error_code == E.NONE
    found = cluster.image.topic_named("t")
    assert found is not None
    assert cluster.image.effective_min_isr(found, cluster.partition("t")) == 2


def test_the_last_replica_standing_is_replaced_by_one_that_left_below_min_isr() -> None:
    """The motivation, T0 to T4: 3 and 2 leave, 1 loses its log's end, and 2 has all that was committed."""
    cluster = Cluster(brokers=3, static={"min.insync.replicas": 2})
    feature = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    cluster.controller.write([feature], cluster.now)
    cluster.create("t", (1, 2, 3))
    cluster.fence(3)
    cluster.fence(2)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))
    cluster.fence(1)
    cluster.beat(3)
    assert cluster.partition("t").leader == -1, "3 left before: it may lack what was committed since"
    cluster.register(1)
    assert cluster.partition("t").elr == (2,)
    cluster.beat(2)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))
