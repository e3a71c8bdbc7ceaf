"""DescribeTransactions (key 65): what the coordinator knows of transactional ids (KIP-664)."""

from strandline.wire.schema import Group, Int16, Int32, Int64, Message, String, message


@message(key=65, kind="request", versions="0", flexible="0+")
class DescribeTransactionsRequest(Message, frozen=True):
    transactional_ids: tuple[String, ...] = ()


class TopicData(Group, frozen=True):
    topic: String = ""
    partitions: tuple[Int32, ...] = ()


class TransactionState(Group, frozen=True):
    """`transaction_start_time_ms`: -1 if no transaction is open."""

    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: tuple[TopicData, ...] = ()


@message(key=65, kind="response", versions="0", flexible="0+")
class DescribeTransactionsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    transaction_states: tuple[TransactionState, ...] = ()
