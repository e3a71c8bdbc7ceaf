"""Requests about topics: what may not be described is hidden, as if it did not exist, or said to be not permitted
whether it exists or not."""

from typing import Any

from msgspec.structs import replace

from strandline.base.effects import Received, Reply
from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import INTERNAL_TOPICS, ZERO_UUID
from strandline.base.operations import UNKNOWN_OPERATIONS
from strandline.broker.authorizing.verdict import Split, Verdict, may, may_topic, parted, with_rows
from strandline.broker.handlers.metadata import has_early_ids
from strandline.broker.handlers.port import NodePort
from strandline.metadata.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from strandline.security.acls.authorizer import Rights
from strandline.wire.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.messages.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from strandline.wire.messages.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from strandline.wire.messages.topics.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CONFIGS_SHOWN_SINCE = 5  # versions of CreateTopics
STATES_SINCE = 6  # of DeleteTopics
DESCRIBE, CREATE, DELETE = AclOperation.DESCRIBE, AclOperation.CREATE, AclOperation.DELETE


# --- Metadata


def metadata(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Judged twice: before, so that nothing is looked up or created for who may not; and when the answer is there,
    since it comes a moment later."""
    request: MetadataRequest = received.message
    version = received.to.api_version
    if has_early_ids(request, version):
        return received  # rejected, whoever asks
    asks_for_all = request.topics is None or (version == 0 and not request.topics)
    if asks_for_all:
        return Split(received, lambda response: shown(response, request, rights, [], asks_for_all=True))
    assert request.topics is not None
    kept, hidden = parted(request.topics, lambda asked: may_describe(node, asked, rights))
    rows = [hidden_row(asked) for asked in hidden]
    missing = missing_names(node, request, kept)
    if missing and not may(rights, CREATE):
        forbidden = {name for name in missing if not may_topic(rights, CREATE, name)}
        rows += [
            MetadataResponseTopic(error_code=DENIED, name=name, is_internal=name in INTERNAL_TOPICS)
            for name in missing
            if name in forbidden
        ]
        kept = tuple(asked for asked in kept if asked.topic_id != ZERO_UUID or asked.name not in forbidden)
        missing = [name for name in missing if name not in forbidden]
    # What there is now may be deleted a moment later, and is not created anew then.
    left = replace(request, topics=kept, allow_auto_topic_creation=bool(missing))
    is_empty = not kept
    return Split(
        replace(received, message=left),
        lambda response: shown(response, request, rights, rows, is_empty=is_empty),
    )


def may_describe(node: NodePort, asked: MetadataRequestTopic, rights: Rights) -> bool:
    if asked.topic_id == ZERO_UUID:
        return may_topic(rights, DESCRIBE, asked.name)
    topic = node.image.topics.get(asked.topic_id)
    return topic is None or may_topic(rights, DESCRIBE, topic.name)


def hidden_row(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    """By the name, or by the id, whichever the client knows: never both."""
    if asked.topic_id == ZERO_UUID:
        return MetadataResponseTopic(error_code=DENIED, name=asked.name)
    return MetadataResponseTopic(error_code=DENIED, name=None, topic_id=asked.topic_id)


def missing_names(node: NodePort, request: MetadataRequest, kept: tuple[MetadataRequestTopic, ...]) -> list[str]:
    """What would be created for this request."""
    if not request.allow_auto_topic_creation:
        return []
    names = (asked.name or "" for asked in kept if asked.topic_id == ZERO_UUID)
    return [
        name
        for name in dict.fromkeys(names)
        if node.image.topic_named(name) is None and (name in INTERNAL_TOPICS or node.config.auto_create_topics_enable)
    ]


def shown(
    response: MetadataResponse,
    request: MetadataRequest,
    rights: Rights,
    rows: list[MetadataResponseTopic],
    *,
    asks_for_all: bool = False,
    is_empty: bool = False,
) -> MetadataResponse:
    by_id = {asked.topic_id for asked in request.topics or ()} - {ZERO_UUID}
    topics: list[MetadataResponseTopic] = []
    for row in () if is_empty else response.topics:
        # guard: all-topics-are-named
        if row.name is None or may_topic(rights, DESCRIBE, row.name):
            topics.append(with_operations(row, request, rights))
        elif not asks_for_all:
            is_by_id = row.topic_id in by_id
            asked = MetadataRequestTopic(topic_id=row.topic_id) if is_by_id else MetadataRequestTopic(name=row.name)
            topics.append(hidden_row(asked))
    return replace(
        response,
        topics=(*topics, *rows),
        cluster_authorized_operations=cluster_operations(
            rights, is_wanted=request.include_cluster_authorized_operations
        ),
    )


def with_operations(row: MetadataResponseTopic, request: MetadataRequest, rights: Rights) -> MetadataResponseTopic:
    if not request.include_topic_authorized_operations:
        return row
    found = UNKNOWN_OPERATIONS if row.name is None else rights.operations(ResourceType.TOPIC, row.name)
    return replace(row, topic_authorized_operations=found)


def cluster_operations(rights: Rights, *, is_wanted: bool) -> int:
    """None are shown to who may not describe the cluster."""
    if not is_wanted:
        return UNKNOWN_OPERATIONS
    return rights.operations(ResourceType.CLUSTER, CLUSTER_NAME) if may(rights, DESCRIBE) else 0


# --- DescribeTopicPartitions


def describe_topic_partitions(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Who asks for all is answered about those that it may describe, by name: pages are made of them alone."""
    request: DescribeTopicPartitionsRequest = received.message
    asks_for_all = not request.topics
    asked = list(node.image.topic_ids) if asks_for_all else list(dict.fromkeys(t.name for t in request.topics))
    cursor = request.cursor
    kept, hidden = parted(asked, lambda name: may_topic(rights, DESCRIBE, name))
    if cursor is not None:
        hidden = tuple(name for name in hidden if name >= cursor.topic_name)
    if cursor is not None and asks_for_all and cursor.topic_name not in kept and cursor.partition_index >= 0:
        kept = tuple(name for name in kept if name > cursor.topic_name)
        cursor = None  # its topic is gone, or hidden
    rows = (
        []
        if asks_for_all
        else [DescribeTopicPartitionsResponseTopic(error_code=DENIED, name=name) for name in sorted(hidden)]
    )
    if not kept:
        return [Reply(received.to, DescribeTopicPartitionsResponse(topics=tuple(rows)))]
    left = replace(request, topics=tuple(TopicRequest(name=name) for name in kept), cursor=cursor)

    def merge(response: Any) -> Any:
        topics = tuple(
            replace(row, topic_authorized_operations=rights.operations(ResourceType.TOPIC, row.name or ""))
            for row in response.topics
        )
        return replace(response, topics=(*topics, *rows))

    return Split(replace(received, message=left), merge)


# --- CreateTopics


def create_topics(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Create on the cluster, or on the topic. The new topic's configuration is for who may describe it."""
    del node
    request: CreateTopicsRequest = received.message
    everywhere = may(rights, CREATE)
    kept, refused = parted(request.topics, lambda topic: everywhere or may_topic(rights, CREATE, topic.name))
    rows = [refused_topic(topic) for topic in refused]
    if not kept and rows:
        return [Reply(received.to, CreateTopicsResponse(topics=tuple(rows)))]
    version = received.to.api_version

    def merge(response: Any) -> Any:
        return replace(response, topics=(*(without_configs(row, version, rights) for row in response.topics), *rows))

    return Split(replace(received, message=replace(request, topics=kept)), merge)


def refused_topic(topic: CreatableTopic) -> CreatableTopicResult:
    return CreatableTopicResult(name=topic.name, error_code=DENIED, error_message=message_of(DENIED))


def without_configs(row: CreatableTopicResult, version: int, rights: Rights) -> CreatableTopicResult:
    if row.error_code or version < CONFIGS_SHOWN_SINCE or may_topic(rights, AclOperation.DESCRIBE_CONFIGS, row.name):
        return row
    return replace(row, topic_config_error_code=DENIED, num_partitions=-1, replication_factor=-1, configs=())


# --- DeleteTopics


def delete_topics(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Delete on the cluster, or on the topic. The controller trusts what is passed on to it: so what this node's
    metadata does not have yet is refused here, unless it is permitted by its name."""
    request: DeleteTopicsRequest = received.message
    if may(rights, DELETE):
        return received
    with_ids = received.to.api_version >= STATES_SINCE
    states = request.topics if with_ids else tuple(DeleteTopicState(name=name) for name in request.topic_names)
    kept: list[DeleteTopicState] = []
    rows: list[DeletableTopicResult] = []
    for state in states:
        row = why_not_deleted(node, state, rights)
        if row is None:
            kept.append(state)
        else:
            rows.append(row)
    changes: dict[str, Any] = {"topics": tuple(kept)}
    if not with_ids:
        changes = {"topic_names": tuple(state.name or "" for state in kept)}
    return with_rows(received, changes, DeleteTopicsResponse, "responses", rows, any_left=bool(kept))


def why_not_deleted(node: NodePort, state: DeleteTopicState, rights: Rights) -> DeletableTopicResult | None:
    if (state.name is None) == (state.topic_id == ZERO_UUID):
        return None  # both, or neither: that is rejected, whoever asks
    name, error = state.name, DENIED
    if name is None:
        topic = node.image.topics.get(state.topic_id)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif may_topic(rights, DELETE, topic.name):
            return None
        elif may_topic(rights, DESCRIBE, topic.name):
            name = topic.name
    elif may_topic(rights, DESCRIBE, name):
        if may_topic(rights, DELETE, name):
            return None
        if node.image.topic_named(name) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DeletableTopicResult(name=name, topic_id=state.topic_id, error_code=error, error_message=message_of(error))
