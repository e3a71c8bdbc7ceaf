"""The metadata records about security, by Kafka's names and numbers: `metadata.records` lists them with all others."""

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bool,
    Bytes,
    Float64,
    Group,
    Int8,
    Int32,
    Message,
    NullableString,
    String,
    UuidField,
    message,
)


@message(key=11, versions="0", flexible="0+")
class UserScramCredentialRecord(Message, frozen=True):
    """A user has this SCRAM credential; it replaces an earlier one of the same mechanism."""

    name: String = ""
    mechanism: Int8 = 0
    salt: Bytes = b""
    stored_key: Bytes = b""
    server_key: Bytes = b""
    iterations: Int32 = 0

    def __repr__(self) -> str:
        """Without the keys: with them anybody can guess passwords, and pose as the server."""
        return f"UserScramCredentialRecord({self.name!r}, mechanism {self.mechanism}, {self.iterations} iterations)"


@message(key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord(Message, frozen=True):
    """A user has no SCRAM credential of this mechanism any more."""

    name: String = ""
    mechanism: Int8 = 0


class EntityData(Group, frozen=True):
    entity_type: String = ""
    entity_name: NullableString = None  # null: the default of this type


@message(key=14, versions="0", flexible="0+")
class ClientQuotaRecord(Message, frozen=True):
    """One quota of an entity has this value, or is removed."""

    entity: tuple[EntityData, ...] = ()
    key: String = ""  # type: ignore[misc, assignment]  # Kafka's name for it, as for the class's API key
    value: Float64 = 0.0  # ignored if it is removed
    remove: Bool = False


@message(key=18, versions="0", flexible="0+")
class AccessControlEntryRecord(Message, frozen=True):
    """An ACL exists. Its numbers are those of `metadata.security.acls`."""

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


SECURITY_RECORDS: tuple[type[Message], ...] = (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
    RemoveUserScramCredentialRecord,
    ClientQuotaRecord,
)
