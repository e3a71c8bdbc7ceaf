"""KIP-903 (a replica with a stale broker epoch does not join an ISR): follower, leader and controller."""

import pytest
from tests.kip.scenes import Governed, leading, log_of
from tests.sim.play import Play
from tests.unit.replica.conftest import CALLER
from tests.unit.replica.disk import DictDisk

from strandline.base.effects import Send, ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.broker.lifecycle import ShutDown
from strandline.replica.hosting.isr import Committed, PendingExpand
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

E = ErrorCode
A, B = NodeId(1), NodeId(2)
OLD = 102  # the broker epoch with which B begins


def pair() -> Governed:
    """A leads, and is the only member of the ISR; B is a follower that has everything. Nothing is proposed yet."""
    world = Governed()
    world.create(leader=A, replicas=(A, B))
    world.run(1_000)
    world.kill(B)
    world.produce(A, 5, acks=1)
    world.run(60_000)
    assert world.partition.isr == (A,)
    world.controller_answers = False
    return world


def fetch_of(world: Governed, epoch: int, offset: int) -> ErrorCode:
    """What a process of B's asks, whichever incarnation it is, and what it is told of the partition."""
    asked = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=world.partition.leader_epoch
    )
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=B, replica_epoch=epoch),
        max_wait_ms=0,
        session_epoch=-1,
        topics=(FetchTopic(topic_id=world.image.topic_ids["t"], partitions=(asked,)),),
    )
    to = world.to(17)
    world.perform(A, world.nodes[A].fetch(to, CALLER, request, world.now))
    (row,) = world.answers[to.correlation_id].responses[0].partitions
    return ErrorCode(row.error_code)


def proposed(world: Governed) -> list[list[tuple[int, int]]]:
    """ISRs with broker epochs, of every proposal since the world began."""
    return [
        [(state.broker_id, state.broker_epoch) for state in effect.message.topics[0].partitions[0].new_isr_with_epochs]
        for _, effect in world.sent_by
        if isinstance(effect, ToController)
    ]


# --- the motivation


def test_the_scenario_a_follower_that_loses_its_disk_between_proposal_and_decision_is_not_admitted() -> None:
    world = pair()
    world.start(B)
    world.run(1_000)
    assert type(leading(world, A).isr) is PendingExpand  # 1. B catches up, A asks to add it
    world.kill(B)  # 2. before that is received, B fails
    world.deaf = (A,)
    world.fence(B)  # 3. the controller fences it; it is in no ISR, so nothing else changes
    world.disks[B] = DictDisk()  # 4. B's disk has been replaced
    world.register(B, clean=False)  # 5. its registration comes first
    world.beat(B)
    before = world.partition
    world.answer_controller()  # 6. and then A's request
    assert world.partition is before
    assert world.partition.isr == (A,)
    assert leading(world, A).isr == Committed((A,))


def test_the_scenario_goes_on_the_empty_follower_copies_everything_and_only_then_joins() -> None:
    world = pair()
    world.start(B)
    world.run(1_000)
    world.kill(B)
    world.fence(B)
    world.disks[B] = DictDisk()
    new = world.register(B, clean=False)
    world.beat(B)
    world.answer_controller()
    assert world.partition.isr == (A,)
    world.controller_answers = True
    world.start(B)
    world.run(3_000)
    assert world.partition.isr == (A, B)
    assert log_of(world, B).log_end_offset == 5
    assert proposed(world)[-1] == [(A, 101), (B, new)]


# --- the follower


def test_the_follower_sends_the_epoch_of_its_registration_in_every_fetch() -> None:
    world = pair()
    new = world.register(B, clean=True)
    world.beat(B)
    world.start(B)
    world.run(500)
    states = {
        (effect.message.replica_state.replica_id, effect.message.replica_state.replica_epoch)
        for node, effect in world.sent_by
        if node == B and isinstance(effect, Send) and world.now and effect.message.replica_state.replica_epoch != OLD
    }
    assert states == {(B, new)}


# --- the leader


def test_the_leader_proposes_with_the_epoch_that_the_fetch_named() -> None:
    world = pair()
    fetch_of(world, OLD, 5)
    assert leading(world, A).followers[B].broker_epoch == OLD
    assert proposed(world)[-1] == [(A, 101), (B, OLD)]


@pytest.mark.parametrize("who", ["an incarnation that metadata does not know yet", "one that is replaced already"])
def test_until_fetch_and_metadata_name_the_same_incarnation_the_leader_proposes_nothing(who: str) -> None:
    world = pair()
    before = len(proposed(world))
    if who == "one that is replaced already":
        new = world.register(B, clean=False)
        world.beat(B)
        fetch_of(world, OLD, 5)  # a last fetch that comes very late
    else:
        world.deaf = (A,)
        new = world.register(B, clean=False)
        world.beat(B)
        fetch_of(world, new, 5)
    assert len(proposed(world)) == before
    assert leading(world, A).isr == Committed((A,))
    world.catch_up(A)
    fetch_of(world, new, 5)
    assert proposed(world)[-1] == [(A, 101), (B, new)]


