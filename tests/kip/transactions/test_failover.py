"""A transaction coordinator fails at every moment of a transaction, and another broker goes on (KIP-98).

The one that fails knows nothing afterwards, and the next one only what is committed. What was being written is lost, or
is there and was never answered. The producer asks again, as clients do.
"""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.txn.world import T0, T1, World, add_request, added, end_request, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.metadata.image import Delta
from strandline.txn.coordinator import Transactions
from strandline.txn.states import State

AGAIN = (E.CONCURRENT_TRANSACTIONS, E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS)
MOMENTS_MAX = 40


class Run:
    """One transaction. `fails_at`: the moment at which its coordinator fails; `survives`: what is being written then
    is there afterwards."""

    def __init__(self, fails_at: int, *, survives: bool, is_old: bool) -> None:
        self.w = World()
        self.fails_at = fails_at
        self.survives = survives
        self.is_old = is_old
        self.moments = 0
        self.failed_in: State | None = None

    def moment(self) -> None:
        self.moments += 1
        assert self.moments < MOMENTS_MAX, "it does not come to an end"
        if self.moments == self.fails_at:
            self.fail()

    def fail(self) -> None:
        w = self.w
        entries = w.transactions.shards.loaded[0].entries
        self.failed_in = next((entry.current.state for entry in entries.values() if entry.current), None)
        written = [batch for batch, _ in w.log.under_way]
        w.lead(None)
        w.log.batches += written * self.survives
        w.sent.clear()
        w.transactions = Transactions(w.config, w.log, w.ids)
        w.transactions.apply(w.image, Delta(), Instant(w.now))
        w.lead(LeaderEpoch(1))

    def step(self) -> bool:
        """One of the things that are under way ends well."""
        w = self.w
        if w.log.under_way:
            w.commit_one()
        elif w.sent:
            w.write_markers()
        else:
            return False
        self.moment()
        return True

    def ask(self, message: Any, version: int) -> Any:
        while True:
            number = self.w.send(message, version)
            self.moment()
            while number not in self.w.answers and self.step():
                pass
            answer = self.w.answers[number]
            if not set(errors_in(answer, version)) & set(AGAIN):
                assert set(errors_in(answer, version)) == {E.NONE}
                return answer
            self.step()

    def transact(self, *, commits: bool) -> tuple[int, int]:
        """By which id and epoch the producer goes on."""
        begun = self.ask(init_request(), 5)
        producer = begun.producer_id, begun.producer_epoch
        for at in (T0, T1):
            self.ask(add_request(producer, at, old=self.is_old), 3 if self.is_old else 5)
        ended = self.ask(end_request(producer, commits=commits), 4 if self.is_old else 5)
        while self.step():
            pass
        return producer if self.is_old else (ended.producer_id, ended.producer_epoch)


def errors_in(answer: Any, version: int) -> list[E]:
    if hasattr(answer, "error_code") and not hasattr(answer, "results_by_transaction"):
        return [E(answer.error_code)]
    return list(added(answer, old=version == 3).values())


@each(("commits", "is_old"), [(True, False), (False, False), (True, True), (False, True)])
def test_a_coordinator_that_fails_at_any_moment_leaves_one_decision_and_a_producer_that_goes_on(
    commits: bool, is_old: bool
) -> None:
    whole = Run(0, survives=True, is_old=is_old)
    whole.transact(commits=commits)
    failed_in = set()
    for fails_at in range(1, whole.moments + 1):
        for survives in (True, False):
            run = Run(fails_at, survives=survives, is_old=is_old)
            producer = run.transact(commits=commits)
            w = run.w
            failed_in.add(run.failed_in)
            assert w.current().state is (State.COMPLETE_COMMIT if commits else State.COMPLETE_ABORT)
            assert {row[0] for row in w.written} == {T0, T1}, "each partition has its marker"
            assert {row[3] for row in w.written} == {commits}, "nobody has decided otherwise"
            assert len({row[1:3] for row in w.written}) == 1, "of one transaction"
            assert set(w.add(producer, T0, old=is_old).values()) == {E.NONE}
    decided = State.PREPARE_COMMIT if commits else State.PREPARE_ABORT
    assert failed_in >= {None, State.EMPTY, State.ONGOING, decided}, "it failed in each state"


@pytest.mark.parametrize("survives", [True, False])
def test_a_transaction_that_times_out_is_aborted_by_the_next_coordinator(survives: bool) -> None:
    """Also if the first one was about to write its abort: then the next one goes on with that."""
    run = Run(0, survives=survives, is_old=False)
    w = run.w
    producer = w.begun(T0, T1)
    w.wait(80_000)
    assert len(w.log.under_way) == 1, "the abort is being written"
    run.fail()
    w.wait(80_000)
    w.run_until_idle()
    assert {row[:4] for row in w.written} == {(at, producer[0], producer[1] + 1, False) for at in (T0, T1)}
    assert w.end(producer, commits=True).error_code == E.INVALID_TXN_STATE


def test_who_takes_over_a_prepared_transaction_decides_it_at_the_next_coordinator() -> None:
    """KIP-939: the epoch by which a client may decide it is in the record, beside that of the transaction."""
    run = Run(0, survives=True, is_old=False)
    w = run.w
    producer = w.begun(T0)
    w.init(keep_prepared_txn=True)
    run.fail()
    taker = producer[0], producer[1] + 1
    assert w.end(producer).error_code == E.PRODUCER_FENCED
    assert w.end(taker).error_code == E.NONE
    w.run_until_idle()
    assert {row[3] for row in w.written} == {True}
