"""Which open transactions hang: what partitions and coordinators say, put together."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.rows import each

from strandline.base.errors import ErrorCode
from strandline.client.admin import open_transactions, transactions
from strandline.client.admin.open_transactions import find_hanging, holders, is_open_in
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import ReplicaLog
from strandline.client.admin.transactions import (
    Coordinated,
    ProducerAt,
    Uncertain,
    coordinated,
    known_of,
    list_transactions,
    producers_at,
    why_unheard,
    write_abort,
)
from strandline.client.brokers import BrokerAt, Silence
from strandline.client.errors import StrandlineError
from strandline.wire.messages.transactions import describe_producers as p
from strandline.wire.messages.transactions import list_transactions as listed
from strandline.wire.messages.transactions import write_txn_markers as m
from strandline.wire.messages.transactions.describe_transactions import TopicData, TransactionState

AT, OTHER = Place("t", 0), Place("t", 1)
OPEN = ProducerAt(AT, 7, 3, -1, 0, 1_000, 40)
KNOWN = Coordinated(1, "id", 7, 3, "Ongoing", 60_000, 900, (AT,))
BROKERS = {node: BrokerAt(node, "h", 9000 + node) for node in (1, 2, 3)}
STATE = PartitionState(Place("__transaction_state", 0), (1, 2, 3), (1, 2, 3), 1, 5)
LED = PartitionState(AT, (1, 2, 3), (1, 2, 3), 2, 5)


def test_a_transaction_that_its_coordinator_has_in_this_partition_does_not_hang() -> None:
    assert known_of(OPEN, [KNOWN], "") is KNOWN
    assert known_of(OPEN, [replace(KNOWN, places=(OTHER,)), KNOWN], "") is KNOWN


def test_one_that_its_coordinator_has_only_elsewhere_or_not_at_all_hangs() -> None:
    for reported in ([], [replace(KNOWN, places=(OTHER,))], [ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]):
        assert known_of(OPEN, reported, "") is None


def test_it_is_uncertain_while_anybody_who_may_know_it_has_not_said() -> None:
    assert known_of(OPEN, [], "broker 3 is down") == Uncertain("broker 3 is down")
    assert known_of(OPEN, [Silence("is down")], "") == Uncertain("its coordinator is down")
    assert known_of(OPEN, [ErrorCode.NOT_COORDINATOR], "") == Uncertain("its coordinator refuses: NOT_COORDINATOR")
    assert known_of(OPEN, [None], "") is not None
    assert known_of(OPEN, [Silence("is down"), KNOWN], "broker 3 is down") is KNOWN, "one that knows it is enough"


@each(
    "before, after, silent, why",
    [
        ((STATE,), (STATE,), {}, ""),
        ((), (), {2: "is down"}, ""),
        ((STATE,), (STATE,), {2: "is down"}, ""),
        ((STATE,), (STATE,), {1: "is down"}, "broker 1, which may coordinate it, is down"),
        ((STATE,), (replace(STATE, leader=-1),), {}, "has no leader that is online"),
        ((STATE,), (replace(STATE, offline=(1,)),), {}, "has no leader that is online"),
        ((STATE,), (replace(STATE, leader=2, leader_epoch=6),), {}, "moved while they were asked"),
        ((STATE,), (replace(STATE, leader_epoch=6),), {}, "moved while they were asked"),
        ((), (STATE,), {}, "moved while they were asked"),
    ],
)
def test_all_coordinators_were_heard(before: Any, after: Any, silent: dict[int, str], why: str) -> None:
    found = why_unheard(before, after, silent)
    assert found == why if not why else why in found


def test_a_described_id_has_its_partitions_and_an_error_is_one() -> None:
    row = TransactionState(
        transactional_id="id",
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=900,
        producer_id=7,
        producer_epoch=3,
        topics=(TopicData(topic="t", partitions=(0,)),),
    )
    assert coordinated(1, row) == KNOWN
    assert coordinated(1, replace(row, error_code=16)) is ErrorCode.NOT_COORDINATOR


# --- what brokers answer


class Asked:
    """Brokers that answer as a test says, and what they were asked."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.requests: list[tuple[int, Any]] = []
        self.answers: dict[type, Any] = {}
        patch.setattr(transactions, "ask_each", self.ask_each)

    def ask_each(self, brokers: Any, requests: dict[int, Any], version: int | None) -> dict[int, Any]:
        self.requests += requests.items()
        return {node: self.answers[type(request)](node, request) for node, request in requests.items()}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def test_what_all_coordinators_list_is_sorted_and_who_did_not_answer_is_named(asked: Asked) -> None:
    def answer(node: int, request: Any) -> Any:
        if node == 3:
            return Silence("is down")
        if node == 2:
            return listed.ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        rows = [listed.TransactionState(transactional_id=name, producer_id=7) for name in ("b", "a")]
        return listed.ListTransactionsResponse(transaction_states=tuple(rows))

    asked.answers[listed.ListTransactionsRequest] = answer
    found, silent = list_transactions(BROKERS, listed.ListTransactionsRequest())
    assert [(row.transactional_id, row.coordinator) for row in found] == [("a", 1), ("b", 1)]
    assert silent[3] == "is down"
    assert silent[2].startswith("refuses: COORDINATOR_LOAD_IN_PROGRESS")


