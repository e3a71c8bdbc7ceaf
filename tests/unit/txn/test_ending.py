"""EndTxn: one decision, which nothing changes (KIP-98, KIP-890)."""

from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, World, end_request, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, Transaction


def verdict(w: World, producer: tuple[int, int], *, commits: bool, version: int = 5) -> E:
    return E(w.end(producer, commits=commits, version=version).error_code)


@each(("commits", "version"), [(True, 5), (False, 5), (True, 4), (False, 4)])
def test_an_end_is_answered_when_it_is_committed_and_markers_follow(commits: bool, version: int) -> None:
    w = World()
    producer = w.begun(T0, T1, old=version < 5)
    number = w.send(end_request(producer, commits=commits), version)
    assert number not in w.answers, "nothing proves it yet"
    assert not w.sent, "no marker without a decision"
    w.commit()
    assert w.answers[number].error_code == E.NONE
    assert w.current().state is (State.PREPARE_COMMIT if commits else State.PREPARE_ABORT)
    w.run_until_idle()
    assert w.current().state is (State.COMPLETE_COMMIT if commits else State.COMPLETE_ABORT)
    assert w.current().partitions == ()
    epoch = producer[1] + (version == 5)
    assert sorted(w.written) == [(at, producer[0], epoch, commits, 0) for at in (T0, T1)]


def test_an_end_that_is_not_written_leaves_the_transaction_open() -> None:
    w = World()
    producer = w.begun()
    number = w.send(end_request(producer))
    w.fail(E.NOT_ENOUGH_REPLICAS)
    assert w.answers[number].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert w.current().state is State.ONGOING
    assert not w.sent
    assert verdict(w, producer, commits=False) == E.NONE, "nothing was decided"


def test_each_end_of_version_2_takes_the_next_epoch_and_tells_the_producer() -> None:
    w = World()
    producer = w.begun()
    end = w.end(producer)
    assert (end.producer_id, end.producer_epoch) == (producer[0], producer[1] + 1)
    w.run_until_idle()
    assert w.current().client == (producer[0], producer[1] + 1)


def test_ends_of_older_clients_take_no_epoch() -> None:
    w = World()
    producer = w.begun(old=True)
    w.end(producer, version=4)
    w.run_until_idle()
    assert w.current().client == producer


def test_an_end_whose_record_is_under_way_is_not_answered_twice() -> None:
    w = World()
    producer = w.begun()
    w.send(end_request(producer))
    assert verdict(w, producer, commits=False) == E.CONCURRENT_TRANSACTIONS
    assert w.current().state is State.PREPARE_COMMIT


# What an end gets that is sent when there is nothing open, as Kafka's table says it.
TABLE = [
    # before, commits, retry?, error, bumps
    ("empty", False, True, E.PRODUCER_FENCED, False),
    ("empty", False, False, E.NONE, True),
    ("empty", True, True, E.PRODUCER_FENCED, False),
    ("empty", True, False, E.INVALID_TXN_STATE, False),
    ("aborted", False, True, E.NONE, False),
    ("aborted", False, False, E.NONE, True),
    ("aborted", True, True, E.INVALID_TXN_STATE, False),
    ("aborted", True, False, E.INVALID_TXN_STATE, False),
    ("committed", False, True, E.INVALID_TXN_STATE, False),
    ("committed", False, False, E.NONE, True),
    ("committed", True, True, E.NONE, False),
    ("committed", True, False, E.INVALID_TXN_STATE, False),
]


@each(("before", "commits", "is_retry", "error", "bumps"), TABLE)
def test_an_end_of_nothing_open(before: str, commits: bool, is_retry: bool, error: E, bumps: bool) -> None:
    w = World()
    w.start()
    w.start()
    if before != "empty":
        producer = w.begun()
        w.end(producer, commits=before == "committed")
        w.run_until_idle()
    producer_id, epoch = w.current().client
    end = w.end((producer_id, epoch - is_retry), commits=commits)
    assert end.error_code == error
    if error is E.NONE:
        assert (end.producer_id, end.producer_epoch) == (producer_id, epoch + bumps)
    w.run_until_idle()
    assert w.current().client == (producer_id, epoch + bumps)


