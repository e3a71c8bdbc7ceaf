"""Which groups, and which of their partitions, a command is about."""

import sys
from collections.abc import Iterable
from typing import Annotated, NoReturn

from cyclopts import Parameter

from strandline.base.errors import ErrorCode
from strandline.cli.connect import Cluster, fail
from strandline.client.admin.groups.described import Described, GroupState
from strandline.client.admin.groups.states import coordinators_of, describe_groups, list_groups
from strandline.client.admin.partitions import PartitionState, Place, describe_partitions
from strandline.client.brokers import BrokerAt, Silence, brokers_of
from strandline.client.errors import BadOption, refused

Ids = Annotated[list[str] | None, Parameter(name="--group", negative="", help="the group; may be repeated")]
All = Annotated[bool, Parameter(name="--all-groups", negative="", help="all groups of the cluster")]
Topics = Annotated[
    list[str] | None,
    Parameter(name="--topic", negative="", help="TOPIC, or TOPIC:0,1 for these partitions of it; may be repeated"),
]
INCOMPLETE = 3  # what commands end with if a broker did not answer
Scope = dict[str, tuple[int, ...] | None]  # partitions by topic; None: all of them


def described(cluster: Cluster, ids: Ids, is_all: bool) -> tuple[dict[int, BrokerAt], list[GroupState]]:
    """The brokers, and the chosen groups as their coordinators describe them. Ends the command if one of them does
    not."""
    if is_all == bool(ids):
        fail("name --group, or else --all-groups", "`strandline groups list` shows which there are", status=2)
    brokers = brokers_of(cluster.config)
    names = list(dict.fromkeys(ids or ()))
    if is_all:
        found, silent = list_groups(brokers)
        if silent:
            fail("; ".join(f"broker {node} {why}" for node, why in silent.items()), "it may coordinate more groups")
        names = [row.group_id for row in found]
    states = asked_for(cluster, brokers, names)
    if is_all:  # some have gone since they were listed
        names = [name for name in names if states[name] is not ErrorCode.GROUP_ID_NOT_FOUND]
    return brokers, [one(name, states[name], cluster.options) for name in names]


def asked_for(cluster: Cluster, brokers: dict[int, BrokerAt], names: list[str]) -> dict[str, Described]:
    coordinators = coordinators_of(cluster.config, names) if names else {}
    known = {name: node for name, node in coordinators.items() if not isinstance(node, ErrorCode)}
    unknown: dict[str, Described] = {name: node for name, node in coordinators.items() if isinstance(node, ErrorCode)}
    return unknown | describe_groups(brokers, known)


def one(name: str, answer: Described, options: str) -> GroupState:
    return answer if isinstance(answer, GroupState) else missing(name, answer, options)


def missing(name: str, answer: ErrorCode | Silence, options: str) -> NoReturn:
    why = f"`strandline explain --group {name}{options}` says why if it stays so"
    if answer is ErrorCode.GROUP_ID_NOT_FOUND:
        fail(f"group '{name}' does not exist", "`strandline groups list` names those that do")
    if answer is ErrorCode.INVALID_GROUP_ID:
        fail(f"'{name}' cannot be the id of a group", status=2)
    if answer is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        raise refused(answer, f"group '{name}'")
    if isinstance(answer, Silence):
        fail(f"the coordinator of group '{name}' {answer.why}", why)
    fail(f"group '{name}' has no coordinator now: {answer.name}", f"repeat the command; {why}")


# --- partitions


def scope_of(topics: Iterable[str]) -> Scope:
    found: Scope = {}
    for text in topics:
        topic, colon, indexes = text.partition(":")
        numbers = indexes.split(",") if colon else []
        if not topic or not all(number.isdecimal() for number in numbers) or (colon and not indexes):
            raise BadOption(f"'{text}' is neither TOPIC nor TOPIC:0,1")
        if topic in found:
            raise BadOption(f"topic '{topic}' is named twice")
        found[topic] = tuple(map(int, numbers)) if colon else None
    return found


def places_in(cluster: Cluster, scope: Scope) -> dict[Place, PartitionState]:
    """Ends the command if there is no such topic or partition."""
    states = {state.at: state for state in describe_partitions(cluster.config, scope)} if scope else {}
    wanted = [Place(topic, index) for topic, indexes in scope.items() for index in indexes or ()]
    missing = [str(at) for at in wanted if at not in states]
    if missing:
        fail(f"there is no partition {', '.join(missing)}")
    return {at: state for at, state in states.items() if is_in(at, scope)}


def is_in(at: Place, scope: Scope) -> bool:
    if at.topic not in scope:
        return False
    indexes = scope[at.topic]
    return indexes is None or at.partition in indexes


def report_silent(silent: dict[int, str]) -> int:
    """The exit status, after a line about each broker that did not say what it has."""
    for node, why in sorted(silent.items()):
        print(f"not known: broker {node} {why}; it may coordinate more groups", file=sys.stderr)
    return INCOMPLETE if silent else 0
