"""Transactions that one process prepares and another decides, with coordinators that are written down here."""

from typing import Any

import pytest
from tests.unit.client.scripted import ScriptedBroker, Session
from tests.unit.client.test_producing import Taker, batch, opened

from strandline.base.errors import ErrorCode as E
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import KafkaError, ProduceFailed, TimedOut, Unsupported
from strandline.client.producing import Producer
from strandline.client.two_phase import Begun, Taken, abort_by_id, begin, describe, end, take_over
from strandline.wire.batch import read_header
from strandline.wire.messages.groups import find_coordinator as find
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.messages.transactions import describe_transactions as described
from strandline.wire.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse


class Coordinator(ScriptedBroker):
    """It refuses as it is told: one entry for each answer, None ends the connection."""

    def __init__(self, *fates: E | None, **versions: int) -> None:
        answers = {10: self.find, 22: self.initialize, 26: self.end, 65: self.describe}
        super().__init__(answers, versions_max={22: versions.get("init", 6), 26: versions.get("end", 5)})
        self.fates = list(fates)
        self.asked: list[Any] = []

    def find(self, session: Session, request: Any) -> Any:
        me: dict[str, Any] = {"node_id": 1, "host": "127.0.0.1", "port": self.port}
        rows = tuple(find.Coordinator(key=key, **me) for key in request.coordinator_keys)
        return find.FindCoordinatorResponse(coordinators=rows)

    def fate(self, request: Any) -> E | None:
        self.asked.append(request)
        return self.fates.pop(0) if self.fates else E.NONE

    def initialize(self, session: Session, request: InitProducerIdRequest) -> InitProducerIdResponse | None:
        fate = self.fate(request)
        if fate is None:
            return None
        open_id = (7, 3) if request.keep_prepared_txn and request.transactional_id != "idle" else (-1, -1)
        return InitProducerIdResponse(
            error_code=fate,
            producer_id=7,
            producer_epoch=4,
            ongoing_txn_producer_id=open_id[0],
            ongoing_txn_producer_epoch=open_id[1],
        )

    def end(self, session: Session, request: EndTxnRequest) -> EndTxnResponse | None:
        fate = self.fate(request)
        return None if fate is None else EndTxnResponse(error_code=fate, producer_id=7, producer_epoch=5)

    def describe(self, session: Session, request: Any) -> Any:
        fate = self.fate(request)
        row = described.TransactionState(error_code=fate or 0, transactional_id=request.transactional_ids[0])
        return described.DescribeTransactionsResponse(transaction_states=(row,))


def cluster_of(broker: ScriptedBroker, **options: str) -> Cluster:
    given = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "kafka.retry.backoff.ms": "2"}
    return Cluster(ClientConfig.of(given | {f"kafka.{key.replace('_', '.')}": value for key, value in options.items()}))


def test_a_transaction_is_begun_and_taken_over_with_the_time_after_which_it_is_given_up() -> None:
    with Coordinator() as broker, cluster_of(broker) as cluster:
        assert begin(cluster, "a", 1000) == Begun("a", 7, 4)
        assert take_over(cluster, ["a", "idle"], 2000) == {
            "a": Taken(Begun("a", 7, 3), Begun("a", 7, 4)),
            "idle": Taken(None, Begun("idle", 7, 4)),
        }
        abort_by_id(cluster, ["a"], 3000)
        assert begin(cluster, "driver", 4000, two_phase=False) == Begun("driver", 7, 4)
    reported = [(one.enable2_pc, one.keep_prepared_txn, one.two_phase_timeout_ms) for one in broker.asked]
    assert reported == [
        (True, False, 1000),
        (True, True, 2000),
        (True, True, 2000),
        (True, False, 3000),
        (False, False, 0),
    ]
    assert broker.asked[-1].transaction_timeout_ms == 4000


