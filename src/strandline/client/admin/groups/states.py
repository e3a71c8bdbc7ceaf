"""What coordinators say of groups: which there are, who is in them and who reads what (ListGroups, DescribeGroups)."""

from collections.abc import Iterable, Mapping
from typing import Any

from strandline.base.errors import ErrorCode, error_of
from strandline.client.admin.groups.consumers import describe_consumers
from strandline.client.admin.groups.described import CLASSIC, DEAD, Described, GroupState, Listed, Member
from strandline.client.admin.partitions import Place
from strandline.client.ask import Servers, ask_any
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.wire.compress import Corrupt
from strandline.wire.messages.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_embedded,
)
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
)
from strandline.wire.messages.groups.find_coordinator import GROUP, FindCoordinatorRequest
from strandline.wire.messages.groups.list_groups import ListGroupsRequest

FIND_VERSION = 4


def list_groups(
    brokers: Mapping[int, BrokerAt], states: Iterable[str] = (), types: Iterable[str] = ()
) -> tuple[list[Listed], dict[int, str]]:
    """What all brokers coordinate, by id; and why some did not say."""
    request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
    found, silent = [], {}
    for node, answer in ask_each(brokers, dict.fromkeys(brokers, request), None).items():
        if isinstance(answer, Silence):
            silent[node] = answer.why
            continue
        if answer.error_code:
            silent[node] = f"has not loaded all of its groups: {error_of(answer.error_code).name}"
        found += [
            Listed(row.group_id, row.group_type or CLASSIC, row.protocol_type, row.group_state, node)
            for row in answer.groups
        ]
    return sorted(found, key=lambda row: (row.group_id, row.coordinator)), silent


def coordinators_of(bootstrap: Servers, group_ids: Iterable[str]) -> dict[str, int | ErrorCode]:
    """Who coordinates each of these groups, or why that is not known."""
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=tuple(group_ids))
    answer = ask_any(bootstrap, request, FIND_VERSION)
    return {row.key: error_of(row.error_code) if row.error_code else row.node_id for row in answer.coordinators}


def describe_groups(brokers: Mapping[int, BrokerAt], asked: Mapping[str, int]) -> dict[str, Described]:
    """What its coordinator says of each group. One that is not there is GROUP_ID_NOT_FOUND."""
    by_node: dict[int, list[str]] = {}
    for group_id, node in asked.items():
        by_node.setdefault(node, []).append(group_id)
    requests = {node: DescribeGroupsRequest(groups=tuple(ids), with_progress=True) for node, ids in by_node.items()}
    found: dict[str, Described] = {}
    for node, answer in ask_each(brokers, requests, None).items():
        if isinstance(answer, Silence):
            found |= dict.fromkeys(by_node[node], answer)
        else:
            found |= {row.group_id: of_classic(node, row) for row in answer.groups}
    others = {node: [name for name in ids if is_missing(found[name])] for node, ids in by_node.items()}
    return found | describe_consumers(brokers, {node: ids for node, ids in others.items() if ids})


def is_missing(answer: Described) -> bool:
    """A coordinator says this also of groups of another protocol."""
    return answer is ErrorCode.GROUP_ID_NOT_FOUND


def of_classic(node: int, row: DescribedGroup) -> GroupState | ErrorCode:
    if row.error_code:
        return error_of(row.error_code)
    if row.group_state == DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return GroupState(
        group_id=row.group_id,
        coordinator=node,
        type=CLASSIC,
        state=row.group_state,
        protocol_type=row.protocol_type,
        assignor=row.protocol_data,
        members=tuple(member_of(one, row.protocol_type) for one in row.members),
        progress=row.progress,
    )


def member_of(row: DescribedGroupMember, protocol_type: str) -> Member:
    """Members of other kinds than consumers have texts of their own, which nobody else can read."""
    subscribed: tuple[str, ...] = ()
    assigned: list[Place] = []
    if protocol_type == PROTOCOL_TYPE:
        try:
            if row.member_metadata:
                subscribed = decode_embedded(ConsumerProtocolSubscription, row.member_metadata).topics
            if row.member_assignment:
                rows = decode_embedded(ConsumerProtocolAssignment, row.member_assignment).assigned_partitions
                assigned = [Place(one.topic, index) for one in rows for index in one.partitions]
        except Corrupt:
            pass  # a client that says it is a consumer, and is another
    return Member(
        member_id=row.member_id,
        client_id=row.client_id,
        host=row.client_host,
        instance_id=row.group_instance_id,
        subscribed=tuple(sorted(subscribed)),
        assigned=tuple(sorted(assigned)),
    )


def delete_groups(brokers: Mapping[int, BrokerAt], asked: Mapping[str, int]) -> dict[str, str | None]:
    """What went wrong with each; None: it is deleted."""
    by_node: dict[int, list[str]] = {}
    for group_id, node in asked.items():
        by_node.setdefault(node, []).append(group_id)
    requests: dict[int, Any] = {node: DeleteGroupsRequest(groups_names=tuple(ids)) for node, ids in by_node.items()}
    found: dict[str, str | None] = {}
    for node, answer in ask_each(brokers, requests, None).items():
        if isinstance(answer, Silence):
            found |= dict.fromkeys(by_node[node], f"broker {node} {answer.why}")
        else:
            found |= {row.group_id: error_of(row.error_code).name if row.error_code else None for row in answer.results}
    return found
