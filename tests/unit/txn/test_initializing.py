"""InitProducerId with a transactional id (KIP-98, KIP-360, KIP-890)."""

from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, World, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, Transaction

NOBODY_YET = -1, -1


def saved(epoch: int, state: State = State.EMPTY, producer_id: int = 7, **changes: object) -> Transaction:
    return Transaction(ID, producer_id, epoch, 60_000, state, Instant(5), **changes)  # type: ignore[arg-type]


def test_a_new_id_gets_a_producer_id_and_epoch_0_when_that_is_committed() -> None:
    w = World()
    number = w.send(init_request())
    assert number not in w.answers, "nothing proves it yet"
    w.commit()
    answer = w.answers[number]
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (E.NONE, 100, 0)
    assert w.current().state is State.EMPTY


def test_each_further_producer_gets_the_same_id_and_the_next_epoch() -> None:
    w = World()
    assert [w.start() for _ in range(3)] == [(100, 0), (100, 1), (100, 2)]


def test_two_producers_that_begin_a_new_id_at_once_get_different_epochs() -> None:
    w = World()
    w.ids.is_held = True
    first, second = w.send(init_request()), w.send(init_request())
    for at, done in enumerate(w.ids.waiting):
        w.take(done(100 + at, Instant(w.now)))
    w.commit()
    assert [(w.answers[n].producer_id, w.answers[n].producer_epoch) for n in (first, second)] == [(100, 0), (100, 1)]


def test_a_first_record_that_is_not_written_leaves_nothing() -> None:
    w = World()
    number = w.send(init_request())
    w.fail(E.NOT_ENOUGH_REPLICAS)
    assert w.answers[number].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert ID not in w.transactions.shards.loaded[0].entries
    assert w.start() == (101, 0)


