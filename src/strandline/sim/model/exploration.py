"""Breadth first through every state that the controller can reach, with the controller's own code.

A state becomes an `Image`; every event that may happen there is planned by the controller's functions, and its records
are applied by `Image.apply`. Every transition and every new state is judged by the laws. The first violation ends the
search, so the path to it is a shortest one.

Planning reads nothing but the image, so one image serves all events of a state, and copies of it take the records.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.base.value import Value
from strandline.controller import basis, isr, reassignments
from strandline.controller.configs import MIN_ISR_KEY
from strandline.controller.partition import Rules, Wish, plan_change
from strandline.metadata.image import Image, Partition
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.strategy import UNCLEAN_KEY
from strandline.sim.model.events import (
    ALTER,
    CATCH_UP,
    LIVES,
    LOSSES,
    REASSIGN,
    SWEEP,
    Event,
    basis_of,
    events,
    records_of,
)
from strandline.sim.model.laws import Step, settled, why_wrong
from strandline.sim.model.setup import Setup
from strandline.sim.model.state import (
    LEADER_EPOCH,
    RESOURCE,
    TOPIC_ID,
    Ids,
    State,
    image_of,
    initial,
    led_by,
    renamed,
    renaming,
    status_of,
)
from strandline.sim.model.transcript import Told, transcript

Planner = Callable[[TopicIdPartition, Partition, Wish, Rules], PartitionChangeRecord | None]
Progress = Callable[[int, int, int], None]  # states, those of the frontier still to do, depth
PROGRESS_EVERY = 500


class Exploration(Value, frozen=True):
    """What was found. Without a counterexample, `states` is the number of all reachable states."""

    states: int
    transitions: int  # pairs of a state and an event that were tried
    depth: int  # of the state farthest from the first
    seconds: float
    counterexample: list[str] | None = None


class Origin(NamedTuple):
    """How a state was first reached: from `parent`, in which `first` was made the first replica if it is not 0."""

    parent: State
    first: int
    event: Event
    names: Ids  # how the successor's brokers were renamed


@contextmanager
def decided_by(planner: Planner) -> Iterator[None]:
    """Let another partition builder decide: that is how the laws are shown to notice. No other code is replaced."""
    modules = (vars(basis), vars(isr), vars(reassignments))
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


class Search:
    def __init__(self, setup: Setup, progress: Progress | None = None) -> None:
        self.setup = setup
        self.progress = progress
        self.identity = None if setup.symmetry else tuple(range(setup.brokers + 1))
        self.transitions = 0
        self.depth = 0
        first = initial(setup)
        self.reached: dict[State, Origin | None] = {first: None}
        self.frontier = [first]

    def run(self) -> Exploration:
        began = time.perf_counter()  # shown, and nothing depends on it
        counterexample = None
        while self.frontier and counterexample is None:
            layer, self.frontier = self.frontier, []
            for done, state in enumerate(layer):
                counterexample = self.expand(state)
                if counterexample is not None:
                    break
                if self.progress is not None and done % PROGRESS_EVERY == 0:
                    self.progress(len(self.reached), len(layer) - done + len(self.frontier), self.depth)
            self.depth += bool(self.frontier)
        seconds = time.perf_counter() - began
        return Exploration(len(self.reached), self.transitions, self.depth, seconds, counterexample)

    def expand(self, state: State) -> list[str] | None:
        """Try everything that may happen in a state."""
        image = image_of(state, self.setup)
        planned = basis_of(image)
        for event in events(state, self.setup):
            step = take(self.setup, state, image, event, records_of(event, state, planned))
            counterexample = self.judge(state, 0, step)
            if counterexample is not None:
                return counterexample
            if self.setup.symmetry and (event.kind == SWEEP or is_election(step)):
                counterexample = self.expand_in_other_orders(state, event)
                if counterexample is not None:
                    return counterexample
        return None

    def expand_in_other_orders(self, state: State, event: Event) -> list[str] | None:
        """The order of the replicas decides who is elected, and nothing else: let every one of them be the first."""
        for first in state.replicas[1:]:
            if first in state.removing:
                continue
            other = led_by(state, first)
            image = image_of(other, self.setup)
            same = event
            if event.kind == REASSIGN and first in event.ids:
                same = event._replace(ids=(first, *(n for n in event.ids if n != first)))
            step = take(self.setup, other, image, same, records_of(same, other, basis_of(image)))
            counterexample = self.judge(state, first, step)
            if counterexample is not None:
                return counterexample
        return None

    def judge(self, parent: State, first: int, step: Step) -> list[str] | None:
        self.transitions += 1
        if step.new is step.old:
            return None
        names = renaming(step.new, self.setup.symmetry)
        new = step.new if names == self.identity else renamed(step.new, names, self.setup.symmetry)
        is_new = new not in self.reached
        if is_new or step.is_changed or step.event.kind in LOSSES:
            why = why_wrong(step)
            if why is not None:
                return self.explain(parent, first, step, why)
        if is_new:
            self.reached[new] = Origin(parent, first, step.event, names)
            self.frontier.append(new)
        return None

    def explain(self, parent: State, first: int, last: Step, why: str) -> list[str]:
        """The way from the first state to the violation, told with the brokers' original names."""
        path: list[Origin] = []
        at = parent
        while (origin := self.reached[at]) is not None:
            path.append(origin)
            at = origin.parent
        original = tuple(range(self.setup.brokers + 1))
        told: list[Told] = []
        for origin in reversed(path):
            state = led_by(origin.parent, origin.first) if origin.first else origin.parent
            image = image_of(state, self.setup)
            records = records_of(origin.event, state, basis_of(image))
            told.append(Told(take(self.setup, state, image, origin.event, records), original, origin.first))
            back = dict(zip(origin.names, original, strict=True))
            original = tuple(back[n] for n in range(len(original)))
        told.append(Told(last, original, first))
        return transcript(self.setup, told, why)


def is_election(step: Step) -> bool:
    return step.new.leader > 0 and step.new.leader != step.old.leader


def take(setup: Setup, old: State, image: Image, event: Event, records: Sequence[Any]) -> Step:
    """One event: the records, applied by the code that every node applies them with, and the state that they make."""
    if not records:
        new = old._replace(known_min=old.effective_min_isr) if event.kind == CATCH_UP else old
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
    min_isr = int(config[MIN_ISR_KEY])
    new = State(
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr,
        last_known=partition.last_known_elr,
        leader=partition.leader,
        recovery=partition.leader_recovery_state,
        adding=partition.adding_replicas,
        removing=partition.removing_replicas,
        statuses=statuses,
        min_isr=min_isr,
        unclean=config[UNCLEAN_KEY] == "true",
        settled=old.settled,
        known_min=old.known_min,
    )
    # Whoever leads anew, or knows a partition epoch that it did not propose itself, has read the log up to there.
    # Without ELR it is all one: who has left an ISR is not eligible.
    hears_answer = event.kind == ALTER and partition.leader_epoch == LEADER_EPOCH
    is_behind = setup.elr and setup.leader_lags and partition.leader > 0 and (hears_answer or not is_changed)
    known = min(old.known_min, new.effective_min_isr) if is_behind else new.effective_min_isr
    if known != old.known_min:
        new = new._replace(known_min=known)
    if (is_changed or min_isr != old.min_isr) and (now := settled(event, old, new)) != old.settled:
        new = new._replace(settled=now)
    return Step(setup, event, old, new, records, after, is_changed)
