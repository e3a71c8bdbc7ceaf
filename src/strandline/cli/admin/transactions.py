"""`strandline transactions`: what coordinators and partitions know of transactions; kafka-transactions in short.

A transaction that its coordinator knows is ended by its coordinator alone, or else some partitions have it and others
do not. So `abort` writes a marker into one partition only where no coordinator does.
"""

import sys
import time
from typing import Annotated

from cyclopts import App, Parameter
from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.cli.admin.transaction_columns import DESCRIBED, HANGING, LISTED, PRODUCERS
from strandline.cli.columns import show, table_of
from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.show import show_rows
from strandline.client.admin.open_transactions import find_hanging
from strandline.client.admin.partitions import PartitionState, Place, chosen, describe_partitions
from strandline.client.admin.transactions import (
    Coordinated,
    ProducerAt,
    Uncertain,
    coordinators_of,
    describe_at,
    known_to_coordinators,
    list_transactions,
    producers_at,
    reason,
    write_abort,
)
from strandline.client.ask import Servers
from strandline.client.brokers import BrokerAt, Silence, brokers_of
from strandline.client.errors import refused
from strandline.diagnosis.transactions import coordinated_json, hanging_json, listed_json, producer_json
from strandline.txn.states import State
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest

FOUND, INCOMPLETE = 2, 3  # what commands end with
STATES = (*(state.named for state in State), "PrepareEpochFence")
MINUTE_MS = 60_000

app = App(name="transactions", help="Show transactions; find those that hang, and abort them.")
Repeated = Annotated[list[str] | None, Parameter(negative="")]
Ids = Annotated[list[int] | None, Parameter(negative="")]