@each("commits", [True, False])
def test_an_end_that_is_sent_again_while_markers_are_written_waits_and_its_opposite_is_refused(commits: bool) -> None:
    w = World()
    producer = w.begun()
    w.end(producer, commits=commits)
    assert verdict(w, producer, commits=commits) == E.CONCURRENT_TRANSACTIONS
    assert verdict(w, producer, commits=not commits) == E.INVALID_TXN_STATE
    assert verdict(w, w.current().client, commits=commits) == E.CONCURRENT_TRANSACTIONS, "of the next transaction"
    w.run_until_idle()
    assert {row[3] for row in w.written} == {commits}


@each("commits", [True, False])
def test_an_older_client_gets_the_same_answer_again(commits: bool) -> None:
    w = World()
    producer = w.begun(old=True)
    assert verdict(w, producer, commits=commits, version=4) == E.NONE
    assert verdict(w, producer, commits=commits, version=4) == E.CONCURRENT_TRANSACTIONS
    assert verdict(w, producer, commits=not commits, version=4) == E.INVALID_TXN_STATE
    w.run_until_idle()
    assert verdict(w, producer, commits=commits, version=4) == E.NONE
    assert verdict(w, producer, commits=not commits, version=4) == E.INVALID_TXN_STATE


def test_a_coordinator_of_the_past_does_not_confirm_an_end_to_an_older_client() -> None:
    """All transactions of an older client have one epoch. If another broker coordinates the id by now, the end may be
    that of a later transaction than the one that is complete here."""
    w = World()
    producer = w.begun(T0, old=True)
    assert verdict(w, producer, commits=True, version=4) is E.NONE
    w.run_until_idle()
    complete = w.current()
    number = w.send(end_request(producer), 4)
    assert number not in w.answers, "nothing proves that this broker coordinates the id still"
    w.fail(E.NOT_LEADER_OR_FOLLOWER)
    assert w.answers[number].error_code == E.NOT_COORDINATOR
    assert verdict(w, producer, commits=True, version=4) is E.NONE
    assert w.current() == complete
    assert not w.sent, "it is not decided again"


def test_an_older_client_ends_nothing_that_it_has_not_begun() -> None:
    w = World()
    producer = w.start()
    assert verdict(w, producer, commits=True, version=4) == E.INVALID_TXN_STATE
    assert verdict(w, producer, commits=False, version=4) == E.INVALID_TXN_STATE


