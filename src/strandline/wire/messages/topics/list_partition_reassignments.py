"""ListPartitionReassignments (key 46): which partitions are being reassigned (KIP-455); null topics ask for all."""

from typing import Annotated

from strandline.wire.schema import Group, Int16, Int32, Message, Nullable, NullableString, String, Tag, message


class ListPartitionReassignmentsTopics(Group, frozen=True):
    name: String = ""
    partition_indexes: tuple[Int32, ...] = ()


@message(key=46, kind="request", versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Message, frozen=True):
    timeout_ms: Int32 = 60_000
    topics: Annotated[tuple[ListPartitionReassignmentsTopics, ...] | None, Nullable()] = None


class OngoingPartitionReassignment(Group, frozen=True):
    partition_index: Int32 = 0
    replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    removing_replicas: tuple[Int32, ...] = ()
    waits_for: Annotated[NullableString, Tag(10_000)] = None  # of our own: readers that do not know it skip it


class OngoingTopicReassignment(Group, frozen=True):
    name: String = ""
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


@message(key=46, kind="response", versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    topics: tuple[OngoingTopicReassignment, ...] = ()
