"""Groups: state, members and lag; one of them with its partitions, its lag over time, and what `explain` says of it."""

from strandline.client.admin.groups.described import Member
from strandline.client.admin.partitions import Place
from strandline.client.errors import BadOption
from strandline.console.asking.groups import GroupSeen, lag_of, total_lag
from strandline.console.changes.reset import RESET
from strandline.console.facts import Facts, Observed
from strandline.console.table import Json, Rows
from strandline.console.view import Channel, Query, View
from strandline.diagnosis.groups.gathering import gathered
from strandline.diagnosis.groups.progress import as_json, judge_group, lines_of
from strandline.diagnosis.groups.rows import group_json, listed_json, member_json


def group_rows(facts: Facts) -> Rows:
    if facts.groups is None:
        return {}
    return {name: group_row(facts, one) for name, one in facts.groups.seen.items()}


def group_row(facts: Facts, one: GroupSeen) -> Json:
    """Without times that pass by themselves: a row is sent again when it has changed."""
    assert facts.groups is not None, "a group was seen"
    return {
        **listed_json(one.listed),
        "state": one.listed.state if one.state is None else one.state.state,
        "members": None if one.state is None else len(one.state.members),
        "topics": sorted({at.topic for at in one.committed}) if not isinstance(one.committed, str) else [],
        "lag": total_lag(one, facts.ends.offsets),
        "problem": one.committed if isinstance(one.committed, str) else "",
    }


def looked_rows(facts: Facts) -> Rows:
    """When groups were asked for last: lags over time have a point more."""
    return {"groups": 0 if facts.groups is None else facts.groups.time_ms}


def silent_rows(facts: Facts) -> Rows:
    """Brokers that may coordinate more groups, and why they do not say."""
    return {} if facts.groups is None else {str(node): why for node, why in facts.groups.silent.items()}


# --- one group


def name_in(query: Query) -> str:
    name = query.get("group", "")
    if not name:
        raise BadOption("no group is named")
    return name


def group(observed: Observed, query: Query) -> Json:
    """What is known of a group, without a question to the cluster. null: there is none of this name."""
    facts, name = observed.facts, name_in(query)
    one = None if facts.groups is None else facts.groups.seen.get(name)
    if facts.groups is None or one is None:
        return None
    state = one.state
    owners = {} if state is None else state.owners()
    return {
        **group_row(facts, one),
        "described": None if state is None else group_json(state),
        "member_rows": [] if state is None else [member_json(state, member) for member in state.members],
        "partitions": positions(one, owners, facts),
        "lags": facts.groups.lags.get(name, ()),
    }


def positions(one: GroupSeen, owners: dict[Place, Member], facts: Facts) -> list[Json]:
    """Of all partitions for which the group has an offset, or which its members read."""
    committed = {} if isinstance(one.committed, str) else one.committed
    rows = []
    for at in sorted({*committed, *owners}):
        offset, end = committed.get(at), facts.ends.offsets.get(at)
        owner = owners.get(at)
        rows.append(
            {
                "topic": at.topic,
                "partition": at.partition,
                "committed_offset": offset,
                "log_end_offset": end,
                "lag": None if offset is None else lag_of(offset, end),
                "client_id": None if owner is None else owner.client_id,
                "host": None if owner is None else owner.host.removeprefix("/"),
            }
        )
    return rows


def explain(observed: Observed, query: Query) -> Json:
    """What `strandline explain --group` says of it. May watch its offsets for some seconds."""
    facts = gathered(observed.config, observed.options, name_in(query))
    findings = judge_group(facts)
    return {**as_json(facts, findings), "lines": lines_of(facts, findings)}


GROUPS = View(
    "groups",
    "Groups",
    channels=(
        Channel("groups", ("groups", "ends"), group_rows),
        Channel("lags-looked", ("groups",), looked_rows),
        Channel("silent-coordinators", ("groups",), silent_rows),
    ),
    reads={"group": group, "group-explained": explain},
    changes={"reset-offsets": RESET},
)
