"""DescribeUserScramCredentials (key 50): which SCRAM credentials users have; keys and salts stay secret (KIP-554)."""

from typing import Annotated

from strandline.wire.schema import Group, Int8, Int16, Int32, Message, Nullable, NullableString, String, message


class UserName(Group, frozen=True):
    name: String = ""


@message(key=50, kind="request", versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Message, frozen=True):
    users: Annotated[tuple[UserName, ...] | None, Nullable()] = ()  # null or empty: all users


class CredentialInfo(Group, frozen=True):
    mechanism: Int8 = 0
    iterations: Int32 = 0


class DescribeUserScramCredentialsResult(Group, frozen=True):
    user: String = ""
    error_code: Int16 = 0
    error_message: NullableString = None
    credential_infos: tuple[CredentialInfo, ...] = ()


@message(key=50, kind="response", versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()
