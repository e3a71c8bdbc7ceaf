"""All groups: members, committed offsets, and their lag over time."""

from collections.abc import Mapping

from strandline.base.value import Value
from strandline.client.admin.groups.described import DEAD, Described, GroupState, Listed
from strandline.client.admin.groups.offsets import committed_by_each
from strandline.client.admin.groups.states import describe_groups, list_groups
from strandline.client.admin.partitions import Place
from strandline.client.brokers import BrokerAt
from strandline.console.asking.series import Points, with_points


class GroupSeen(Value, frozen=True):
    """`state` is None if its coordinator does not describe it; `committed` is why its offsets are not known, if it is
    text."""

    listed: Listed
    state: GroupState | None
    committed: Mapping[Place, int] | str


class Groups(Value, frozen=True):
    """`silent`: brokers that may coordinate more groups, and why they do not say. `lags`: in offsets, over time."""

    time_ms: int = 0
    seen: Mapping[str, GroupSeen] = {}
    silent: Mapping[int, str] = {}
    lags: Mapping[str, Points] = {}


def ask_groups(brokers: Mapping[int, BrokerAt], ends: Mapping[Place, int], before: Groups, now_ms: int) -> Groups:
    listed, silent = list_groups(brokers)
    asked = {row.group_id: row.coordinator for row in listed}
    described, committed = describe_groups(brokers, asked), committed_by_each(brokers, asked)
    seen = {row.group_id: seen_of(row, described.get(row.group_id), committed) for row in listed}
    return with_groups(before, now_ms, ends, {name: one for name, one in seen.items() if one is not None}, silent)


def seen_of(
    listed: Listed, answer: Described | None, committed: Mapping[str, dict[Place, int] | str]
) -> GroupSeen | None:
    """None: it has gone meanwhile."""
    state = answer if isinstance(answer, GroupState) else None
    if listed.state == DEAD or (state is not None and not state.is_there):
        return None
    return GroupSeen(listed, state, committed.get(listed.group_id, "its coordinator says nothing about it"))


def with_groups(
    before: Groups,
    now_ms: int,
    ends: Mapping[Place, int],
    seen: Mapping[str, GroupSeen],
    silent: Mapping[int, str],
) -> Groups:
    lags = {name: lag for name, one in seen.items() if (lag := total_lag(one, ends)) is not None}
    return Groups(now_ms, seen, silent, with_points(before.lags, now_ms, lags))


def lag_of(committed: int, end: int | None) -> int | None:
    """An end that was asked for before the group has committed may lie below its offset."""
    return None if end is None else max(end - committed, 0)


def total_lag(one: GroupSeen, ends: Mapping[Place, int]) -> int | None:
    """Of the partitions whose ends are known; None if the offsets are not, or none of the ends."""
    if isinstance(one.committed, str):
        return None
    lags = [lag for at, offset in one.committed.items() if (lag := lag_of(offset, ends.get(at))) is not None]
    return sum(lags) if lags or not one.committed else None
