"""The metadata records of users and of clients' quotas, by Kafka's names and numbers."""

from strandline.wire.schema import Bool, Bytes, Float64, Group, Int8, Int32, Message, NullableString, String, message


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


SECURITY_RECORDS: tuple[type[Message], ...] = (
    UserScramCredentialRecord,
    RemoveUserScramCredentialRecord,
    ClientQuotaRecord,
)
