"""Breadth first through every state that the controller can reach, with the controller's own code.

A state becomes an `Image`; every event that may happen there is planned by the controller's functions, and its records
are applied by `Image.apply`. Every transition and every new state is judged by the laws. The first violation ends the
search, so the path to it is a shortest one.

Planning reads nothing but the image, so one image serves all events of a state, and copies of it take the records.

The strategy may be changed at any time, and that changes nothing else: so no state has one, and whatever it may bear on
is tried under each.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.controller import basis
from strandline.controller.basis import Basis
from strandline.controller.brokers import directories
from strandline.controller.configs import MIN_ISR_KEY
from strandline.controller.partition import Election, Rules, Wish, plan_change
from strandline.controller.partitions import elections, isr, reassignments, recovery
from strandline.metadata.image import Image, Partition
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.strategy import STRATEGY_KEY
from strandline.sim.model.events import LIVES, LOSSES, MOVES, Event, Kind, basis_of, events, records_of
from strandline.sim.model.ghosts import ghosts
from strandline.sim.model.laws import why_idle, why_wrong
from strandline.sim.model.search import BreadthFirst, Exploration, Progress
from strandline.sim.model.setup import STRATEGIES, Setup
from strandline.sim.model.state import (
    LEADER_EPOCH,
    RESOURCE,
    TOPIC_ID,
    Ids,
    State,
    image_of,
    initial,
    led_by,
    places_of,
    renamed,
    renaming,
    status_of,
)
from strandline.sim.model.step import Step
from strandline.sim.model.transcript import Transition, transcript

Planner = Callable[[TopicIdPartition, Partition, Wish, Rules], PartitionChangeRecord | None]
PREFERRED_SWEEP = Event(Kind.SWEEP, how=Election.PREFERRED)


class Seen(NamedTuple):
    """A state as the controller sees it, under a strategy and with a replica as the preferred leader."""

    reached: State
    state: State
    first: int  # the replica that was made the first one, 0 if they are in the order of `reached`
    image: Image
    basis: Basis


class Origin(NamedTuple):
    """How a state was first reached: by what was seen as `seen` of its parent, with `first` as in `Seen`."""

    seen: State
    first: int
    event: Event
    names: Ids  # how the successor's brokers were renamed


@contextmanager
def decided_by(planner: Planner) -> Iterator[None]:
    """Let another partition builder decide: that is how the laws are shown to notice. No other code is replaced."""
    modules = [vars(module) for module in (basis, isr, reassignments, elections, directories, recovery)]
    before = [module["plan_change"] for module in modules]
    for module in modules:
        module["plan_change"] = planner
    try:
        yield
    finally:
        for module, original in zip(modules, before, strict=True):
            module["plan_change"] = original


def explore(setup: Setup, progress: Progress | None = None, planner: Planner = plan_change) -> Exploration:
    with decided_by(planner):
        return Search(setup, progress).run()


class Search(BreadthFirst[State, Origin]):
    """Its transitions: an event in a state, under a strategy, with a replica as the preferred leader."""

    def __init__(self, setup: Setup, progress: Progress | None = None) -> None:
        super().__init__(initial(setup), progress)
        self.setup = setup
        self.identity = None if setup.symmetry else tuple(range(setup.brokers + 1))
        self.strategy = setup.strategies[0]

    def expand(self, state: State) -> list[str] | None:
        """Try everything that may happen in a state, under every strategy that bears on it."""
        usual, *others = (self.seen(state, state._replace(strategy=s)) for s in self.setup.strategies)
        orders: dict[tuple[int, int], Seen] = {}
        for event in events(usual.state, self.setup):
            step = self.tried(usual, event)
            steps = [(usual, step)]
            if others and bears(step):
                steps += [(other, self.tried(other, event)) for other in others]
            for seen, step in steps:
                counterexample = self.judge(seen, step)
                if counterexample is None and self.setup.symmetry and depends_on_order(step):
                    counterexample = self.expand_in_other_orders(seen, event, orders)
                if counterexample is not None:
                    return counterexample
        return None

    def expand_in_other_orders(
        self, usual: Seen, event: Event, orders: dict[tuple[int, int], Seen]
    ) -> list[str] | None:
        """The order of the replicas decides who is elected, and nothing else: let every one of them be the first."""
        state = usual.state
        for first in state.replicas[1:]:
            if first in state.removing:
                continue
            seen = orders.get((state.strategy, first))
            if seen is None:
                seen = orders[state.strategy, first] = self.seen(usual.reached, led_by(state, first), first)
            same = event
            if event.kind is Kind.REASSIGN and first in event.ids:
                same = event._replace(ids=(first, *(n for n in event.ids if n != first)))
            counterexample = self.judge(seen, self.tried(seen, same))
            if counterexample is not None:
                return counterexample
        return None

    def seen(self, reached: State, state: State, first: int = 0) -> Seen:
        image = image_of(state, self.setup)
        return Seen(reached, state, first, image, basis_of(image, self.setup))

    def tried(self, seen: Seen, event: Event) -> Step:
        return take(self.setup, seen.state, seen.image, event, records_of(event, seen.state, self.setup, seen.basis))

    def judge(self, seen: Seen, step: Step) -> list[str] | None:
        self.transitions += 1
        if step.new is step.old:
            why = why_idle(step)
            return None if why is None else self.explain(seen, step, why)
        names = renaming(step.new, self.setup.symmetry)
        new = step.new if names == self.identity else renamed(step.new, names, self.setup.symmetry)
        if new.strategy != self.strategy:
            new = new._replace(strategy=self.strategy)
        is_new = new not in self.reached
        if is_new or step.is_changed or step.event.kind in LOSSES:
            why = why_wrong(step)
            if why is not None:
                return self.explain(seen, step, why)
        if is_new:
            self.arrive(new, seen.reached, Origin(seen.state, seen.first, step.event, names))
        return None

    def explain(self, seen: Seen, last: Step, why: str) -> list[str]:
        """The way from the first state to the violation, with the brokers' original names."""
        original = tuple(range(self.setup.brokers + 1))
        passed: list[Transition] = []
        for parent, origin in self.path(seen.reached):
            step = self.tried(self.seen(parent, origin.seen), origin.event)
            passed.append(Transition(step, original, origin.first))
            back = dict(zip(origin.names, original, strict=True))
            original = tuple(back[n] for n in range(len(original)))
        passed.append(Transition(last, original, seen.first))
        return transcript(self.setup, passed, why)


