"""AlterUserScramCredentials (KIP-554): each user's change succeeds or fails alone, and a user has one in a request.

A client salts the password; what is kept is made of that here. The salted password itself is not kept: whoever has it
can log in.
"""

from collections.abc import Iterator

from strandline.base.errors import ErrorCode, message_of
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.metadata.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from strandline.metadata.security.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    credential_record,
    salted_credential,
)
from strandline.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

E = ErrorCode
SALT_MAX = 1024  # bytes
NAME_MAX = 1024  # bytes
USERS_MAX = 10_000  # in a request: all of it is one batch of the metadata log
DIGEST_SIZES = {"sha256": 32, "sha512": 64}  # bytes

Change = ScramCredentialDeletion | ScramCredentialUpsertion


def plan_alter_credentials(request: AlterUserScramCredentialsRequest, basis: Basis) -> Plan:
    changes: dict[str, Change] = {}
    refused: dict[str, Refusal] = {}
    is_excessive = len(request.deletions) + len(request.upsertions) > USERS_MAX
    for change in changes_in(request):
        why = refused.get(change.name)
        if is_excessive:
            why = Refusal(E.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        elif change.name in changes:
            why = Refusal(E.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
        elif why is None:
            why = why_not_changed(change, basis)
        if why is None:
            changes[change.name] = change
        else:
            changes.pop(change.name, None)
            refused[change.name] = why
    assert not changes.keys() & refused.keys()
    results = tuple(
        AlterUserScramCredentialsResult(
            user=user,
            error_code=refused[user].error if user in refused else E.NONE,
            error_message=refused[user].message if user in refused else None,
        )
        for user in named(request)
    )
    records = tuple(record_of(change) for change in changes.values())
    return Plan(records, AlterUserScramCredentialsResponse(results=results))


def changes_in(request: AlterUserScramCredentialsRequest) -> Iterator[Change]:
    yield from request.deletions
    yield from request.upsertions


def named(request: AlterUserScramCredentialsRequest) -> Iterator[str]:
    """Each user once, in the request's order."""
    yield from dict.fromkeys(change.name for change in changes_in(request))


def why_not_changed(change: Change, basis: Basis) -> Refusal | None:
    if not change.name:
        return Refusal(E.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in MECHANISMS:
        return Refusal(E.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialUpsertion):
        why = why_unacceptable(change)
        return None if why is None else Refusal(E.UNACCEPTABLE_CREDENTIAL, why)
    if (change.name, change.mechanism) not in basis.image.scram:
        return Refusal(E.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    return None


def why_unacceptable(change: ScramCredentialUpsertion) -> str | None:
    """Beside Kafka's reasons: nobody could log in with such a credential, or it is larger than any client makes it."""
    assert change.name
    if change.iterations < ITERATIONS_MIN:
        return "Too few iterations"
    if change.iterations > ITERATIONS_MAX:
        return "Too many iterations"
    size = DIGEST_SIZES[HASHES[MECHANISMS[change.mechanism]]]
    if len(change.salted_password) != size:
        return f"A salted password of {MECHANISMS[change.mechanism]} has {size} bytes"
    if not 0 < len(change.salt) <= SALT_MAX:
        return f"A salt has 1 to {SALT_MAX} bytes"
    if len(change.name.encode()) > NAME_MAX:
        return f"Username must not be longer than {NAME_MAX} bytes"
    return None


def record_of(change: Change) -> UserScramCredentialRecord | RemoveUserScramCredentialRecord:
    assert change.name and change.mechanism in MECHANISMS, "refused before"
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    mechanism, salted = MECHANISMS[change.mechanism], bytes(change.salted_password)
    return credential_record(change.name, salted_credential(mechanism, salted, bytes(change.salt), change.iterations))


def refuse_alter_credentials(
    request: AlterUserScramCredentialsRequest, error: ErrorCode
) -> AlterUserScramCredentialsResponse:
    assert error is not ErrorCode.NONE
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=user, error_code=error, error_message=message_of(error))
            for user in named(request)
        )
    )
