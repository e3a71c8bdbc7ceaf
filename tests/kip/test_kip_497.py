"""KIP-497 (AlterPartition): the controller alone changes an ISR, and a leader that waits for it counts carefully.

Leaders are real `Replicas`, the controller's answers come from its real plans.
"""

import pytest
from tests.kip.scenes import Governed, leading

from strandline.base.effects import Answered, Failed, Failure, ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.replica.hosting.isr import Committed, PendingExpand, PendingShrink
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionDataResponse,
    TopicDataResponse,
)

E = ErrorCode


def cluster(min_isr: int = 1) -> Governed:
    world = Governed()
    world.create(min_insync_replicas=str(min_isr))
    world.run(1_000)
    return world


def silent_third(world: Governed) -> None:
    """Broker 3 is silent until its leader proposes to drop it. The proposal is on its way."""
    world.kill(NodeId(3))
    world.produce(1, acks=1)
    world.controller_answers = False
    world.run(46_000)
    assert type(leading(world, 1).isr) is PendingShrink


def third_is_back(world: Governed) -> None:
    """Broker 3 is out of the ISR, has everything again, and is proposed. The proposal is on its way."""
    world.kill(NodeId(3))
    world.produce(1, acks=1)
    world.run(60_000)
    assert world.partition.isr == (1, 2)
    world.controller_answers = False
    world.start(NodeId(3))
    world.run(1_000)
    assert type(leading(world, 1).isr) is PendingExpand


def held_request(world: Governed) -> AlterPartitionRequest:
    ((_, effect),) = world.held
    assert isinstance(effect.message, AlterPartitionRequest)
    return effect.message


def refusal(request: AlterPartitionRequest, error: ErrorCode) -> AlterPartitionResponse:
    row = PartitionDataResponse(partition_index=0, error_code=error)
    return AlterPartitionResponse(topics=(TopicDataResponse(topic_id=request.topics[0].topic_id, partitions=(row,)),))


# --- who changes an ISR


def test_a_leader_changes_nothing_by_itself_it_asks_the_controller() -> None:
    world = cluster()
    silent_third(world)
    assert world.partition.isr == leading(world, 1).isr.isr == (1, 2, 3)
    world.answer_controller()
    assert world.partition.isr == leading(world, 1).isr.isr == (1, 2)


def test_the_controller_writes_the_change_with_a_new_partition_epoch_and_the_same_leader_epoch() -> None:
    world = cluster()
    before = world.partition
    answer = world.ask((1, 2))
    assert (answer.error_code, answer.isr, answer.leader_id) == (E.NONE, (1, 2), 1)
    assert answer.partition_epoch == world.partition.partition_epoch == before.partition_epoch + 1
    assert answer.leader_epoch == world.partition.leader_epoch == before.leader_epoch


def test_an_isr_as_it_is_begins_no_epoch() -> None:
    world = cluster()
    before = world.partition
    assert world.ask((1, 2, 3)).partition_epoch == before.partition_epoch
    assert world.partition is before


# --- what the controller refuses


def test_a_proposal_of_an_older_partition_epoch_is_refused_and_changes_nothing() -> None:
    world = cluster()
    world.ask((1, 2))
    answer = world.ask((1, 2, 3), partition_epoch=0)
    assert (answer.error_code, world.partition.isr) == (E.INVALID_UPDATE_VERSION, (1, 2))


def test_a_deposed_leader_is_fenced() -> None:
    world = cluster()
    world.change(leader=2, isr=(2, 3))
    answer = world.ask((1,), broker_id=1, leader_epoch=0)
    assert (answer.error_code, world.partition.isr) == (E.FENCED_LEADER_EPOCH, (2, 3))


def test_a_broker_that_is_not_the_leader_proposes_nothing() -> None:
    world = cluster()
    assert world.ask((1, 2), broker_id=2).error_code == E.INVALID_REQUEST


def test_a_leader_that_knows_more_than_the_controller_is_sent_to_the_next_one() -> None:
    """A controller that lags behind its successor must not judge."""
    world = cluster()
    assert world.ask((1, 2), partition_epoch=9).error_code == E.NOT_CONTROLLER
    assert world.ask((1, 2), leader_epoch=9).error_code == E.NOT_CONTROLLER


# --- how a leader counts meanwhile


def test_while_an_expansion_is_pending_the_high_watermark_counts_the_newcomer() -> None:
    world = cluster()
    third_is_back(world)
    world.cut = {NodeId(3)}
    before = world.row(1)[2]
    answer = world.produce(1, timeout_ms=200_000)
    world.run(1_000)
    assert (world.row(1)[2], answer()) == (before, None)  # 2 has it, 3 does not
    assert leading(world, 1).isr.maximal == (1, 2, 3)


def test_while_a_shrink_is_pending_the_high_watermark_counts_the_removed_replica() -> None:
    world = cluster()
    silent_third(world)
    before = world.row(1)[2]
    answer = world.produce(1, timeout_ms=200_000)
    world.run(60_000)
    assert (world.row(1)[2], answer()) == (before, None)
    world.answer_controller()
    assert answer().error_code == E.NONE


