"""Questions about offsets: ends of logs, the first record of a time, the end of a leader epoch."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.base.errors import ErrorCode, is_retriable
from strandline.client.errors import KafkaError, UnknownTopic, refused
from strandline.client.metadata import Metadata, Partition
from strandline.client.patience import Patience
from strandline.wire.messages.records.list_offsets import (
    EARLIEST,
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from strandline.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

CONSUMER, DEBUGGING = -1, -2  # replica ids that are nobody's: the second may ask followers, and sees logs to their ends
NAMES = {EARLIEST: "earliest", LATEST: "latest"}


class Found(NamedTuple):
    offset: int  # −1: no record is that late
    timestamp: int  # of the record that was found; −1 for ends of the log
    leader_epoch: int  # of the record; for the log's end the leader's own; −1: not known


def list_offsets(
    cluster: Metadata,
    asked: Mapping[Partition, int],
    isolation: int,
    replica: int | None,
    patience_ms: int | None = None,
) -> dict[Partition, Found]:
    """See `Cluster.list_offsets`."""
    found: dict[Partition, Found] = {}
    left = dict(asked)
    patience = Patience(cluster.config, f"asking for offsets of {names_of(left)}", patience_ms)
    while left:
        failure: KafkaError | None = None
        for broker, rows, error in by_broker(cluster, left, replica):
            if error is None:
                try:
                    error = ask_broker(cluster, broker, rows, isolation, replica, found)
                except KafkaError as raised:
                    error = raised
            if error is not None and (failure is None or isinstance(failure, UnknownTopic)):
                failure = error
        left = {at: timestamp for at, timestamp in left.items() if at not in found}
        if left:
            failure = failure or refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"no broker answers for {names_of(left)}")
            cluster.raise_or_wait(patience, failure, sorted({topic for topic, _ in left}))
    return {at: found[at] for at in asked}


def by_broker(
    cluster: Metadata, left: Mapping[Partition, int], replica: int | None
) -> Iterable[tuple[int, dict[Partition, int], KafkaError | None]]:
    """The partitions that each broker is to be asked for; a failure where nobody can be asked."""
    groups: dict[int, dict[Partition, int]] = {}
    unseen = sorted({topic for topic, _ in left if topic not in cluster.known})
    if unseen:
        cluster.topics(unseen)
    for (topic, partition), timestamp in left.items():
        try:
            broker = cluster.leader_of(topic, partition) if replica is None else replica
        except KafkaError as error:
            yield -1, {}, error
            continue
        groups.setdefault(broker, {})[topic, partition] = timestamp
    for broker, rows in groups.items():
        yield broker, rows, None


def ask_broker(
    cluster: Metadata,
    broker: int,
    rows: Mapping[Partition, int],
    isolation: int,
    replica: int | None,
    found: dict[Partition, Found],
) -> KafkaError | None:
    """One request; fills `found`. A refusal that passes by itself is returned, another raised."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, partition), timestamp in rows.items():
        epoch = cluster.partition(topic, partition)[1].leader_epoch
        topics.setdefault(topic, []).append(
            ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp)
        )
    request = ListOffsetsRequest(
        replica_id=CONSUMER if replica is None else DEBUGGING,
        isolation_level=isolation,
        topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(asked)) for name, asked in topics.items()),
        timeout_ms=cluster.config.request_timeout_ms,
    )
    failure: KafkaError | None = None
    for answered in cluster.ask(broker, request).topics:
        for row in answered.partitions:
            if not row.error_code:
                found[answered.name, row.partition_index] = Found(row.offset, row.timestamp, row.leader_epoch)
                continue
            error = refused(row.error_code, f"offsets of {answered.name}-{row.partition_index}")
            if not is_retriable(row.error_code):
                raise error
            if row.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                failure = error
            else:
                failure = failure or UnknownTopic(answered.name, row.partition_index)
    return failure


def names_of(asked: Mapping[Partition, int]) -> str:
    """For messages: the first partitions."""
    rows = [f"{topic}-{partition}" for topic, partition in list(asked)[:3]]
    more = len(asked) - len(rows)
    return ", ".join(rows) + (f" and {more} more" if more else "")


def epoch_end(cluster: Metadata, topic: str, partition: int, leader_epoch: int) -> tuple[int, int]:
    """See `Cluster.epoch_end`."""
    patience = Patience(cluster.config, f"asking {topic}-{partition} for the end of leader epoch {leader_epoch}")
    while True:
        try:
            leader = cluster.leader_of(topic, partition)
            current = cluster.partition(topic, partition)[1].leader_epoch
            asked = OffsetForLeaderPartition(
                partition=partition, current_leader_epoch=current, leader_epoch=leader_epoch
            )
            rows = (OffsetForLeaderTopic(topic=topic, partitions=(asked,)),)
            answer = cluster.ask(leader, OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=rows))
            row = answer.topics[0].partitions[0]
            if not row.error_code:
                return row.leader_epoch, row.end_offset
            if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(topic, partition)
            raise refused(row.error_code, f"the end of leader epoch {leader_epoch} of {topic}-{partition}")
        except KafkaError as error:
            cluster.raise_or_wait(patience, error, [topic])
