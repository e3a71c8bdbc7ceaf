"""ListTransactions (key 66): the transactional ids of one coordinator (KIP-664, KIP-994, KIP-1152)."""

from typing import Annotated

from strandline.wire.schema import Group, Int16, Int32, Int64, Message, NullableString, String, V, message


@message(key=66, kind="request", versions="0-2", flexible="0+")
class ListTransactionsRequest(Message, frozen=True):
    """`duration_filter`: only those that have been open for longer, in ms; -1: all."""

    state_filters: tuple[String, ...] = ()
    producer_id_filters: tuple[Int64, ...] = ()
    duration_filter: Annotated[Int64, V("1+")] = -1
    transactional_id_pattern: Annotated[NullableString, V("2+")] = None


class TransactionState(Group, frozen=True):
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@message(key=66, kind="response", versions="0-2", flexible="0+")
class ListTransactionsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: tuple[String, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()
