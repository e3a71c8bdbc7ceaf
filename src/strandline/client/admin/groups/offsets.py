"""Where a group is in each partition, and where the partition's log begins and ends; deletion of committed offsets."""

from collections.abc import Iterable, Mapping, Sequence

from strandline.base.errors import error_of
from strandline.base.ids import by_topic
from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.brokers import BrokerAt, Silence, ask_each, ask_one
from strandline.client.cluster import EARLIEST, LATEST, Cluster
from strandline.client.errors import KafkaError, StrandlineError
from strandline.client.groups import Committed
from strandline.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)

FETCH_VERSION = 8  # the first with several groups; from 10 on topics have ids alone
PATIENCE_MS = 5_000
ONE_PATIENCE_MS = 1_000  # for one partition, if they were not found out together
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Ends(Value, frozen=True):
    """Of a partition's log, as its leader knows them: where it begins, the last stable offset, the high watermark."""

    start: int
    last_stable: int
    end: int


class Position(Value, frozen=True):
    """`committed` is None if the group has committed nothing there. `ends` is why they are not known, if it is text."""

    at: Place
    committed: Committed | None
    ends: Ends | str

    @property
    def lag(self) -> int | None:
        """Offsets between the committed one and the high watermark."""
        if self.committed is None or isinstance(self.ends, str):
            return None
        return max(self.ends.end - self.committed.offset, 0)


def committed_by(cluster: Cluster, group_id: str) -> dict[Place, Committed]:
    found = cluster.offset_fetch(group_id, patience_ms=PATIENCE_MS)
    return {Place(*at): committed for at, committed in sorted(found.items())}


def committed_by_each(brokers: Mapping[int, BrokerAt], asked: Mapping[str, int]) -> dict[str, dict[Place, int] | str]:
    """The committed offsets of each of these groups, which its coordinator is asked for, or why it does not say."""
    by_node: dict[int, list[str]] = {}
    for group_id, node in asked.items():
        by_node.setdefault(node, []).append(group_id)
    requests = {
        node: OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group_id=name, topics=None) for name in ids))
        for node, ids in by_node.items()
    }
    found: dict[str, dict[Place, int] | str] = {}
    for node, answer in ask_each(brokers, requests, FETCH_VERSION).items():
        if isinstance(answer, Silence):
            found |= dict.fromkeys(by_node[node], f"broker {node} {answer.why}")
        else:
            found |= {group.group_id: offsets_in(group) for group in answer.groups}
    return found


def offsets_in(group: OffsetFetchResponseGroup) -> dict[Place, int] | str:
    if group.error_code:
        return error_of(group.error_code).name
    return {
        Place(topic.name, row.partition_index): row.committed_offset
        for topic in group.topics
        for row in topic.partitions
        if row.committed_offset >= 0 and not row.error_code
    }


def ends_of(
    cluster: Cluster, places: Iterable[Place], states: Mapping[Place, PartitionState]
) -> dict[Place, Ends | str]:
    """`states`: of the partitions that there are."""
    found: dict[Place, Ends | str] = {}
    asked = []
    for at in places:
        state = states.get(at)
        if state is None:
            found[at] = "there is no such partition"
        elif state.is_unavailable:
            found[at] = "it has no leader that is online"
        else:
            asked.append(at)
    try:
        return found | dict(ask_ends(cluster, asked, PATIENCE_MS))
    except KafkaError:  # which of them it is about is found out one by one
        for at in asked:
            try:
                found |= ask_ends(cluster, [at], ONE_PATIENCE_MS)
            except KafkaError as error:
                found[at] = str(error)
    return found


def ask_ends(cluster: Cluster, places: Sequence[Place], patience_ms: int) -> dict[Place, Ends]:
    """Asked in this order, no later figure is below an earlier one, unless records are deleted meanwhile."""
    if not places:
        return {}

    def asked(timestamp: int, isolation: int) -> dict[Place, int]:
        rows = {(at.topic, at.partition): timestamp for at in places}
        answer = cluster.list_offsets(rows, isolation, patience_ms=patience_ms)
        return {Place(*at): found.offset for at, found in answer.items()}

    starts, stable = asked(EARLIEST, READ_UNCOMMITTED), asked(LATEST, READ_COMMITTED)
    ends = asked(LATEST, READ_UNCOMMITTED)
    return {at: Ends(starts[at], stable[at], ends[at]) for at in places}


def delete_offsets(broker: BrokerAt, group_id: str, places: Iterable[Place]) -> dict[Place, str | None]:
    """What went wrong with each; None: it is deleted. Raises StrandlineError if nothing was done."""
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes)
        )
        for name, indexes in by_topic(places).items()
    )
    answer = ask_one(broker, OffsetDeleteRequest(group_id=group_id, topics=topics), None)
    if isinstance(answer, Silence):
        raise StrandlineError(f"broker {broker.node} coordinates group '{group_id}', and {answer.why}")
    if answer.error_code:
        raise StrandlineError(f"offsets of group '{group_id}' are not deleted: {error_of(answer.error_code).name}")
    return {
        Place(topic.name, row.partition_index): error_of(row.error_code).name if row.error_code else None
        for topic in answer.topics
        for row in topic.partitions
    }