@app.command(name="list")
def list_all(
    *,
    state: Repeated = None,
    producer_id: Ids = None,
    running_longer_than_ms: Annotated[int, Parameter(name=("--running-longer-than-ms", "--duration-filter"))] = -1,
    transactional_id_pattern: str | None = None,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> int:
    """List the transactional ids of all coordinators. Exit status 3 if one of them does not answer.

    Parameters
    ----------
    state
        only those in this state, such as Ongoing; may be repeated
    producer_id
        only those of this producer; may be repeated
    running_longer_than_ms
        only those whose transaction has been open for longer
    transactional_id_pattern
        only those whose whole id this regular expression matches
    """
    wrong = [name for name in state or () if name not in STATES]
    if wrong:
        misuse(f"'{wrong[0]}' is not a state of a transaction", f"the states are {', '.join(STATES)}")
    request = ListTransactionsRequest(
        state_filters=tuple(state or ()),
        producer_id_filters=tuple(producer_id or ()),
        duration_filter=running_longer_than_ms,
        transactional_id_pattern=transactional_id_pattern,
    )
    found, silent = list_transactions(brokers_of(cluster.config), request)
    show([listed_json(row) for row in found], LISTED, json_output)
    return report_unknown([f"broker {node} {why}; it may coordinate more" for node, why in sorted(silent.items())])


@app.command
def describe(
    *,
    transactional_id: Annotated[list[str], Parameter(negative="")],
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Show what its coordinator knows of a transactional id: producer, state, since when, partitions.

    Parameters
    ----------
    transactional_id
        the id; may be repeated
    """
    nodes: dict[str, int] = {}
    for name, node in coordinators_of(cluster.config, transactional_id).items():
        if node is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            raise refused(node, f"transactional id '{name}'")
        if isinstance(node, ErrorCode):
            advice = "repeat the command; `strandline explain __transaction_state` says why if it stays so"
            fail(f"transactional id '{name}' has no coordinator now: {reason(node)}", advice)
        nodes[name] = node
    rows = []
    for name, answer in describe_at(brokers_of(cluster.config), nodes).items():
        if isinstance(answer, Silence):
            fail(f"broker {nodes[name]} coordinates '{name}', and {answer.why}", "start it, or wait for an election")
        if answer is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            fail(f"transactional id '{name}' is not known", "`strandline transactions list` names those that are")
        if isinstance(answer, ErrorCode):
            fail(f"broker {nodes[name]} does not describe '{name}': {reason(answer)}", "repeat the command")
        rows.append(coordinated_json(answer, now_ms()))
    show(rows, DESCRIBED, json_output)


@app.command(name=("producers", "describe-producers"))
def producers(
    *,
    topic: str,
    partition: int,
    broker_id: int | None = None,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Show the producers that a partition's leader knows, and where their open transactions begin there.

    Parameters
    ----------
    topic
        the topic
    partition
        the partition
    broker_id
        ask this replica instead of the leader
    """
    state = only(cluster.config, topic, partition)
    node = leader_of(state) if broker_id is None else broker_id
    show(
        [producer_json(row) for row in producers_of(brokers_of(cluster.config), node, state.at)], PRODUCERS, json_output
    )


@app.command
def abort(
    *,
    topic: str,
    partition: int,
    start_offset: int | None = None,
    producer_id: int | None = None,
    producer_epoch: int | None = None,
    coordinator_epoch: int | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Abort a hanging transaction in one partition: one that its coordinator does not know there.

    Parameters
    ----------
    topic
        the topic
    partition
        the partition
    start_offset
        where the transaction begins there
    producer_id
        instead of its start: whose transaction it is
    producer_epoch
        instead of the epoch that the leader knows
    coordinator_epoch
        instead of the epoch of the producer's last marker there
    force
        abort it also if its coordinator knows it, or may: other partitions may then have it as committed
    """
    if (start_offset is None) == (producer_id is None):
        misuse(
            "the transaction is not named, or named twice",
            "name either --start-offset or --producer-id: `strandline transactions producers` shows both",
        )
    state = only(cluster.config, topic, partition)
    leader, brokers = leader_of(state), brokers_of(cluster.config)
    opened = [row for row in producers_of(brokers, leader, state.at) if row.is_open]
    wanted = [row for row in opened if start_offset in (None, row.start_offset)]
    wanted = [row for row in wanted if producer_id in (None, row.producer_id)]
    if not wanted:
        which = f"at offset {start_offset}" if producer_id is None else f"of producer {producer_id}"
        starts = ", ".join(f"producer {row.producer_id} at {row.start_offset}" for row in opened) or "none"
        fail(f"no transaction {which} is open in {state.at}", f"open there: {starts}")
    (one,) = wanted
    if not force:
        check_hanging(cluster.config, brokers, one)
    if producer_epoch is not None:
        one = replace(one, epoch=producer_epoch)
    if coordinator_epoch is not None:
        one = replace(one, coordinator_epoch=coordinator_epoch)
    write_abort(brokers, leader, one)
    text = f"aborted the transaction of producer {one.producer_id} in {one.at}, from offset {one.start_offset}"
    show_rows([producer_json(one)], json_output, lambda rows: table_of(rows, PRODUCERS), lambda row: text)


def check_hanging(bootstrap: Servers, brokers: dict[int, BrokerAt], one: ProducerAt) -> None:
    known = known_to_coordinators(bootstrap, brokers, [one])[one]
    if isinstance(known, Coordinated):
        fail(
            f"it does not hang: broker {known.coordinator} coordinates it, '{known.transactional_id}' ({known.state})",
            "its coordinator aborts it in all its partitions after its timeout, or when a producer starts with that"
            f" id: `strandline transactions describe --transactional-id {known.transactional_id}`",
        )
    if isinstance(known, Uncertain):
        fail(
            f"it may not hang: {known.why}",
            "repeat the command when all coordinators answer; --force aborts it in this partition, whatever the others"
            " have of it",
        )


@app.command(name="find-hanging")
def find(
    *,
    broker_id: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
    max_transaction_timeout: int = 15,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> int:
    """Find transactions that are open in a partition for too long, and that no coordinator is going to end.

    Exit status 0 if there is none, 2 if there are, 3 if somebody who might know did not answer.

    Parameters
    ----------
    broker_id
        look only at replicas of this broker
    topic
        look only at this topic; everywhere if neither it nor a broker is named
    partition
        look only at this partition of the topic
    max_transaction_timeout
        in minutes: the longest timeout that a transaction may have (transaction.max.timeout.ms)
    """
    if partition is not None and topic is None:
        misuse("--partition needs --topic", "name the topic of the partition")
    brokers = brokers_of(cluster.config)
    if broker_id is not None and broker_id not in brokers:
        misuse(f"broker {broker_id} is not registered", f"registered are {', '.join(map(str, brokers))}")
    if topic is not None and partition is not None:
        states = [only(cluster.config, topic, partition)]
    else:
        states = describe_partitions(cluster.config, [] if topic is None else [topic])
    now = now_ms()
    found = find_hanging(cluster.config, brokers, states, now - max_transaction_timeout * MINUTE_MS, broker_id)
    rows = [hanging_json(row, now) for row in found.hanging]
    show([{**row, "duration_min": row["duration_ms"] // MINUTE_MS} for row in rows], HANGING, json_output)
    incomplete = report_unknown(found.unknown)
    return FOUND if rows else incomplete


# --- what commands share


def only(bootstrap: Servers, topic: str, partition: int) -> PartitionState:
    (state,) = chosen(bootstrap, f"{topic}:{partition}")
    return state


def leader_of(state: PartitionState) -> int:
    if state.is_unavailable:
        fail(f"{state.at} has no leader", f"`strandline explain {state.at.topic}:{state.at.partition}` says why")
    return state.leader


def producers_of(brokers: dict[int, BrokerAt], node: int, at: Place) -> tuple[ProducerAt, ...]:
    answer = producers_at(brokers, {node: [at]})[node, at]
    if isinstance(answer, str):
        fail(f"{at}: {answer}", f"`strandline explain {at.topic}:{at.partition}` says who has it")
    return answer


def report_unknown(unknown: list[str]) -> int:
    if not unknown:
        return 0
    for text in unknown:
        print(f"not known: {text}", file=sys.stderr)
    print("  repeat the command when these brokers answer", file=sys.stderr)
    return INCOMPLETE


def now_ms() -> int:
    return int(time.time() * 1000)
