"""GetReplicaLogInfo (key 1000, our own): how much of a partition's log a replica has (KIP-966).

The fields are the KIP's. Apache Kafka has shipped no such API, so it has a key far above Kafka's, and no client is told
of it. What goes beyond the KIP lies in tagged fields.
"""

from collections.abc import Iterable
from typing import Annotated

from strandline.base.ids import ZERO_UUID, TopicIdPartition, Uuid
from strandline.wire.schema import (
    Bool,
    Group,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    Tag,
    UuidField,
    message,
)

PARTITIONS_MAX = 2000  # of one request (KIP-966); what is over is refused, and to be asked for again


class TopicPartitions(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[Int32, ...] = ()


@message(key=1000, kind="request", versions="0", flexible="0+")
class GetReplicaLogInfoRequest(Message, frozen=True):
    broker_id: Int32 = 0  # who is meant
    topic_partitions: Annotated[tuple[TopicPartitions, ...] | None, Nullable()] = ()  # null: all that it has


class PartitionLogInfo(Group, frozen=True):
    partition: Int32 = 0
    last_written_leader_epoch: Int32 = -1  # of the last record
    current_leader_epoch: Int32 = -1  # as the replica's metadata has it
    log_end_offset: Int64 = -1
    error_code: Int16 = 0
    error_message: NullableString = None
    high_watermark: Annotated[Int64, Tag(10_000)] = -1
    log_start_offset: Annotated[Int64, Tag(10_001)] = -1
    last_stable_offset: Annotated[Int64, Tag(10_002)] = -1
    recovered_uncleanly: Annotated[Bool, Tag(10_003)] = False  # its process began after a stop that was not clean
    # The first offsets that its disk has damaged, and that are not repaired; −1: nothing is known to be damaged.
    damaged_start: Annotated[Int64, Tag(10_004)] = -1
    damaged_end: Annotated[Int64, Tag(10_005)] = -1
    # It has everything that it had when it was in sync last, and since, as its broker knows. For the loss ledger alone.
    is_whole: Annotated[Bool, Tag(10_006)] = False


class TopicPartitionLogInfo(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partition_log_info: tuple[PartitionLogInfo, ...] = ()


@message(key=1000, kind="response", versions="0", flexible="0+")
class GetReplicaLogInfoResponse(Message, frozen=True):
    broker_epoch: Int64 = -1
    topic_partition_log_info_list: tuple[TopicPartitionLogInfo, ...] = ()


def request_of(broker: int, ats: Iterable[TopicIdPartition]) -> GetReplicaLogInfoRequest:
    """The question to one broker about these partitions."""
    assert broker >= 0
    topics: dict[Uuid, list[int]] = {}
    for at in ats:
        topics.setdefault(at.topic_id, []).append(at.partition)
    rows = tuple(TopicPartitions(topic_id=topic, partitions=tuple(found)) for topic, found in topics.items())
    return GetReplicaLogInfoRequest(broker_id=broker, topic_partitions=rows)
