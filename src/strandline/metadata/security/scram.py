"""SCRAM credentials as metadata (KIP-554, KIP-900): what the cluster keeps of users' passwords."""

import hashlib
import hmac

from strandline.base.value import Value
from strandline.metadata.security.records import UserScramCredentialRecord

# Kafka's numbers of the mechanisms.
SCRAM_SHA_256, SCRAM_SHA_512 = 1, 2
MECHANISMS = {SCRAM_SHA_256: "SCRAM-SHA-256", SCRAM_SHA_512: "SCRAM-SHA-512"}
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISM_CODES = {name: code for code, name in MECHANISMS.items()}
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384  # Kafka's, for what it keeps

ScramKey = tuple[str, int]  # the user, and the mechanism's number


class ScramCredential(Value, frozen=True):
    """What a server keeps of a password (RFC 5802, section 3): enough to check a proof, not enough to make one."""

    mechanism: str
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.mechanism}, {self.iterations} iterations)"

    __str__ = __repr__


def salted_credential(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What to keep of a password that was salted elsewhere."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", name)
    server_key = hmac.digest(salted, b"Server Key", name)
    return ScramCredential(mechanism, salt, hashlib.new(name, client_key).digest(), server_key, iterations)


def credential_in(record: UserScramCredentialRecord) -> ScramCredential:
    return ScramCredential(
        mechanism=MECHANISMS[record.mechanism],
        salt=bytes(record.salt),
        stored_key=bytes(record.stored_key),
        server_key=bytes(record.server_key),
        iterations=record.iterations,
    )


def credential_record(user: str, credential: ScramCredential) -> UserScramCredentialRecord:
    assert user, "a credential has a user"
    return UserScramCredentialRecord(
        name=user,
        mechanism=MECHANISM_CODES[credential.mechanism],
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )
