"""With faults over, everything comes to its end: no transaction stays open, and no request waits for ever.

Clients do nothing more. What is under way arrives, what was written is committed, and time passes. In two-phase commit
no time ends a transaction, so there a new client starts at last, and does not keep it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from strandline.sim.model.transactions.events import Event, What, happen, ways
from strandline.sim.model.transactions.machine import MARKERS, TRANSACTION, WAITING
from strandline.sim.model.transactions.state import Client, State
from strandline.sim.model.transactions.turn import Tables
from strandline.txn.states import IDLE


class Unfinished(NamedTuple):
    """What happens, and what is wrong then: nothing more happens, or a law is broken on the way."""

    passed: list[Event]
    why: str
    hangs: bool


class Calm:
    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.finishing: set[State] = set()  # states from which an end is reached

    def why_not_finished(self, state: State) -> Unfinished | None:
        path: list[State] = []
        on_path: set[State] = set()
        passed: list[Event] = []
        while state not in self.finishing:
            path.append(state)
            on_path.add(state)
            if is_finished(state):
                break
            for event in coming(state, two_phase=self.tables.setup.two_phase):
                turn = happen(self.tables, ready(state, event), event)
                if turn.why is not None:
                    return Unfinished([*passed, event], turn.why, hangs=False)
                if turn.state not in on_path:
                    passed.append(event)
                    state = turn.state
                    break
            else:
                return Unfinished(passed, hanging(state), hangs=True)
        self.finishing.update(path)
        return None


def coming(state: State, *, two_phase: bool) -> Iterator[Event]:
    """In the order in which it is tried."""
    if state.zombie is not None:
        yield Event(What.RESIGN)
    if state.tail is not None:
        yield Event(What.COMMIT_TAIL)
    if state.active.written is not None:
        yield Event(What.COMMIT)
    if MARKERS in state.active.due:
        yield Event(What.DUE, due=MARKERS)
    for marking in sorted(state.markings, key=lambda one: one.is_late):
        yield Event(What.MARK, marking=marking)
    for asked in (*state.late, *(client.asked for client in state.clients)):
        if asked is not None:
            yield from ways(state, asked)
    if WAITING in state.active.due:
        yield Event(What.DUE, due=WAITING)
    if TRANSACTION in state.active.due:
        yield Event(What.DUE, due=TRANSACTION)
    elif two_phase and state.clients[0].asked is None:
        yield Event(What.START, client=0)


def ready(state: State, event: Event) -> State:
    """Whoever starts at last is a new client."""
    if event.what is not What.START:
        return state
    before = state.clients[0]
    fresh = Client(transaction=before.transaction + 1, number=before.number)
    return state._replace(clients=(fresh, *state.clients[1:]))


def is_finished(state: State) -> bool:
    committed = state.committed
    is_under_way = state.zombie or state.tail or state.active.written or state.markings or state.late
    is_waiting = any(client.asked is not None for client in state.clients)
    if is_under_way or is_waiting or any(log.open for log in state.logs):
        return False
    return committed is None or committed.state in IDLE


def hanging(state: State) -> str:
    for partition, log in enumerate(state.logs):
        if log.open:
            return f"nothing more happens, and a transaction is open in partition {partition}"
    if any(client.asked is not None for client in state.clients) or state.late:
        return "nothing more happens, and a request waits for ever"
    return "nothing more happens, and the transaction is not over for its coordinator"
