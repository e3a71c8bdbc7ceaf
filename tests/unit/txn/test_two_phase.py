"""Transactions that somebody else decides (KIP-939)."""

from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, World, add_request, added, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, NEVER_TIMES_OUT, Transaction

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def prepared(**changes: object) -> tuple[World, tuple[int, int]]:
    w = World(two_phase_commit_enable=True)
    if changes:
        rows = {"epoch": 3, "partitions": (T0, T1), "started_at": w.now, "version": 2, **changes}
        w.put(Transaction(ID, 7, timeout_ms=NEVER_TIMES_OUT, state=State.ONGOING, updated_at=Instant(5), **rows))  # type: ignore[arg-type]
        return w, w.current().client
    producer = w.start(enable2_pc=True)
    w.add(producer, T0, T1)
    return w, producer


def kept(w: World) -> tuple[tuple[int, int], tuple[int, int]]:
    """Who may decide now, and the transaction's own id and epoch."""
    answer = w.init(enable2_pc=True, keep_prepared_txn=True)
    assert answer.error_code == E.NONE
    ongoing = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
    return (answer.producer_id, answer.producer_epoch), ongoing


def test_a_two_phase_producer_has_no_timeout_whatever_it_asks_for() -> None:
    w = World(two_phase_commit_enable=True)
    assert w.init(enable2_pc=True, transaction_timeout_ms=0).error_code == E.NONE
    assert w.current().timeout_ms == NEVER_TIMES_OUT


def test_a_prepared_transaction_never_times_out_and_outlives_its_coordinator() -> None:
    w, producer = prepared()
    w.lead(1)
    w.now += 40 * DAY_MS  # more than its timeout says, which is a number that means none
    w.wait(20_000)
    assert w.current().state is State.ONGOING
    assert w.end(producer).error_code == E.NONE


def test_a_prepared_transaction_is_kept_for_who_asks_for_it_and_the_answer_names_it() -> None:
    w, producer = prepared()
    client, ongoing = kept(w)
    assert ongoing == producer, "what the database may know of"
    assert client == (producer[0], producer[1] + 1)
    assert w.current().state is State.ONGOING
    assert not w.sent


def test_without_a_transaction_there_is_none_to_keep() -> None:
    w = World(two_phase_commit_enable=True)
    assert kept(w) == ((100, 0), (-1, -1))
    assert kept(w) == ((100, 1), (-1, -1))


def test_a_producer_that_does_not_ask_to_keep_it_aborts_a_prepared_transaction() -> None:
    w, _ = prepared()
    number = w.send(init_request(enable2_pc=True))
    w.run_until_idle()
    assert {row[3] for row in w.written} == {False}
    assert w.answers[number].error_code == E.NONE


def test_each_client_that_takes_over_gets_the_next_epoch_and_the_transaction_keeps_its_own() -> None:
    w, producer = prepared()
    clients = [kept(w) for _ in range(3)]
    assert clients == [((producer[0], producer[1] + n), producer) for n in (1, 2, 3)]


def test_clients_before_can_neither_add_to_nor_decide_what_was_taken_over() -> None:
    w, producer = prepared()
    first, _ = kept(w)
    kept(w)
    for old in (producer, first):
        assert w.end(old).error_code == E.PRODUCER_FENCED
        assert w.add(old, T0) == {T0: E.PRODUCER_FENCED}
        assert w.add(old, T0, verify=True) == {T0: E.PRODUCER_FENCED}
    assert w.current().state is State.ONGOING


def test_who_has_taken_over_adds_nothing() -> None:
    w, _ = prepared()
    client, _ = kept(w)
    assert w.add(client, T0) == {T0: E.INVALID_TXN_STATE}


@each("commits", [True, False])
def test_who_has_taken_over_decides_and_goes_on(commits: bool) -> None:
    w, producer = prepared()
    client, _ = kept(w)
    w.lead(1)
    end = w.end(client, commits=commits)
    assert (end.error_code, end.producer_id, end.producer_epoch) == (E.NONE, client[0], client[1] + 1)
    w.run_until_idle()
    assert {row[1] for row in w.written} == {producer[0]}
    assert all(row[2] > producer[1] and row[3] is commits for row in w.written)
    again = w.end(client, commits=commits)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, client[0], client[1] + 1)
    assert w.add((client[0], client[1] + 1), T0) == {T0: E.NONE}


