"""Transactions that are prepared in one process and decided in another (KIP-939), many at once.

A process begins one (`begin`), writes in it by a `Producer`, and hands on what it is called (`Begun`). Another takes it
over (`take_over`), after which no other process can end it, and ends it (`end`). What is asked is asked of each
coordinator in one go, and again while its refusal passes by itself. That is harmless: to begin or to take over again
gives the next epoch, and an end that is asked for again is the same end.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from strandline.base.errors import ErrorCode, error_of
from strandline.client.connection import Connection
from strandline.client.errors import KafkaError, Unreachable, Unsupported, passes_by_itself, refused
from strandline.client.metadata import Metadata
from strandline.client.patience import Patience
from strandline.txn.transaction import NEVER_TIMES_OUT
from strandline.wire.messages.groups.find_coordinator import TRANSACTION, FindCoordinatorRequest
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest, TransactionState
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.schema import Message

IDS_MAX = 500  # of one FindCoordinator
IN_FLIGHT_MAX = 50  # requests are small: neither side's buffers fill up
TWO_PHASE_SINCE = 6  # of InitProducerId
EPOCHS_SINCE = 5  # of EndTxn: an end has a new epoch, so it can be recognised when it is asked for again (KIP-890)
NO_TRANSACTION = (-1, -1)
SINK_IDS = "strandline-sink"  # what the ids of Spark's exactly-once sink begin with
E = ErrorCode


class Begun(NamedTuple):
    """An open transaction, or one that a producer may begin now by writing."""

    transactional_id: str
    producer_id: int
    epoch: int

    @property
    def producer(self) -> tuple[int, int]:
        return self.producer_id, self.epoch


class Taken(NamedTuple):
    """`begun` is the open transaction itself, None if none was open; `client` is what may end it now."""

    begun: Begun | None
    client: Begun


def begin(cluster: Metadata, transactional_id: str, timeout_ms: int, *, two_phase: bool = True) -> Begun:
    """Whatever is open under this id is aborted. `timeout_ms`: when the coordinator gives up the transaction by itself.
    Raises `KafkaError`: TRANSACTIONAL_ID_AUTHORIZATION_FAILED if the brokers do not allow two-phase commit."""
    request = (
        prepared(transactional_id, timeout_ms)
        if two_phase
        else InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    )
    answer = ask_all(cluster, {transactional_id: request}, f"beginning transaction {transactional_id}")
    return begun_of(transactional_id, granted(answer[transactional_id], transactional_id))


def take_over(cluster: Metadata, transactional_ids: Iterable[str], timeout_ms: int) -> dict[str, Taken]:
    """From now on only the caller can end what is open under these ids, for another `timeout_ms` since it was begun.
    Raises `KafkaError`."""
    requests = {name: prepared(name, timeout_ms, keeps=True) for name in transactional_ids}
    taken = {}
    for name, answer in ask_all(cluster, requests, "taking over transactions").items():
        row = granted(answer, name)
        open_id = row.ongoing_txn_producer_id, row.ongoing_txn_producer_epoch
        begun = None if open_id == NO_TRANSACTION else Begun(name, *open_id)
        taken[name] = Taken(begun, begun_of(name, row))
    return taken


def abort_by_id(cluster: Metadata, transactional_ids: Iterable[str], timeout_ms: int) -> None:
    """Abort whatever is open under these ids, and fence whoever writes in it. Raises `KafkaError`."""
    requests = {name: prepared(name, timeout_ms) for name in transactional_ids}
    for name, answer in ask_all(cluster, requests, "aborting transactions").items():
        granted(answer, name)


def end(cluster: Metadata, transactions: Iterable[Begun], *, commit: bool) -> dict[str, ErrorCode]:
    """How each coordinator takes it: NONE, or why it is final that it does not. When this returns, each decision is
    durable; its markers follow at once. Raises `KafkaError` if a coordinator cannot be asked."""
    requests = {one.transactional_id: end_request(one, commit=commit) for one in transactions}
    what = "committing transactions" if commit else "aborting transactions"
    return {name: error_of(answer.error_code) for name, answer in ask_all(cluster, requests, what).items()}


def describe(cluster: Metadata, transactional_ids: Iterable[str]) -> dict[str, TransactionState]:
    """What its coordinator says of each id; those that it does not know are left out. Raises `KafkaError`."""
    requests = {name: DescribeTransactionsRequest(transactional_ids=(name,)) for name in transactional_ids}
    found = {}
    for name, answer in ask_all(cluster, requests, "describing transactions").items():
        (row,) = answer.transaction_states
        if row.error_code == E.TRANSACTIONAL_ID_NOT_FOUND:
            continue
        if row.error_code:
            raise refused(row.error_code, f"describing transaction {name}")
        found[name] = row
    return found


# --- requests and answers


def prepared(name: str, timeout_ms: int, *, keeps: bool = False) -> InitProducerIdRequest:
    """For transactions that somebody else decides. `keeps`: the one that is open."""
    return InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=NEVER_TIMES_OUT,
        enable2_pc=True,
        keep_prepared_txn=keeps,
        two_phase_timeout_ms=timeout_ms,
    )


def end_request(one: Begun, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=one.transactional_id,
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        committed=commit,
    )


def begun_of(name: str, row: Any) -> Begun:
    return Begun(name, row.producer_id, row.producer_epoch)


def granted(answer: Any, name: str) -> Any:
    if answer.error_code:
        raise refused(answer.error_code, f"transaction {name}")
    return answer


# --- asking


def ask_all(cluster: Metadata, requests: Mapping[str, Message], what: str) -> dict[str, Any]:
    """The answer of its coordinator to each request, by transactional id. Raises `KafkaError`, `TimedOut`."""
    found: dict[str, Any] = {}
    patience = Patience(cluster.config, what)
    while left := {name: request for name, request in requests.items() if name not in found}:
        try:
            why = ask_once(cluster, left, found.__setitem__)
        except KafkaError as error:
            cluster.raise_or_wait(patience, error, ())
            continue
        if why:
            patience.pause(why)
    return found


def ask_once(cluster: Metadata, requests: Mapping[str, Message], take: Callable[[str, Any], None]) -> str:
    """Ask each once; why some have to be asked again, empty if none. Raises `KafkaError`."""
    why = ""
    by_node: dict[int, list[str]] = {}
    names = list(requests)
    for begins in range(0, len(names), IDS_MAX):
        for name, node in coordinators(cluster, names[begins : begins + IDS_MAX]).items():
            if isinstance(node, ErrorCode):
                why = f"{name} has no coordinator now: {node.name}"
            else:
                by_node.setdefault(node, []).append(name)
    for node, mine in by_node.items():
        try:
            connection = cluster.connection(node)
            for begins in range(0, len(mine), IN_FLIGHT_MAX):
                some = mine[begins : begins + IN_FLIGHT_MAX]
                why = exchange(connection, {name: requests[name] for name in some}, take) or why
        except Unreachable as error:  # what the others say is not lost
            why = error.problem
    if why:
        cluster.refresh(())
    return why


def exchange(connection: Connection, requests: Mapping[str, Message], take: Callable[[str, Any], None]) -> str:
    for request in requests.values():
        connection.send(request, version_for(connection, request))
    why = ""
    for name in requests:
        answer = connection.receive()
        code = error_of(first_error(answer))
        if code and passes_by_itself(KafkaError(code, "")):
            why = f"{connection} says {code.name} for {name}"
        else:
            take(name, answer)
    return why


def first_error(answer: Any) -> int:
    rows = getattr(answer, "transaction_states", ())
    return int(rows[0].error_code if rows else answer.error_code)


def version_for(connection: Connection, request: Message) -> int:
    """Raises `Unsupported` if the broker does not speak a version that has what is needed."""
    version = connection.version_of(type(request))
    needed, kip = 0, ""
    if isinstance(request, InitProducerIdRequest) and request.enable2_pc:
        needed, kip = TWO_PHASE_SINCE, "two-phase commit (KIP-939)"
    elif isinstance(request, EndTxnRequest):
        needed, kip = EPOCHS_SINCE, "transactions with epochs of their own (KIP-890)"
    if version < needed:
        raise Unsupported(f"{connection} does not offer {kip}: its {type(request).__name__} ends at version {version}")
    return version


def coordinators(cluster: Metadata, names: list[str]) -> dict[str, int | ErrorCode]:
    """The broker that coordinates each id, or why that is not known now. Raises `KafkaError`."""
    request = FindCoordinatorRequest(key=names[0], key_type=TRANSACTION, coordinator_keys=tuple(names))
    answer, _ = cluster.ask_any(request)
    found: dict[str, int | ErrorCode] = {}
    for row in answer.coordinators:
        code = error_of(row.error_code)
        if code and not passes_by_itself(KafkaError(code, "")):
            raise refused(code, f"transaction {row.key} has no coordinator", row.error_message)
        found[row.key] = code or row.node_id
    if any(node not in cluster.by_id for node in found.values() if not isinstance(node, ErrorCode)):
        cluster.refresh(())
    return found
