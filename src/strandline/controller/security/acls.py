"""CreateAcls and DeleteAcls (KIP-11, KIP-290): the ACLs of the cluster change.

Each ACL of a request is created or refused alone, and each filter finds its ACLs alone; what is done of a request is
one batch. An ACL that exists is created again without a record, and a filter that finds nothing succeeds.

Invariants:
  - no ACL gets two ids, whether it is in the image or earlier in the request;
  - a batch is bounded: in records, and in bytes (a batch that the metadata log refuses would stop the controller);
  - the work for a request is bounded: a filter that does not name one ACL looks at all of them.
"""

from collections.abc import Iterable

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.controller.topics.topics import random_uuid
from strandline.metadata.records import RemoveAccessControlEntryRecord
from strandline.metadata.security.acls import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    acl_record,
    why_invalid,
    why_invalid_filter,
)
from strandline.wire.messages.security.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from strandline.wire.messages.security.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from strandline.wire.messages.security.describe_acls import DescribeAclsRequest

E = ErrorCode
AUTHORIZER_KEY = "authorizer.class.name"
RECORDS_MAX = 10_000  # of one request, as in Kafka
BYTES_MAX = 4 << 20  # of texts: half of the largest batch of the metadata log
LOOKS_MAX = 2_000_000  # how many times a filter is compared with an ACL, in one request
NO_AUTHORIZER = Refusal(E.SECURITY_DISABLED, "No Authorizer is configured.")
TOO_LARGE = Refusal(E.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
TOO_MANY = Refusal(E.INVALID_REQUEST, f"Cannot remove more than {RECORDS_MAX} acls in a single delete operation.")


# --- create


def plan_create_acls(request: CreateAclsRequest, basis: Basis) -> Plan:
    refusal = NO_AUTHORIZER if not basis.static.get(AUTHORIZER_KEY) else why_too_large(request.creations)
    if refusal is not None:
        return Plan((), create_acls_refused(request, refusal))
    ids: dict[Acl, Uuid] = {}
    results = []
    for creation in request.creations:
        acl = acl_of(creation)
        why = why_invalid(acl)
        if why is None and acl not in basis.image.acl_ids and acl not in ids:
            ids[acl] = random_uuid(basis.rng)
        error, message = (E.NONE, None) if why is None else why
        results.append(AclCreationResult(error_code=error, error_message=message))
    assert len(results) == len(request.creations)
    assert not ids.keys() & basis.image.acl_ids.keys(), "an ACL is there once"
    records = tuple(acl_record(acl_id, acl) for acl, acl_id in ids.items())
    return Plan(records, CreateAclsResponse(results=tuple(results)))


def why_too_large(creations: tuple[AclCreation, ...]) -> Refusal | None:
    if len(creations) > RECORDS_MAX:
        return TOO_LARGE
    size = sum(len(f"{one.resource_name}{one.principal}{one.host}".encode()) for one in creations)
    return TOO_LARGE if size > BYTES_MAX else None


def create_acls_refused(request: CreateAclsRequest, refusal: Refusal) -> CreateAclsResponse:
    """Nothing of the request was done."""
    result = AclCreationResult(error_code=refusal.error, error_message=refusal.message)
    return CreateAclsResponse(results=(result,) * len(request.creations))


def acl_of(creation: AclCreation) -> Acl:
    return Acl(
        resource_type=ResourceType(creation.resource_type),
        resource_name=creation.resource_name,
        pattern_type=PatternType(creation.resource_pattern_type),
        principal=creation.principal,
        host=creation.host,
        operation=AclOperation(creation.operation),
        permission=AclPermission(creation.permission_type),
    )


# --- delete


def plan_delete_acls(request: DeleteAclsRequest, basis: Basis) -> Plan:
    image = basis.image
    refusal = NO_AUTHORIZER if not basis.static.get(AUTHORIZER_KEY) else why_too_much(request.filters, len(image.acls))
    if refusal is not None:
        return Plan((), delete_acls_refused(request, refusal))
    deleted: dict[Acl, None] = {}
    results, count = [], 0
    for row in request.filters:
        wanted = filter_of(row)
        why = why_invalid_filter(wanted)
        if why is not None:
            results.append(DeleteAclsFilterResult(error_code=why[0], error_message=why[1]))
            continue
        found = matching(wanted, image.acl_ids)
        count += len(found)
        if count > RECORDS_MAX:
            return Plan((), delete_acls_refused(request, TOO_MANY))
        deleted |= dict.fromkeys(found)
        results.append(DeleteAclsFilterResult(matching_acls=tuple(map(matching_acl, found))))
    assert len(results) == len(request.filters)
    assert deleted.keys() <= image.acl_ids.keys()
    records = tuple(RemoveAccessControlEntryRecord(id=image.acl_ids[acl]) for acl in deleted)
    return Plan(records, DeleteAclsResponse(filter_results=tuple(results)))


def why_too_much(filters: tuple[DeleteAclsFilter, ...], acls: int) -> Refusal | None:
    if len(filters) > RECORDS_MAX:
        return TOO_LARGE
    return TOO_LARGE if sum(1 for row in filters if filter_of(row).named is None) * acls > LOOKS_MAX else None


def matching(wanted: AclFilter, acls: dict[Acl, Uuid]) -> list[Acl]:
    named = wanted.named
    candidates: Iterable[Acl] = acls if named is None else (named,) if named in acls else ()
    return [acl for acl in candidates if wanted.matches(acl)]


def delete_acls_refused(request: DeleteAclsRequest, refusal: Refusal) -> DeleteAclsResponse:
    """Nothing of the request was done."""
    result = DeleteAclsFilterResult(error_code=refusal.error, error_message=refusal.message)
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))


def filter_of(row: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    return AclFilter(
        resource_type=ResourceType(row.resource_type_filter),
        resource_name=row.resource_name_filter,
        pattern_type=PatternType(row.pattern_type_filter),
        principal=row.principal_filter,
        host=row.host_filter,
        operation=AclOperation(row.operation),
        permission=AclPermission(row.permission_type),
    )


def matching_acl(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
