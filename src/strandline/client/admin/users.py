"""Users with SCRAM credentials: list, set, remove (KIP-554). A password is salted here and never leaves the process."""

import hashlib
import secrets

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.client.ask import Servers, ask_any
from strandline.client.errors import BadOption, refused
from strandline.metadata.security.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, MECHANISM_CODES, MECHANISMS
from strandline.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from strandline.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SALT_BYTES = 24
ITERATIONS = ITERATIONS_MIN  # Kafka's default


class UserCredential(Value, frozen=True):
    user: str
    mechanism: str
    iterations: int


def credentials_of(bootstrap: Servers, *users: str) -> list[UserCredential]:
    """Of these users, or of all. A user without any is not in it."""
    request = DescribeUserScramCredentialsRequest(users=tuple(UserName(name) for name in users))
    rows: list[UserCredential] = []
    for result in ask_any(bootstrap, request, 0).results:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND):
            raise refused(result.error_code, f"user '{result.user}'", result.error_message)
        rows += [
            UserCredential(result.user, MECHANISMS.get(info.mechanism, str(info.mechanism)), info.iterations)
            for info in result.credential_infos
        ]
    return sorted(rows, key=lambda row: (row.user, row.mechanism))


def upsertion(
    user: str, mechanism: str, password: str, iterations: int = ITERATIONS, salt: bytes | None = None
) -> ScramCredentialUpsertion:
    """`salt`: None for a new random one. Raises BadOption."""
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise BadOption(f"{iterations} iterations are not between {ITERATIONS_MIN} and {ITERATIONS_MAX}")
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return ScramCredentialUpsertion(user, MECHANISM_CODES[mechanism], iterations, salt, salted)


def deletion(user: str, mechanism: str) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(user, MECHANISM_CODES[mechanism])


def alter_credentials(bootstrap: Servers, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> None:
    """At most one for each user, as the cluster wants it. Raises KafkaError if one is refused."""
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(c for c in changes if isinstance(c, ScramCredentialDeletion)),
        upsertions=tuple(c for c in changes if isinstance(c, ScramCredentialUpsertion)),
    )
    for result in ask_any(bootstrap, request, 0).results:
        if result.error_code != ErrorCode.NONE:
            raise refused(result.error_code, f"user '{result.user}'", result.error_message)
