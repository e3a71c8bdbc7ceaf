"""A path through the model as a story: what happened, and where that left the transaction."""

from collections.abc import Sequence

from strandline.sim.model.transactions.calm import ready
from strandline.sim.model.transactions.events import Event, What, happen
from strandline.sim.model.transactions.machine import MARKERS, TRANSACTION
from strandline.sim.model.transactions.requests import NOBODY, Asked, Kind, Stage
from strandline.sim.model.transactions.state import Client, State
from strandline.sim.model.transactions.turn import NO_ONE, Tables
from strandline.txn.transaction import Transaction

END = {True: "a commit", False: "an abort"}


def transcript(tables: Tables, state: State, path: Sequence[Event], calm: Sequence[Event], why: str) -> list[str]:
    lines = [f"model {tables.setup.title}: {tables.setup.limits()}", f"  at first: {show_state(state)}"]
    for number, event in enumerate((*path, *calm), 1):
        if number == len(path) + 1:
            lines.append("faults are over:")
        lines.append(f"{number}. {show_event(event, state)}")
        state = happen(tables, ready(state, event) if number > len(path) else state, event).state
        lines.append(f"  so: {show_state(state)}")
    return [*lines, f"wrong: {why}"]


def show_event(event: Event, state: State) -> str:
    shown = show_step(event, state)
    return shown if event.lost == NO_ONE else f"{shown}; the answer is lost, and the request is sent again"


def show_step(event: Event, state: State) -> str:
    where = "the coordinator of before" if event.is_zombie else "the coordinator"
    who = f"client {event.client + 1}"
    client = state.clients[event.client]
    match event.what:
        case What.START:
            return f"{who} sends InitProducerId" + (", and keeps what is prepared" if event.choice else "")
        case What.BUMP:
            return f"{who} sends InitProducerId with its epoch"
        case What.ADD:
            return f"{who} sends AddPartitionsToTxn for partition {client.added}"
        case What.WRITE:
            return f"{who} sends a batch to partition {client.wrote}"
        case What.PREPARE:
            return f"{who} has prepared its transaction"
        case What.END:
            return f"{who} sends EndTxn, {END[event.choice]}"
        case What.DELIVER:
            assert event.asked is not None
            return f"{where} gets {show_asked(event.asked)}"
        case What.ARRIVE:
            assert event.asked is not None
            return f"partition {event.asked.partition} gets {show_asked(event.asked)}"
        case What.REPEAT:
            return f"{who} gets no answer, and sends its request again"
        case What.GIVE_UP:
            return f"{who} gives its batch up"
        case _:
            return show_brokers(event, where)


def show_brokers(event: Event, where: str) -> str:
    match event.what:
        case What.COMMIT:
            return "what the coordinator wrote is committed"
        case What.REFUSE_RECORD:
            return "what the coordinator wrote is refused: too few replicas are in sync"
        case What.COMMIT_TAIL:
            return "what the new coordinator found is committed"
        case What.FAIL_OVER:
            return "another broker leads" + (", and has what was written last" if event.choice else "")
        case What.RESIGN:
            return "the coordinator of before learns that another broker leads"
        case What.DUE if event.due == TRANSACTION:
            return "the transaction times out"
        case What.DUE if event.due == MARKERS:
            return f"{where} tries markers again"
        case What.DUE:
            return f"{where} lets requests wait no longer"
        case _:
            return show_marker(event)


def show_marker(event: Event) -> str:
    assert event.marking is not None
    sent = event.marking.sent
    late = "a late" if event.marking.is_late else "the"
    marker = f"{late} {'commit' if sent.commits else 'abort'} marker of epoch {sent.epoch}"
    to = f"partition {sent.partition}"
    match event.what:
        case What.MARK:
            return f"{to} gets {marker}, from coordinator epoch {sent.coordinator_epoch}"
        case What.LOSE_ANSWER:
            return f"{to} gets {marker}, and its answer is lost"
        case What.REFUSE:
            return f"{to} refuses {marker}: its leader has moved"
        case _:
            return f"{marker} for {to} is late, and the coordinator waits no longer"


def show_asked(asked: Asked) -> str:
    who = f"of client {asked.client + 1}"
    epoch = f"epoch {asked.producer[1]}"
    if asked.kind is Kind.WRITE:
        is_question = asked.stage is not Stage.SENT
        what = "a batch" if not is_question else f"the question for partition {asked.partition}"
        return f"{what} {who}, {epoch}"
    if asked.kind is Kind.END:
        return f"EndTxn {who}, {epoch}, {END[asked.commits]}"
    return f"{asked.kind.value} {who}" + (f", {epoch}" if asked.producer != NOBODY else "")


def show_state(state: State) -> str:
    parts = [f"committed {show_record(state.committed)}"]
    if state.active.written is not None:
        parts.append(f"being written {show_record(state.active.written)}")
    if state.tail is not None:
        parts.append(f"not committed yet {show_record(state.tail)}")
    parts += [show_client(number, client) for number, client in enumerate(state.clients, 1)]
    for partition, log in enumerate(state.logs):
        if log.records:
            rows = (f"{tag[0] + 1}.{tag[1]} {fate}" for tag, _, fate in log.records)
            parts.append(f"partition {partition} has {', '.join(rows)}")
    return "; ".join(parts)


def show_client(number: int, client: Client) -> str:
    if client.asked is not None:
        return f"client {number} waits for {client.asked.kind.value}"
    if client.producer == NOBODY:
        return f"client {number} does not run"
    return f"client {number} has epoch {client.producer[1]}"


def show_record(transaction: Transaction | None) -> str:
    if transaction is None:
        return "nothing"
    partitions = f" of partitions {[at.partition for at in transaction.partitions]}" if transaction.partitions else ""
    kept = f", kept for epoch {transaction.next_epoch}" if transaction.is_kept else ""
    return f"{transaction.state.named} with epoch {transaction.epoch}{partitions}{kept}"