def test_t15_a_late_fetch_of_an_earlier_incarnation_says_nothing_about_its_successor() -> None:
    world = pair()
    new = world.register(B, clean=False)
    world.beat(B)
    assert fetch_of(world, new, 0) is ErrorCode.NONE
    heard = world.nodes[A].host.cluster.fetched_at[B]
    world.run(1_000)
    assert fetch_of(world, OLD, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    state = leading(world, A).followers[B]
    assert (state.broker_epoch, state.log_end_offset) == (new, 0)
    assert world.nodes[A].host.cluster.fetched_at[B] == heard, "nor does it say that B lives"


def test_a_fetch_of_an_incarnation_that_metadata_has_replaced_is_refused_before_its_successor_fetches() -> None:
    world = pair()
    assert fetch_of(world, OLD, 2) is ErrorCode.NONE
    before = leading(world, A).followers[B]
    new = world.register(B, clean=False)
    assert fetch_of(world, OLD, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leading(world, A).followers[B] is before
    assert fetch_of(world, -1, 5) is ErrorCode.NONE, "a follower that names no incarnation is not compared"
    assert fetch_of(world, new, 0) is ErrorCode.NONE


def test_a_fetch_that_names_no_incarnation_does_not_make_the_leader_forget_the_last_one() -> None:
    """A process that ends may copy for a moment longer: what it had is not what its successor has."""
    world = pair()
    assert fetch_of(world, OLD, 2) is ErrorCode.NONE
    assert fetch_of(world, -1, 5) is ErrorCode.NONE
    state = leading(world, A).followers[B]
    assert (state.broker_epoch, state.log_end_offset) == (OLD, 5)
    world.register(B, clean=False)
    world.beat(B)
    assert not leading(world, A).is_eligible(B, leading(world, A).followers[B].broker_epoch)


def test_a_broker_that_leaves_copies_to_its_end_as_the_incarnation_that_it_was() -> None:
    play = Play()
    machine = next(one for one in play.machines if one not in (play.leader(), play.world.controller()))
    broker = machine.node.broker  # type: ignore[union-attr]
    assert broker is not None
    epoch = broker.replicas.broker_epoch
    assert epoch >= 0
    machine.shut_down()
    play.until("it has left", lambda: isinstance(broker.lifecycle.role, ShutDown))
    assert broker.replicas.broker_epoch == epoch


def test_the_leader_goes_back_to_the_committed_isr_when_the_controller_finds_it_ineligible() -> None:
    world = pair()
    fetch_of(world, OLD, 5)
    world.deaf = (A,)
    world.register(B, clean=False)
    world.answer_controller()
    assert leading(world, A).isr == Committed((A,))


# --- the controller


@pytest.mark.parametrize("stale", [1, 2, 3])
def test_the_controller_compares_the_epoch_of_every_member_and_not_only_of_the_newcomer(stale: int) -> None:
    world = Governed()
    world.create()
    world.ask((1, 2))
    answer = world.ask((1, 2, 3), broker_epochs={stale: 7})
    assert (answer.error_code, world.partition.isr) == (E.INELIGIBLE_REPLICA, (1, 2))


def test_minus_one_is_not_compared() -> None:
    """ "It will be -1 if the epoch check is not supported.\""""
    world = Governed()
    world.create()
    world.ask((1, 2))
    assert world.ask((1, 2, 3), broker_epochs={3: -1}).error_code == E.NONE


def test_a_fenced_broker_is_rejected_with_minus_one_too() -> None:
    world = Governed()
    world.create()
    world.fence(3)
    assert world.ask((1, 2, 3), broker_epochs={3: -1}).error_code == E.INELIGIBLE_REPLICA


@pytest.mark.parametrize("clean", [True, False])
def test_a_new_incarnation_leaves_every_isr_in_the_batch_that_registers_it(clean: bool) -> None:
    """So an AlterPartition that is valid just before does no harm. T29: also if nobody had noticed the restart."""
    world = Governed()
    world.create()
    world.register(3, clean=clean)
    assert world.partition.isr == (1, 2)


def test_the_exception_the_last_member_stays_in_the_isr_though_it_crashed_and_is_fenced() -> None:
    """Without Eligible Leader Replicas (KIP-966), which is about just this."""
    world = pair()
    world.fence(A)
    assert (world.partition.isr, world.partition.leader) == ((A,), -1)
    world.register(A, clean=False)
    world.beat(A)
    assert (world.partition.isr, world.partition.leader) == ((A,), A)
