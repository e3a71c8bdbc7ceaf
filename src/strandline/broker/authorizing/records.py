"""Produce: Write on each topic, and on the transactional id of what is written in a transaction."""

from typing import Any

from msgspec.structs import replace

from strandline.base.effects import Close, Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.broker.authorizing.refusals import produced
from strandline.broker.authorizing.verdict import Split, Verdict, refuse
from strandline.broker.handlers.port import NodePort
from strandline.metadata.acls import AclOperation, ResourceType
from strandline.security.acls.authorizer import Rights
from strandline.wire.messages.records.produce import (
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TOPIC_IDS_SINCE = 13
WRITE, TOPIC = int(AclOperation.WRITE), int(ResourceType.TOPIC)
ATTRIBUTES_AT = 22  # the lower byte of a batch's attributes
TRANSACTIONAL = 0x10
CLOSES = "a produce request with acks=0 has topics that are not permitted"


def produce(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Nearly always every topic is permitted, and nothing is made anew: this is the hot path."""
    request: ProduceRequest = received.message
    is_transactional = request.transactional_id is not None
    by_id = received.to.api_version >= TOPIC_IDS_SINCE
    decided = rights.decided
    refused: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        if not is_transactional:
            for data in topic.partition_data:
                records: Any = data.records
                try:
                    if records[ATTRIBUTES_AT] & TRANSACTIONAL:
                        is_transactional = True
                except (IndexError, TypeError):  # too short for a batch, or null: the node rejects it
                    continue
        name: str | None = topic.name
        if by_id:
            known = node.image.topics.get(topic.topic_id)
            name = None if known is None else known.name
        if name is None:
            refused.append(produced(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not decided.get((WRITE, TOPIC, name)) and not rights.allows(WRITE, TOPIC, name):
            refused.append(produced(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    if is_transactional and not may_write_in_transaction(request, rights):
        return refuse(received, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return without(received, refused) if refused else received


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