@each(
    ("changes", "error"),
    [
        ({"name": ""}, E.INVALID_REQUEST),
        ({"producer": (5, -1)}, E.INVALID_REQUEST),
        ({"producer": (-1, 5)}, E.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, E.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, E.INVALID_TRANSACTION_TIMEOUT),
        ({"enable2_pc": True}, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_requests_that_make_no_sense_are_refused(changes: dict[str, object], error: E) -> None:
    assert World().ask(init_request(**changes)).error_code == error  # type: ignore[arg-type]


def test_the_longest_timeout_is_allowed() -> None:
    w = World()
    w.start(transaction_timeout_ms=900_000)
    assert w.current().timeout_ms == 900_000


def test_a_new_producer_aborts_the_open_transaction_and_gets_an_epoch_above_that_of_the_abort() -> None:
    w = World()
    old = w.begun()
    number = w.send(init_request())
    w.run_until_idle()
    assert {row[1:4] for row in w.written} == {(old[0], old[1] + 1, False)}
    assert w.answers[number].producer_epoch == old[1] + 2
    assert set(w.add(old, T0).values()) == {E.PRODUCER_FENCED}


def test_while_a_transaction_is_being_completed_a_new_producer_is_asked_to_come_again() -> None:
    w = World()
    w.end(w.begun())
    for version in (0, 6):
        number = w.send(init_request(), version)
        w.wait(999)
        assert number not in w.answers
        w.wait(1)
        assert w.answers[number].error_code == E.CONCURRENT_TRANSACTIONS
    assert w.current().state is State.PREPARE_COMMIT, "a decision is not changed"


def test_who_waits_is_served_when_the_transaction_is_complete() -> None:
    w = World()
    producer = w.begun()
    w.end(producer)
    number = w.send(init_request())
    w.run_until_idle()
    assert w.answers[number].error_code == E.NONE
    assert w.answers[number].producer_epoch == producer[1] + 2


def test_of_one_id_only_a_thousand_requests_wait() -> None:
    w = World()
    w.end(w.begun())
    numbers = [w.send(init_request()) for _ in range(1001)]
    assert [number in w.answers for number in numbers] == [False] * 1000 + [True]
    w.wait(1000)
    assert not w.unanswered()
    again = w.send(init_request())
    assert again not in w.answers, "those who were answered wait no more"


# --- KIP-360


def test_a_producer_that_names_its_id_and_epoch_gets_the_next_epoch() -> None:
    w = World()
    producer = w.start()
    answer = w.init(producer)
    assert (answer.producer_id, answer.producer_epoch) == (producer[0], producer[1] + 1)


def test_a_bump_that_is_sent_again_gets_the_same_epoch() -> None:
    w = World()
    producer = w.start()
    first, second = w.init(producer), w.init(producer)
    assert second.error_code == E.NONE
    assert first.producer_epoch == second.producer_epoch == 1


def test_a_producer_that_was_followed_by_another_is_fenced() -> None:
    w = World()
    zombie = w.start()
    w.start()
    assert w.init(zombie).error_code == E.PRODUCER_FENCED
    assert w.init(zombie, version=3).error_code == E.INVALID_PRODUCER_EPOCH, "what it knows"
    assert w.init((555, 0)).error_code == E.PRODUCER_FENCED
    assert w.current().epoch == 1


def test_a_late_bump_does_not_abort_the_transaction_of_its_own_producer() -> None:
    w = World()
    old = w.start()
    answer = w.init(old)
    w.add((answer.producer_id, answer.producer_epoch), T0)
    assert w.init(old).error_code == E.PRODUCER_FENCED
    assert w.current().state is State.ONGOING


def test_an_id_that_was_forgotten_gets_another_producer_id_whatever_its_producer_names() -> None:
    w = World()
    assert w.init((55, 3)).producer_id == 100


def test_a_producer_that_bumps_within_its_transaction_has_it_aborted_and_goes_on() -> None:
    w = World()
    producer = w.begun()
    number = w.send(init_request(producer))
    w.run_until_idle()
    assert w.answers[number].error_code == E.NONE
    assert (w.answers[number].producer_id, w.answers[number].producer_epoch) == (producer[0], producer[1] + 1)
    assert w.current().state is State.COMPLETE_ABORT


def test_a_producer_that_was_fenced_by_a_timeout_of_transaction_version_1_does_not_go_on() -> None:
    w = World(feature=1)
    producer = w.begun(old=True)
    w.wait(80_000)
    w.run_until_idle()
    assert w.current().epoch == producer[1] + 1
    assert w.init(producer).error_code == E.PRODUCER_FENCED


# --- exhausted epochs


def test_when_epochs_are_exhausted_a_producer_gets_another_id_and_epoch_0() -> None:
    w = World()
    w.put(saved(EPOCH_LAST - 1))
    assert w.start() == (7, EPOCH_LAST)
    assert w.start() == (100, 0)
    assert w.current().previous_producer_id == 7


def test_a_bump_of_the_last_epoch_that_is_sent_again_gets_the_same_new_id() -> None:
    w = World()
    w.put(saved(EPOCH_LAST))
    answers = [w.init((7, EPOCH_LAST)) for _ in range(2)]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in answers] == [(E.NONE, 100, 0)] * 2


def test_a_producer_with_the_last_epoch_is_fenced_by_another_one_that_got_a_new_id() -> None:
    """Both would call themselves by the same id and epoch."""
    w = World()
    w.put(saved(EPOCH_LAST))
    assert w.start() == (100, 0)
    assert w.init((7, EPOCH_LAST)).error_code == E.PRODUCER_FENCED


def test_an_open_transaction_of_the_last_epoch_is_aborted_with_the_one_that_no_producer_has() -> None:
    w = World()
    w.put(saved(EPOCH_LAST, State.ONGOING, partitions=(T0, T1), started_at=w_now(), version=2))
    number = w.send(init_request())
    assert w.answers.get(number) is None or w.answers[number].error_code == E.CONCURRENT_TRANSACTIONS
    w.run_until_idle()
    assert {row[1:4] for row in w.written} == {(7, EPOCH_LAST + 1, False)}
    assert w.init().producer_id == w.current().producer_id != 7


def test_if_no_producer_id_can_be_had_the_error_is_passed_on() -> None:
    w = World()
    w.ids.is_held = True
    number = w.send(init_request())
    w.take(w.ids.waiting.pop()(E.COORDINATOR_LOAD_IN_PROGRESS, Instant(w.now)))
    assert w.answers[number].error_code == E.COORDINATOR_LOAD_IN_PROGRESS


def w_now() -> int:
    return 1_000_000