@each(
    ("named", "version", "error"),
    [
        ((100, 0), 5, E.PRODUCER_FENCED),
        ((100, 2), 5, E.PRODUCER_FENCED),
        ((100, 0), 4, E.PRODUCER_FENCED),
        ((100, 2), 4, E.PRODUCER_FENCED),
        ((100, 0), 1, E.INVALID_PRODUCER_EPOCH),
        ((99, 1), 5, E.INVALID_PRODUCER_ID_MAPPING),
        ((99, 1), 4, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_only_the_present_producer_ends_a_transaction(named: tuple[int, int], version: int, error: E) -> None:
    w = World()
    w.start()
    w.begun()
    assert verdict(w, named, commits=True, version=version) == error
    assert w.current().state is State.ONGOING


def test_nobody_ends_a_transaction_of_an_id_that_was_not_initialized() -> None:
    w = World()
    assert verdict(w, (100, 0), commits=True) == E.INVALID_PRODUCER_ID_MAPPING
    request = end_request((100, 0))
    assert w.ask(type(request)(transactional_id="")).error_code == E.INVALID_REQUEST


# --- KAFKA-17754: an end that is late


def test_a_late_commit_does_not_commit_the_next_transaction() -> None:
    w = World()
    first = w.begun(T0)
    end = w.end(first)
    w.run_until_idle()
    second = end.producer_id, end.producer_epoch
    w.add(second, T1)
    assert verdict(w, first, commits=True) == E.PRODUCER_FENCED
    assert w.current().state is State.ONGOING
    w.end(second, commits=False)
    w.run_until_idle()
    assert verdict(w, first, commits=True) == E.PRODUCER_FENCED
    assert [row[3] for row in w.written if row[0] == T1] == [False]


def test_a_producer_that_was_fenced_is_not_told_that_it_has_committed() -> None:
    """Its epoch is the one before, but the end was another producer's, which took none."""
    w = World()
    zombie = w.begun(T0, old=True)
    w.send(init_request())
    w.run_until_idle()
    newer = w.current().client
    w.add(newer, T1, old=True)
    assert verdict(w, newer, commits=True, version=4) == E.NONE
    w.run_until_idle()
    assert verdict(w, (newer[0], newer[1] - 1), commits=True) == E.PRODUCER_FENCED
    assert verdict(w, zombie, commits=True) == E.PRODUCER_FENCED


# --- exhausted epochs


def exhausted(state: State = State.ONGOING, **changes: object) -> Transaction:
    rows = {"partitions": (T0,), "started_at": 1_000_000, "version": 2, **changes}
    return Transaction(ID, 7, EPOCH_LAST, 60_000, state, Instant(5), **rows)  # type: ignore[arg-type]


def test_the_end_with_the_last_epoch_gives_the_producer_another_id() -> None:
    w = World()
    w.put(exhausted())
    first = w.end((7, EPOCH_LAST))
    assert (first.error_code, first.producer_id, first.producer_epoch) == (E.NONE, 100, 0)
    assert verdict(w, (7, EPOCH_LAST), commits=True) == E.CONCURRENT_TRANSACTIONS
    w.run_until_idle()
    assert {row[1:4] for row in w.written} == {(7, EPOCH_LAST + 1, True)}
    again = w.end((7, EPOCH_LAST))
    assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, 100, 0)
    assert verdict(w, (7, EPOCH_LAST), commits=False) == E.INVALID_TXN_STATE
    assert set(w.add((100, 0), T1).values()) == {E.NONE}
    assert verdict(w, (7, EPOCH_LAST), commits=True) == E.INVALID_PRODUCER_ID_MAPPING


def test_an_end_that_gets_no_producer_id_decides_nothing() -> None:
    w = World()
    w.put(exhausted())
    w.ids.is_held = True
    number = w.send(end_request((7, EPOCH_LAST)))
    assert w.current().state is State.ONGOING
    w.take(w.ids.waiting.pop()(E.COORDINATOR_LOAD_IN_PROGRESS, Instant(w.now)))
    assert w.answers[number].error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    assert w.current().state is State.ONGOING


def test_two_ends_that_wait_for_a_producer_id_decide_once() -> None:
    w = World()
    w.put(exhausted())
    w.ids.is_held = True
    commit = w.send(end_request((7, EPOCH_LAST)))
    abort = w.send(end_request((7, EPOCH_LAST), commits=False))
    for at, done in enumerate(w.ids.waiting):
        w.take(done(200 + at, Instant(w.now)))
    w.ids.is_held = False
    w.run_until_idle()
    assert w.answers[commit].error_code == E.NONE
    assert w.answers[abort].error_code == E.CONCURRENT_TRANSACTIONS
    assert {row[3] for row in w.written} == {True}


def test_a_fenced_producer_of_an_exhausted_id_is_not_told_that_it_has_committed() -> None:
    w = World()
    w.put(exhausted(State.EMPTY, partitions=(), started_at=-1))
    newer = w.start()
    assert newer == (100, 0)
    w.add(newer, T1, old=True)
    w.end(newer, version=4)
    w.run_until_idle()
    assert verdict(w, (7, EPOCH_LAST), commits=True) == E.INVALID_PRODUCER_ID_MAPPING
