"""What creating and deleting partitions costs of a quota (KIP-599), and which topics of a request it still allows.

A mutation is one partition that is created or deleted. Newer versions of the requests are strict: once the quota is
used up, a topic gets THROTTLING_QUOTA_EXCEEDED and is left alone. For older clients all is done, and they must wait.

What the controller refuses anyway costs nothing, as far as this broker knows: a topic that exists already or does not
exist, or more partitions than a request may have.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from strandline.base.errors import ErrorCode, message_of
from strandline.base.value import Value
from strandline.metadata.image import Image, Topic
from strandline.wire.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
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

PARTITIONS_MAX = 10_000  # of a request that the controller accepts
REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
STRICT_FROM: Mapping[type, int] = {CreateTopicsRequest: 6, DeleteTopicsRequest: 5, CreatePartitionsRequest: 3}


class Mutations(Value, frozen=True):
    """A request, topic by topic."""

    rows: tuple[Any, ...]
    costs: tuple[int, ...]  # of each
    is_strict: bool

    def __post_init__(self) -> None:
        assert len(self.costs) == len(self.rows)


def mutations_of(message: Any, version: int, image: Image, default_partitions: int) -> Mutations | None:
    """None: the request mutates nothing of this kind."""
    is_strict = version >= STRICT_FROM.get(type(message), 0)
    match message:
        case CreateTopicsRequest(topics=topics):
            return Mutations(topics, tuple(cost_of_topic(t, image, default_partitions) for t in topics), is_strict)
        case DeleteTopicsRequest(topics=states, topic_names=names):
            rows = names if version < 6 else states
            return Mutations(rows, tuple(partitions_of(topic_of(row, image)) for row in rows), is_strict)
        case CreatePartitionsRequest(topics=topics):
            return Mutations(topics, tuple(cost_of_growth(t, image) for t in topics), is_strict)
        case _:
            return None


def cost_of_topic(topic: CreatableTopic, image: Image, default_partitions: int) -> int:
    count = len(topic.assignments) or (default_partitions if topic.num_partitions == -1 else topic.num_partitions)
    return count if 0 < count <= PARTITIONS_MAX and topic.name not in image.topic_ids else 0


def cost_of_growth(topic: CreatePartitionsTopic, image: Image) -> int:
    before = partitions_of(image.topic_named(topic.name))
    return topic.count - before if 0 < before < topic.count <= PARTITIONS_MAX else 0


def topic_of(row: DeleteTopicState | str, image: Image) -> Topic | None:
    if isinstance(row, str):
        return image.topic_named(row)
    return image.topics.get(row.topic_id) if row.name is None else image.topic_named(row.name)


def partitions_of(topic: Topic | None) -> int:
    return 0 if topic is None else len(topic.partitions)


def with_rows(message: Any, rows: tuple[Any, ...]) -> Any:
    """The same request, about these topics."""
    assert rows, "a request about nothing may mean all of it"
    is_by_name = isinstance(message, DeleteTopicsRequest) and bool(message.topic_names)
    return replace(message, topic_names=rows) if is_by_name else replace(message, topics=rows)


def with_refused(request: type, response: Any, rows: tuple[Any, ...]) -> Any:
    """The response, with what the quota did not allow beside. None: nothing was asked of the controller."""
    if request is CreateTopicsRequest:
        response = response or CreateTopicsResponse()
        return replace(response, topics=response.topics + tuple(map(refuse_topic, rows)))
    if request is DeleteTopicsRequest:
        response = response or DeleteTopicsResponse()
        return replace(response, responses=response.responses + tuple(map(refuse_deletion, rows)))
    assert request is CreatePartitionsRequest
    response = response or CreatePartitionsResponse()
    return replace(response, results=response.results + tuple(map(refuse_growth, rows)))


def refuse_topic(row: CreatableTopic) -> CreatableTopicResult:
    return CreatableTopicResult(name=row.name, error_code=REFUSED, error_message=message_of(REFUSED))


def refuse_deletion(row: DeleteTopicState | str) -> DeletableTopicResult:
    if isinstance(row, str):
        return DeletableTopicResult(name=row, error_code=REFUSED, error_message=message_of(REFUSED))
    return DeletableTopicResult(
        name=row.name, topic_id=row.topic_id, error_code=REFUSED, error_message=message_of(REFUSED)
    )


def refuse_growth(row: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=row.name, error_code=REFUSED, error_message=message_of(REFUSED))
