"""AcknowledgeLosses (key 1002, our own): an operator has seen these entries of the loss ledger.

A broker passes it on to the active controller, with who asked.
"""

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import Group, Int16, Int32, Int64, Message, NullableString, String, UuidField, message

ENTRIES_MAX = 1000  # of a request


class SeenLosses(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partition: Int32 = 0
    ids: tuple[Int64, ...] = ()  # see metadata.acknowledgements


@message(key=1002, kind="request", versions="0", flexible="0+")
class AcknowledgeLossesRequest(Message, frozen=True):
    partitions: tuple[SeenLosses, ...] = ()
    asked_by: String = ""
    timeout_ms: Int32 = 30_000


@message(key=1002, kind="response", versions="0", flexible="0+")
class AcknowledgeLossesResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
