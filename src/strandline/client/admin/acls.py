"""The ACLs of a cluster: found, created and deleted, through any node; and what producers and consumers need."""

from collections.abc import Iterator, Sequence

from strandline.base.errors import ErrorCode
from strandline.client.ask import Servers, ask_any
from strandline.client.errors import StrandlineError, refused
from strandline.metadata.security.acls import Acl, AclFilter, AclOperation, AclPermission, PatternType, ResourceType
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.messages.security.describe_acls import DescribeAclsRequest

AT_ONCE = 5_000  # ACLs in one request; a controller takes twice as many
TURN_ON = "set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer on all nodes"

Op = AclOperation
# Which operations requests ask for, by the kind of resource; ALL stands for each of them.
OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        *(Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE),
        *(Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
    ),
    ResourceType.GROUP: (Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        *(Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.CLUSTER_ACTION, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
        Op.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Op.WRITE, Op.DESCRIBE, Op.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Op.DESCRIBE,),
    ResourceType.USER: (Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS),
}
# What a client needs in each role, by the kind of resource that it names.
PRODUCER = {
    ResourceType.TOPIC: (Op.WRITE, Op.DESCRIBE, Op.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Op.WRITE, Op.DESCRIBE),
}
CONSUMER = {ResourceType.TOPIC: (Op.READ, Op.DESCRIBE), ResourceType.GROUP: (Op.READ,)}


def describe_acls(bootstrap: Servers, wanted: AclFilter) -> list[Acl]:
    """Raises StrandlineError, also if there is no authorizer."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    try:
        answer = ask_any(bootstrap, request, None)
    except StrandlineError as error:
        if error.problem.startswith("No Authorizer"):
            raise StrandlineError(error.problem, TURN_ON) from None
        raise
    return [
        Acl(
            resource_type=ResourceType(resource.resource_type),
            resource_name=resource.resource_name,
            pattern_type=PatternType(resource.pattern_type),
            principal=row.principal,
            host=row.host,
            operation=AclOperation(row.operation),
            permission=AclPermission(row.permission_type),
        )
        for resource in answer.resources
        for row in resource.acls
    ]


def create_acls(bootstrap: Servers, acls: Sequence[Acl]) -> None:
    """Those that exist stay. Raises StrandlineError for the first that is refused; others may have been created."""
    for some in pieces(acls):
        answer = ask_any(bootstrap, CreateAclsRequest(creations=tuple(map(creation_of, some))), None)
        for acl, result in zip(some, answer.results, strict=True):
            if result.error_code != ErrorCode.NONE:
                raise refused(result.error_code, f"creating the ACL that {sentence(acl)}", result.error_message)


def delete_acls(bootstrap: Servers, acls: Sequence[Acl]) -> list[Acl]:
    """Returns those that existed. Raises StrandlineError for the first that is refused."""
    deleted = []
    for some in pieces(acls):
        answer = ask_any(bootstrap, DeleteAclsRequest(filters=tuple(map(filter_of, some))), None)
        for acl, result in zip(some, answer.filter_results, strict=True):
            if result.error_code != ErrorCode.NONE:
                raise refused(result.error_code, f"deleting the ACL that {sentence(acl)}", result.error_message)
            deleted += [acl] if result.matching_acls else []
    return deleted


def pieces(acls: Sequence[Acl]) -> Iterator[Sequence[Acl]]:
    for first in range(0, len(acls), AT_ONCE):
        yield acls[first : first + AT_ONCE]


def creation_of(acl: Acl) -> AclCreation:
    return AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        resource_pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def filter_of(acl: Acl) -> DeleteAclsFilter:
    """What finds this ACL alone."""
    return DeleteAclsFilter(
        resource_type_filter=acl.resource_type,
        resource_name_filter=acl.resource_name,
        pattern_type_filter=acl.pattern_type,
        principal_filter=acl.principal,
        host_filter=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


# --- in words


PLACES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
    ResourceType.USER: "user",
}


def sentence(acl: Acl) -> str:
    """What the ACL does, with the authorizer as the subject."""
    verb = "denies" if acl.permission == AclPermission.DENY else "allows"
    where = "" if acl.host == "*" else f" from {acl.host}"
    return f"{verb} {acl.principal} {acl.operation.name} on {resource_text(acl)}{where}"


def resource_text(acl: Acl) -> str:
    place = PLACES[acl.resource_type]
    if acl.resource_type == ResourceType.CLUSTER:
        return "the cluster"
    if acl.pattern_type == PatternType.PREFIXED:
        return f"each {place} that begins with '{acl.resource_name}'"
    return f"each {place}" if acl.resource_name == "*" else f"{place} '{acl.resource_name}'"
