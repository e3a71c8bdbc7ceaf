"""Produce: Write on each topic, and on the transactional id of what is written in a transaction."""

from typing import Any

from msgspec.structs import replace

from strandline.base.effects import Close, Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.broker.authorizing.refusals import produced
from strandline.broker.authorizing.verdict import Split, Verdict, refuse
from strandline.broker.handlers.port import NodePort
from strandline.metadata.security.acls import AclOperation, ResourceType
from strandline.security.acls.authorizer import Rights
from strandline.wire.messages.records.produce import (
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TOPIC_IDS_SINCE = 13
WRITE = int(AclOperation.WRITE)
ATTRIBUTES_AT = 22  # the lower byte of a batch's attributes
TRANSACTIONAL = 0x10
CLOSES = "a produce request with acks=0 has topics that are not permitted"


def produce(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Nearly always everything is known to be permitted, and no transaction is meant: this is the hot path."""
    request: ProduceRequest = received.message
    writable = rights.writable
    for topic in request.topic_data:
        if (topic.name or topic.topic_id) not in writable:
            return judged_each(node, received, rights)
        for data in topic.partition_data:
            records: Any = data.records
            try:
                if records[ATTRIBUTES_AT] & TRANSACTIONAL:
                    return judged_each(node, received, rights)
            except (IndexError, TypeError):  # too short for a batch, or null: the node rejects it
                continue
    return received if request.transactional_id is None else judged_each(node, received, rights)


def judged_each(node: NodePort, received: Received, rights: Rights) -> Verdict:
    request: ProduceRequest = received.message
    if is_transactional(request) and not may_write_in_transaction(request, rights):
        return refuse(received, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    by_id = received.to.api_version >= TOPIC_IDS_SINCE
    refused: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        name: str | None = topic.name
        if by_id:
            known = node.image.topics.get(topic.topic_id)
            name = None if known is None else known.name
        if name is None:
            refused.append(produced(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not rights.may_topic(WRITE, name, topic.topic_id if by_id else name, rights.writable):
            refused.append(produced(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return without(received, refused) if refused else received


def is_transactional(request: ProduceRequest) -> bool:
    """A batch says itself whether it is of a transaction."""
    if request.transactional_id is not None:
        return True
    batches: Any = [data.records for topic in request.topic_data for data in topic.partition_data]
    return any(
        batch is not None and len(batch) > ATTRIBUTES_AT and batch[ATTRIBUTES_AT] & TRANSACTIONAL for batch in batches
    )


def may_write_in_transaction(request: ProduceRequest, rights: Rights) -> bool:
    """A batch that calls itself transactional, in a request without a transactional id, may belong to anybody's."""
    if request.transactional_id is None:
        return False
    return rights.allows(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)


def without(received: Received, refused: list[TopicProduceResponse]) -> Verdict:
    """The others are written all the same. With acks=0 no answer can say what was refused, and the connection ends."""
    request: ProduceRequest = received.message
    names = {(row.name, row.topic_id) for row in refused}
    kept: tuple[TopicProduceData, ...] = tuple(t for t in request.topic_data if (t.name, t.topic_id) not in names)
    if not kept:
        effects: list[Effect] = [
            Reply(received.to, ProduceResponse(responses=tuple(refused)) if request.acks else None)
        ]
        return effects if request.acks else [*effects, Close(received.to.connection, CLOSES)]
    return Split(
        replace(received, message=replace(request, topic_data=kept)),
        lambda response: replace(response, responses=(*response.responses, *refused)),
        closes="" if request.acks else CLOSES,
    )
