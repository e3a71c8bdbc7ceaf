"""Transactions that another system decides (KIP-939): prepared here, decided there, and ended by whoever comes then.

The other system is this object: it keeps the producer id and epoch that were prepared, and the decision. The client may
be gone for longer than any timeout. The one that comes takes the transaction over (keepPreparedTxn), compares it with
what is kept, and ends it as was decided. A transaction that is prepared must be there until then: nobody else ends it.

Each InitProducerId keeps what is open, also the first one: one that comes late may fence, and must not abort.
"""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import TRANSACTION_TOPIC, TopicPartition
from strandline.history.operation import Outcome
from strandline.sim.clients.client import Life, Stage
from strandline.sim.clients.transactions.transactional import Transactional
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest

E = ErrorCode
AWAY_MS = (200, 5000)
KEEPS = 6  # the version of InitProducerId that knows of it
Prepared = tuple[int, int]  # producer id and epoch
NOTHING: Prepared = (-1, -1)


class TwoPhase(Transactional):
    def __init__(self, stage: Stage, name: str, ats: Sequence[TopicPartition], *, pace_ms: int = 30) -> None:
        super().__init__(stage, name, f"t-{name}", ats, timeout_ms=600, pace_ms=pace_ms)

    def live(self) -> Life:
        while not self.is_stopped:
            if not self.is_fit:
                yield from self.begin_anew()
            else:
                yield from self.transact()
            yield self.pause(0, 2 * self.pace_ms)
        while not self.is_fit:
            yield from self.begin_anew()

    def begin_anew(self) -> Life:
        """What is open was not prepared, and is aborted."""
        found = yield from self.take_over()
        if found not in (None, NOTHING):
            error, _ = yield from self.end(commits=False)
            self.is_fit = error is E.NONE

    def take_over(self) -> Generator[Any, Any, Prepared | None]:
        """The transaction that is open. None: it was refused."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
            enable2_pc=True,
            keep_prepared_txn=True,
        )
        error, answer, _ = yield from self.ask(request, KEEPS, lambda answer: E(answer.error_code))
        if error is not E.NONE:
            self.report(f"gets no producer id: {error.name}")
            yield self.pause(20, 100)
            return None
        self.is_fit = True
        self.become(answer.producer_id, answer.producer_epoch)
        return answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch

    def transact(self) -> Life:
        began = self.begin()
        chosen = self.rng.sample(self.ats, self.rng.randrange(1, len(self.ats) + 1))
        error = yield from self.write(chosen, began)
        if not self.sent_batches:
            return
        if error is not E.NONE:
            self.note(began, Outcome.FAIL, error)
            self.is_fit = False
            return
        outcome = yield from self.decided((self.producer_id, self.epoch), commits=self.rng.randrange(5) > 0)
        self.note(began, outcome, E.NONE)
        self.acked += outcome is Outcome.OK

    def decided(self, prepared: Prepared, *, commits: bool) -> Generator[Any, Any, Outcome]:
        """Until it is ended so."""
        done = Outcome.OK if commits else Outcome.FAIL
        was_asked = False
        yield from self.may_be_gone(2)
        while True:
            if not self.is_fit:
                found = yield from self.take_over()
                if found is None:
                    continue
                if found != prepared:
                    assert was_asked or self.stage.is_exceeded(TRANSACTION_TOPIC), (
                        f"{self.name} has prepared {prepared}, nobody has ended it, and {found} is open"
                    )
                    return Outcome.UNKNOWN if commits else Outcome.FAIL
                yield from self.may_be_gone(4)
                if not self.is_fit:
                    continue
            error, is_doubtful = yield from self.end(commits=commits)
            if error is E.NONE:
                return done
            was_asked |= is_doubtful
            self.report(f"may not end {prepared}: {error.name}")
            self.is_fit = False  # fenced by a request of its own that came late

    def may_be_gone(self, one_in: int) -> Life:
        if self.rng.randrange(one_in) == 0:
            self.report("is gone, and what it has prepared stays")
            yield self.pause(*AWAY_MS)
            self.is_fit = False