def test_min_isr_is_measured_on_the_committed_isr_and_not_on_what_is_proposed() -> None:
    """T21: while 3 is only proposed, acks=all is refused, and nothing is committed."""
    world = cluster(min_isr=3)
    third_is_back(world)
    before = world.row(1)[2]
    assert world.produce(1)().error_code == E.NOT_ENOUGH_REPLICAS
    world.produce(1, acks=1)
    world.run(1_000)
    assert world.row(1)[2] == before < world.row(1)[3]
    world.answer_controller()
    assert world.row(1)[2] == world.row(1)[3]


def test_a_partition_has_one_change_under_way_and_a_broker_one_request() -> None:
    world = cluster()
    silent_third(world)
    pending = leading(world, 1).isr
    world.kill(NodeId(2))
    world.produce(1, acks=1)
    world.run(120_000)
    assert leading(world, 1).isr is pending
    assert len([effect for _, effect in world.sent_by if isinstance(effect, ToController)]) == 1


# --- answers, and what overtakes them


def test_without_an_answer_the_proposal_stays_and_is_asked_again_until_there_is_one() -> None:
    world = cluster()
    silent_third(world)
    for _ in range(5):
        ((node, effect),) = world.held
        world.held = []
        world.perform(node, world.nodes[node].step(Failed(effect.token, Failure.TIMED_OUT), world.now))
        world.run(100)
        assert type(leading(world, 1).isr) is PendingShrink
    world.answer_controller()
    assert leading(world, 1).isr == Committed((1, 2))


def test_an_answer_that_got_lost_after_the_change_was_made_does_no_harm() -> None:
    """The leader asks again with the epoch it knows, is refused, and learns from metadata what it has got."""
    world = cluster()
    silent_third(world)
    world.deaf = (1,)
    world.alter(held_request(world))
    ((node, effect),) = world.held
    world.held = []
    world.perform(node, world.nodes[node].step(Failed(effect.token, Failure.CLOSED), world.now))
    world.run(100)
    world.answer_controller()
    assert type(leading(world, 1).isr) is PendingShrink  # INVALID_UPDATE_VERSION: it may have been made
    world.run(100_000)
    world.catch_up(NodeId(1))
    assert leading(world, 1).isr == Committed((1, 2))


def test_an_answer_before_its_metadata_counts_and_the_metadata_then_says_nothing_new() -> None:
    world = cluster()
    silent_third(world)
    world.deaf = (1,)
    world.answer_controller()
    assert leading(world, 1).isr == Committed((1, 2))
    epoch = leading(world, 1).partition_epoch
    world.catch_up(NodeId(1))
    assert (leading(world, 1).isr, leading(world, 1).partition_epoch) == (Committed((1, 2)), epoch)


def test_metadata_that_an_answer_has_overtaken_brings_no_older_isr_back() -> None:
    world = cluster()
    silent_third(world)
    world.deaf = (1,)
    world.answer_controller()
    world.kill(NodeId(2))
    world.produce(1, acks=1)
    world.run(46_000)
    world.answer_controller()
    assert leading(world, 1).isr == Committed((1,))
    image, first = world.images[NodeId(1)], world.records[world.followed[NodeId(1)]]
    assert first.isr == (1, 2)
    image.apply(first)
    world.perform(NodeId(1), world.nodes[NodeId(1)].apply(image, image.take_delta(), world.now))
    assert leading(world, 1).isr == Committed((1,))


def test_metadata_before_the_answer_settles_the_proposal_and_the_answer_is_dropped() -> None:
    world = cluster()
    silent_third(world)
    ((node, effect),) = world.held
    world.held = []
    assert isinstance(effect.message, AlterPartitionRequest)
    late = world.alter(effect.message)
    world.ask((1,))  # and another change after it
    assert leading(world, 1).isr == Committed((1,))
    world.perform(node, world.nodes[node].step(Answered(effect.token, late), world.now))
    assert leading(world, 1).isr == Committed((1,))


def test_an_answer_about_a_leadership_that_is_over_is_dropped() -> None:
    world = cluster()
    silent_third(world)
    world.change(leader=1, isr=(1, 2, 3))  # elected anew
    world.answer_controller()
    assert leading(world, 1).isr == Committed((1, 2, 3))
    assert leading(world, 1).epoch == 1


@pytest.mark.parametrize("error", [E.INELIGIBLE_REPLICA, E.OPERATION_NOT_ATTEMPTED])
def test_a_refused_expansion_has_never_let_the_high_watermark_pass_the_newcomer(error: ErrorCode) -> None:
    world = cluster()
    third_is_back(world)
    world.cut = {NodeId(3)}
    world.produce(1, acks=1)
    world.run(1_000)
    stood = world.row(1)[2]
    request = held_request(world)
    ((node, effect),) = world.held
    world.held = []
    world.perform(node, world.nodes[node].step(Answered(effect.token, refusal(request, error)), world.now))
    assert leading(world, 1).isr == Committed((1, 2))
    assert world.row(1)[2] >= stood
