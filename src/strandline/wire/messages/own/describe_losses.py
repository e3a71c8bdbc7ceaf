"""DescribeLosses (key 1001, our own): what a broker knows of records that are, or may be, lost.

Each broker answers for itself: the events of its own log directories' ledgers, and those that the metadata log has.
"""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    String,
    Tag,
    UuidField,
    message,
)


@message(key=1001, kind="request", versions="0", flexible="0+")
class DescribeLossesRequest(Message, frozen=True):
    topics: Annotated[tuple[String, ...] | None, Nullable()] = None  # null: all
    limit: Int32 = 1000  # the latest are told


class Loss(Group, frozen=True):
    topic: String = ""
    topic_id: UuidField = ZERO_UUID
    partition: Int32 = 0
    # "replica": that replica's log lacks them; "metadata": the partition's new leader does; "withdrawn": that replica
    # left ISR and ELR over it.
    where: String = ""
    node_id: Int32 = -1  # whose ledger has it; -1: the metadata log
    start: Int64 = -1
    end: Int64 = -1  # exclusive; -1: not known
    certainty: Int8 = 0  # 0 nothing is known, 1 at most these, 2 exactly these
    replica: Int32 = -1  # who was cut, elected or withdrawn
    old_epoch: Int32 = -1
    new_epoch: Int32 = -1
    time_ms: Int64 = -1
    cause: String = ""
    # Who has acknowledged it, as the broker's metadata has it, and when; nobody: null.
    acknowledged_by: Annotated[NullableString, Tag(0)] = None
    acknowledged_ms: Annotated[Int64, Tag(1)] = -1


@message(key=1001, kind="response", versions="0", flexible="0+")
class DescribeLossesResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    node_id: Int32 = -1
    losses: tuple[Loss, ...] = ()  # by time
    left_out: Int32 = 0  # how many more there are than the limit let through
    lost_records: Int64 = 0  # of the exact ranges in this broker's ledger, since it began
    # Log directories that have been offline since this broker's start, so that what their ledgers have is not told.
    unread: Annotated[tuple[String, ...], Tag(0)] = ()
