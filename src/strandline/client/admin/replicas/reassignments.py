"""Moves of partitions to other brokers: which there are, what each waits for, starting and cancelling them."""

from collections.abc import Mapping, Sequence

from strandline.base.errors import error_of
from strandline.base.ids import by_topic
from strandline.base.value import Value
from strandline.client.admin.behind import Behind, out_of_sync
from strandline.client.admin.partitions import Place
from strandline.client.ask import Servers, ask_any
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    OngoingPartitionReassignment,
)


class Move(Value, frozen=True):
    """`row`: as the controller lists it. `behind`: the out-of-sync followers by the leader; text: why not known."""

    at: Place
    row: OngoingPartitionReassignment
    behind: Mapping[int, Behind] | str


def list_moves(bootstrap: Servers) -> list[Move]:
    answer = ask_any(bootstrap, ListPartitionReassignmentsRequest(), 0)
    moves = [(Place(topic.name, row.partition_index), row) for topic in answer.topics for row in topic.partitions]
    reported = out_of_sync(bootstrap, [at for at, _ in moves]) if moves else {}
    return [Move(at, row, reported[at]) for at, row in moves]


def alter_moves(bootstrap: Servers, wanted: Mapping[Place, Sequence[int] | None]) -> dict[Place, str | None]:
    """Give each partition these replicas, or cancel its move (None). What went wrong with each; None: nothing."""
    topics = tuple(
        ReassignableTopic(
            name=name, partitions=tuple(partition_of(index, wanted[Place(name, index)]) for index in found)
        )
        for name, found in by_topic(wanted).items()
    )
    answer = ask_any(bootstrap, AlterPartitionReassignmentsRequest(topics=topics), 1)
    return {
        Place(topic.name, row.partition_index): row.error_message or error_of(row.error_code).name
        if row.error_code
        else None
        for topic in answer.responses
        for row in topic.partitions
    }


def partition_of(index: int, replicas: Sequence[int] | None) -> ReassignablePartition:
    return ReassignablePartition(partition_index=index, replicas=None if replicas is None else tuple(replicas))
