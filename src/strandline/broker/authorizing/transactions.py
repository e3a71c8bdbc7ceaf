"""Requests of transactional and idempotent producers, and about them."""

from typing import Any

from msgspec.structs import replace

from strandline.base.effects import Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS
from strandline.broker.authorizing.refusals import committed_in_txn
from strandline.broker.authorizing.verdict import Split, Verdict, may, may_topic, parted, refuse, with_rows
from strandline.broker.handlers.port import NodePort
from strandline.metadata.security.acls import AclOperation, ResourceType
from strandline.security.acls.authorizer import Rights
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from strandline.wire.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

BATCHED_SINCE = 4  # versions of AddPartitionsToTxn
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
DESCRIBE, WRITE = AclOperation.DESCRIBE, AclOperation.WRITE


def may_transaction(rights: Rights, operation: AclOperation, transactional_id: str) -> bool:
    return rights.allows(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


def init_producer_id(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Without a transactional id, who may write into some topic may have a producer id (KIP-679)."""
    del node
    request: InitProducerIdRequest = received.message
    if request.transactional_id is None:
        if may(rights, AclOperation.IDEMPOTENT_WRITE) or rights.allows_some(WRITE, ResourceType.TOPIC):
            return received
        return refuse(received, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    needed = [WRITE, *([AclOperation.TWO_PHASE_COMMIT] if request.enable2_pc else [])]
    if all(may_transaction(rights, operation, request.transactional_id) for operation in needed):
        return received
    return refuse(received, DENIED)


def add_partitions(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Of the form that clients use. If one partition fails, none is added."""
    if received.to.api_version >= BATCHED_SINCE:
        is_permitted = may(rights, AclOperation.CLUSTER_ACTION)
        return received if is_permitted else refuse(received, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    request: AddPartitionsToTxnRequest = received.message
    if not may_transaction(rights, WRITE, request.v3_and_below_transactional_id):
        return refuse(received, DENIED)
    topics = request.v3_and_below_topics
    if all(may_add(topic, rights) for topic in topics):
        return received
    rows = tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=why_not_added(node, topic, index, rights)
                )
                for index in topic.partitions
            ),
        )
        for topic in topics
    )
    return [Reply(received.to, AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows))]


def may_add(topic: AddPartitionsToTxnTopic, rights: Rights) -> bool:
    """No client adds partitions of internal topics itself: AddOffsetsToTxn does."""
    return topic.name not in INTERNAL_TOPICS and may_topic(rights, WRITE, topic.name)


def why_not_added(node: NodePort, topic: AddPartitionsToTxnTopic, index: int, rights: Rights) -> ErrorCode:
    if not may_add(topic, rights):
        return TOPIC_DENIED
    known = node.image.topic_named(topic.name)
    if known is None or index not in known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.OPERATION_NOT_ATTEMPTED


def commit_offsets(node: NodePort, received: Received, rights: Rights) -> Verdict:
    del node
    request: TxnOffsetCommitRequest = received.message
    if not may_transaction(rights, WRITE, request.transactional_id):
        return refuse(received, DENIED)
    if not rights.allows(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return refuse(received, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    kept, refused = parted(request.topics, lambda topic: may_topic(rights, AclOperation.READ, topic.name))
    rows = [committed_in_txn(topic, TOPIC_DENIED) for topic in refused]
    return with_rows(received, {"topics": kept}, TxnOffsetCommitResponse, "topics", rows, any_left=bool(kept))


def describe_transactions(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Of a transaction that may be described, those topics that may be, too."""
    del node
    request: DescribeTransactionsRequest = received.message
    kept, refused = parted(request.transactional_ids, lambda name: may_transaction(rights, DESCRIBE, name))
    rows = tuple(TransactionState(error_code=DENIED, transactional_id=name) for name in refused)
    if not kept:
        return [Reply(received.to, DescribeTransactionsResponse(transaction_states=rows))]

    def merge(response: Any) -> Any:
        states = tuple(
            replace(state, topics=tuple(t for t in state.topics if may_topic(rights, DESCRIBE, t.topic)))
            for state in response.transaction_states
        )
        return replace(response, transaction_states=(*states, *rows))

    return Split(replace(received, message=replace(request, transactional_ids=kept)), merge)


def list_transactions(node: NodePort, received: Received, rights: Rights) -> Verdict:
    del node
    return Split(
        received,
        lambda response: replace(
            response,
            transaction_states=tuple(
                state
                for state in response.transaction_states
                if may_transaction(rights, DESCRIBE, state.transactional_id)
            ),
        ),
    )
