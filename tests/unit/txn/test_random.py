"""Two clients of one transactional id in any order, with requests that are repeated or late, failures and failovers.

What is held against the laws is the log of `__transaction_state`, the markers and the answers.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.txn.world import ID, T0, T1, U0, World, add_request, end_request, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import TopicPartition
from strandline.base.time import Instant
from strandline.txn.ending import is_before_end
from strandline.txn.states import COMPLETE, DECIDED, TRANSITIONS, State
from strandline.txn.transaction import EPOCH_LAST, Transaction, restored
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.messages.transactions.transaction_records import decode_value
from strandline.wire.record import all_records

ALL = (T0, T1, U0)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (  # often what brings a run on
                *("init", "bump", "keep", "verify", "late", "failed", "lost", "wait", "fail over", "gone", "upgrade"),
                *("move", "refused", "refused", "again", "again", "abort", "abort", "written", "marked", "marked"),
                *(("add",) * 8 + ("commit",) * 4 + ("all written",) * 10),
            )
        ),
        st.integers(0, 7),
    ),
    min_size=40,  # a list is about twice as long as it must be
    max_size=100,
)


class Run:
    """`owners`: which client has an id and epoch. A client calls itself by what it was given last, and repeats what it
    has sent."""

    def __init__(self, w: World) -> None:
        self.w = w
        self.producers: dict[int, tuple[int, int]] = {}
        self.is_new = {0: True, 1: True}
        self.owners: dict[tuple[int, int], int] = {}
        self.senders: dict[int, int] = {}
        self.versions: dict[int, int] = {}
        self.seen: set[int] = set()
        self.seen_markers = 0
        self.marked: set[tuple[TopicPartition, int, int]] = set()
        self.checked = 0
        self.history: list[Transaction] = []
        self.known_ids: set[int] = set()

    def send(self, client: int, request: Any, version: int) -> None:
        number = len(self.w.asked)
        self.senders[number], self.versions[number] = client, version
        self.w.send(request, version)
        self.look()

    # --- the laws

    def look(self) -> None:
        self.read_log()
        self.read_markers()
        for number in sorted(self.w.answers.keys() - self.seen):
            self.seen.add(number)
            self.heard(self.senders[number], self.w.asked[number], self.versions[number], self.w.answers[number])

    def read_log(self) -> None:
        for batch in self.w.log.batches[self.checked :]:
            for record in all_records(batch):
                value = decode_value(record.value)
                assert value is not None
                self.follows(restored(ID, value))
        self.checked = len(self.w.log.batches)

    def follows(self, after: Transaction) -> None:
        if self.history:
            before = self.history[-1]
            assert after == before or after.state in TRANSITIONS[before.state], "a decision is not changed"
            if after.producer_id == before.producer_id:
                assert after.epoch >= before.epoch, "epochs never move back"
            else:
                assert after.producer_id not in self.known_ids, "an id is given out once"
                assert before.state is not State.ONGOING
            if before.state is State.ONGOING:
                assert set(before.partitions) <= set(after.partitions), "a partition is forgotten"
            if after.state in COMPLETE and after != before:
                missing = {(at, before.producer_id, before.epoch) for at in before.partitions} - self.marked
                assert not missing, "complete without its markers"
        if after.state in DECIDED:
            self.marked = {row for row in self.marked if row[1:] != (after.producer_id, after.epoch)}
        self.known_ids.add(after.producer_id)
        self.history.append(after)

    def read_markers(self) -> None:
        for at, producer_id, epoch, commits, _ in self.w.written[self.seen_markers :]:
            decision = next(t for t in reversed(self.history) if t.state in DECIDED)
            assert (decision.producer_id, decision.epoch) == (producer_id, epoch), "a marker without a decision"
            assert decision.commits is commits and at in decision.partitions
            self.marked.add((at, producer_id, epoch))
        self.seen_markers = len(self.w.written)

    def heard(self, client: int, request: Any, version: int, answer: Any) -> None:
        match request:
            case InitProducerIdRequest() if answer.error_code == E.NONE:
                self.given(client, (answer.producer_id, answer.producer_epoch))
            case EndTxnRequest() if answer.error_code == E.NONE:
                named = request.producer_id, request.producer_epoch
                assert any(self.is_end(t, named, version, request.committed) for t in self.history), "nobody decided it"
                if version >= 5:
                    self.given(client, (answer.producer_id, answer.producer_epoch))
            case AddPartitionsToTxnRequest() if version == 3:
                rows = answer.results_by_topic_v3_and_below
                self.has_added(request.v3_and_below_producer_epoch, rows)
            case AddPartitionsToTxnRequest() if not request.transactions[0].verify_only:
                rows = answer.results_by_transaction[0].topic_results
                self.has_added(request.transactions[0].producer_epoch, rows)
            case _:
                pass

    def is_end(self, decided: Transaction, named: tuple[int, int], version: int, commits: bool) -> bool:
        if decided.state not in DECIDED or decided.commits is not commits:
            return False
        # What was taken over gets an epoch of its own whatever its client's version is.
        is_taken_over = version < 5 and is_before_end(replace(decided, version=2), named)
        is_same = version < 5 and (decided.producer_id, decided.epoch) == named
        return is_same or is_taken_over or is_before_end(decided, named)

    def has_added(self, epoch: int, topics: Any) -> None:
        """An answer says what was committed."""
        for topic in topics:
            for row in topic.results_by_partition:
                at = TopicPartition(topic.name, row.partition_index)
                if row.partition_error_code == E.NONE:
                    assert any(t.state is State.ONGOING and at in t.partitions for t in self.history)

    def given(self, client: int, producer: tuple[int, int]) -> None:
        assert self.owners.setdefault(producer, client) == client, "two clients with one id and epoch"
        self.producers[client] = max(producer, self.producers.get(client, producer))

    # --- what happens

    def step(self, what: str, choice: int) -> None:
        w, client = self.w, choice % 2
        producer = self.producers.get(client, (-1, -1))
        is_new = self.is_new[client]
        match what:
            case "init":
                self.send(client, init_request(), 6)
            case "bump":
                self.send(client, init_request(producer), 6)
            case "keep":
                self.send(client, init_request(keep_prepared_txn=True, enable2_pc=choice > 3), 6)
            case "add" if producer[0] >= 0:
                self.send(client, add_request(producer, ALL[choice % 3], old=not is_new), 5 if is_new else 3)
            case "verify" if producer[0] >= 0:
                self.send(client, add_request(producer, ALL[choice % 3], old=False, verify=True), 5)
            case "commit" | "abort" if producer[0] >= 0:
                self.send(client, end_request(producer, commits=what == "commit"), 5 if is_new else 4)
            case "again" | "late" if w.asked:
                number = len(w.asked) - 1 - choice if what == "again" else choice
                number = max(0, min(number, len(w.asked) - 1))
                self.send(self.senders[number], w.asked[number], self.versions[number])
            case "upgrade":
                self.is_new[client] = not is_new
            case _:
                self.environment(what, choice)

    def environment(self, what: str, choice: int) -> None:
        w = self.w
        match what:
            case "written" if w.log.under_way:
                w.commit_one()
            case "all written":
                while w.log.under_way:
                    w.commit_one()
                    self.look()
            case "failed" if w.log.under_way:
                w.fail(E.NOT_ENOUGH_REPLICAS)
            case "marked" if w.sent:
                w.write_markers(at=choice % len(w.sent))
            case "refused" if w.sent:
                w.write_markers(E.NOT_LEADER_OR_FOLLOWER, of=ALL[choice % 3])
            case "lost" if w.sent:
                if choice % 2:
                    self.write_without_answer()
                w.lose_request()
            case "move":
                w.move(ALL[choice % 3], choice // 3 if choice // 3 else -1)
            case "wait":
                w.wait((1, 30, 100, 1_000, 5_000, 20_000, 40_000, 70_000)[choice])
            case "fail over" | "gone":
                survive = w.log.under_way[: choice % 3]
                w.log.batches += [batch for batch, _ in survive]
                self.read_log()
                epoch = (w.log.epoch if w.log.epoch is not None else self.last_epoch) + 1
                self.last_epoch = epoch
                if what == "gone":
                    w.lead(None)
                w.lead(epoch)

    last_epoch = 1

    def write_without_answer(self) -> None:
        """Only what is decided now: an older coordinator's markers are late, and their leader's business."""
        self.w.write_markers(is_lost=True)


def run_until_idle(run: Run) -> None:
    w = run.w
    while w.log.under_way or w.sent:
        if w.log.under_way:
            w.commit_one()
        else:
            w.write_markers()
        run.look()


def finished(run: Run) -> None:
    """Whatever was done, in the end each request is answered and nothing is open."""
    w = run.w
    for at in ALL:
        w.move(at, 1)
    for _ in range(4):
        run_until_idle(run)
        w.wait(1_000)
        run.look()
    run_until_idle(run)
    assert not w.unanswered()
    run.send(0, init_request(enable2_pc=True), 6)
    for _ in range(5):
        run_until_idle(run)
        w.wait(1_000)
        run.look()
    run_until_idle(run)
    assert not w.transactions.markers.decisions
    assert w.current().state is not State.ONGOING


@settings(max_examples=150, deadline=None)
@given(STEPS, st.sampled_from([0, 1, 2]), st.sampled_from([0, EPOCH_LAST - 4, EPOCH_LAST]))
def test_whatever_happens_transactions_are_atomic_and_each_epoch_is_one_clients(
    steps: list[tuple[str, int]], feature: int, epoch: int
) -> None:
    w = World(feature=feature, two_phase_commit_enable=True)
    w.put(Transaction(ID, 7, epoch, 60_000, State.EMPTY, Instant(5)))
    run = Run(w)
    run.look()
    for what, choice in steps:
        run.step(what, choice)
        run.look()
    finished(run)
