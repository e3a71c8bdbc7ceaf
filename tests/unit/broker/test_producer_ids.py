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
    ids = ProducerIds(NodeId(3))
    (question,) = ids.init_producer_id(to(0), PLAIN, 50, T)
    assert isinstance(question, ToController)
    assert (question.message.broker_id, question.message.broker_epoch) == (3, 50)
    assert given_ids(ids.step(Answered(question.token, block(1000, 2)), T)) == [1000]
    assert given_ids(ids.init_producer_id(to(1), PLAIN, 50, T)) == [1001]
    assert isinstance(ids.init_producer_id(to(2), PLAIN, 50, T)[0], ToController)


def test_only_one_block_is_asked_for_at_a_time_and_another_if_it_was_too_small() -> None:
    ids = ProducerIds(NodeId(3))
    (question,) = ids.init_producer_id(to(0), PLAIN, 50, T)
    assert ids.init_producer_id(to(1), PLAIN, 50, T) == []
    assert isinstance(question, ToController)
    assert given_ids(ids.step(Answered(question.token, block(0, 1)), T)) == [0]
    assert ids.deadline() == T
    assert isinstance(ids.expire(51, T)[0], ToController)


def test_without_a_controller_those_who_wait_are_told_to_try_again() -> None:
    ids = ProducerIds(NodeId(3))
    for event in (
        Failed(BlockAsked(), Failure.CLOSED),
        Answered(BlockAsked(), AllocateProducerIdsResponse(error_code=E.NOT_CONTROLLER)),
    ):
        ids.init_producer_id(to(0), PLAIN, 50, T)
        assert errors(ids.step(event, T)) == [E.COORDINATOR_LOAD_IN_PROGRESS]
        assert ids.deadline() == NEVER


def test_a_transactional_producer_fails_fast() -> None:
    ids = ProducerIds(NodeId(3))
    effects = ids.init_producer_id(to(0), InitProducerIdRequest(transactional_id="tx"), 50, T)
    assert errors(effects) == [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]


def test_no_more_than_a_bounded_number_waits() -> None:
    ids = ProducerIds(NodeId(3))
    for number in range(WAITING_MAX):
        ids.init_producer_id(to(number), PLAIN, 50, T)
    assert errors(ids.init_producer_id(to(WAITING_MAX), PLAIN, 50, T)) == [E.COORDINATOR_LOAD_IN_PROGRESS]


@given(st.lists(st.sampled_from(["ask", "ask", "small", "large", "fail"]), max_size=60))
def test_no_id_is_handed_out_twice(steps: list[str]) -> None:
    ids = ProducerIds(NodeId(3))
    out: list[int] = []
    asked = answered = next_id = 0
    for step in steps:
        effects: list[Effect] = []
        if step == "ask":
            asked += 1
            effects = ids.init_producer_id(to(asked), PLAIN, 50, T)
        elif ids.asking and step == "fail":
            effects = ids.step(Failed(BlockAsked(), Failure.CLOSED), T)
        elif ids.asking:
            length = 1 if step == "small" else 10
            effects = ids.step(Answered(BlockAsked(), block(next_id, length)), T)
            next_id += length
        effects += ids.expire(50, T)
        out += given_ids(effects)
        answered += len(errors(effects))
    assert len(out) == len(set(out))
    assert answered + len(ids.waiting) == asked


def test_ids_that_there_cannot_be_are_a_refusal() -> None:
    for hostile in (block((1 << 63) - 1, 1000), block(-1, 1000), block(0, -1), block(0, 0)):
        ids = ProducerIds(NodeId(3))
        ids.init_producer_id(to(0), PLAIN, 50, T)
        assert errors(ids.step(Answered(BlockAsked(), hostile), T)) == [E.COORDINATOR_LOAD_IN_PROGRESS]
        assert ids.deadline() == NEVER