def test_a_pattern_that_is_none_is_refused_at_once(asked: Asked) -> None:
    error = ErrorCode.INVALID_REGULAR_EXPRESSION
    asked.answers[listed.ListTransactionsRequest] = lambda *_: listed.ListTransactionsResponse(error_code=error)
    with pytest.raises(StrandlineError, match="is no regular expression"):
        list_transactions(BROKERS, listed.ListTransactionsRequest(transactional_id_pattern="["))


def producers_of(*rows: ProducerAt, error: int = 0) -> Any:
    def answer(node: int, request: p.DescribeProducersRequest) -> Any:
        topics = []
        for topic in request.topics:
            partitions = []
            for index in topic.partition_indexes:
                known = [one for one in rows if one.at == Place(topic.name, index)]
                states = tuple(
                    p.ProducerState(
                        producer_id=one.producer_id,
                        producer_epoch=one.epoch,
                        coordinator_epoch=one.coordinator_epoch,
                        last_sequence=one.last_sequence,
                        last_timestamp=one.last_timestamp,
                        current_txn_start_offset=one.start_offset,
                    )
                    for one in known
                )
                partitions.append(p.PartitionResponse(partition_index=index, error_code=error, active_producers=states))
            topics.append(p.TopicResponse(name=topic.name, partitions=tuple(partitions)))
        return p.DescribeProducersResponse(topics=tuple(topics))

    return answer


def test_each_broker_is_asked_for_its_partitions_a_few_hundred_at_a_time(asked: Asked) -> None:
    asked.answers[p.DescribeProducersRequest] = producers_of(OPEN)
    many = [Place("t", index) for index in range(501)]
    found = producers_at(BROKERS, {1: many, 2: [OTHER]})
    assert found[1, AT] == (OPEN,)
    assert found[2, OTHER] == () == found[1, many[-1]]
    assert len(found) == 502
    assert [(node, len(request.topics[0].partition_indexes)) for node, request in asked.requests] == [
        (1, 500),
        (2, 1),
        (1, 1),
    ]


