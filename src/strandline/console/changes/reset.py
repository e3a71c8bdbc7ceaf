"""Where a group goes on, with the code of `strandline groups reset-offsets`."""

from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from strandline.client.admin.groups.described import GroupState
from strandline.client.admin.groups.finding import asked_for, one
from strandline.client.admin.groups.scope import scope_of
from strandline.client.admin.partitions import Place
from strandline.client.brokers import brokers_of
from strandline.client.cluster import Cluster
from strandline.client.errors import BadOption, StrandlineError
from strandline.console.facts import Observed
from strandline.console.table import Json
from strandline.console.view import Change, Int32, Offset
from strandline.diagnosis.groups.plans import Reset, Target, consequence, reset_json, why_not_inactive
from strandline.diagnosis.groups.resetting import Goal, planned, reset
from strandline.diagnosis.groups.times import parsed_duration, parsed_time, to_ms

To = Literal["to-earliest", "to-latest", "to-current", "to-offset", "shift-by", "to-datetime", "by-duration"]


class NewOffset(Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    partition: Int32
    offset: Offset


class ResetOffsets(Struct, frozen=True, forbid_unknown_fields=True):
    """`scope`: TOPIC or TOPIC:0,1; empty: all that the group has offsets for. `value`: the offset, the shift, the time
    or the duration, as the command takes it. `planned`: the offsets that the operator has confirmed."""

    group: str
    to: To
    value: str = ""
    scope: tuple[str, ...] = ()
    planned: tuple[NewOffset, ...] = ()


def goal_of(wanted: ResetOffsets, now: datetime) -> Goal:
    """Raises BadOption."""
    target = Target(wanted.to)
    if target in (Target.OFFSET, Target.SHIFT):
        try:
            number = int(wanted.value)
        except ValueError:
            raise BadOption(f"'{wanted.value}' is not a number") from None
        if target is Target.OFFSET and number < 0:
            raise BadOption("an offset is not negative")
        return Goal(target, number)
    if target is Target.DATETIME:
        return Goal(target, to_ms(parsed_time(wanted.value)))
    if target is Target.DURATION:
        return Goal(target, to_ms(now - parsed_duration(wanted.value)))
    return Goal(target)


def state_of(observed: Observed, group: str) -> GroupState:
    answer = asked_for(observed.config, brokers_of(observed.config), [group])[group]
    return one(group, answer, observed.options)


def plan(observed: Observed, wanted: ResetOffsets) -> Json:
    """Each partition's old and new offset, and what the group skips and reads again; and who is in the way."""
    goal = goal_of(wanted, datetime.now(UTC))
    state = state_of(observed, wanted.group)
    with Cluster(observed.config) as connected:
        plans, unplanned = planned(observed.config, connected, [state], goal, scope_of(wanted.scope))
    return plan_json(plans, unplanned, why_not_inactive(state))


def plan_json(plans: list[Reset], unplanned: list[str], in_the_way: tuple[str, str] | None) -> Json:
    return {
        "rows": [{**reset_json(plan), "consequence": consequence(plan)} for plan in plans],
        "unplanned": unplanned,
        "in_the_way": list(in_the_way or ()),
        "can_reset": bool(plans) and not unplanned and in_the_way is None,
    }


def reset_as_planned(observed: Observed, wanted: ResetOffsets) -> Json:
    """To exactly the offsets that were confirmed. Refused if the log has one of them no more, or the group has
    members."""
    if not wanted.planned:
        raise BadOption("no plan was confirmed")
    offsets = {Place(row.topic, row.partition): row.offset for row in wanted.planned}
    state = state_of(observed, wanted.group)
    in_the_way = why_not_inactive(state)
    if in_the_way is not None:
        raise StrandlineError(*in_the_way)
    goal = Goal(Target.FILE, files={wanted.group: offsets})
    with Cluster(observed.config) as connected:
        plans, unplanned = planned(observed.config, connected, [state], goal, {})
        moved = [f"{plan.at}: {plan.note}" for plan in plans if plan.new != offsets[plan.at]]
        if unplanned or moved:
            raise StrandlineError("; ".join([*unplanned, *moved]), "nothing was changed: plan it again")
        failed = reset(connected, plans)
    return {
        "rows": [
            {**reset_json(plan, "failed" if why else "reset", why), "consequence": consequence(plan)}
            for plan in plans
            for why in [failed.get((plan.group_id, plan.at))]
        ]
    }


RESET = Change(ResetOffsets, plan, reset_as_planned)
