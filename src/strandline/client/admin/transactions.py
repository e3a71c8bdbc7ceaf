"""What brokers say of transactions (KIP-664): those that coordinators know, and those that are open in partitions.

A transaction that is open in a partition hangs if its coordinator does not know it there. That is said of none before
every coordinator was heard: each partition of `__transaction_state` has a leader, the same before and after, and that
leader has answered.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from strandline.base.errors import ErrorCode, error_of, message_of
from strandline.base.ids import TRANSACTION_TOPIC, by_topic
from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place, pages, states_of
from strandline.client.ask import Servers, ask_any
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.client.errors import StrandlineError, refused
from strandline.wire.messages.groups.find_coordinator import TRANSACTION, FindCoordinatorRequest
from strandline.wire.messages.transactions.describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest, TransactionState
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

FIND_VERSION, DESCRIBE_VERSION, PRODUCERS_VERSION, MARKERS_VERSION = 4, 0, 0, 1
PARTITIONS_MAX = 500  # of one DescribeProducers


class Listed(Value, frozen=True):
    """A transactional id, as its coordinator lists it."""

    coordinator: int
    transactional_id: str
    producer_id: int
    state: str


class Coordinated(Value, frozen=True):
    """What its coordinator knows of a transactional id. `started_at` is -1 if no transaction is open."""

    coordinator: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_at: int
    places: tuple[Place, ...] = ()


class ProducerAt(Value, frozen=True):
    """A producer as a replica of a partition knows it. `start_offset` is -1 if it has no transaction open there."""

    at: Place
    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp: int
    start_offset: int

    @property
    def is_open(self) -> bool:
        return self.start_offset >= 0


class Uncertain(Value, frozen=True):
    """It is not known whether a coordinator knows the transaction."""

    why: str


# None: every coordinator was asked, and none knows it there.
Known = Coordinated | Uncertain | None


# --- what coordinators know


def list_transactions(
    brokers: Mapping[int, BrokerAt], request: ListTransactionsRequest
) -> tuple[list[Listed], dict[int, str]]:
    """What all brokers coordinate, by id; and why some did not say. Raises StrandlineError if the request is wrong."""
    found, silent = [], {}
    for node, answer in ask_each(brokers, dict.fromkeys(brokers, request), None).items():
        if isinstance(answer, Silence):
            silent[node] = answer.why
        elif answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION:
            pattern = request.transactional_id_pattern
            raise StrandlineError(f"'{pattern}' is no regular expression", "it is one of RE2: see its syntax")
        elif answer.error_code:
            silent[node] = f"refuses: {reason(answer.error_code)}"
        else:
            found += [
                Listed(node, row.transactional_id, row.producer_id, row.transaction_state)
                for row in answer.transaction_states
            ]
    return sorted(found, key=lambda row: (row.transactional_id, row.coordinator)), silent


def coordinators_of(bootstrap: Servers, transactional_ids: Iterable[str]) -> dict[str, int | ErrorCode]:
    """Who coordinates each of these ids, or why that is not known."""
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=tuple(transactional_ids))
    answer = ask_any(bootstrap, request, FIND_VERSION)
    return {row.key: error_of(row.error_code) if row.error_code else row.node_id for row in answer.coordinators}


def describe_at(
    brokers: Mapping[int, BrokerAt], asked: Mapping[str, int]
) -> dict[str, Coordinated | ErrorCode | Silence]:
    """What its coordinator says of each id."""
    by_node: dict[int, list[str]] = {}
    for transactional_id, node in asked.items():
        by_node.setdefault(node, []).append(transactional_id)
    requests = {node: DescribeTransactionsRequest(transactional_ids=tuple(ids)) for node, ids in by_node.items()}
    found: dict[str, Coordinated | ErrorCode | Silence] = {}
    for node, answer in ask_each(brokers, requests, DESCRIBE_VERSION).items():
        if isinstance(answer, Silence):
            found |= dict.fromkeys(by_node[node], answer)
        else:
            found |= {row.transactional_id: coordinated(node, row) for row in answer.transaction_states}
    return found


def coordinated(node: int, row: TransactionState) -> Coordinated | ErrorCode:
    if row.error_code:
        return error_of(row.error_code)
    return Coordinated(
        coordinator=node,
        transactional_id=row.transactional_id,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        state=row.transaction_state,
        timeout_ms=row.transaction_timeout_ms,
        started_at=row.transaction_start_time_ms,
        places=tuple(sorted(Place(topic.topic, index) for topic in row.topics for index in topic.partitions)),
    )


# --- what partitions know


def producers_at(
    brokers: Mapping[int, BrokerAt], asked: Mapping[int, Iterable[Place]]
) -> dict[tuple[int, Place], tuple[ProducerAt, ...] | str]:
    """The producers that each of these brokers knows of in partitions; or why it does not say."""
    left = {node: list(dict.fromkeys(places)) for node, places in asked.items()}
    found: dict[tuple[int, Place], tuple[ProducerAt, ...] | str] = {}
    while left := {node: places for node, places in left.items() if places}:
        now = {node: places[:PARTITIONS_MAX] for node, places in left.items()}
        left = {node: places[PARTITIONS_MAX:] for node, places in left.items()}
        requests = {node: DescribeProducersRequest(topics=topics_of(places)) for node, places in now.items()}
        for node, answer in ask_each(brokers, requests, PRODUCERS_VERSION).items():
            found |= {(node, at): producers for at, producers in producers_in(node, now[node], answer).items()}
    return found


def topics_of(places: Iterable[Place]) -> tuple[TopicRequest, ...]:
    return tuple(TopicRequest(name=name, partition_indexes=ids) for name, ids in by_topic(places).items())


def producers_in(node: int, places: list[Place], answer: Any) -> dict[Place, tuple[ProducerAt, ...] | str]:
    if isinstance(answer, Silence):
        return dict.fromkeys(places, f"broker {node} {answer.why}")
    found: dict[Place, tuple[ProducerAt, ...] | str] = dict.fromkeys(places, f"broker {node} says nothing about it")
    for topic in answer.topics:
        for row in topic.partitions:
            at = Place(topic.name, row.partition_index)
            found[at] = (
                f"broker {node} refuses: {reason(row.error_code)}"
                if row.error_code
                else tuple(
                    ProducerAt(
                        at=at,
                        producer_id=one.producer_id,
                        epoch=one.producer_epoch,
                        coordinator_epoch=one.coordinator_epoch,
                        last_sequence=one.last_sequence,
                        last_timestamp=one.last_timestamp,
                        start_offset=one.current_txn_start_offset,
                    )
                    for one in row.active_producers
                )
            )
    return found


# --- both together


def known_to_coordinators(
    bootstrap: Servers, brokers: Mapping[int, BrokerAt], opened: Iterable[ProducerAt]
) -> dict[ProducerAt, Known]:
    """Which of these open transactions does a coordinator know in their partitions? Ask the partitions before this."""
    opened = list(opened)
    if not opened:
        return {}
    before = coordinating(bootstrap)
    ids = tuple(sorted({one.producer_id for one in opened}))
    listed, silent = list_transactions(brokers, ListTransactionsRequest(producer_id_filters=ids))
    described = describe_at(brokers, {row.transactional_id: row.coordinator for row in listed})
    after = coordinating(bootstrap)
    silent |= {state.leader: "was not asked" for state in after if state.leader not in brokers}
    unheard = why_unheard(before, after, silent)
    by_producer: dict[int, list[str]] = {}
    for row in listed:
        by_producer.setdefault(row.producer_id, []).append(row.transactional_id)
    return {
        one: known_of(one, [described.get(name) for name in by_producer.get(one.producer_id, ())], unheard)
        for one in opened
    }


def known_of(one: ProducerAt, answers: list[Coordinated | ErrorCode | Silence | None], unheard: str) -> Known:
    for row in answers:
        if isinstance(row, Coordinated) and one.at in row.places:
            return row
    for row in answers:
        if not isinstance(row, Coordinated) and row is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            why = row.why if isinstance(row, Silence) else f"refuses: {'no answer' if row is None else row.name}"
            return Uncertain(f"its coordinator {why}")
    return Uncertain(unheard) if unheard else None


def coordinating(bootstrap: Servers) -> tuple[PartitionState, ...]:
    """The partitions of `__transaction_state`; none if nobody has begun a transaction in this cluster."""
    found: list[PartitionState] = []
    for topic in pages(lambda request: ask_any(bootstrap, request, 0), (TRANSACTION_TOPIC,)):
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise refused(topic.error_code, f"asking for the partitions of {TRANSACTION_TOPIC}")
        found += states_of(topic)
    return tuple(found)


def why_unheard(
    before: tuple[PartitionState, ...], after: tuple[PartitionState, ...], silent: Mapping[int, str]
) -> str:
    """Why may there be a coordinator that was not asked? Empty: all were."""
    for state in after:
        if state.is_unavailable:
            return f"{state.at}, whose leader may coordinate it, has no leader that is online"
        if state.leader in silent:
            return f"broker {state.leader}, which may coordinate it, {silent[state.leader]}"
    moved = [(state.at, state.leader, state.leader_epoch) for state in before]
    if moved != [(state.at, state.leader, state.leader_epoch) for state in after]:
        return f"leaders of {TRANSACTION_TOPIC} moved while they were asked"
    return ""


# --- ending one


def write_abort(brokers: Mapping[int, BrokerAt], leader: int, one: ProducerAt) -> None:
    """Have the partition's leader write an abort marker. Raises StrandlineError if it does not."""
    topic = WritableTxnMarkerTopic(name=one.at.topic, partition_indexes=(one.at.partition,))
    marker = WritableTxnMarker(
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        transaction_result=False,
        topics=(topic,),
        coordinator_epoch=max(one.coordinator_epoch, 0),  # -1: no marker of this producer was ever written there
    )
    answer = ask_each(brokers, {leader: WriteTxnMarkersRequest(markers=(marker,))}, MARKERS_VERSION)[leader]
    what = f"aborting the transaction of producer {one.producer_id} in {one.at}"
    if isinstance(answer, Silence):
        advice = "look with `strandline transactions producers` whether it is open still, and repeat the command"
        raise StrandlineError(f"{what}: broker {leader} {answer.why}", advice)
    errors = [row.error_code for marker in answer.markers for topics in marker.topics for row in topics.partitions]
    if errors != [ErrorCode.NONE]:
        code = errors[0] if errors else ErrorCode.UNKNOWN_SERVER_ERROR
        raise StrandlineError(f"{what}: broker {leader} refuses: {reason(code)}", ADVICE.get(error_of(code), ""))


ADVICE = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "the producer has gone on: `strandline transactions producers` shows its epoch",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a coordinator has written to it since:"
    " `strandline transactions producers` shows the newest coordinator epoch",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the leader moved: repeat the command",
    ErrorCode.NOT_ENOUGH_REPLICAS: "`strandline explain` says why too few replicas are in sync",
    ErrorCode.REQUEST_TIMED_OUT: "the marker is written, and not committed: see `strandline explain`",
}


def reason(code: int) -> str:
    error = error_of(code)
    return f"{error.name}: {message_of(error)}"
