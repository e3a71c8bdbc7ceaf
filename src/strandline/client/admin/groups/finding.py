"""Groups by their ids, as their coordinators describe them."""

from collections.abc import Iterable, Mapping
from typing import NoReturn

from strandline.base.errors import ErrorCode
from strandline.client.admin.groups.described import Described, GroupState
from strandline.client.admin.groups.states import coordinators_of, describe_groups
from strandline.client.ask import Servers
from strandline.client.brokers import BrokerAt, Silence
from strandline.client.errors import BadOption, StrandlineError, refused


def asked_for(bootstrap: Servers, brokers: Mapping[int, BrokerAt], names: Iterable[str]) -> dict[str, Described]:
    names = list(names)
    coordinators = coordinators_of(bootstrap, names) if names else {}
    known = {name: node for name, node in coordinators.items() if not isinstance(node, ErrorCode)}
    unknown: dict[str, Described] = {name: node for name, node in coordinators.items() if isinstance(node, ErrorCode)}
    return unknown | describe_groups(brokers, known)


def one(name: str, answer: Described, options: str) -> GroupState:
    """Raises StrandlineError if its coordinator does not describe it. `options`: what a command needs to reach the
    cluster."""
    return answer if isinstance(answer, GroupState) else missing(name, answer, options)


def missing(name: str, answer: ErrorCode | Silence, options: str) -> NoReturn:
    why = f"`strandline explain --group {name}{options}` says why if it stays so"
    if answer is ErrorCode.GROUP_ID_NOT_FOUND:
        raise StrandlineError(f"group '{name}' does not exist", "`strandline groups list` names those that do")
    if answer is ErrorCode.INVALID_GROUP_ID:
        raise BadOption(f"'{name}' cannot be the id of a group")
    if answer is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        raise refused(answer, f"group '{name}'")
    if isinstance(answer, Silence):
        raise StrandlineError(f"the coordinator of group '{name}' {answer.why}", why)
    raise StrandlineError(f"group '{name}' has no coordinator now: {answer.name}", f"repeat the command; {why}")
