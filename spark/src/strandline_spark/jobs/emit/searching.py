"""Which batches of which lane a partition has: a walk over headers from an offset to the high watermark."""

from collections.abc import Collection, Iterator

import numpy as np

from strandline.client.cluster import LATEST, Cluster
from strandline.client.config import READ_UNCOMMITTED
from strandline.client.errors import LogTruncated, OffsetOutOfRange, TopicIdChanged, UnknownTopic
from strandline.wire.batch import SEQUENCE_MAX
from strandline_spark.decode import walk
from strandline_spark.decode.heads import BASE, DELTA, EPOCH, PRODUCER_ID, SEQUENCE
from strandline_spark.errors import DataLoss, StrandlineError
from strandline_spark.jobs.emit.lane import Found, Searched
from strandline_spark.jobs.emit.plan import NEW_CHECKPOINT

READ_BYTES = 8 << 20
Hit = tuple[int, Found]  # the producer id, and its batch


class Where:
    """One partition of the topic that the plan speaks of."""

    def __init__(self, topic: str, topic_id: str, partition: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def batches_of(
    cluster: Cluster, where: Where, producers: Collection[int], offset: int, leader_epoch: int
) -> Iterator[Hit | Searched]:
    """The batches with these producer ids from `offset` on, in order, and Searched at the end.

    `leader_epoch`: of the log before `offset`. Raises DataLoss if the log has no longer reached `offset`, or begins
    behind it, and StrandlineError if the topic is another one now.
    """
    wanted = np.array(sorted(producers), dtype=np.int64)
    try:
        check_not_truncated(cluster, where, offset, leader_epoch)
        at = (where.topic, where.partition)
        end = cluster.list_offsets({at: LATEST}, READ_UNCOMMITTED)[at].offset
        for fetched in cluster.read(
            *at, offset, end, topic_id=where.topic_id, isolation=READ_UNCOMMITTED, max_bytes=READ_BYTES
        ):
            table = walk(fetched.records).table
            for row in table[np.isin(table[:, PRODUCER_ID], wanted)].tolist():
                if row[BASE] + row[DELTA] < end:
                    last = row[SEQUENCE] + row[DELTA] & SEQUENCE_MAX
                    found = Found(row[SEQUENCE], last, row[BASE], row[BASE] + row[DELTA], row[EPOCH])
                    yield row[PRODUCER_ID], found
        yield Searched(max(end, offset))
    except OffsetOutOfRange as error:
        problem = f"{where} has no offset {offset} any more, and rows of this run may have been there: {error.problem}"
        raise DataLoss(problem, NEW_CHECKPOINT) from None
    except (TopicIdChanged, UnknownTopic) as error:
        raise StrandlineError(error.problem, NEW_CHECKPOINT) from None
    except LogTruncated as error:
        raise truncated(where, error.offset, error.end_offset) from None


def check_not_truncated(cluster: Cluster, where: Where, offset: int, leader_epoch: int) -> None:
    """Raises DataLoss if the leader's log of that epoch ends before `offset`."""
    if leader_epoch < 0:
        return
    _, end = cluster.epoch_end(where.topic, where.partition, leader_epoch)
    if 0 <= end < offset:
        raise truncated(where, offset, end)


def truncated(where: Where, offset: int, end: int) -> DataLoss:
    problem = f"{where} has lost its end: what was committed below offset {offset} ends at {end} now"
    return DataLoss(problem, f"see `strandline losses`; {NEW_CHECKPOINT}")
