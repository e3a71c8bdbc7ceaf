"""Which groups a command is about."""

import sys
from typing import Annotated

from cyclopts import Parameter

from strandline.base.errors import ErrorCode
from strandline.cli.connect import Cluster, fail, misuse
from strandline.client.admin.groups.described import GroupState
from strandline.client.admin.groups.finding import asked_for, one
from strandline.client.admin.groups.states import list_groups
from strandline.client.brokers import BrokerAt, brokers_of

Ids = Annotated[list[str] | None, Parameter(name="--group", negative="", help="the group; may be repeated")]
All = Annotated[bool, Parameter(name="--all-groups", negative="", help="all groups of the cluster")]
Topics = Annotated[
    list[str] | None,
    Parameter(name="--topic", negative="", help="TOPIC, or TOPIC:0,1 for these partitions of it; may be repeated"),
]
INCOMPLETE = 3  # what commands end with if a broker did not answer


def described(cluster: Cluster, ids: Ids, is_all: bool) -> tuple[dict[int, BrokerAt], list[GroupState]]:
    """The brokers, and the chosen groups as their coordinators describe them. Ends the command if one of them does
    not."""
    if is_all == bool(ids):
        misuse(
            "no group is named, or --group and --all-groups both are",
            "name either --group or --all-groups; `strandline groups list` lists the groups",
        )
    brokers = brokers_of(cluster.config)
    names = list(dict.fromkeys(ids or ()))
    if is_all:
        found, silent = list_groups(brokers)
        if silent:
            fail(
                "; ".join(f"broker {node} {why}" for node, why in silent.items()),
                "it may coordinate more groups: start it, and repeat the command",
            )
        names = [row.group_id for row in found]
    states = asked_for(cluster.config, brokers, names)
    if is_all:  # some have gone since they were listed
        names = [name for name in names if states[name] is not ErrorCode.GROUP_ID_NOT_FOUND]
    return brokers, [one(name, states[name], cluster.options) for name in names]


def report_silent(silent: dict[int, str]) -> int:
    """The exit status, after a line about each broker that did not say what it has."""
    for node, why in sorted(silent.items()):
        print(f"not known: broker {node} {why}; it may coordinate more groups", file=sys.stderr)
    return INCOMPLETE if silent else 0
