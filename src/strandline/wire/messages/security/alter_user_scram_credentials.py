"""AlterUserScramCredentials (key 51): set and delete SCRAM credentials (KIP-554). A client salts the password itself,
so that it never leaves the client; what it sends is as good as the password all the same, and is in no text."""

from strandline.wire.schema import Bytes, Group, Int8, Int16, Int32, Message, NullableString, String, message


class ScramCredentialDeletion(Group, frozen=True):
    name: String = ""
    mechanism: Int8 = 0


class ScramCredentialUpsertion(Group, frozen=True):
    name: String = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""

    def __repr__(self) -> str:
        return f"ScramCredentialUpsertion({self.name!r}, mechanism {self.mechanism}, {self.iterations} iterations)"


@message(key=51, kind="request", versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Message, frozen=True):
    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()


class AlterUserScramCredentialsResult(Group, frozen=True):
    user: String = ""
    error_code: Int16 = 0
    error_message: NullableString = None


@message(key=51, kind="response", versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...] = ()
