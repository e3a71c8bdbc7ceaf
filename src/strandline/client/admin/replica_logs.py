"""What replicas say of their logs now: GetReplicaLogInfo, asked of each broker itself."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicIdPartition
from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.metadata.losses import Evidence
from strandline.wire.messages.own.get_replica_log_info import (
    PARTITIONS_MAX,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    request_of,
)

BETWEEN_S = 1.0  # two looks at a log


class ReplicaLog(Value, frozen=True):
    """A replica's own words about its log."""

    replica: int
    last_epoch: int  # of its last record; -1: it has none
    end_offset: int
    high_watermark: int = -1  # the last one that it heard of
    current_epoch: int = -1  # the partition's leader epoch as its broker knows it
    log_start_offset: int = 0
    last_stable_offset: int = -1
    recovered_uncleanly: bool = False
    is_whole: bool = False  # it has everything that it had when it was in sync last, and since
    damaged: tuple[int, int] | None = None  # the first offsets that its disk has damaged, half open

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.last_epoch, self.end_offset, self.high_watermark)

    @property
    def rank(self) -> tuple[int, int]:
        return self.evidence.rank


class Unasked(Value, frozen=True):
    """A replica that said nothing of its log, and why."""

    replica: int
    why: str
    hangs: bool = False  # its broker listens, and does not answer


LogReport = ReplicaLog | Unasked


def ask_replicas(
    states: Iterable[PartitionState], brokers: Mapping[int, BrokerAt]
) -> dict[Place, tuple[LogReport, ...]]:
    """What each replica of these partitions says, in the order of the replicas."""
    states = list(states)
    hosted: dict[int, list[PartitionState]] = {}
    for state in states:
        for node in state.replicas:
            hosted.setdefault(node, []).append(state)
    reports: dict[tuple[Place, int], LogReport] = {}
    for first in range(0, max(map(len, hosted.values()), default=0), PARTITIONS_MAX):
        asked = {node: found[first : first + PARTITIONS_MAX] for node, found in hosted.items() if found[first:]}
        answers = ask_each(brokers, {node: request_of(node, ids(found)) for node, found in asked.items()}, 0)
        for node, found in asked.items():
            rows = read(node, found, answers[node])
            reports |= {(state.at, node): row for state, row in zip(found, rows, strict=True)}
    return {state.at: tuple(reports[state.at, node] for node in state.replicas) for state in states}


def ids(states: Iterable[PartitionState]) -> Iterator[TopicIdPartition]:
    return (TopicIdPartition(state.topic_id, state.at.partition) for state in states)


def read(
    node: int, states: Iterable[PartitionState], answer: GetReplicaLogInfoResponse | Silence
) -> Iterator[LogReport]:
    if isinstance(answer, Silence):
        yield from (Unasked(node, answer.why, answer.hangs) for _ in states)
        return
    rows = {
        (topic.topic_id, row.partition): row
        for topic in answer.topic_partition_log_info_list
        for row in topic.partition_log_info
    }
    for state in states:
        row = rows.get((state.topic_id, state.at.partition))
        yield Unasked(node, "reports nothing about the partition") if row is None else said(node, row)


def said(node: int, row: PartitionLogInfo) -> LogReport:
    if row.error_code:
        return Unasked(node, f"refuses: {row.error_message or ErrorCode(row.error_code).name}")
    return ReplicaLog(
        replica=node,
        last_epoch=row.last_written_leader_epoch,
        end_offset=row.log_end_offset,
        high_watermark=row.high_watermark,
        current_epoch=row.current_leader_epoch,
        log_start_offset=row.log_start_offset,
        last_stable_offset=row.last_stable_offset,
        recovered_uncleanly=row.recovered_uncleanly,
        is_whole=row.is_whole,
        damaged=None if row.damaged_start < 0 else (row.damaged_start, row.damaged_end),
    )


def moved_since(
    before: Mapping[Place, tuple[LogReport, ...]],
    awaited: Mapping[PartitionState, Collection[int]],
    brokers: Mapping[int, BrokerAt],
    looks: int,
) -> dict[Place, frozenset[int]]:
    """Whose logs have changed, up to so many looks later? It is enough that those of the awaited replicas have."""
    found: dict[Place, frozenset[int]] = {}
    for _ in range(looks):
        time.sleep(BETWEEN_S)
        after = ask_replicas(awaited, brokers)
        found = {at: found.get(at, frozenset()) | grown(before[at], reports) for at, reports in after.items()}
        if all(found[state.at].issuperset(nodes) for state, nodes in awaited.items()):
            break
    return found


def grown(before: tuple[LogReport, ...], after: tuple[LogReport, ...]) -> frozenset[int]:
    return frozenset(
        new.replica
        for old, new in zip(before, after, strict=True)
        if isinstance(old, ReplicaLog) and isinstance(new, ReplicaLog) and old.rank != new.rank
    )
