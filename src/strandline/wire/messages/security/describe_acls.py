"""DescribeAcls (key 29): the ACLs that a filter finds, by resource. Null and 1 (ANY) find everything; see
`metadata.security.acls`."""

from strandline.wire.schema import Group, Int8, Int16, Int32, Message, NullableString, String, message


@message(key=29, kind="request", versions="1-3", flexible="2+")
class DescribeAclsRequest(Message, frozen=True):
    resource_type_filter: Int8 = 0
    resource_name_filter: NullableString = None
    pattern_type_filter: Int8 = 3
    principal_filter: NullableString = None
    host_filter: NullableString = None
    operation: Int8 = 0
    permission_type: Int8 = 0


class AclDescription(Group, frozen=True):
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(Group, frozen=True):
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 3
    acls: tuple[AclDescription, ...] = ()


@message(key=29, kind="response", versions="1-3", flexible="2+")
class DescribeAclsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    resources: tuple[DescribeAclsResource, ...] = ()
