"""The shapes of the coordinator's longer answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, Uuid, by_topic
from strandline.base.operations import ON_GROUP, UNKNOWN_OPERATIONS
from strandline.group.classic.group import Group, State
from strandline.group.config import GroupConfig
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.offsets.offsets import CommittedOffset, Offsets
from strandline.group.offsets.pending import Pending
from strandline.group.offsets.topics import Topics
from strandline.wire.messages.groups.describe_groups import DescribedGroup, DescribedGroupMember
from strandline.wire.messages.groups.leave_group import MemberIdentity, MemberResponse
from strandline.wire.messages.groups.list_groups import ListedGroup, ListGroupsRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE = 10  # the version of OffsetCommit and OffsetFetch from which topics go by id
BATCHED_FETCH = 8
MISSING_GROUP_IS_AN_ERROR = 6
NO_OFFSET = CommittedOffset(-1, -1, "", 0)  # type: ignore[arg-type]  # no commit, no instant
# And what is pending, for those who want stable offsets only.
OffsetsOf = Callable[[str], tuple[Offsets, Pending | None] | ErrorCode]


# The messages of an answer to a commit: the whole, a topic, and a partition.
COMMITTED: dict[type, tuple[Any, Any, Any]] = {
    OffsetCommitRequest: (OffsetCommitResponse, OffsetCommitResponseTopic, OffsetCommitResponsePartition),
    TxnOffsetCommitRequest: (TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition),
}


def committed(
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    error: ErrorCode,
    config: GroupConfig,
    known: Mapping[tuple[str, int], Uuid],
    version: int = 0,
) -> OffsetCommitResponse | TxnOffsetCommitResponse:
    """`known`: the partitions that there were when the request came. `version`: of an OffsetCommit."""
    answer, of_topic, of_partition = COMMITTED[type(request)]
    topics = [
        of_topic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                of_partition(
                    partition_index=p.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID
                    if version >= TOPIC_IDS_SINCE and not topic.name
                    else error_at(topic.name, p, error, config, known),
                )
                for p in topic.partitions
            ),
        )
        for topic in request.topics
    ]
    response: OffsetCommitResponse | TxnOffsetCommitResponse = answer(topics=tuple(topics))
    return response


def error_at(
    topic: str,
    row: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    error: ErrorCode,
    config: GroupConfig,
    known: Mapping[tuple[str, int], Uuid],
) -> ErrorCode:
    if (topic, row.partition_index) not in known:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    too_large = error is ErrorCode.NONE and len(row.committed_metadata or "") > config.offset_metadata_max_bytes
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else error


def fetched(request: OffsetFetchRequest, version: int, offsets_of: OffsetsOf, topics: Topics) -> OffsetFetchResponse:
    if version >= BATCHED_FETCH:
        by_id = topics if version >= TOPIC_IDS_SINCE else None
        return OffsetFetchResponse(groups=tuple(fetched_group(group, offsets_of, by_id) for group in request.groups))
    wanted = None if request.topics is None else [(t.name, t.partition_indexes) for t in request.topics]
    found = offsets_of(request.group_id)
    error = found if isinstance(found, ErrorCode) else ErrorCode.NONE
    rows = offset_rows(request.group_id, wanted, ({}, None) if isinstance(found, ErrorCode) else found)
    return OffsetFetchResponse(
        error_code=error,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        metadata=offset.metadata,
                        error_code=error if version < 2 else unstable,
                    )
                    for index, offset, unstable in partitions
                ),
            )
            for name, partitions in rows
        ),
    )


def fetched_group(
    group: OffsetFetchRequestGroup, offsets_of: OffsetsOf, by_id: Topics | None
) -> OffsetFetchResponseGroup:
    """`by_id`: the topics, where they go by their ids."""
    found = offsets_of(group.group_id)
    if isinstance(found, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=found)
    wanted, unknown = named(group.topics, by_id)
    rows = offset_rows(group.group_id, wanted, found)
    ids = {} if by_id is None else by_id.ids_of(name for name, _ in rows)
    known = [
        OffsetFetchResponseTopics(
            name=name,
            topic_id=ids.get(name, ZERO_UUID),
            partitions=tuple(offset_row(index, offset, error) for index, offset, error in partitions),
        )
        for name, partitions in rows
    ]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=(*known, *map(of_no_topic, unknown)))


def named(
    topics: tuple[OffsetFetchRequestTopics, ...] | None, by_id: Topics | None
) -> tuple[list[tuple[str, tuple[int, ...]]] | None, list[OffsetFetchRequestTopics]]:
    """What is asked for, by name; None: everything. And those topics whose ids no topic has."""
    if topics is None:
        return None, []
    wanted, unknown = [], []
    for topic in topics:
        name = topic.name if by_id is None else by_id.name_of(topic.topic_id)
        if by_id is not None and not name:
            unknown.append(topic)
        else:
            wanted.append((name, topic.partition_indexes))
    assert len(wanted) + len(unknown) == len(topics)
    return wanted, unknown


def of_no_topic(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    rows = tuple(offset_row(index, NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes)
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=rows)


def offset_row(index: int, offset: CommittedOffset, error: ErrorCode) -> OffsetFetchResponsePartitions:
    assert error is ErrorCode.NONE or offset is NO_OFFSET, "who gets an error gets no offset"
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=error,
    )


def offset_rows(
    group_id: str, wanted: list[tuple[str, tuple[int, ...]]] | None, found: tuple[Offsets, Pending | None]
) -> list[tuple[str, list[tuple[int, CommittedOffset, ErrorCode]]]]:
    """By topic and partition the offset, or that it is not stable: only then is `Pending` given. What is not asked for
    by name is told of if an offset counts there, as in Kafka."""
    offsets, pending = found

    def row(topic: str, index: int) -> tuple[int, CommittedOffset, ErrorCode]:
        if pending is not None and pending.is_unstable((group_id, topic, index)):
            return index, NO_OFFSET, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return index, offsets.get((topic, index), NO_OFFSET), ErrorCode.NONE

    return [
        (topic, [row(topic, index) for index in indexes])
        for topic, indexes in (by_topic(sorted(offsets)).items() if wanted is None else wanted)
    ]


def described(
    group_id: str, group: Group | ConsumerGroup | None, error: ErrorCode, version: int, with_operations: bool
) -> DescribedGroup:
    assert error is ErrorCode.NONE or group is None, "a group that is known here is described"
    operations = ON_GROUP if with_operations else UNKNOWN_OPERATIONS
    why_missing = f"Group {group_id} not found."
    if isinstance(group, ConsumerGroup):
        why_missing = f"Group {group_id} is not a classic group."
        group = None
    if error is not ErrorCode.NONE or group is None:
        missing = error is ErrorCode.NONE and version >= MISSING_GROUP_IS_AN_ERROR
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else error,
            error_message=why_missing if missing else None,
            group_id=group_id,
            group_state="" if error is not ErrorCode.NONE else State.DEAD.value,
            authorized_operations=operations if not missing and error is ErrorCode.NONE else UNKNOWN_OPERATIONS,
        )
    stable = group.state is State.STABLE
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=m.member_id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                member_metadata=m.protocols.get(group.protocol or "", b"") if stable else b"",
                member_assignment=m.assignment if stable else b"",
            )
            for m in group.members.values()
        ),
        authorized_operations=operations,
    )


CLASSIC, CONSUMER = "classic", "consumer"  # Kafka's types of groups


def listed(
    groups: Sequence[Group | ConsumerGroup], simple_groups: Sequence[str], request: ListGroupsRequest
) -> tuple[ListedGroup, ...]:
    """`simple_groups` are groups that only ever committed offsets."""
    states = {s.lower() for s in request.states_filter}
    types = {t.lower() for t in request.types_filter}
    rows = [
        (g.group_id, CONSUMER, g.state.value, CONSUMER)
        if isinstance(g, ConsumerGroup)
        else (g.group_id, g.protocol_type or "", g.state.value, CLASSIC)
        for g in groups
    ]
    rows += [(group_id, "", State.EMPTY.value, CLASSIC) for group_id in simple_groups]
    return tuple(
        ListedGroup(group_id=group_id, protocol_type=kind, group_state=state, group_type=type_)
        for group_id, kind, state, type_ in rows
        if (not states or state.lower() in states) and (not types or type_ in types)
    )


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """What a failed write means to a group's member: find the coordinator again, or wait, or shrink the request."""
    match error:
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.KAFKA_STORAGE_ERROR:
            return ErrorCode.NOT_COORDINATOR
        case (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode.NOT_ENOUGH_REPLICAS
            | ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | ErrorCode.REQUEST_TIMED_OUT
        ):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE:
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        case _:
            return error


def membership_error(error: ErrorCode) -> ErrorCode:
    """The same for writes of a group itself, whose size is not the fault of the member that asks."""
    found = coordinator_error(error)
    assert (found is ErrorCode.NONE) == (error is ErrorCode.NONE), "a failure stays one"
    return ErrorCode.UNKNOWN_SERVER_ERROR if found is ErrorCode.INVALID_COMMIT_OFFSET_SIZE else found


def left(identity: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
