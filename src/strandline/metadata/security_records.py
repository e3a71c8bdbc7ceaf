"""The metadata records about security, by Kafka's names and numbers: `metadata.records` lists them with all others."""

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import Int8, Message, String, UuidField, message


@message(key=18, versions="0", flexible="0+")
class AccessControlEntryRecord(Message, frozen=True):
    """An ACL exists. Its numbers are those of `metadata.acls`."""

    id: UuidField = ZERO_UUID
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 0
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord(Message, frozen=True):
    """The ACL with this id is deleted."""

    id: UuidField = ZERO_UUID
