"""WriteTxnMarkers (key 27): a coordinator, or an operator's tool, ends transactions in the partitions of one leader."""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int8, Int16, Int32, Int64, Message, String, V, message


class WritableTxnMarkerTopic(Group, frozen=True):
    name: String = ""
    partition_indexes: tuple[Int32, ...] = ()


class WritableTxnMarker(Group, frozen=True):
    """`transaction_result`: true commits. `transaction_version`: of the feature transaction.version (KIP-1228)."""

    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Bool = False
    topics: tuple[WritableTxnMarkerTopic, ...] = ()
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, V("2+")] = 0


@message(key=27, kind="request", versions="1-2", flexible="1+")
class WriteTxnMarkersRequest(Message, frozen=True):
    markers: tuple[WritableTxnMarker, ...] = ()


class WritableTxnMarkerPartitionResult(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Group, frozen=True):
    name: String = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


class WritableTxnMarkerResult(Group, frozen=True):
    producer_id: Int64 = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


@message(key=27, kind="response", versions="1-2", flexible="1+")
class WriteTxnMarkersResponse(Message, frozen=True):
    markers: tuple[WritableTxnMarkerResult, ...] = ()
