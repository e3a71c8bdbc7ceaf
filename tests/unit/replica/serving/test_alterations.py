"""AlterPartition: batching, retries, and which answers count."""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.replica.conftest import AT, CALLER, World, a_batch

from strandline.base.effects import Answered, Failed, Failure, ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, NodeId, Uuid
from strandline.metadata import records as r
from strandline.replica.hosting.isr import Committed, PendingShrink
from strandline.replica.serving import alterations
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionResponse,
    PartitionDataResponse,
    TopicDataResponse,
)
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def lagging(world: Any) -> None:
    """Broker 3 is silent until its leader proposes to drop it; the controller has not answered yet."""
    world.create()
    world.run(1_000)
    world.kill(3)
    world.produce(1, timeout_ms=500_000)
    world.controller_answers = False
    world.run(60_000)


def answer(
    world: Any, error: int, isr: tuple[int, ...] = (1, 2), partition_epoch: int = 1, leader_epoch: int = 0
) -> None:
    ((node, effect),) = world.held
    world.held = []
    row = PartitionDataResponse(
        partition_index=0,
        error_code=error,
        leader_id=1,
        leader_epoch=leader_epoch,
        isr=isr,
        partition_epoch=partition_epoch,
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


def test_asked_again_after_another_registration_a_leader_names_itself_as_it_is_registered_now(world: Any) -> None:
    lagging(world)
    ((node, effect),) = world.held
    world.held = []
    world.nodes[node].broker_epoch = BrokerEpoch(501)
    world.perform(node, world.nodes[node].step(Failed(effect.token, Failure.TIMED_OUT), world.now))
    world.run(50)
    ((_, again),) = world.held
    row = again.message.topics[0].partitions[0]
    assert again.message.broker_epoch == 501
    assert [(s.broker_id, s.broker_epoch) for s in row.new_isr_with_epochs] == [(1, 501), (2, 102)]


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


def test_many_proposals_go_in_several_requests(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alterations, "PROPOSALS_MAX", 2)
    world.controller_answers = False
    world.commit(
        r.TopicRecord(name="t", topic_id=AT.topic_id),
        *(
            r.PartitionRecord(
                partition_id=index,
                topic_id=AT.topic_id,
                replicas=(1, 2, 3),
                isr=(1, 2),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(Uuid(bytes([node]) * 16) for node in (1, 2, 3)),
            )
            for index in range(5)
        ),
    )
    world.run(100)
    asked = []
    while world.held:
        ((node, effect),) = world.held
        world.held = []
        (topic,) = effect.message.topics
        asked.append([row.partition_index for row in topic.partitions])
        refused = tuple(
            PartitionDataResponse(partition_index=row.partition_index, error_code=ErrorCode.INVALID_REQUEST)
            for row in topic.partitions
        )
        response = AlterPartitionResponse(topics=(TopicDataResponse(topic_id=AT.topic_id, partitions=refused),))
        world.perform(node, world.nodes[node].step(Answered(effect.token, response), world.now))
    assert sorted(map(len, asked)) == [1, 2, 2]
    assert sorted(index for rows in asked for index in rows) == list(range(5))


# --- what each error code means (chapter on replication, "AlterPartition rejected"; KIP-497, KIP-841)

NOT_DONE = [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED]
MAY_BE_DONE = [
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.NEW_LEADER_ELECTED,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
]
TRANSIENT = [code for code in ErrorCode if code not in (ErrorCode.NONE, *NOT_DONE, *MAY_BE_DONE)]
OF_REQUESTS = [code for code in ErrorCode if code is not ErrorCode.NONE]


def returning(world: Any) -> None:
    """Broker 3 is back, and its leader proposes it; the controller has not answered yet."""
    world.create()
    world.run(1_000)
    world.kill(3)
    world.change(isr=(1, 2))
    world.produce(1)
    world.controller_answers = False
    world.start(NodeId(3))
    world.run(100)


SITUATIONS = [pytest.param(lagging, (1, 2, 3), id="shrink"), pytest.param(returning, (1, 2), id="expansion")]


def pending(world: Any) -> bool:
    ((_, leader),) = world.nodes[1].host.partitions.leaders()
    return not isinstance(leader.isr, Committed)


@pytest.mark.parametrize(("begin", "committed"), SITUATIONS)
@pytest.mark.parametrize("error", NOT_DONE)
def test_what_was_certainly_not_done_falls_back_to_the_committed_isr(
    world: Any, begin: Any, committed: tuple[int, ...], error: ErrorCode
) -> None:
    begin(world)
    epoch = world.held[0][1].message.topics[0].partitions[0].partition_epoch
    answer(world, error)
    assert (pending(world), world.row(1)[4]) == (False, committed)
    world.run(15_000)  # the next check, or the next fetch, proposes it anew on the same ground
    ((_, effect),) = world.held
    assert effect.message.topics[0].partitions[0].partition_epoch == epoch


@each(("begin", "committed"), SITUATIONS)
@each("error", MAY_BE_DONE, world=World)
def test_what_may_have_been_done_stays_pending_until_metadata_says_what_was(
    world: Any, begin: Any, committed: tuple[int, ...], error: ErrorCode
) -> None:
    begin(world)
    answer(world, error)
    world.run(60_000)
    assert (pending(world), world.row(1)[4], world.held) == (True, committed, [])
    world.change(isr=committed)
    world.run(15_000)
    assert len(world.held) == 1  # settled, and proposed anew at the new partition epoch


@each(("begin", "committed"), SITUATIONS)
@each("error", TRANSIENT, world=World)
def test_any_other_error_is_asked_again_after_50_ms_without_limit(
    world: Any, begin: Any, committed: tuple[int, ...], error: ErrorCode
) -> None:
    begin(world)
    for _ in range(3):
        ((_, asked),) = world.held
        answer(world, error)
        assert (pending(world), world.row(1)[4], world.held) == (True, committed, [])
        world.run(49)
        assert world.held == []
        world.run(1)
        ((_, again),) = world.held
        assert again.message == asked.message


@each("error", OF_REQUESTS, world=World)
def test_a_request_that_fails_as_a_whole_is_asked_again_whatever_the_error(world: Any, error: ErrorCode) -> None:
    """STALE_BROKER_EPOCH, NOT_CONTROLLER, CLUSTER_AUTHORIZATION_FAILED …: of no partition is anything known."""
    lagging(world)
    ((node, effect),) = world.held
    world.held = []
    response = AlterPartitionResponse(error_code=error)
    world.perform(node, world.nodes[node].step(Answered(effect.token, response), world.now))
    assert (pending(world), world.row(1)[4]) == (True, (1, 2, 3))
    world.run(50)
    ((_, again),) = world.held
    assert again.message == effect.message


def test_an_error_number_that_nobody_knows_is_asked_again(world: Any) -> None:
    lagging(world)
    answer(world, 9_999)
    world.run(50)
    assert (pending(world), len(world.held)) == (True, 1)


def test_a_partition_that_the_answer_forgot_is_asked_again(world: Any) -> None:
    lagging(world)
    ((node, effect),) = world.held
    world.held = []
    world.perform(node, world.nodes[node].step(Answered(effect.token, AlterPartitionResponse()), world.now))
    world.run(50)
    assert (pending(world), len(world.held)) == (True, 1)


def test_t20_acks_all_is_acknowledged_by_the_answer_to_a_shrink_without_any_further_fetch(world: Any) -> None:
    lagging(world)
    stuck = world.produce(1, timeout_ms=500_000)
    world.run(1_000)
    world.cut = {NodeId(2)}  # nobody fetches any more
    assert stuck() is None
    answer(world, ErrorCode.NONE)
    assert stuck().error_code == ErrorCode.NONE


def test_t20_acks_all_is_acknowledged_by_the_metadata_of_a_shrink_without_any_answer(world: Any) -> None:
    lagging(world)
    stuck = world.produce(1, timeout_ms=500_000)
    world.run(1_000)
    world.cut = {NodeId(2)}
    assert stuck() is None
    world.change(isr=(1, 2))
    assert stuck().error_code == ErrorCode.NONE


# --- several partitions


def another(world: Any, number: int) -> None:
    """One more partition of the same replicas, with a record that broker 3, which is silent, lacks."""
    name, topic_id = f"u{number}", Uuid(bytes([number]) * 16)
    nodes = (1, 2, 3)
    world.commit(
        r.TopicRecord(name=name, topic_id=topic_id),
        r.PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=nodes,
            isr=nodes,
            leader=1,
            directories=tuple(bytes([node]) * 16 for node in nodes),
        ),
    )
    rows = (PartitionProduceData(index=0, records=memoryview(bytearray(a_batch(1)))),)
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name=name, partition_data=rows),))
    world.perform(NodeId(1), world.nodes[1].produce(world.to(), CALLER, request, world.now))


