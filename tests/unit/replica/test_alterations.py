"""AlterPartition: batching, retries, and which answers count."""

from typing import Any

from strandline.base.effects import Answered, Failed, Failure
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.wire.messages.alter_partition import (
    AlterPartitionResponse,
    PartitionDataResponse,
    TopicDataResponse,
)


def lagging(world: Any) -> None:
    """Broker 3 is silent until its leader proposes to drop it; the controller has not answered yet."""
    world.create()
    world.run(1_000)
    world.kill(3)
    world.produce(1, timeout_ms=500_000)
    world.controller_answers = False
    world.run(60_000)


def answer(world: Any, error: ErrorCode, isr: tuple[int, ...] = (1, 2), partition_epoch: int = 1) -> None:
    ((node, effect),) = world.held
    world.held = []
    row = PartitionDataResponse(
        partition_index=0, error_code=error, leader_id=1, leader_epoch=0, isr=isr, partition_epoch=partition_epoch
    )
    topic_id = effect.message.topics[0].topic_id
    response = AlterPartitionResponse(topics=(TopicDataResponse(topic_id=topic_id, partitions=(row,)),))
    world.perform(node, world.nodes[node].step(Answered(effect.token, response), world.now))


def test_the_proposal_names_incarnations_and_epochs(world: Any) -> None:
    lagging(world)
    ((_, effect),) = world.held
    row = effect.message.topics[0].partitions[0]
    assert (effect.message.broker_id, effect.message.broker_epoch, effect.version) == (1, 101, 3)
    assert [(s.broker_id, s.broker_epoch) for s in row.new_isr_with_epochs] == [(1, 101), (2, 102)]
    assert (row.leader_epoch, row.partition_epoch) == (0, 0)


def test_an_answer_counts_before_its_metadata_comes(world: Any) -> None:
    lagging(world)
    answer(world, ErrorCode.NONE)
    assert world.row(1)[2:] == (1, 1, (1, 2))
    world.change(isr=(1, 2))  # the record of the same change
    assert world.row(1)[2:] == (1, 1, (1, 2))


def test_no_answer_and_transient_errors_are_asked_again(world: Any) -> None:
    lagging(world)
    ((node, effect),) = world.held
    world.held = []
    world.perform(node, world.nodes[node].step(Failed(effect.token, Failure.TIMED_OUT), world.now))
    assert world.held == []
    world.run(50)
    assert len(world.held) == 1
    answer(world, ErrorCode.UNKNOWN_SERVER_ERROR)
    world.run(50)
    ((_, again),) = world.held
    assert again.message == effect.message


def test_a_certain_refusal_falls_back_to_the_committed_isr_and_is_proposed_at_the_next_check(world: Any) -> None:
    lagging(world)
    answer(world, ErrorCode.OPERATION_NOT_ATTEMPTED)
    assert world.row(1)[4] == (1, 2, 3)
    assert world.held == []
    world.run(15_000)
    assert len(world.held) == 1


def test_a_lost_race_waits_for_metadata(world: Any) -> None:
    lagging(world)
    answer(world, ErrorCode.INVALID_UPDATE_VERSION)
    world.run(60_000)
    assert world.held == []
    world.change(isr=(1, 2, 3))
    world.run(15_000)
    ((_, effect),) = world.held
    assert effect.message.topics[0].partitions[0].partition_epoch == 1


def test_metadata_overtakes_a_proposal_and_its_answer_is_dropped(world: Any) -> None:
    lagging(world)
    world.change(isr=(1, 3))  # the controller dropped 2 instead
    answer(world, ErrorCode.INELIGIBLE_REPLICA)
    assert world.row(1)[4] == (1, 3)
    world.nodes[NodeId(1)].check()


def test_an_answer_of_an_older_leader_epoch_is_dropped(world: Any) -> None:
    lagging(world)
    world.change(leader=1, isr=(1, 2, 3))  # elected anew
    answer(world, ErrorCode.NONE, isr=(1,), partition_epoch=9)
    assert world.row(1)[4] == (1, 2, 3)