def test_a_partition_of_which_a_broker_says_nothing_is_told_so(asked: Asked) -> None:
    asked.answers[p.DescribeProducersRequest] = producers_of(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert "broker 1 refuses: NOT_LEADER_OR_FOLLOWER" in producers_at(BROKERS, {1: [AT]})[1, AT]
    asked.answers[p.DescribeProducersRequest] = lambda *_: Silence("is down")
    assert producers_at(BROKERS, {1: [AT]})[1, AT] == "broker 1 is down"
    asked.answers[p.DescribeProducersRequest] = lambda *_: p.DescribeProducersResponse()
    assert producers_at(BROKERS, {1: [AT]})[1, AT] == "broker 1 says nothing about it"


def marked(error: int) -> Any:
    row = m.WritableTxnMarkerPartitionResult(partition_index=0, error_code=error)
    topic = m.WritableTxnMarkerTopicResult(name="t", partitions=(row,))
    result = m.WritableTxnMarkerResult(producer_id=7, topics=(topic,))
    return lambda *_: m.WriteTxnMarkersResponse(markers=(result,))


def test_an_abort_has_the_producers_epoch_and_its_last_coordinators_or_the_first(asked: Asked) -> None:
    """KIP-664: before the first marker of a producer any coordinator epoch may write one."""
    asked.answers[m.WriteTxnMarkersRequest] = marked(0)
    write_abort(BROKERS, 2, OPEN)
    write_abort(BROKERS, 2, replace(OPEN, coordinator_epoch=9))
    sent = [(node, *request.markers) for node, request in asked.requests]
    assert [(node, row.producer_id, row.producer_epoch, row.coordinator_epoch) for node, row in sent] == [
        (2, 7, 3, 0),
        (2, 7, 3, 9),
    ]
    assert not any(row.transaction_result for _, row in sent)


@each("error", transactions.ADVICE)
def test_an_abort_that_is_refused_says_why_and_what_to_do(error: ErrorCode, asked: Asked) -> None:
    asked.answers[m.WriteTxnMarkersRequest] = marked(error)
    with pytest.raises(StrandlineError) as raised:
        write_abort(BROKERS, 2, OPEN)
    assert error.name in raised.value.problem
    assert raised.value.advice


# --- hanging transactions


class Cluster:
    """What `find_hanging` and `holders` ask, answered: who has what open where, and what coordinators know of it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.opened: dict[tuple[int, Place], Any] = {(2, AT): (OPEN,)}
        self.after: dict[tuple[int, Place], Any] | None = None
        self.known: dict[ProducerAt, Any] = {}
        self.asked: list[ProducerAt] = []
        patch.setattr(open_transactions, "producers_at", self.producers_at)
        patch.setattr(open_transactions, "known_to_coordinators", self.known_to)

    def producers_at(self, brokers: Any, asked: Any) -> Any:
        opened = self.after if self.asked and self.after is not None else self.opened
        return {(node, at): opened.get((node, at), ()) for node, places in asked.items() for at in places}

    def known_to(self, bootstrap: str, brokers: Any, opened: Any) -> Any:
        self.asked += opened
        return {one: self.known.get(one) for one in opened}

    def find(self, *states: PartitionState, before: int = 2_000, broker: int | None = None) -> Any:
        return find_hanging("h:1", BROKERS, states or (LED,), before, broker)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def test_a_transaction_hangs_that_is_old_and_that_no_coordinator_knows(cluster: Cluster) -> None:
    assert cluster.find() == ([OPEN], [])
    assert cluster.find(before=OPEN.last_timestamp) == ([], []), "it is not old enough"
    cluster.known[OPEN] = KNOWN
    assert cluster.find() == ([], [])


def test_one_that_ended_while_coordinators_were_asked_does_not(cluster: Cluster) -> None:
    for after in ((), (replace(OPEN, start_offset=-1),), (replace(OPEN, start_offset=60),)):
        cluster.asked, cluster.after = [], {(2, AT): after}
        assert cluster.find() == ([], [])
    assert is_open_in("broker 2 is down", OPEN), "nobody says that it ended"


def test_a_producer_without_an_open_transaction_is_not_looked_at(cluster: Cluster) -> None:
    cluster.opened = {(2, AT): (replace(OPEN, start_offset=-1),)}
    assert cluster.find() == ([], [])
    assert cluster.asked == []


def test_what_was_not_found_out_is_said(cluster: Cluster) -> None:
    cluster.known[OPEN] = Uncertain("broker 3 is down")
    hanging, unknown = cluster.find(LED, replace(LED, at=OTHER, leader=-1))
    assert hanging == []
    assert unknown == [
        "t-1: it has no leader that is online",
        "t-0: producer 7 has a transaction open there, but broker 3 is down",
    ]
    cluster.opened = {(2, AT): "broker 2 is down"}
    assert cluster.find().unknown == ["t-0: broker 2 is down"]


def test_a_follower_that_is_asked_does_not_say_alone_that_one_is_open_still(cluster: Cluster) -> None:
    """It may not have the marker yet."""
    cluster.opened = {(3, AT): (OPEN,)}
    assert cluster.find(broker=3) == ([], [])
    assert cluster.asked == [OPEN]
    cluster.opened[2, AT] = (OPEN,)
    assert cluster.find(broker=3) == ([OPEN], [])
    assert cluster.find(replace(LED, replicas=(1, 2)), broker=3) == ([], []), "it has no replica there"


# --- who holds the last stable offset


def held_by(cluster: Cluster, stable: int, end: int = 90, leader: int = 2) -> Any:
    reports = {AT: (ReplicaLog(leader, 5, end, high_watermark=end, last_stable_offset=stable),)}
    return holders("h:1", BROKERS, (LED,), reports).get(AT)


def test_the_first_open_transaction_holds_the_last_stable_offset(cluster: Cluster) -> None:
    later = replace(OPEN, producer_id=8, start_offset=50)
    cluster.opened = {(2, AT): (later, OPEN)}
    cluster.known[OPEN] = KNOWN
    held = held_by(cluster, 40)
    assert (held.producer, held.known, held.last_stable_offset, held.high_watermark) == (OPEN, KNOWN, 40, 90)
    assert held_by(cluster, 90) is None, "nothing is held up"
    assert held_by(cluster, -1) is None, "it is not known"
    assert held_by(cluster, 40, leader=1) is None, "a follower's is not asked for"


def test_what_ended_meanwhile_holds_nothing(cluster: Cluster) -> None:
    assert held_by(cluster, 39) is None, "another one held it, and has ended"
    assert held_by(cluster, 40).known is None
    cluster.asked, cluster.after = [], {}
    assert held_by(cluster, 40) is None
    cluster.opened = {(2, AT): "broker 2 is down"}
    assert held_by(cluster, 40) is None
