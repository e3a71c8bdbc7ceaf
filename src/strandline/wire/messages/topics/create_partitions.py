"""CreatePartitions (key 37): more partitions for a topic; null assignments leave the placement to the controller."""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int16, Int32, Message, Nullable, NullableString, String, message


class CreatePartitionsAssignment(Group, frozen=True):
    broker_ids: tuple[Int32, ...] = ()


class CreatePartitionsTopic(Group, frozen=True):
    name: String = ""
    count: Int32 = 0
    assignments: Annotated[tuple[CreatePartitionsAssignment, ...] | None, Nullable()] = None


@message(key=37, kind="request", versions="0-3", flexible="2+")
class CreatePartitionsRequest(Message, frozen=True):
    topics: tuple[CreatePartitionsTopic, ...] = ()
    timeout_ms: Int32 = 0
    validate_only: Bool = False


class CreatePartitionsTopicResult(Group, frozen=True):
    name: String = ""
    error_code: Int16 = 0
    error_message: NullableString = None


@message(key=37, kind="response", versions="0-3", flexible="2+")
class CreatePartitionsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()
