"""What operators see of transactions (KIP-664, KIP-994, KIP-1152)."""

from typing import Any

from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, U0, World, add_request, init_request

from strandline.base.errors import ErrorCode as E
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest


def described(w: World, *names: str) -> Any:
    return w.ask(DescribeTransactionsRequest(transactional_ids=names)).transaction_states


def listed(w: World, **filters: Any) -> list[str]:
    answer = w.ask(ListTransactionsRequest(**filters))
    assert answer.error_code == E.NONE
    return sorted(row.transactional_id for row in answer.transaction_states)


def world() -> World:
    """Three ids: `app-1` is open for 10 s, `app-2` for 5 s, `other` is empty."""
    w = World()
    for name in ("app-1", "app-2"):
        producer = w.start(name)
        w.ask(add_request(producer, T0, old=True, name=name), 3)
        w.wait(5_000)
    w.start("other")
    return w


def test_a_transaction_is_described_as_it_is() -> None:
    w = World()
    began = w.now
    w.begun(T0, T1, U0)
    (row,) = described(w, ID)
    assert (row.error_code, row.transactional_id, row.transaction_state) == (E.NONE, ID, "Ongoing")
    assert (row.producer_id, row.producer_epoch, row.transaction_timeout_ms) == (100, 0, 60_000)
    assert row.transaction_start_time_ms == began
    assert {(topic.topic, tuple(topic.partitions)) for topic in row.topics} == {("t", (0, 1)), ("u", (0,))}


def test_ids_that_are_not_known_are_reported_each() -> None:
    w = World()
    w.start()
    w.send(init_request(name="new"))
    errors = [
        row.error_code
        for row in w.answers[w.send(DescribeTransactionsRequest(transactional_ids=("x", ID, "")))].transaction_states
    ]
    assert errors == [E.TRANSACTIONAL_ID_NOT_FOUND, E.NONE, E.INVALID_REQUEST]
    number = w.send(DescribeTransactionsRequest(transactional_ids=("new",)))
    assert w.answers[number].transaction_states[0].error_code == E.TRANSACTIONAL_ID_NOT_FOUND, "nothing is committed"


def test_nothing_is_shown_before_it_is_committed() -> None:
    w = World()
    producer = w.start()
    w.send(add_request(producer, T0, old=False), 5)
    number = w.send(DescribeTransactionsRequest(transactional_ids=(ID,)))
    assert w.answers[number].transaction_states[0].transaction_state == "Empty"


@each(
    ("filters", "names"),
    [
        ({}, ["app-1", "app-2", "other"]),
        ({"state_filters": ("Ongoing",)}, ["app-1", "app-2"]),
        ({"state_filters": ("Ongoing", "Empty", "Nonsense")}, ["app-1", "app-2", "other"]),
        ({"state_filters": ("Nonsense",)}, []),
        ({"producer_id_filters": (101, 102)}, ["app-2", "other"]),
        ({"duration_filter": 5_000}, ["app-1"]),
        ({"duration_filter": 4_999}, ["app-1", "app-2"]),
        ({"duration_filter": 0}, ["app-1", "app-2"]),
        ({"transactional_id_pattern": "app-.*"}, ["app-1", "app-2"]),
        ({"transactional_id_pattern": "app"}, []),
        ({"transactional_id_pattern": ""}, ["app-1", "app-2", "other"]),
        ({"transactional_id_pattern": "app-[^2]|oth(er|x)+"}, ["app-1", "other"]),
        ({"state_filters": ("Ongoing",), "producer_id_filters": (100, 102)}, ["app-1"]),
    ],
)
def test_every_filter_leaves_what_it_says(filters: dict[str, Any], names: list[str]) -> None:
    assert listed(world(), **filters) == names


def test_states_that_do_not_exist_are_reported() -> None:
    answer = world().ask(ListTransactionsRequest(state_filters=("Ongoing", "ongoing", "Dead", "PrepareEpochFence")))
    assert answer.unknown_state_filters == ("ongoing",)
    states = {row.transactional_id: row.transaction_state for row in answer.transaction_states}
    assert states == {"app-1": "Ongoing", "app-2": "Ongoing"}


@each("pattern", ["(", "[z-a]", "a**", "(?=a)", r"(a)\1", "x" * 1001, "(((a{50}){50}){50}){50}"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    answer = world().ask(ListTransactionsRequest(transactional_id_pattern=pattern))
    assert answer.error_code == E.INVALID_REGULAR_EXPRESSION
    assert answer.transaction_states == ()


def test_no_pattern_keeps_a_broker_busy() -> None:
    w = World()
    w.start("a" * 2_000)
    assert listed(w, transactional_id_pattern="(a+)+" * 20 + "b") == []
    assert listed(w, transactional_id_pattern="(a*)*" * 20 + "(a|aa)+") == ["a" * 2_000]
    number = w.send(ListTransactionsRequest(transactional_id_pattern="(a|b)*a" + "(a|b)" * 150))
    assert w.answers[number].error_code in (E.NONE, E.INVALID_REGULAR_EXPRESSION)