@pytest.mark.parametrize("fate", [E.CONCURRENT_TRANSACTIONS, E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, None])
def test_what_passes_by_itself_is_asked_again_and_what_was_answered_is_not(fate: E | None) -> None:
    with Coordinator(E.NONE, fate) as broker, cluster_of(broker) as cluster:
        ends = end(cluster, [Begun("a", 7, 3), Begun("b", 7, 3), Begun("c", 7, 3)], commit=True)
    assert ends == {"a": E.NONE, "b": E.NONE, "c": E.NONE}
    asked = [one.transactional_id for one in broker.asked]
    assert asked.count("a") == 1
    assert asked.count("b") == 2
    assert {(one.producer_id, one.producer_epoch, one.committed) for one in broker.asked} == {(7, 3, True)}


def test_an_end_that_is_refused_for_good_is_told_for_each_id() -> None:
    with Coordinator(E.INVALID_TXN_STATE, E.NONE) as broker, cluster_of(broker) as cluster:
        ends = end(cluster, [Begun("a", 7, 3), Begun("b", 7, 3)], commit=False)
    assert ends == {"a": E.INVALID_TXN_STATE, "b": E.NONE}
    assert not any(one.committed for one in broker.asked)


def test_a_refusal_to_begin_is_raised_and_one_that_stays_has_an_end() -> None:
    with (
        Coordinator(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) as broker,
        cluster_of(broker) as cluster,
        pytest.raises(KafkaError, match="transaction a: TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    ):
        begin(cluster, "a", 1000)
    with (
        Coordinator(*[E.CONCURRENT_TRANSACTIONS] * 500) as broker,
        cluster_of(broker, default_api_timeout_ms="100", retry_backoff_max_ms="2") as cluster,
        pytest.raises(TimedOut, match="CONCURRENT_TRANSACTIONS for a"),
    ):
        end(cluster, [Begun("a", 7, 3)], commit=True)


def test_ids_that_are_not_known_are_not_described() -> None:
    with Coordinator(E.NONE, E.TRANSACTIONAL_ID_NOT_FOUND) as broker, cluster_of(broker) as cluster:
        assert list(describe(cluster, ["a", "b"])) == ["a"]


def test_brokers_that_do_not_speak_the_version_are_not_asked() -> None:
    with Coordinator(init=5, end=4) as broker, cluster_of(broker) as cluster:
        with pytest.raises(Unsupported, match=r"two-phase commit \(KIP-939\)"):
            begin(cluster, "a", 1000)
        with pytest.raises(Unsupported, match="KIP-890"):
            end(cluster, [Begun("a", 7, 3)], commit=True)
        assert broker.asked == []


# --- what is written in one


def produce(broker: Taker, count: int = 2) -> None:
    with (
        opened(broker) as cluster,
        Producer(cluster, producer=(7, 3), transactional_id="a", renews=False) as producer,
    ):
        for _ in range(count):
            producer.send("t", 0, batch())
        producer.flush()


def test_batches_say_whose_transaction_they_belong_to() -> None:
    with Taker(E.NONE, None, produce_version=12) as broker:
        produce(broker)
        assert {request.transactional_id for request in broker.requests} == {"a"}
        headers = [
            read_header(bytes(data.records or b""))
            for request in broker.requests
            for topic in request.topic_data
            for data in topic.partition_data
        ]
    assert all(header.is_transactional and (header.producer_id, header.producer_epoch) == (7, 3) for header in headers)
    assert broker.written == [(0, 7, 0), (0, 7, 1)]


def test_a_duplicate_is_an_acknowledgement_since_nobody_else_has_the_epoch() -> None:
    with Taker(E.NOT_LEADER_OR_FOLLOWER, E.DUPLICATE_SEQUENCE_NUMBER, produce_version=12) as broker:
        produce(broker, 1)


@pytest.mark.parametrize("fate", [E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_EPOCH])
def test_a_lost_sequence_ends_the_transaction_and_no_other_producer_goes_on(fate: E) -> None:
    with Taker(E.NONE, fate, produce_version=12) as broker:
        with pytest.raises(ProduceFailed, match=fate.name):
            produce(broker)
        assert broker.ids == 0


def test_a_broker_that_adds_no_partitions_to_transactions_is_not_written_to() -> None:
    with Taker(produce_version=11) as broker, pytest.raises(Unsupported, match="KIP-890"):
        produce(broker)
