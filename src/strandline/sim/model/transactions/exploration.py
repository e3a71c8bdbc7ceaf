"""Breadth first through all that two clients, faults and time can do to one transactional id."""

from collections.abc import Sequence

from msgspec.structs import replace

from strandline.sim.model.search import BreadthFirst, Exploration, Progress
from strandline.sim.model.transactions.calm import Calm
from strandline.sim.model.transactions.coordinators import Coordinators
from strandline.sim.model.transactions.events import Event, events, happen
from strandline.sim.model.transactions.machine import NOW, Load
from strandline.sim.model.transactions.partition_logs import PartitionLogs
from strandline.sim.model.transactions.requests import ID, TIMEOUT_MS
from strandline.sim.model.transactions.setup import Setup
from strandline.sim.model.transactions.state import Client, State
from strandline.sim.model.transactions.transcript import transcript
from strandline.sim.model.transactions.turn import Tables, Turn
from strandline.txn.states import State as Phase
from strandline.txn.transaction import Transaction

PRODUCER_ID = 1


def explore(setup: Setup, progress: Progress | None = None) -> Exploration:
    return Search(setup, progress).run()


def initial(tables: Tables) -> State:
    setup = tables.setup
    before = None
    if setup.epoch >= 0:
        before = Transaction(ID, PRODUCER_ID, setup.epoch, TIMEOUT_MS, Phase.EMPTY, NOW)
    active, _ = tables.coordinators.load(Load(before, 0, True))
    return State(
        committed=before,
        tail=None,
        active=active,
        zombie=None,
        logs=(tables.logs.empty,) * 2,
        clients=(Client(), Client()),
        late=(),
        markings=(),
        starts=setup.starts,
        bumps=setup.bumps,
        transactions=setup.transactions,
        failovers=setup.failovers,
        timeouts=setup.timeouts,
        lates=setup.late,
        losses=setup.losses,
        refusals=setup.refusals,
        proved=() if before is None else ((before.producer_id, before.epoch),),
    )


class Search(BreadthFirst[State, Event]):
    def __init__(self, setup: Setup, progress: Progress | None = None) -> None:
        self.tables = Tables(setup, Coordinators(setup), PartitionLogs())
        self.calm = Calm(self.tables)
        # A way to a broken law, found while an end was looked for, and its length: the search may find a shorter one.
        self.longer: tuple[int, list[str]] | None = None
        super().__init__(initial(self.tables), progress)

    def run(self) -> Exploration:
        found = super().run()
        if found.counterexample is not None or self.longer is None:
            return found
        return replace(found, counterexample=self.longer[1])

    def expand(self, state: State) -> list[str] | None:
        if self.longer is not None and self.depth + 1 >= self.longer[0]:
            return self.longer[1]
        for event in events(state, self.tables.setup):
            turn = happen(self.tables, state, event)
            counterexample = self.judge(state, event, turn)
            for lost in range(turn.answers if state.lates else 0):
                if counterexample is None:
                    other = event._replace(lost=lost)
                    counterexample = self.judge(state, other, happen(self.tables, state, other))
            if counterexample is not None:
                return counterexample
        return None

    def judge(self, state: State, event: Event, turn: Turn) -> list[str] | None:
        self.transitions += 1
        if turn.why is not None:
            return self.explain(state, event, turn.why)
        if turn.state in self.reached:
            return None
        self.arrive(turn.state, state, event)
        found = self.calm.why_not_finished(turn.state)
        if found is None:
            return None
        if found.hangs:
            return self.explain(state, event, found.why, found.passed)
        length = self.depth + 1 + len(found.passed)
        if self.longer is None or length < self.longer[0]:
            self.longer = length, self.explain(state, event, found.why, found.passed)
        return None

    def explain(self, state: State, last: Event, why: str, calm: Sequence[Event] = ()) -> list[str]:
        path = [event for _, event in self.path(state)]
        return transcript(self.tables, initial(self.tables), [*path, last], calm, why)
