"""What the chapter on Kafka 4.4's replication says beside its invariants: intervals, defaults, clients' epochs."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.replica.conftest import CALLER, World

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.broker.config import NodeConfig
from strandline.metadata.topic_configs import TOPIC_CONFIGS
from strandline.replica.config import ReplicaConfig
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

E = ErrorCode
LAG_MS = ReplicaConfig().lag_time_max_ms


# --- intervals


def test_who_is_silent_is_proposed_to_leave_after_the_lag_and_at_most_half_of_it_later() -> None:
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
    leader = world.nodes[NodeId(1)].host.named("t", 0).role  # type: ignore[union-attr]
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
def test_a_client_whose_leader_epoch_is_another_is_told_which_of_both_is_behind(
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
