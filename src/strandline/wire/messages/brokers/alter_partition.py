"""AlterPartition (key 56): a leader proposes a new ISR (KIP-497, KIP-903)."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import Group, Int8, Int16, Int32, Int64, Message, UuidField, V, message


class BrokerState(Group, frozen=True):
    broker_id: Annotated[Int32, V("3+")] = 0
    broker_epoch: Annotated[Int64, V("3+")] = -1


class PartitionData(Group, frozen=True):
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Annotated[tuple[Int32, ...], V("0-2")] = ()
    new_isr_with_epochs: Annotated[tuple[BrokerState, ...], V("3+")] = ()
    leader_recovery_state: Annotated[Int8, V("1+")] = 0
    partition_epoch: Int32 = 0


class TopicData(Group, frozen=True):
    topic_id: Annotated[UuidField, V("2+")] = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


@message(key=56, kind="request", versions="2-3", flexible="0+")
class AlterPartitionRequest(Message, frozen=True):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: tuple[TopicData, ...] = ()


class PartitionDataResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: tuple[Int32, ...] = ()
    leader_recovery_state: Annotated[Int8, V("1+")] = 0
    partition_epoch: Int32 = 0


class TopicDataResponse(Group, frozen=True):
    topic_id: Annotated[UuidField, V("2+")] = ZERO_UUID
    partitions: tuple[PartitionDataResponse, ...] = ()


@message(key=56, kind="response", versions="2-3", flexible="0+")
class AlterPartitionResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: tuple[TopicDataResponse, ...] = ()
