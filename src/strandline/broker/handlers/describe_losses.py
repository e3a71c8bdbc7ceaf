"""DescribeLosses: what this broker's replicas lost, or may have lost, and what the metadata log says of elections.

Every broker has the same of the metadata log; of replicas each knows its own alone, in the directories that it could
read. A deleted topic still has its name here.
"""

from collections.abc import Iterator
from heapq import nlargest

from msgspec.structs import replace

from strandline.base.effects import Effect, Received, Reply
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort, broker_of
from strandline.metadata.acknowledgements import acknowledged
from strandline.metadata.image import Image
from strandline.metadata.records import LossEvent
from strandline.replica.hosting.ledger import Ledger
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, DescribeLossesResponse, Loss

LIMIT_MAX = 20_000
REPLICA, METADATA, WITHDRAWN = "replica", "metadata", "withdrawn"


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    broker = broker_of(node)
    request: DescribeLossesRequest = received.message
    ledger = broker.replicas.host.ledger
    wanted = None if request.topics is None else dict.fromkeys(request.topics)
    found = [
        loss
        for loss in (*of_replicas(ledger, node.me), *of_elections(node.image))
        if wanted is None or loss.topic in wanted
    ]
    limit = max(1, min(request.limit, LIMIT_MAX))
    latest = nlargest(limit, enumerate(found), key=lambda row: (row[1].time_ms, row[0]))
    assert len(latest) == min(limit, len(found)), "the latest, and how many others there are"
    response = DescribeLossesResponse(
        node_id=node.me,
        losses=tuple(with_acknowledgement(loss, node.image) for _, loss in reversed(latest)),
        left_out=len(found) - len(latest),
        lost_records=ledger.records,
        unread=tuple(path for path in broker.replicas.host.directories.offline if path not in ledger.books),
    )
    return [Reply(received.to, response)]


def with_acknowledgement(loss: Loss, image: Image) -> Loss:
    seen = acknowledged(image.configs, loss)
    return loss if seen is None else replace(loss, acknowledged_by=seen.by, acknowledged_ms=seen.time_ms)


def of_replicas(ledger: Ledger, me: NodeId) -> Iterator[Loss]:
    for lost in ledger.all():
        yield loss_of(lost.topic, lost.at, lost.event, REPLICA, me)


def of_elections(image: Image) -> Iterator[Loss]:
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            at = TopicIdPartition(topic.topic_id, index)
            for event in partition.losses:
                yield loss_of(topic.name, at, event, METADATA, NOBODY)
            for event in partition.withdrawals:
                yield loss_of(topic.name, at, event, WITHDRAWN, NOBODY)


def loss_of(topic: str, at: TopicIdPartition, event: LossEvent, where: str, node: NodeId) -> Loss:
    assert (node == NOBODY) == (where != REPLICA), "each broker has the same of the metadata log"
    return Loss(
        topic=topic,
        topic_id=at.topic_id,
        partition=at.partition,
        where=where,
        node_id=node,
        start=event.start,
        end=event.end,
        certainty=event.certainty,
        replica=event.replica,
        old_epoch=event.old_epoch,
        new_epoch=event.new_epoch,
        time_ms=event.time_ms,
        cause=event.cause,
    )
