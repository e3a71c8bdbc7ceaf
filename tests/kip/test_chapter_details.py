"""What the chapter on Kafka 4.4's replication says beside its invariants: intervals, defaults, clients' epochs."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.kip.traps.scene import following
from tests.unit.broker.metrics.test_gauges import gauges
from tests.unit.controller.cluster import Cluster
from tests.unit.replica.conftest import AT, CALLER, World
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.effects import Save
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, ZERO_UUID, NodeId
from strandline.broker.config import NodeConfig
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS
from strandline.metadata.image import Partition
from strandline.metadata.registrations import partition_record
from strandline.replica.config import ReplicaConfig
from strandline.replica.hosting.follower import Position
from strandline.wire.codec import encode_bytes
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

E = ErrorCode
LAG_MS = ReplicaConfig().lag_time_max_ms


# --- intervals


def test_a_silent_follower_is_removed_after_the_lag_time_and_at_most_half_of_it_later() -> None:
    """The task that looks runs every replica.lag.time.max.ms / 2."""
    world = World()
    world.create()
    world.run(1_000)
    world.controller_answers = False
    world.kill(NodeId(3))
    world.produce(1)
    world.run(LAG_MS - 1_000)
    assert world.held == []
    world.run(LAG_MS // 2 + 1_000)
    ((_, asked),) = world.held
    row = asked.message.topics[0].partitions[0]
    assert [state.broker_id for state in row.new_isr_with_epochs] == [1, 2]


def test_a_slow_follower_that_fetches_and_never_reaches_the_end_leaves_too() -> None:
    """The other shape of lag: not silent, but never with what the leader had."""
    world = World()
    world.create(replicas=(1, 2))
    world.run(1_000)
    leader = world.nodes[NodeId(1)].host.partitions.named("t", 0).role  # type: ignore[union-attr]
    world.cut = {NodeId(2)}
    world.controller_answers = False
    for step in range(1, 60):
        world.produce(1, 10, acks=1)
        leader.fetched(NodeId(2), step, 0, 102, world.now)  # type: ignore[union-attr]
        world.run(1_000)
    assert len(world.held) == 1


def test_a_new_leader_whose_isr_is_itself_has_committed_its_log_at_once() -> None:
    world = World()
    world.create()
    world.run(1_000)
    world.produce(1, 3)
    world.cut = {NodeId(1), NodeId(3)}
    assert world.row(2)[2:4] == (0, 3), "not told yet that they are committed"
    world.change(leader=2, isr=(2,), skip=(1, 3))
    assert world.row(2)[2:4] == (3, 3)


# --- epochs of clients (KIP-320)


def fetch(epoch: int) -> tuple[str, Any, int]:
    row = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=epoch)
    return "fetch", FetchRequest(session_epoch=-1, topics=(FetchTopic(topic="t", partitions=(row,)),)), 12


def list_offsets(epoch: int) -> tuple[str, Any, int]:
    row = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(row,)),))
    return "list_offsets", request, 7


def end_of_epoch(epoch: int) -> tuple[str, Any, int]:
    row = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=(row,)),))
    return "offsets_for_leader_epoch", request, 4


@pytest.mark.parametrize("question", [fetch, list_offsets, end_of_epoch], ids=lambda made: made.__name__)
@pytest.mark.parametrize(
    ("epoch", "error"), [(0, E.FENCED_LEADER_EPOCH), (1, E.NONE), (2, E.UNKNOWN_LEADER_EPOCH), (-1, E.NONE)]
)
def test_a_client_whose_leader_epoch_is_another_learns_which_of_both_is_behind(
    question: Callable[[int], tuple[str, Any, int]], epoch: int, error: ErrorCode
) -> None:
    world = World()
    world.create(replicas=(1,))
    world.change(leader=1)
    name, request, version = question(epoch)
    to = world.to(version)
    world.perform(NodeId(1), getattr(world.nodes[NodeId(1)], name)(to, CALLER, request, world.now))
    answer = world.answers[to.correlation_id]
    topic = answer.responses[0] if name == "fetch" else answer.topics[0]
    assert topic.partitions[0].error_code == error


# --- the table of keys


KEYS = {
    "replica.lag.time.max.ms": 30_000,
    "replica.high.watermark.checkpoint.interval.ms": 5_000,
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.max.bytes": 1_048_576,
    "replica.fetch.min.bytes": 1,
    "replica.fetch.backoff.ms": 1_000,
}


def test_the_keys_have_the_defaults_of_the_table() -> None:
    config = NodeConfig.from_properties(
        {
            "process.roles": "broker",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "2@127.0.0.1:9093",
        }
    )
    assert {key: config.integer(key) for key in KEYS} == KEYS
    assert TOPIC_CONFIGS["min.insync.replicas"].default == 1
    assert TOPIC_CONFIGS["unclean.leader.election.enable"].default is False


def test_what_commits_records_can_be_set_for_a_topic_and_how_they_are_copied_cannot() -> None:
    assert {"min.insync.replicas", "unclean.leader.election.enable"} <= set(TOPIC_CONFIGS)
    assert not set(KEYS) & set(TOPIC_CONFIGS)


# --- roles


def test_a_new_replica_begins_at_the_start_without_an_epoch() -> None:
    """Kafka: from its high watermark, if it has no epochs. A log without epochs has no records, so that is its end."""
    follower = following(records=0, high_watermark=0)
    assert follower.position() == Position(5, 0, -1, 0)


def test_a_broker_that_becomes_leader_stops_fetching() -> None:
    world = World()
    world.create()
    world.run(1_000)
    assert AT in world.nodes[NodeId(2)].fetchers.by_leader[NodeId(1)].partitions
    world.change(leader=2)
    assert not any(AT in fetcher.partitions for fetcher in world.nodes[NodeId(2)].fetchers.by_leader.values())
    assert AT in world.nodes[NodeId(3)].fetchers.by_leader[NodeId(2)].partitions
    assert AT not in world.nodes[NodeId(3)].fetchers.by_leader[NodeId(1)].partitions


def test_without_leave_for_an_unclean_election_a_partition_waits_for_a_member_of_its_isr() -> None:
    cluster = Cluster(brokers=2, elr=False)
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    cluster.fence(1)
    cluster.wait(5_000)
    cluster.beat(2)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (NOBODY, (1,))
    cluster.join(1)
    assert cluster.partition("t").leader == 1


# --- what is written down


def test_the_high_watermark_lies_in_kafkas_file_in_each_log_directory() -> None:
    world = World(brokers=1)
    world.create(replicas=(1,))
    world.produce(1, 3)
    world.run(6_000)
    assert world.disks[NodeId(1)].read_file("/data1/replication-offset-checkpoint") == b"0\n1\nt 0 3\n"


def test_the_checkpoints_of_a_failed_directory_are_left_alone() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    jbod.produce(1, 2)
    jbod.fail(1, "/d0")
    jbod.produce(1, 2)
    jbod.sent_by.clear()
    jbod.run(12_000)
    saved = [effect.path for node, effect in jbod.sent_by if node == 1 and isinstance(effect, Save)]
    assert not [path for path in saved if path.startswith("/d0")]


def test_eligible_replicas_are_written_only_where_there_are_some() -> None:
    """Records of a cluster that has none look as they did before there were any."""
    partition = Partition(replicas=(NodeId(1),), directories=(ZERO_UUID,), isr=(NodeId(1),), leader=NodeId(1))
    record = partition_record(AT, partition)
    assert (record.eligible_leader_replicas, record.last_known_elr) == (None, None)
    some = partition_record(AT, replace(partition, isr=(), leader=NOBODY, elr=(NodeId(1),)))
    assert (some.eligible_leader_replicas, some.last_known_elr) == ((1,), None)
    assert len(encode_bytes(some, 2)) > len(encode_bytes(replace(some, eligible_leader_replicas=None), 2))


def test_the_gauges_of_min_isr_show_what_counts_of_it() -> None:
    world = World()
    world.create(min_insync_replicas="5")
    now = gauges(world, 1)
    assert (now["UnderMinIsr"], now["AtMinIsr"]) == (0, 1)
    world.change(isr=(1, 2))
    assert gauges(world, 1)["UnderMinIsr"] == 1
