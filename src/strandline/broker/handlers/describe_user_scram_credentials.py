"""DescribeUserScramCredentials (KIP-554): the mechanisms of users and their iterations, from the broker's image."""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.wire.messages.security.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
UNKNOWN = "Attempt to describe a user credential that does not exist: "


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: DescribeUserScramCredentialsRequest = received.message
    found: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in node.image.scram.items():
        infos = found.setdefault(user, [])
        infos.append(CredentialInfo(mechanism=mechanism, iterations=credential.iterations))
    counts: dict[str, int] = {}
    for row in request.users or ():
        counts[row.name] = counts.get(row.name, 0) + 1
    results = tuple(
        result_of(user, count, found.get(user)) for user, count in (counts or dict.fromkeys(found, 1)).items()
    )
    return [Reply(received.to, DescribeUserScramCredentialsResponse(results=results))]


def result_of(user: str, count: int, infos: list[CredentialInfo] | None) -> DescribeUserScramCredentialsResult:
    """`count`: how often the request names the user."""
    assert count > 0
    error, why = ErrorCode.NONE, None
    if count > 1:
        error, why = ErrorCode.DUPLICATE_RESOURCE, TWICE + user
    elif infos is None:
        error, why = ErrorCode.RESOURCE_NOT_FOUND, UNKNOWN + user
    shown = () if error or infos is None else tuple(sorted(infos, key=lambda info: info.mechanism))
    return DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=why, credential_infos=shown)
