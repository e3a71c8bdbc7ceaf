"""What coordinators say of groups of the consumer protocol (ConsumerGroupDescribe, KIP-848)."""

from collections.abc import Mapping

from strandline.base.errors import ErrorCode, error_of
from strandline.client.admin.groups.described import CONSUMER, Described, GroupState, Member
from strandline.client.admin.partitions import Place
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.client.errors import Unsupported
from strandline.wire.messages.consumer_groups import consumer_group_describe as wire
from strandline.wire.messages.groups.consumer_protocol import PROTOCOL_TYPE


def describe_consumers(brokers: Mapping[int, BrokerAt], asked: Mapping[int, list[str]]) -> dict[str, Described]:
    """Groups by their coordinators. Nothing of a cluster that does not know the protocol."""
    requests = {
        node: wire.ConsumerGroupDescribeRequest(group_ids=tuple(ids), with_progress=True) for node, ids in asked.items()
    }
    found: dict[str, Described] = {}
    try:
        answers = ask_each(brokers, requests, None)
    except Unsupported:
        return {}
    for node, answer in answers.items():
        if isinstance(answer, Silence):
            found |= dict.fromkeys(asked[node], answer)
        else:
            found |= {row.group_id: of_consumers(node, row) for row in answer.groups}
    return found


def of_consumers(node: int, row: wire.DescribedGroup) -> GroupState | ErrorCode:
    if row.error_code:
        return error_of(row.error_code)
    return GroupState(
        group_id=row.group_id,
        coordinator=node,
        type=CONSUMER,
        state=row.group_state,
        protocol_type=PROTOCOL_TYPE,
        assignor=row.assignor_name,
        members=tuple(member_of(one) for one in row.members),
        epoch=row.group_epoch,
        progress=row.progress,
    )


def member_of(row: wire.Member) -> Member:
    return Member(
        member_id=row.member_id,
        client_id=row.client_id,
        host=row.client_host,
        instance_id=row.instance_id,
        subscribed=tuple(sorted(row.subscribed_topic_names)),
        regex=row.subscribed_topic_regex or "",
        assigned=places_in(row.assignment),
        epoch=row.member_epoch,
        target=places_in(row.target_assignment),
    )


def places_in(assignment: wire.Assignment) -> tuple[Place, ...]:
    rows = assignment.topic_partitions
    return tuple(sorted(Place(row.topic_name, index) for row in rows for index in row.partitions))