def bears(step: Step) -> bool:
    """May the strategy have a part in this? It says who may lead where nobody may cleanly, and what replicas may be
    taken away then. Where recoveries are managed, it is they that go by it."""
    old, new, kind = step.old, step.new, step.event.kind
    if kind is Kind.RECOVER:
        return True
    if step.setup.managed or kind is Kind.DESIGNATE:
        return False
    if kind in MOVES and not step.records:
        return True  # it was refused, or there was nothing to do
    is_asked = old.leader < 0 or new.leader != old.leader
    return is_asked and (kind in MOVES or any(new.lives(n) for n in new.replicas))


def depends_on_order(step: Step) -> bool:
    """May another be elected if another is the preferred leader? If nobody is, nobody would be."""
    if step.event.kind in (Kind.RECOVER, Kind.DESIGNATE) or step.new.leader < 0:
        return False
    return step.new.leader != step.old.leader or step.event == PREFERRED_SWEEP


def take(setup: Setup, old: State, image: Image, event: Event, records: Sequence[Any]) -> Step:
    """One event: the records, applied by the code that every node applies them with, and the state that they make."""
    if not records:
        new = old._replace(known_min=old.effective_min_isr) if event.kind is Kind.CATCH_UP else old
        return Step(setup, event, old, new, records, image, False)
    after = image.copy()
    after.apply_all(records)  # type: ignore[arg-type]  # any sequence will do
    partition = after.topics[TOPIC_ID].partitions[0]
    is_changed = partition is not image.topics[TOPIC_ID].partitions[0]
    statuses = old.statuses
    if event.kind in LIVES:
        status = status_of(after.brokers.get(NodeId(event.node)))
        statuses = (*statuses[: event.node - 1], status, *statuses[event.node :])
    config = after.configs[RESOURCE]
    new = State(
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr,
        last_known=partition.last_known_elr,
        last_leader=partition.last_known_leader,
        leader=partition.leader,
        recovery=partition.leader_recovery_state,
        adding=partition.adding_replicas,
        removing=partition.removing_replicas,
        statuses=statuses,
        places=places_of(after, partition, setup.brokers) if setup.directories else old.places,
        min_isr=int(config[MIN_ISR_KEY]),
        strategy=STRATEGIES.index(config[STRATEGY_KEY]),
        lossy=old.lossy,
        remembers=old.remembers,
        known_min=old.known_min,
    )
    # Whoever leads anew, or knows a partition epoch that it did not propose itself, has read the log up to there.
    # Without ELR it is all one: who has left an ISR is not eligible.
    hears_answer = event.kind is Kind.ALTER and partition.leader_epoch == LEADER_EPOCH
    is_behind = setup.elr and setup.leader_lags and partition.leader > 0 and (hears_answer or not is_changed)
    known = min(old.known_min, new.effective_min_isr) if is_behind else new.effective_min_isr
    if known != old.known_min:
        new = new._replace(known_min=known)
    if setup.elr and (is_changed or new.min_isr != old.min_isr):
        lossy, remembers = ghosts(setup, event, old, new)
        if (lossy, remembers) != (old.lossy, old.remembers):
            new = new._replace(lossy=lossy, remembers=remembers)
    return Step(setup, event, old, new, records, after, is_changed)
