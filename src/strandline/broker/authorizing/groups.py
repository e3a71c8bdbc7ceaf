"""Requests about several groups, or about a group and topics. Those about one group alone are rows of the table."""

from typing import Any

from msgspec.structs import replace

from strandline.base.effects import Received, Reply
from strandline.base.errors import ErrorCode, message_of
from strandline.broker.authorizing.refusals import committed, not_found
from strandline.broker.authorizing.verdict import Split, Verdict, may, may_topic, parted, refuse, with_rows
from strandline.broker.handlers.port import NodePort
from strandline.metadata.security.acls import AclOperation, ResourceType
from strandline.security.acls.authorizer import Rights
from strandline.wire.messages.consumer_groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from strandline.wire.messages.consumer_groups.consumer_group_describe import DescribedGroup as ConsumerGroup
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.groups.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.wire.messages.groups.find_coordinator import (
    GROUP,
    TRANSACTION,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
DESCRIBE, READ = AclOperation.DESCRIBE, AclOperation.READ
MANY_KEYS_SINCE = 4  # versions of FindCoordinator
MANY_GROUPS_SINCE = 8  # of OffsetFetch
TOPIC_IDS_SINCE = 10  # of OffsetCommit and OffsetFetch
GROUP_ERROR_SINCE = 2


def may_group(rights: Rights, operation: AclOperation, group_id: str) -> bool:
    return rights.allows(operation, ResourceType.GROUP, group_id)


# --- FindCoordinator

COORDINATED: dict[int, tuple[ResourceType, ErrorCode]] = {
    GROUP: (ResourceType.GROUP, GROUP_DENIED),
    TRANSACTION: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def find_coordinator(node: NodePort, received: Received, rights: Rights) -> Verdict:
    del node
    request: FindCoordinatorRequest = received.message
    if request.key_type not in COORDINATED:
        return received  # rejected, whoever asks
    resource_type, error = COORDINATED[request.key_type]
    if received.to.api_version < MANY_KEYS_SINCE:
        if rights.allows(DESCRIBE, resource_type, request.key):
            return received
        row = not_found(request.key, error)
        return [
            Reply(
                received.to,
                FindCoordinatorResponse(
                    error_code=error, error_message=message_of(error), node_id=row.node_id, host=row.host, port=row.port
                ),
            )
        ]
    kept, refused = parted(request.coordinator_keys, lambda key: rights.allows(DESCRIBE, resource_type, key))
    rows = [not_found(key, error) for key in refused]
    changes = {"coordinator_keys": kept}
    return with_rows(received, changes, FindCoordinatorResponse, "coordinators", rows, any_left=bool(kept))


# --- committed offsets


Topic = OffsetCommitRequestTopic | OffsetFetchRequestTopics


def why_not_topic(
    node: NodePort, received: Received, rights: Rights, operation: AclOperation, topic: Topic
) -> ErrorCode | None:
    """By the topic's name. Newer versions name its id, and an id that no topic has is hidden from nobody."""
    name: str | None = topic.name
    if received.to.api_version >= TOPIC_IDS_SINCE:
        known = node.image.topics.get(topic.topic_id)
        name = None if known is None else known.name
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return None if may_topic(rights, operation, name) else TOPIC_DENIED


def commit_offsets(node: NodePort, received: Received, rights: Rights) -> Verdict:
    request: OffsetCommitRequest = received.message
    if not may_group(rights, READ, request.group_id):
        return refuse(received, GROUP_DENIED)
    judged = [(topic, why_not_topic(node, received, rights, READ, topic)) for topic in request.topics]
    kept = tuple(topic for topic, why in judged if why is None)
    rows = [committed(topic, why) for topic, why in judged if why is not None]
    return with_rows(received, {"topics": kept}, OffsetCommitResponse, "topics", rows, any_left=bool(kept))


def fetch_offsets(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Describe on the group, and on each topic. Who asks for all topics is shown those that it may describe."""
    if received.to.api_version >= MANY_GROUPS_SINCE:
        return fetch_of_groups(node, received, rights)
    request: OffsetFetchRequest = received.message
    if not may_group(rights, DESCRIBE, request.group_id):
        return [Reply(received.to, no_offsets(request, received.to.api_version))]
    if request.topics is None:
        return Split(received, lambda response: replace(response, topics=describable(response.topics, rights)))
    kept, refused = parted(request.topics, lambda topic: may_topic(rights, DESCRIBE, topic.name))
    return unless_rejected(received, kept, tuple(hidden_offsets(topic, TOPIC_DENIED) for topic in refused))


def unless_rejected(received: Received, kept: tuple[Any, ...], rows: tuple[Any, ...]) -> Verdict:
    """The coordinator is asked even if no topic is left: it may reject the request as a whole, and then there are no
    rows. `rows`: of the topics that it does not get."""
    if not rows:
        return received

    def merge(response: Any) -> Any:
        return response if response.error_code else replace(response, topics=(*response.topics, *rows))

    return Split(replace(received, message=replace(received.message, topics=kept)), merge)


def no_offsets(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    """Version 1 has no error of the group: each partition has it."""
    if version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponse(error_code=GROUP_DENIED)
    return OffsetFetchResponse(topics=tuple(hidden_offsets(topic, GROUP_DENIED) for topic in request.topics or ()))


def hidden_offsets(topic: OffsetFetchRequestTopic, error: ErrorCode) -> OffsetFetchResponseTopic:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=error)
        for index in topic.partition_indexes
    )
    return OffsetFetchResponseTopic(name=topic.name, partitions=rows)


def hidden_offsets_of_group(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=error)
        for index in topic.partition_indexes
    )
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def describable(topics: tuple[Any, ...], rights: Rights) -> tuple[Any, ...]:
    return tuple(topic for topic in topics if may_topic(rights, DESCRIBE, topic.name))


def fetch_of_groups(node: NodePort, received: Received, rights: Rights) -> Verdict:
    request: OffsetFetchRequest = received.message
    kept = []
    refused: dict[int, OffsetFetchResponseGroup] = {}
    hidden: list[list[OffsetFetchResponseTopics] | None] = []  # of each group that is left; None: it asks for all
    for at, group in enumerate(request.groups):
        if not may_group(rights, DESCRIBE, group.group_id):
            refused[at] = OffsetFetchResponseGroup(group_id=group.group_id, error_code=GROUP_DENIED)
        elif group.topics is None:
            kept.append(group)
            hidden.append(None)
        else:
            judged = [(topic, why_not_topic(node, received, rights, DESCRIBE, topic)) for topic in group.topics]
            kept.append(replace(group, topics=tuple(topic for topic, why in judged if why is None)))
            hidden.append([hidden_offsets_of_group(topic, why) for topic, why in judged if why is not None])
    assert len(kept) == len(hidden) == len(request.groups) - len(refused), "each group is asked for or refused"
    if not kept:
        return [Reply(received.to, OffsetFetchResponse(groups=tuple(refused.values())))]

    def merge(response: Any) -> Any:
        assert len(response.groups) == len(hidden)
        answers = iter([of_group(row, rows, rights) for row, rows in zip(response.groups, hidden, strict=True)])
        return replace(
            response, groups=tuple(refused[at] if at in refused else next(answers) for at in range(len(request.groups)))
        )

    return Split(replace(received, message=replace(request, groups=tuple(kept))), merge)


def of_group(
    row: OffsetFetchResponseGroup, hidden: list[OffsetFetchResponseTopics] | None, rights: Rights
) -> OffsetFetchResponseGroup:
    if row.error_code:
        return row
    topics = describable(row.topics, rights) if hidden is None else (*row.topics, *hidden)
    return replace(row, topics=topics)


def delete_offsets(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Delete on the group, and Read on each topic, as who commits offsets of it needs."""
    del node
    request: OffsetDeleteRequest = received.message
    if not may_group(rights, AclOperation.DELETE, request.group_id):
        return refuse(received, GROUP_DENIED)
    kept, refused = parted(request.topics, lambda topic: may_topic(rights, READ, topic.name))
    return unless_rejected(received, kept, tuple(kept_offsets(topic, TOPIC_DENIED) for topic in refused))


def kept_offsets(topic: OffsetDeleteRequestTopic, error: ErrorCode) -> OffsetDeleteResponseTopic:
    rows = tuple(
        OffsetDeleteResponsePartition(partition_index=row.partition_index, error_code=error) for row in topic.partitions
    )
    return OffsetDeleteResponseTopic(name=topic.name, partitions=rows)


# --- groups as such


def describe_groups(node: NodePort, received: Received, rights: Rights) -> Verdict:
    del node
    request: DescribeGroupsRequest = received.message
    kept, refused = parted(request.groups, lambda group_id: may_group(rights, DESCRIBE, group_id))
    rows = tuple(DescribedGroup(error_code=GROUP_DENIED, group_id=group_id) for group_id in refused)
    if not kept:
        return [Reply(received.to, DescribeGroupsResponse(groups=rows))]
    if not rows and not request.include_authorized_operations:
        return received

    def merge(response: Any) -> Any:
        return replace(response, groups=(*(with_operations(row, request, rights) for row in response.groups), *rows))

    return Split(replace(received, message=replace(request, groups=kept)), merge)


def consumer_heartbeat(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Read on the group, and Describe on all topics that it is to be subscribed to by name."""
    del node
    request: ConsumerGroupHeartbeatRequest = received.message
    if not may_group(rights, READ, request.group_id):
        return refuse(received, GROUP_DENIED)
    if not all(may_topic(rights, DESCRIBE, name) for name in request.subscribed_topic_names or ()):
        return refuse(received, TOPIC_DENIED)
    return received


def describe_consumers(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Describe on the group, and on every topic of its assignments: else nothing of it is shown."""
    del node
    request: ConsumerGroupDescribeRequest = received.message
    kept, refused = parted(request.group_ids, lambda group_id: may_group(rights, DESCRIBE, group_id))
    rows = tuple(ConsumerGroup(error_code=GROUP_DENIED, group_id=group_id) for group_id in refused)
    if not kept:
        return [Reply(received.to, ConsumerGroupDescribeResponse(groups=rows))]

    def merge(response: Any) -> Any:
        shown = (shown_consumers(row, request, rights) for row in response.groups)
        return replace(response, groups=(*shown, *rows))

    return Split(replace(received, message=replace(request, group_ids=kept)), merge)


def shown_consumers(row: ConsumerGroup, request: ConsumerGroupDescribeRequest, rights: Rights) -> ConsumerGroup:
    if row.error_code:
        return row
    assignments = [part for m in row.members for part in (m.assignment, m.target_assignment)]
    names = {topic.topic_name for part in assignments for topic in part.topic_partitions}
    if not all(may_topic(rights, DESCRIBE, name) for name in names):
        why = "The group has described topic(s) that the client is not authorized to describe."
        return replace(row, error_code=TOPIC_DENIED, error_message=why, members=())
    if not request.include_authorized_operations:
        return row
    return replace(row, authorized_operations=rights.operations(ResourceType.GROUP, row.group_id))


def with_operations(row: DescribedGroup, request: DescribeGroupsRequest, rights: Rights) -> DescribedGroup:
    if row.error_code or not request.include_authorized_operations:
        return row
    return replace(row, authorized_operations=rights.operations(ResourceType.GROUP, row.group_id))


def list_groups(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Who may describe the cluster sees all groups, everybody else those that it may describe."""
    del node
    if may(rights, DESCRIBE):
        return received
    return Split(
        received,
        lambda response: replace(
            response, groups=tuple(row for row in response.groups if may_group(rights, DESCRIBE, row.group_id))
        ),
    )
