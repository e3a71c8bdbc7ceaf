"""Up to where the logs of all partitions may be read: one question to each leader."""

from collections.abc import Iterable, Mapping

from strandline.base.ids import by_topic
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.wire.messages.records.list_offsets import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

CONSUMER = -1  # the replica id of nobody


def high_watermarks(brokers: Mapping[int, BrokerAt], states: Iterable[PartitionState]) -> dict[Place, int]:
    """Of those partitions whose leaders say so."""
    by_leader: dict[int, list[Place]] = {}
    for state in states:
        if not state.is_unavailable:
            by_leader.setdefault(state.leader, []).append(state.at)
    requests = {
        leader: ListOffsetsRequest(
            replica_id=CONSUMER,
            topics=tuple(
                ListOffsetsTopic(
                    name=name,
                    partitions=tuple(ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in found),
                )
                for name, found in by_topic(places).items()
            ),
        )
        for leader, places in by_leader.items()
    }
    found: dict[Place, int] = {}
    for answer in ask_each(brokers, requests, None).values():
        if not isinstance(answer, Silence):
            found |= offsets_in(answer)
    return found


def offsets_in(answer: ListOffsetsResponse) -> dict[Place, int]:
    return {
        Place(topic.name, row.partition_index): row.offset
        for topic in answer.topics
        for row in topic.partitions
        if not row.error_code
    }
