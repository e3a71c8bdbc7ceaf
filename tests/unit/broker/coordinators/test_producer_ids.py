"""Producer ids: each is handed out at most once, and nobody waits for a controller that does not come."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.base.effects import Answered, Effect, Failed, Failure, Reply, ReplyTo, ToController
from strandline.base.errors import ErrorCode as E
from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant
from strandline.broker.coordinators.producer_ids import WAITING_MAX, BlockAsked, ProducerIds
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsResponse
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest

T = Instant(1000)
LATER = Instant(2000)
PLAIN = InitProducerIdRequest(transactional_id=None)


def to(number: int) -> ReplyTo:
    return ReplyTo(1, number, number, 22, 4)


def given_ids(effects: list[Effect]) -> list[int]:
    return [e.message.producer_id for e in effects if isinstance(e, Reply) and e.message.error_code == E.NONE]


def errors(effects: list[Effect]) -> list[int]:
    return [e.message.error_code for e in effects if isinstance(e, Reply)]


def block(start: int, length: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=E.NONE, producer_id_start=start, producer_id_len=length)


def test_the_first_producer_waits_for_a_block_and_the_next_ones_use_it_up() -> None:
    ids = ProducerIds(NodeId(3), lambda: 50)
    (question,) = ids.init_producer_id(to(0), PLAIN, T)
    assert isinstance(question, ToController)
    assert (question.message.broker_id, question.message.broker_epoch) == (3, 50)
    assert given_ids(ids.step(Answered(question.token, block(1000, 2)), T)) == [1000]
    assert given_ids(ids.init_producer_id(to(1), PLAIN, T)) == [1001]
    assert isinstance(ids.init_producer_id(to(2), PLAIN, T)[0], ToController)


def test_only_one_block_is_asked_for_at_a_time_and_another_if_it_was_too_small() -> None:
    ids = ProducerIds(NodeId(3), lambda: 50)
    (question,) = ids.init_producer_id(to(0), PLAIN, T)
    assert ids.init_producer_id(to(1), PLAIN, T) == []
    assert isinstance(question, ToController)
    assert given_ids(ids.step(Answered(question.token, block(0, 1)), T)) == [0]
    assert ids.deadline() == T
    assert isinstance(ids.expire(T)[0], ToController)


def test_without_a_controller_waiting_clients_get_a_retriable_error() -> None:
    ids = ProducerIds(NodeId(3), lambda: 50)
    for event in (
        Failed(BlockAsked(), Failure.CLOSED),
        Answered(BlockAsked(), AllocateProducerIdsResponse(error_code=E.NOT_CONTROLLER)),
    ):
        ids.init_producer_id(to(0), PLAIN, T)
        assert errors(ids.step(event, T)) == [E.COORDINATOR_LOAD_IN_PROGRESS]
        assert ids.deadline() == NEVER


def test_the_transaction_coordinator_gets_its_ids_by_a_call_and_shares_them_with_all_others() -> None:
    ids, given = ProducerIds(NodeId(3), lambda: 50), []

    def done(producer_id: int | E, now: Instant) -> list[Effect]:
        given.append((producer_id, now))
        return []

    (question,) = ids.next(done, T)
    ids.init_producer_id(to(1), PLAIN, T)
    assert isinstance(question, ToController)
    assert given_ids(ids.step(Answered(question.token, block(5, 2)), LATER)) == [6]
    ids.next(done, T)
    ids.step(Failed(BlockAsked(), Failure.CLOSED), LATER)
    assert given == [(5, LATER), (E.COORDINATOR_LOAD_IN_PROGRESS, LATER)]


def test_who_asks_for_one_more_when_it_gets_one_gets_another() -> None:
    ids, given = ProducerIds(NodeId(3), lambda: 50), []

    def done(producer_id: int | E, now: Instant) -> list[Effect]:
        given.append(producer_id)
        return ids.next(done, now) if len(given) < 3 else []

    ids.next(done, T)
    (question,) = ids.step(Answered(BlockAsked(), block(7, 2)), T)
    assert isinstance(question, ToController)
    ids.step(Answered(question.token, block(20, 2)), T)
    assert given == [7, 8, 20]


def test_no_more_than_a_bounded_number_waits() -> None:
    ids = ProducerIds(NodeId(3), lambda: 50)
    for number in range(WAITING_MAX):
        ids.init_producer_id(to(number), PLAIN, T)
    assert errors(ids.init_producer_id(to(WAITING_MAX), PLAIN, T)) == [E.COORDINATOR_LOAD_IN_PROGRESS]


@given(st.lists(st.sampled_from(["ask", "ask", "small", "large", "fail"]), max_size=60))
def test_no_id_is_handed_out_twice(steps: list[str]) -> None:
    ids = ProducerIds(NodeId(3), lambda: 50)
    out: list[int] = []
    asked = answered = next_id = 0
    for step in steps:
        effects: list[Effect] = []
        if step == "ask":
            asked += 1
            effects = ids.init_producer_id(to(asked), PLAIN, T)
        elif ids.asking and step == "fail":
            effects = ids.step(Failed(BlockAsked(), Failure.CLOSED), T)
        elif ids.asking:
            length = 1 if step == "small" else 10
            effects = ids.step(Answered(BlockAsked(), block(next_id, length)), T)
            next_id += length
        effects += ids.expire(T)
        out += given_ids(effects)
        answered += len(errors(effects))
    assert len(out) == len(set(out))
    assert answered + len(ids.waiting) == asked


def test_ids_that_there_cannot_be_are_a_refusal() -> None:
    for hostile in (block((1 << 63) - 1, 1000), block(-1, 1000), block(0, -1), block(0, 0)):
        ids = ProducerIds(NodeId(3), lambda: 50)
        ids.init_producer_id(to(0), PLAIN, T)
        assert errors(ids.step(Answered(BlockAsked(), hostile), T)) == [E.COORDINATOR_LOAD_IN_PROGRESS]
        assert ids.deadline() == NEVER
