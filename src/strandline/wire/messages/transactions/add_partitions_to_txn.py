"""AddPartitionsToTxn (key 24): partitions join a transaction. Clients speak versions up to 3.

From 4 on brokers ask, for several transactions at once: to add partitions, or to verify that they were added (KIP-890).
"""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int16, Int32, Int64, Message, String, V, message


class AddPartitionsToTxnTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[Int32, ...] = ()


class AddPartitionsToTxnTransaction(Group, frozen=True):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()


@message(key=24, kind="request", versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message, frozen=True):
    transactions: Annotated[tuple[AddPartitionsToTxnTransaction, ...], V("4+")] = ()
    v3_and_below_transactional_id: Annotated[String, V("0-3")] = ""
    v3_and_below_producer_id: Annotated[Int64, V("0-3")] = 0
    v3_and_below_producer_epoch: Annotated[Int16, V("0-3")] = 0
    v3_and_below_topics: Annotated[tuple[AddPartitionsToTxnTopic, ...], V("0-3")] = ()


class AddPartitionsToTxnPartitionResult(Group, frozen=True):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Group, frozen=True):
    name: String = ""
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = ()


class AddPartitionsToTxnResult(Group, frozen=True):
    transactional_id: String = ""
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = ()


@message(key=24, kind="response", versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V("4+")] = 0
    results_by_transaction: Annotated[tuple[AddPartitionsToTxnResult, ...], V("4+")] = ()
    results_by_topic_v3_and_below: Annotated[tuple[AddPartitionsToTxnTopicResult, ...], V("0-3")] = ()
