"""Trap T42: what an unclean election has left open, and no coordinator ends, the leader aborts (KIP-664)."""

from typing import Any

from tests.kip.traps.test_transactions import data, fill, lead_uncleanly
from tests.rows import each
from tests.unit.replica.serving.test_transactions import TxnWorld

from strandline.base.effects import Answered, Failed, Failure
from strandline.base.errors import ErrorCode as E
from strandline.base.ids import NodeId
from strandline.replica.serving.transactions.hanging import AGAIN_MS, UNKNOWN_MIN
from strandline.wire.messages.transactions import describe_transactions as d
from strandline.wire.messages.transactions import list_transactions as li


class HangingWorld(TxnWorld):
    """Broker 2 leads after an unclean election, with a transaction of producer 7 open since offset 0."""

    def __init__(self) -> None:
        super().__init__()
        fill(self, data(0, 7))
        lead_uncleanly(self)
        self.run(AGAIN_MS + 1_000)

    def answer_lists(self, *names: str, error: E = E.NONE) -> None:
        """Every broker says which ids it coordinates; only one of them does."""
        lists, self.questions = self.questions, []
        assert len(lists) == 3
        for number, asked in enumerate(lists):
            assert asked.message == li.ListTransactionsRequest(producer_id_filters=(7,))
            rows = tuple(li.TransactionState(transactional_id=name, producer_id=7) for name in names)
            code = int(error) if number == 1 else 0
            answer = li.ListTransactionsResponse(error_code=code, transaction_states=rows if number == 0 else ())
            self.perform(NodeId(2), self.nodes[NodeId(2)].step(Answered(asked.token, answer), self.now))

    def describe(self, **changes: Any) -> None:
        asked = self.questions.pop(0)
        assert (asked.node, asked.message.transactional_ids) == (3, ("id",))
        row = d.TransactionState(transactional_id="id", producer_id=7, **changes)
        answer = d.DescribeTransactionsResponse(transaction_states=(row,))
        self.perform(NodeId(2), self.nodes[NodeId(2)].step(Answered(asked.token, answer), self.now))

    @property
    def open(self) -> dict[int, int]:
        return dict(self.nodes[NodeId(2)].host.partitions.named("t", 0).log.transactions.open)  # type: ignore[union-attr]


HERE = (d.TopicData(topic="t", partitions=(0,)),)
ELSEWHERE = (d.TopicData(topic="t", partitions=(1,)), d.TopicData(topic="u", partitions=(0,)))


@each(
    "said",
    [
        {"transaction_state": "CompleteCommit"},
        {"transaction_state": "Empty"},
        {"transaction_state": "Ongoing", "topics": ELSEWHERE},
        {"error_code": int(E.TRANSACTIONAL_ID_NOT_FOUND), "transaction_state": ""},
    ],
)
def test_t42_what_its_coordinator_does_not_have_there_is_aborted_and_stays_in_the_ledger(said: dict[str, Any]) -> None:
    w = HangingWorld()
    w.answer_lists("id")
    assert w.open == {7: 0}
    w.describe(**said)
    w.run(1_000)
    assert w.open == {}
    assert any("open transaction of producer 7" in one.event.cause for one in w.nodes[NodeId(2)].host.ledger.all())
    (entry,) = w.nodes[NodeId(2)].host.partitions.named("t", 0).log.producer_state.aborted(0, 1)  # type: ignore[union-attr]
    assert (entry.producer_id, entry.first_offset, entry.last_offset) == (7, 0, 1)
    w.questions.clear()
    w.run(3 * AGAIN_MS)
    assert not w.questions


@each(
    "said",
    [
        {"transaction_state": "Ongoing", "topics": HERE},
        {"transaction_state": "PrepareCommit", "topics": HERE},
        {"error_code": int(E.NOT_COORDINATOR)},
    ],
)
def test_t42_what_its_coordinator_will_end_is_left_to_it_and_asked_for_again(said: dict[str, Any]) -> None:
    w = HangingWorld()
    w.answer_lists("id")
    w.describe(**said)
    w.run(1_000)
    assert w.open == {7: 0}
    w.run(AGAIN_MS)
    assert len(w.questions) == 3


def test_t42_what_nobody_knows_is_aborted_when_all_have_said_so_several_times() -> None:
    w = HangingWorld()
    for _ in range(UNKNOWN_MIN):
        assert w.open == {7: 0}
        w.answer_lists(error=E.COORDINATOR_LOAD_IN_PROGRESS)
        w.run(AGAIN_MS)
        w.answer_lists()
        w.run(AGAIN_MS)
    assert w.open == {}


def test_t42_while_a_broker_does_not_answer_nothing_is_aborted() -> None:
    w = HangingWorld()
    for _ in range(UNKNOWN_MIN + 1):
        asked, w.questions = w.questions, []
        for one in asked:
            w.perform(NodeId(2), w.nodes[NodeId(2)].step(Failed(one.token, Failure.CLOSED), w.now))
        w.run(AGAIN_MS)
    assert w.open == {7: 0}


def test_t42_a_transaction_that_is_suspected_while_brokers_are_asked_about_others_counts_as_not_asked() -> None:
    w = HangingWorld()
    node = w.nodes[NodeId(2)]
    hosted = node.host.partitions.named("t", 0)
    assert hosted is not None
    node.hanging.suspect(hosted, {7: 0}, w.now)
    w.answer_lists()
    assert [one.unknown for one in node.hanging.suspects] == [1, 0]
