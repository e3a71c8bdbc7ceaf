"""AlterUserScramCredentials: what a user's credential becomes, and which changes are refused, with Kafka's words."""

import hashlib
import hmac
from base64 import b64decode
from typing import Any

from tests.rows import each
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode as E
from strandline.controller.security.scram import USERS_MAX
from strandline.metadata.records import UserScramCredentialRecord
from strandline.metadata.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, SCRAM_SHA_256, SCRAM_SHA_512
from strandline.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

TWICE = "A user credential cannot be altered twice in the same request"
MISSING = "Attempt to delete a user credential that does not exist"


def upsertion(name: str = "alice", **fields: Any) -> ScramCredentialUpsertion:
    values = {
        "mechanism": SCRAM_SHA_256,
        "iterations": ITERATIONS_MIN,
        "salt": b"salt",
        "salted_password": b"\x07" * (64 if fields.get("mechanism") == SCRAM_SHA_512 else 32),
    }
    return ScramCredentialUpsertion(name=name, **{**values, **fields})


def deletion(name: str = "alice", mechanism: int = SCRAM_SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(cluster: Cluster, *changes: ScramCredentialDeletion | ScramCredentialUpsertion) -> list[Any]:
    """(user, error, message) of each."""
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(c for c in changes if isinstance(c, ScramCredentialDeletion)),
        upsertions=tuple(c for c in changes if isinstance(c, ScramCredentialUpsertion)),
    )
    return [(r.user, E(r.error_code), r.error_message) for r in cluster.ask(request).results]


def test_a_credential_is_what_rfc_7677_makes_of_the_password() -> None:
    """Its example: user, pencil, 4096 iterations."""
    cluster = Cluster()
    salt = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    assert alter(cluster, upsertion("user", salt=salt, salted_password=salted)) == [("user", E.NONE, None)]
    found = cluster.image.scram["user", SCRAM_SHA_256]
    assert (found.salt, found.iterations) == (salt, 4096)
    # The proof of the example is ClientKey XOR HMAC(StoredKey, AuthMessage).
    message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client_key = bytes(a ^ b for a, b in zip(proof, hmac.digest(found.stored_key, message, "sha256"), strict=True))
    assert hashlib.sha256(client_key).digest() == found.stored_key
    assert hmac.digest(found.server_key, message, "sha256") == b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_the_salted_password_is_not_in_the_log() -> None:
    cluster = Cluster()
    alter(cluster, upsertion(), upsertion("bob", mechanism=SCRAM_SHA_512))
    written = [record for record in cluster.log.records if isinstance(record, UserScramCredentialRecord)]
    assert [(len(record.stored_key), len(record.server_key)) for record in written] == [(32, 32), (64, 64)]
    assert not any(b"\x07" * 8 in bytes(record.stored_key + record.server_key) for record in written)


REFUSED = [
    (upsertion(""), E.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
    (deletion(""), E.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
    (upsertion(mechanism=0), E.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
    (deletion(mechanism=3), E.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
    (upsertion(iterations=ITERATIONS_MIN - 1), E.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
    (upsertion(iterations=-1), E.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
    (upsertion(iterations=ITERATIONS_MAX + 1), E.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
    (
        upsertion(salted_password=b""),
        E.UNACCEPTABLE_CREDENTIAL,
        "A salted password of SCRAM-SHA-256 has 32 bytes",
    ),
    (
        upsertion(mechanism=SCRAM_SHA_512, salted_password=b"\x07" * 32),
        E.UNACCEPTABLE_CREDENTIAL,
        "A salted password of SCRAM-SHA-512 has 64 bytes",
    ),
    (upsertion(salt=b""), E.UNACCEPTABLE_CREDENTIAL, "A salt has 1 to 1024 bytes"),
    (upsertion(salt=b"s" * 1025), E.UNACCEPTABLE_CREDENTIAL, "A salt has 1 to 1024 bytes"),
    (upsertion("ü" * 513), E.UNACCEPTABLE_CREDENTIAL, "Username must not be longer than 1024 bytes"),
    (deletion("bob"), E.RESOURCE_NOT_FOUND, MISSING),
    (deletion(mechanism=SCRAM_SHA_512), E.RESOURCE_NOT_FOUND, MISSING),
]


@each(("change", "error", "message"), REFUSED)
def test_what_cannot_be_is_refused_and_others_of_the_request_are_done(change: Any, error: E, message: str) -> None:
    cluster = Cluster()
    alter(cluster, upsertion())
    before = dict(cluster.image.scram)
    answers = alter(cluster, change, upsertion("carol", iterations=ITERATIONS_MAX))
    assert sorted(answers) == sorted([(change.name, error, message), ("carol", E.NONE, None)])
    assert cluster.image.scram == {**before, ("carol", SCRAM_SHA_256): cluster.image.scram["carol", SCRAM_SHA_256]}


def test_a_user_is_changed_once_in_a_request_whatever_the_mechanism() -> None:
    cluster = Cluster()
    alter(cluster, upsertion())
    end = cluster.log.next_offset
    for changes in (
        (deletion(), upsertion(mechanism=SCRAM_SHA_512)),
        (upsertion(), upsertion(mechanism=SCRAM_SHA_512)),
        (deletion(), deletion()),
        (deletion(), deletion(), deletion()),
    ):
        assert alter(cluster, *changes) == [("alice", E.DUPLICATE_RESOURCE, TWICE)]
    assert alter(cluster, upsertion(iterations=1), upsertion()) == [
        ("alice", E.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    ]
    assert cluster.log.next_offset == end


def test_a_credential_is_deleted_and_only_that_of_its_mechanism() -> None:
    cluster = Cluster()
    alter(cluster, upsertion())
    alter(cluster, upsertion(mechanism=SCRAM_SHA_512))
    assert alter(cluster, deletion()) == [("alice", E.NONE, None)]
    assert list(cluster.image.scram) == [("alice", SCRAM_SHA_512)]
    assert alter(cluster, deletion()) == [("alice", E.RESOURCE_NOT_FOUND, MISSING)]


def test_more_users_than_one_batch_may_have_are_refused_together() -> None:
    cluster = Cluster()
    answers = alter(cluster, *(upsertion(f"u{n}") for n in range(USERS_MAX + 1)))
    assert {(error, message) for _, error, message in answers} == {
        (E.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    }
    assert not cluster.image.scram


def test_a_controller_that_is_none_refuses_every_user() -> None:
    cluster = Cluster()
    cluster.take(cluster.controller.deactivate(cluster.now))
    assert [(user, error) for user, error, _ in alter(cluster, deletion(), upsertion(), upsertion("bob"))] == [
        ("alice", E.NOT_CONTROLLER),
        ("bob", E.NOT_CONTROLLER),
    ]
