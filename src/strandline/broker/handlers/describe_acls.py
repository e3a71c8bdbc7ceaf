"""DescribeAcls: the ACLs of this node's image that a filter finds, by resource and in a fixed order."""

from msgspec.structs import astuple

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.controller.security.acls import filter_of
from strandline.metadata.image import Image
from strandline.metadata.security.acls import AclFilter, why_invalid_filter
from strandline.wire.messages.security.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

NO_AUTHORIZER = "No Authorizer is configured on the broker"


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: DescribeAclsRequest = received.message
    wanted = filter_of(request)
    refused = why_invalid_filter(wanted)
    if not node.config.has_authorizer:
        refused = ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER
    if refused is not None:
        return [Reply(received.to, DescribeAclsResponse(error_code=refused[0], error_message=refused[1]))]
    return [Reply(received.to, DescribeAclsResponse(resources=resources(node.image, wanted)))]


def resources(image: Image, wanted: AclFilter) -> tuple[DescribeAclsResource, ...]:
    assert why_invalid_filter(wanted) is None, "refused before"
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in sorted((acl for acl in image.acl_ids if wanted.matches(acl)), key=astuple):
        resource = (acl.resource_type, acl.resource_name, acl.pattern_type)
        found.setdefault(resource, []).append(
            AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
            )
        )
    return tuple(
        DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(acls))
        for (kind, name, pattern), acls in found.items()
    )
