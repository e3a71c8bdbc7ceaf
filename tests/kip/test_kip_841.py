"""KIP-841 (fenced replicas do not join an ISR), as the chapter on replication retells it: controller and leader."""

from typing import Any

import pytest
from tests.kip.scenes import Governed, leading
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.replica.hosting.isr import Committed, PendingExpand

E = ErrorCode
THIRD = NodeId(3)


def cluster() -> Governed:
    world = Governed()
    world.create()
    world.run(1_000)
    return world


def third_outside(world: Governed) -> None:
    """Broker 3 is dropped for its silence, and one record behind."""
    world.kill(THIRD)
    world.produce(1, acks=1)
    world.run(60_000)
    assert world.partition.isr == (1, 2)


def proposals(world: Governed) -> int:
    return len([effect for _, effect in world.sent_by if isinstance(effect, ToController)])


# --- the controller


def fenced(world: Governed) -> None:
    world.fence(3)


def shutting_down(world: Governed) -> None:
    world.change(leader=3, isr=(3, 1, 2))  # who leads something is not let go at once
    world.beat(3, want_shut_down=True)
    assert world.image.brokers[THIRD].in_controlled_shutdown


INELIGIBLE = [pytest.param(fenced, id="fenced"), pytest.param(shutting_down, id="in controlled shutdown")]


@pytest.mark.parametrize("make", INELIGIBLE)
def test_the_controller_refuses_an_isr_with_an_ineligible_broker_as_a_whole(make: Any) -> None:
    world = cluster()
    make(world)
    before = world.partition
    assert 3 not in before.isr
    assert world.ask((*before.isr, 3)).error_code == E.INELIGIBLE_REPLICA
    assert world.partition is before


@pytest.mark.parametrize("make", INELIGIBLE)
def test_an_ineligible_broker_leaves_the_isr_and_the_leadership_in_the_batch_that_makes_it_so(make: Any) -> None:
    world = cluster()
    make(world)
    assert world.partition.isr == (1, 2)
    assert world.partition.leader != 3


@pytest.mark.parametrize("make", INELIGIBLE)
def test_the_next_controller_rejects_it_too(make: Any) -> None:
    """The state of a broker is in the metadata, not in a controller's memory."""
    world = cluster()
    make(world)
    image = type(world.image)()
    image.apply_all(world.records)
    world.image = image
    assert world.ask((*world.partition.isr, 3)).error_code == E.INELIGIBLE_REPLICA


def test_a_broker_that_is_fenced_as_the_last_member_stays_in_the_isr_without_leading() -> None:
    world = cluster()
    world.ask((1,))
    world.fence(1)
    assert (world.partition.isr, world.partition.leader) == ((1,), -1)


def test_a_new_partition_begins_without_fenced_replicas_in_its_isr() -> None:
    made = Cluster(brokers=3)
    made.fence(3)
    made.create("t", (3, 1, 2))
    assert (made.partition("t").isr, made.partition("t").leader) == ((1, 2), 1)


def test_once_unfenced_it_may_be_proposed_again() -> None:
    world = cluster()
    fenced(world)
    world.beat(3)
    assert world.ask((1, 2, 3)).error_code == E.NONE


def test_a_controlled_shutdown_is_not_taken_back_by_a_heartbeat_that_no_longer_wants_it() -> None:
    world = cluster()
    shutting_down(world)
    world.beat(3)
    assert world.ask((*world.partition.isr, 3)).error_code == E.INELIGIBLE_REPLICA


# --- the leader


@pytest.mark.parametrize("make", INELIGIBLE)
def test_t16_a_leader_does_not_propose_a_broker_that_its_metadata_calls_ineligible(make: Any) -> None:
    world = cluster()
    make(world)
    leader = world.partition.leader
    world.sent_by.clear()
    world.produce(leader, 5)
    world.run(5_000)
    assert world.row(3)[3] == 5  # it goes on fetching, and has everything
    assert (proposals(world), leading(world, leader).isr) == (0, Committed((1, 2)))


def test_a_leader_that_has_not_heard_of_the_fencing_is_refused_and_falls_back_to_the_committed_isr() -> None:
    world = cluster()
    third_outside(world)
    world.deaf = (1,)
    world.fence(3)
    world.start(THIRD)
    world.controller_answers = False
    world.run(1_000)
    assert type(leading(world, 1).isr) is PendingExpand
    world.controller_answers = True
    world.answer_controller()
    assert leading(world, 1).isr == Committed((1, 2))
    assert world.partition.isr == (1, 2)


def test_a_refused_leader_proposes_it_again_once_it_is_unfenced_though_nothing_is_written() -> None:
    """Any fetch of the follower is a reason to look, not only one that brings records."""
    world = cluster()
    third_outside(world)
    world.fence(3)
    world.start(THIRD)
    world.run(2_000)
    assert world.partition.isr == (1, 2)
    world.beat(3)
    world.run(2_000)
    assert world.partition.isr == (1, 2, 3)


def test_t17_an_ineligible_follower_outside_the_isr_does_not_hold_the_high_watermark_back() -> None:
    """It can not be elected, so nobody waits for it, even if it had everything a moment ago."""
    world = cluster()
    world.fence(3)
    world.cut = {THIRD}
    answer = world.produce(1)
    world.run(100)
    assert answer().error_code == E.NONE


def test_t17_an_eligible_follower_outside_the_isr_that_is_caught_up_does_hold_it_back_until_it_is_fenced() -> None:
    """It may be in the ISR at any moment: the counterpart of the rule above."""
    world = cluster()
    world.controller_answers = False
    world.change(isr=(1, 2))
    world.cut = {THIRD}
    answer = world.produce(1, timeout_ms=100_000)
    world.run(1_000)
    assert answer() is None
    world.fence(3)
    assert leading(world, 1).isr.isr == (1, 2)
    assert answer().error_code == E.NONE, "T17: it is waited for no longer, though no ISR has changed"


def test_t17_the_high_watermark_moves_in_the_very_step_that_fences_the_last_replica_that_lacked_a_record() -> None:
    world = cluster()
    world.cut = {THIRD}
    answer = world.produce(1, timeout_ms=100_000)
    world.run(1_000)
    assert answer() is None
    world.fence(3)
    assert answer().error_code == E.NONE
