"""Where groups go on: planned for each partition, then committed for a group that has no members."""

from collections.abc import Mapping

from strandline.base.ids import by_topic
from strandline.base.value import Value
from strandline.client.admin.groups.described import GroupState
from strandline.client.admin.groups.offsets import PATIENCE_MS, Position, committed_by, ends_of
from strandline.client.admin.groups.positions import states_of
from strandline.client.admin.groups.scope import Scope, places_in
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.ask import Servers
from strandline.client.cluster import Cluster as Connected
from strandline.client.errors import KafkaError
from strandline.client.groups import Committed
from strandline.diagnosis.groups.plans import Reset, Target, plan_reset


class Goal(Value, frozen=True):
    """Where to. `number`: the offset of OFFSET, the shift of SHIFT, the timestamp in ms of DATETIME and DURATION.
    `files`: by group, the offsets of FILE."""

    target: Target
    number: int | None = None
    files: Mapping[str, Mapping[Place, int]] = {}


# --- the plan


def planned(
    bootstrap: Servers, connected: Connected, states: list[GroupState], goal: Goal, scope: Scope
) -> tuple[list[Reset], list[str]]:
    """What is planned, and what cannot be, and why. Without a scope, all for which there are offsets. Raises
    StrandlineError if there is no such topic or partition."""
    plans, unplanned = [], []
    for state in states:
        named = goal.files.get(state.group_id)
        committed = committed_by(connected, state.group_id)
        places = partitions(bootstrap, scope, committed, named)
        ends = ends_of(connected, places, places)
        wanted: dict[Place, int | None] = dict.fromkeys(places, goal.number)
        if goal.target in (Target.DATETIME, Target.DURATION):
            assert goal.number is not None, "a time"
            known = [at for at in places if not isinstance(ends[at], str)]
            wanted |= at_time(connected, known, goal.number)
        wanted |= named or {}
        for at in places:
            position = Position(at, committed.get(at), ends[at])
            plan = plan_reset(state.group_id, position, goal.target, wanted[at])
            if isinstance(plan, str):
                unplanned.append(plan)
            else:
                plans.append(plan)
    return plans, unplanned


def partitions(
    bootstrap: Servers, scope: Scope, committed: Mapping[Place, Committed], named: Mapping[Place, int] | None
) -> dict[Place, PartitionState]:
    """`named`: by a file. If neither it nor a scope is given, all for which there are offsets."""
    if named is not None:
        return places_in(bootstrap, {**by_topic(named)})
    if scope:
        return places_in(bootstrap, scope)
    states = states_of(bootstrap, (at.topic for at in committed))
    return {at: state for at, state in states.items() if at in committed}


def at_time(connected: Connected, places: list[Place], timestamp_ms: int) -> dict[Place, int | None]:
    asked = {(at.topic, at.partition): timestamp_ms for at in places}
    found = connected.list_offsets(asked, 0, patience_ms=PATIENCE_MS)
    return {Place(*at): row.offset if row.offset >= 0 else None for at, row in found.items()}


# --- doing it


def reset(connected: Connected, plans: list[Reset]) -> dict[tuple[str, Place], str]:
    """What went wrong. Offsets are read again afterwards: they count if the group has them."""
    failed: dict[tuple[str, Place], str] = {}
    for group_id in dict.fromkeys(plan.group_id for plan in plans):
        mine = [plan for plan in plans if plan.group_id == group_id]
        try:
            connected.offset_commit(
                group_id, {(p.at.topic, p.at.partition): p.new for p in mine}, patience_ms=PATIENCE_MS
            )
            after = committed_by(connected, group_id)
        except KafkaError as error:
            failed |= {(group_id, plan.at): error.problem for plan in mine}
            continue
        for plan in mine:
            there = after.get(plan.at)
            if there is None or there.offset != plan.new:
                other = "none" if there is None else f"{there.offset}"
                failed[group_id, plan.at] = f"it was reset to {plan.new}, and has {other} now: does a consumer run?"
    return failed
