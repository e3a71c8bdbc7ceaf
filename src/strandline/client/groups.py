"""Offsets of consumer groups, for others to see: committed and read without being a member.

The group's coordinator is asked for anew whenever it has moved.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from strandline.base.errors import error_of
from strandline.base.ids import by_topic
from strandline.client.errors import KafkaError, refused
from strandline.client.metadata import Metadata, Partition
from strandline.client.patience import Patience
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from strandline.wire.schema import Message

COMMIT_BY_ID_SINCE = 10  # of OffsetCommit
FETCH_BY_ID_SINCE = 10  # of OffsetFetch


class Committed(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def coordinator_now(cluster: Metadata, group: str) -> int:
    """The broker that keeps the group's offsets."""
    answer, connection = cluster.ask_any(FindCoordinatorRequest(key=group, coordinator_keys=(group,)))
    row = answer.coordinators[0] if answer.coordinators else answer
    if row.error_code:
        raise refused(row.error_code, f"{connection} names no coordinator of group {group}", row.error_message)
    if row.node_id not in cluster.by_id:
        cluster.refresh(())
    return int(row.node_id)


def offset_commit(
    cluster: Metadata, group: str, offsets: Mapping[Partition, int | Committed], patience_ms: int | None = None
) -> None:
    """See `Cluster.offset_commit`."""
    if not offsets:
        return
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), given in offsets.items():
        row = given if isinstance(given, Committed) else Committed(given)
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=row.offset,
                committed_leader_epoch=row.leader_epoch,
                committed_metadata=row.metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()),
    )
    what = f"committing offsets of group {group}"
    ask_coordinator(cluster, group, request, COMMIT_BY_ID_SINCE - 1, what, patience_ms)


def offset_fetch(
    cluster: Metadata, group: str, asked: Sequence[Partition] | None, patience_ms: int | None = None
) -> "dict[Partition, Committed]":
    """See `Cluster.offset_fetch`."""
    topics = by_topic(asked or ())
    rows = None
    if asked is not None:
        rows = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=p) for name, p in topics.items())
    old = tuple(OffsetFetchRequestTopic(name=name, partition_indexes=p) for name, p in topics.items())
    request = OffsetFetchRequest(
        group_id=group,
        topics=None if asked is None else old,
        groups=(OffsetFetchRequestGroup(group_id=group, topics=rows),),
    )
    what = f"asking for offsets of group {group}"
    answer = ask_coordinator(cluster, group, request, FETCH_BY_ID_SINCE - 1, what, patience_ms)
    answered = answer.groups[0] if answer.groups else answer
    found: dict[Partition, Committed] = {}
    for topic in answered.topics:
        for row in topic.partitions:
            if row.committed_offset >= 0:
                found[topic.name, row.partition_index] = Committed(
                    row.committed_offset, row.committed_leader_epoch, row.metadata or ""
                )
    return found


def ask_coordinator(
    cluster: Metadata, group: str, request: Message, version_max: int, what: str, patience_ms: int | None
) -> Any:
    """The coordinator's answer, asked again while its first error passes by itself; any other error is raised."""
    patience = Patience(cluster.config, what, patience_ms)
    while True:
        try:
            connection = cluster.connection(coordinator_now(cluster, group))
            version = min(connection.version_of(type(request)), version_max)
            answer = connection.ask(request, version)
            code = first_error(answer)
            if not code:
                return answer
            raise refused(code, f"{what}: {connection} refuses")
        except KafkaError as error:
            cluster.raise_or_wait(patience, error, ())


def first_error(answer: Any) -> int:
    """Of the whole answer or of the first partition that has one."""
    top = getattr(answer, "error_code", 0) or next((g.error_code for g in getattr(answer, "groups", ())), 0)
    rows = [row.error_code for topic in answer.topics for row in topic.partitions]
    rows += [r.error_code for g in getattr(answer, "groups", ()) for t in g.topics for r in t.partitions]
    return error_of(top or next((code for code in rows if code), 0))
