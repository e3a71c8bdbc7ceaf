"""What becomes of a request at the gate: it passes, it is refused, or a part of it is.

A judge is asked about each request. What it returns:
  - the request itself: it passes, and its answer does, too
  - effects: they answer it, and the node does not see it
  - a `Split`: the node sees what is left of the request, and its answer is completed by `merge`

`merge` is called when the answer comes, maybe much later. What it hides or adds is by the permissions of that time, or
of the time of the request: either way by those of a moment while the request was under way.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from strandline.base.effects import Close, Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.broker.authorizing.refusals import refused_whole
from strandline.broker.handlers.port import NodePort
from strandline.metadata.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from strandline.security.acls.authorizer import Rights

Merge = Callable[[Any], Any]  # from the node's response to the one that is sent
T = TypeVar("T")

FAILED_BY_TYPE = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Split(Value, frozen=True):
    received: Received  # with what is left of the message
    merge: Merge
    closes: str = ""  # why the connection ends after an answer that is none (Produce with acks=0)


Verdict = Received | Split | list[Effect]
Judge = Callable[[NodePort, Received, Rights], Verdict]


# --- of whole requests


def free(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Anybody may ask this."""
    del node, rights
    return received


def on_cluster(*operations: AclOperation) -> Judge:
    """One of these operations on the cluster is enough."""
    assert operations

    def judge(node: NodePort, received: Received, rights: Rights) -> Verdict:
        del node
        if any(rights.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME) for operation in operations):
            return received
        return refuse(received, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return judge


def on_one(*needs: tuple[AclOperation, ResourceType, str]) -> Judge:
    """Each of these operations, on the resource that a field of the request names."""
    assert all(resource_type in FAILED_BY_TYPE for _, resource_type, _ in needs)
    assert needs

    def judge(node: NodePort, received: Received, rights: Rights) -> Verdict:
        del node
        for operation, resource_type, field in needs:
            if not rights.allows(operation, resource_type, getattr(received.message, field)):
                return refuse(received, FAILED_BY_TYPE[resource_type])
        return received

    return judge


def refuse(received: Received, error: ErrorCode) -> list[Effect]:
    """Nothing of it is done, and the answer says why, in its own form."""
    response = refused_whole(received.message, error, received.to.api_version)
    if response is None:
        return [Reply(received.to, None), Close(received.to.connection, f"{error.name}, and no answer may say it")]
    return [Reply(received.to, response)]


# --- of the parts of a request


def on_each(
    operation: AclOperation,
    resource_type: ResourceType,
    field: str,
    name_of: Callable[[Any], str],
    answers: type,
    answer_field: str,
    row_of: Callable[[Any, ErrorCode], Any],
    *,
    unless: AclOperation | None = None,
) -> Judge:
    """A list in the request, each entry about one resource, and its answer a list, too. `unless`: who may do this on
    the cluster may all of it."""
    error = FAILED_BY_TYPE[resource_type]
    assert answer_field in getattr(answers, "__struct_fields__", ()), "refused rows have a place in the answer"

    def judge(node: NodePort, received: Received, rights: Rights) -> Verdict:
        del node
        if unless is not None and rights.allows(unless, ResourceType.CLUSTER, CLUSTER_NAME):
            return received
        entries = getattr(received.message, field)
        kept, refused = parted(entries, lambda entry: rights.allows(operation, resource_type, name_of(entry)))
        return with_rows(
            received,
            {field: kept},
            answers,
            answer_field,
            [row_of(entry, error) for entry in refused],
            any_left=bool(kept),
        )

    return judge


def parted(entries: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    kept: list[T] = []
    refused: list[T] = []
    for entry in entries:
        (kept if is_allowed(entry) else refused).append(entry)
    return tuple(kept), tuple(refused)


def with_rows(
    received: Received, changes: dict[str, Any], answers: type, field: str, rows: list[Any], *, any_left: bool
) -> Verdict:
    """The request with `changes`, and the refused rows behind those of its answer. What has nothing left is answered
    here: an empty list may mean all of them."""
    if not rows:
        return received
    if not any_left:
        return [Reply(received.to, answers(**{field: tuple(rows)}))]
    return Split(
        replace(received, message=replace(received.message, **changes)),
        lambda response: replace(response, **{field: (*getattr(response, field), *rows)}),
    )


def may(rights: Rights, operation: AclOperation) -> bool:
    """On the cluster."""
    return rights.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)


def may_topic(rights: Rights, operation: AclOperation, name: str | None) -> bool:
    return rights.allows(operation, ResourceType.TOPIC, name or "")
