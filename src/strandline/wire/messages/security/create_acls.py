"""CreateAcls (key 30): one result for each ACL, in the order of the request."""

from strandline.wire.schema import Group, Int8, Int16, Int32, Message, NullableString, String, message


class AclCreation(Group, frozen=True):
    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Int8 = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(key=30, kind="request", versions="1-3", flexible="2+")
class CreateAclsRequest(Message, frozen=True):
    creations: tuple[AclCreation, ...] = ()


class AclCreationResult(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None


@message(key=30, kind="response", versions="1-3", flexible="2+")
class CreateAclsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    results: tuple[AclCreationResult, ...] = ()