def named(effect: ToController) -> list[Uuid]:
    return [topic.topic_id for topic in effect.message.topics]


def test_a_broker_has_one_request_under_way_and_the_next_has_all_that_waited(world: Any) -> None:
    lagging(world)
    another(world, 1)
    another(world, 2)
    world.run(60_000)
    ((_, first),) = world.held
    assert named(first) == [AT.topic_id]
    for number in (1, 2):
        hosted = world.nodes[1].host.partitions.named(f"u{number}", 0)
        assert type(hosted.role.isr) is PendingShrink, "it has been proposed, and waits"
    answer(world, ErrorCode.NONE)
    ((_, second),) = world.held
    assert sorted(named(second)) == [Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)]


def test_without_an_answer_all_of_a_request_is_asked_again(world: Any) -> None:
    lagging(world)
    another(world, 1)
    another(world, 2)
    world.run(60_000)
    answer(world, ErrorCode.NONE)
    ((node, both),) = world.held
    world.held = []
    world.perform(node, world.nodes[node].step(Failed(both.token, Failure.TIMED_OUT), world.now))
    world.run(100)
    ((_, again),) = world.held
    assert sorted(named(again)) == sorted(named(both))


def test_metadata_that_the_answer_has_overtaken_still_has_the_replicas(world: Any) -> None:
    """A change of the ISR that ends a reassignment takes replicas away: the answer has the ISR alone, and its partition
    epoch is that of the record that comes next."""
    lagging(world)
    answer(world, ErrorCode.NONE)
    ((_, leader),) = world.nodes[1].host.partitions.leaders()
    assert (leader.partition_epoch, leader.replicas) == (1, (1, 2, 3))
    world.change(isr=(1, 2), replicas=(1, 2))
    assert (leader.partition_epoch, leader.replicas, list(leader.followers)) == (1, (1, 2), [2])


def test_an_answer_that_names_another_leader_epoch_is_dropped_though_the_proposal_is_the_one_that_was_asked(
    world: Any,
) -> None:
    """The controller has elected since: what it says is of a leadership that this one is not."""
    lagging(world)
    answer(world, ErrorCode.NONE, isr=(1,), leader_epoch=1)
    assert (pending(world), world.row(1)[4]) == (True, (1, 2, 3))


@pytest.mark.parametrize(
    "hostile",
    [{"isr": (-2,)}, {"isr": (2,)}, {"isr": (1, 77)}, {"partition_epoch": 2147483647}],
    ids=["nobody", "without the leader", "who is no replica", "an epoch that nobody can have come to"],
)
def test_an_answer_that_no_controller_gives_is_asked_again(world: Any, hostile: dict[str, Any]) -> None:
    lagging(world)
    answer(world, ErrorCode.NONE, **hostile)
    assert world.row(1)[4] == (1, 2, 3)
    world.run(50)
    ((_, again),) = world.held
    assert again.message.topics[0].partitions[0].partition_epoch == 0
    answer(world, ErrorCode.NONE)
    assert world.row(1)[2:] == (1, 1, (1, 2))
