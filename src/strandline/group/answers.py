"""The shapes of the coordinator's longer answers."""

from collections.abc import Callable, Mapping, Sequence

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.base.operations import ON_GROUP, UNKNOWN_OPERATIONS
from strandline.group.classic import Group, GroupConfig, State
from strandline.group.offsets import CommittedOffset, Offsets
from strandline.wire.messages.groups.describe_groups import DescribedGroup, DescribedGroupMember
from strandline.wire.messages.groups.list_groups import ListedGroup, ListGroupsRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

BATCHED_FETCH = 8
MISSING_GROUP_IS_AN_ERROR = 6
NO_OFFSET = CommittedOffset(-1, -1, "", 0)  # type: ignore[arg-type]  # no commit, no instant
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
UnstableIn = Callable[[str], set[tuple[str, int]]]
OffsetsOf = Callable[[str], Offsets | ErrorCode]


def committed(
    request: OffsetCommitRequest, error: ErrorCode, config: GroupConfig, known: Mapping[tuple[str, int], Uuid]
) -> OffsetCommitResponse:
    """`known`: the partitions that there were when the request came."""

    def error_of(topic: str, index: int, metadata: str | None) -> ErrorCode:
        if (topic, index) not in known:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        too_large = error is ErrorCode.NONE and len(metadata or "") > config.offset_metadata_max_bytes
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else error

    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=p.partition_index,
                        error_code=error_of(topic.name, p.partition_index, p.committed_metadata),
                    )
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def fetched(
    request: OffsetFetchRequest, version: int, offsets_of: OffsetsOf, unstable_in: UnstableIn
) -> OffsetFetchResponse:
    """`unstable_in`: the partitions whose offset a transaction may change that is not over, if the client asks."""
    if version >= BATCHED_FETCH:
        return OffsetFetchResponse(
            groups=tuple(
                fetched_group(
                    g.group_id,
                    None if g.topics is None else [(t.name, t.partition_indexes) for t in g.topics],
                    offsets_of,
                    unstable_in(g.group_id),
                )
                for g in request.groups
            )
        )
    offsets = offsets_of(request.group_id)
    error = offsets if isinstance(offsets, ErrorCode) else ErrorCode.NONE
    known: Offsets = {} if isinstance(offsets, ErrorCode) else offsets
    unstable = unstable_in(request.group_id)
    all_of = by_topic({**known, **dict.fromkeys(unstable, NO_OFFSET)})
    wanted = all_of if request.topics is None else [(t.name, t.partition_indexes) for t in request.topics]
    return OffsetFetchResponse(
        error_code=error,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                        error_code=UNSTABLE if (name, index) in unstable else error if version < 2 else ErrorCode.NONE,
                    )
                    for index in indexes
                    for found in (NO_OFFSET if (name, index) in unstable else known.get((name, index), NO_OFFSET),)
                ),
            )
            for name, indexes in wanted
        ),
    )


def fetched_group(
    group_id: str,
    topics: list[tuple[str, tuple[int, ...]]] | None,
    offsets_of: OffsetsOf,
    unstable: set[tuple[str, int]],
) -> OffsetFetchResponseGroup:
    offsets = offsets_of(group_id)
    if isinstance(offsets, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_id, error_code=offsets)
    all_of = by_topic({**offsets, **dict.fromkeys(unstable, NO_OFFSET)})
    return OffsetFetchResponseGroup(
        group_id=group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=name,
                partitions=tuple(
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                        error_code=UNSTABLE if (name, index) in unstable else ErrorCode.NONE,
                    )
                    for index in indexes
                    for found in (NO_OFFSET if (name, index) in unstable else offsets.get((name, index), NO_OFFSET),)
                ),
            )
            for name, indexes in (all_of if topics is None else topics)
        ),
    )


def by_topic(offsets: Offsets) -> list[tuple[str, tuple[int, ...]]]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(offsets):
        topics.setdefault(topic, []).append(index)
    assert sum(map(len, topics.values())) == len(offsets)
    return [(topic, tuple(indexes)) for topic, indexes in topics.items()]


def described(
    group_id: str, group: Group | None, error: ErrorCode, version: int, with_operations: bool
) -> DescribedGroup:
    operations = ON_GROUP if with_operations else UNKNOWN_OPERATIONS
    if error is not ErrorCode.NONE or group is None:
        missing = error is ErrorCode.NONE and version >= MISSING_GROUP_IS_AN_ERROR
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else error,
            error_message=f"Group {group_id} not found." if missing else None,
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


def listed(groups: Sequence[Group], loners: Sequence[str], request: ListGroupsRequest) -> tuple[ListedGroup, ...]:
    """`loners` are groups that only ever committed offsets."""
    states = {s.lower() for s in request.states_filter}
    types = {t.lower() for t in request.types_filter}
    rows = [(g.group_id, g.protocol_type or "", g.state.value) for g in groups]
    rows += [(group_id, "", State.EMPTY.value) for group_id in loners]
    if types and "classic" not in types:
        return ()
    return tuple(
        ListedGroup(group_id=group_id, protocol_type=kind, group_state=state, group_type="classic")
        for group_id, kind, state in rows
        if not states or state.lower() in states
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
    return ErrorCode.UNKNOWN_SERVER_ERROR if found is ErrorCode.INVALID_COMMIT_OFFSET_SIZE else found
