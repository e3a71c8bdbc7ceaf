"""DeleteAcls (key 31): delete what filters find. The answer has the deleted ACLs, filter by filter."""

from strandline.wire.schema import Group, Int8, Int16, Int32, Message, NullableString, String, message


class DeleteAclsFilter(Group, frozen=True):
    resource_type_filter: Int8 = 0
    resource_name_filter: NullableString = None
    pattern_type_filter: Int8 = 3
    principal_filter: NullableString = None
    host_filter: NullableString = None
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(key=31, kind="request", versions="1-3", flexible="2+")
class DeleteAclsRequest(Message, frozen=True):
    filters: tuple[DeleteAclsFilter, ...] = ()


class DeleteAclsMatchingAcl(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsFilterResult(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


@message(key=31, kind="response", versions="1-3", flexible="2+")
class DeleteAclsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...] = ()