@each("epoch", [EPOCH_LAST, EPOCH_LAST - 1])
def test_when_epochs_are_exhausted_who_takes_over_gets_another_id(epoch: int) -> None:
    w, producer = prepared(epoch=epoch)
    takers = [kept(w) for _ in range(3)]
    assert [ongoing for _, ongoing in takers] == [producer] * 3
    first = [(7, EPOCH_LAST)] if epoch < EPOCH_LAST else []
    assert [client for client, _ in takers] == [*first, (100, 0), (100, 1), (100, 2)][:3]
    client = takers[-1][0]
    end = w.end(client)
    following = client[0], client[1] + 1
    assert (end.error_code, end.producer_id, end.producer_epoch) == (E.NONE, *following)
    assert w.end(client).error_code == E.CONCURRENT_TRANSACTIONS
    assert w.end(client, commits=False).error_code == E.INVALID_TXN_STATE
    waiting = w.send(add_request(following, T0, old=False), 5)
    w.run_until_idle()
    assert {row[1:4] for row in w.written} == {(7, epoch + 1, True)}
    assert added(w.answers[waiting]) == {T0: E.NONE}


def test_an_end_that_is_sent_again_by_who_got_another_id_gets_the_same_answer() -> None:
    w, _ = prepared(epoch=EPOCH_LAST)
    client, _ = kept(w)
    w.end(client)
    w.run_until_idle()
    w.lead(5)
    again = w.end(client)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, client[0], client[1] + 1)


def test_an_end_may_need_three_producer_ids() -> None:
    """The transaction's, the last of those that have taken over, and the one by which that goes on."""
    w, _ = prepared(next_producer_id=50, next_epoch=EPOCH_LAST)
    ends = [w.end((50, EPOCH_LAST))]
    assert w.end((50, EPOCH_LAST)).error_code == E.CONCURRENT_TRANSACTIONS
    w.run_until_idle()
    ends.append(w.end((50, EPOCH_LAST)))
    assert [(end.error_code, end.producer_id, end.producer_epoch) for end in ends] == [(E.NONE, 100, 0)] * 2
    assert {row[1:4] for row in w.written} == {(7, 4, True)}


def test_a_transaction_with_a_timeout_may_be_kept_and_has_it_still() -> None:
    w = World()
    producer = w.begun(T0)
    answer = w.init(keep_prepared_txn=True)
    assert answer.ongoing_txn_producer_epoch == producer[1]
    w.wait(80_000)
    w.run_until_idle()
    assert {row[3] for row in w.written} == {False}
    assert w.current().state is State.COMPLETE_ABORT


def test_a_take_over_that_is_not_written_fences_nobody() -> None:
    w, producer = prepared()
    number = w.send(init_request(enable2_pc=True, keep_prepared_txn=True))
    w.fail(E.NOT_ENOUGH_REPLICAS)
    assert w.answers[number].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert w.end(producer).error_code == E.NONE


def test_a_client_may_say_when_what_it_prepares_is_given_up_and_no_configuration_limits_that() -> None:
    w = World(two_phase_commit_enable=True)
    producer = w.start(enable2_pc=True, two_phase_timeout_ms=HOUR_MS)
    w.add(producer, T0)
    w.wait(HOUR_MS - 20_000)
    assert w.current().state is State.ONGOING
    w.wait(40_000)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_ABORT
    assert w.end(producer).error_code == E.INVALID_TXN_STATE, "whoever commits it later is told"


def test_who_takes_over_says_anew_when_it_is_given_up_or_leaves_it_as_it_is() -> None:
    w = World(two_phase_commit_enable=True)
    w.add(w.start(enable2_pc=True, two_phase_timeout_ms=60_000), T0)
    kept(w)
    assert w.current().timeout_ms == 60_000
    assert w.init(enable2_pc=True, keep_prepared_txn=True, two_phase_timeout_ms=DAY_MS).error_code == E.NONE
    assert w.current().timeout_ms == DAY_MS
    w.wait(120_000)
    assert w.current().state is State.ONGOING


def test_a_timeout_that_is_negative_is_refused_and_one_without_two_phases_is_ignored() -> None:
    w = World(two_phase_commit_enable=True)
    assert w.init(enable2_pc=True, two_phase_timeout_ms=-1).error_code == E.INVALID_TRANSACTION_TIMEOUT
    assert w.init(two_phase_timeout_ms=DAY_MS, transaction_timeout_ms=1_000).error_code == E.NONE
    assert w.current().timeout_ms == 1_000
