"""ACLs as values: which are refused, with Kafka's messages, and which a filter finds."""

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rows import each

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.metadata.security.acls import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    acl_in,
    acl_record,
    why_invalid,
    why_invalid_filter,
)

VALID = Acl(
    resource_type=ResourceType.TOPIC,
    resource_name="t",
    pattern_type=PatternType.LITERAL,
    principal="User:a",
    host="*",
    operation=AclOperation.READ,
    permission=AclPermission.ALLOW,
)


def changed(**fields: Any) -> Acl:
    return replace(VALID, **fields)


COLON = "(no colon is present separating the principal type from the principal name)"
INVALID = [
    (changed(resource_type=ResourceType.ANY), "Invalid resourceType ANY"),
    (changed(resource_type=ResourceType(99)), "Invalid resourceType UNKNOWN"),
    (changed(pattern_type=PatternType.ANY), "Invalid patternType ANY"),
    (changed(pattern_type=PatternType.MATCH), "Invalid patternType MATCH"),
    (changed(pattern_type=PatternType(-1)), "Invalid patternType UNKNOWN"),
    (changed(operation=AclOperation.ANY), "Invalid operation ANY"),
    (changed(operation=AclOperation(16)), "Invalid operation UNKNOWN"),
    (changed(permission=AclPermission.ANY), "Invalid permissionType ANY"),
    (changed(permission=AclPermission(0)), "Invalid permissionType UNKNOWN"),
    (changed(resource_name=""), "Invalid empty resource name"),
    (changed(resource_type=ResourceType.CLUSTER), "The only valid name for the CLUSTER resource is kafka-cluster"),
    (changed(principal="a"), f"Could not parse principal from `a` {COLON}"),
    (changed(principal=""), f"Could not parse principal from `` {COLON}"),
    (changed(principal="a" * 9000), f"Could not parse principal from `{'a' * 200}` {COLON}"),
    (changed(principal="User:" + "ü" * 16382), "No name, principal or host is longer than 32767 bytes"),
    (changed(resource_name="a" * 32768), "No name, principal or host is longer than 32767 bytes"),
    (changed(host="a" * 32768), "No name, principal or host is longer than 32767 bytes"),
    (changed(host=""), "Host pattern cannot be null or empty"),
    # Several faults: the first in Kafka's order.
    (changed(resource_name="", resource_type=ResourceType.ANY), "Invalid empty resource name"),
    (changed(host="", principal="a", operation=AclOperation.ANY), "Invalid operation ANY"),
]


@each(("acl", "why"), INVALID, ids=str)
def test_what_no_acl_can_be_is_refused_with_kafkas_message(acl: Acl, why: str) -> None:
    assert why_invalid(acl) == (ErrorCode.INVALID_REQUEST, why)


def test_a_range_of_addresses_needs_a_later_metadata_version() -> None:
    refused = why_invalid(changed(host="10.0.0.0/8"))
    assert refused is not None
    assert refused[0] == ErrorCode.UNSUPPORTED_VERSION


@each(
    "acl",
    [
        VALID,
        changed(resource_type=ResourceType.CLUSTER, resource_name="kafka-cluster"),
        changed(resource_name="*"),
        changed(pattern_type=PatternType.PREFIXED, permission=AclPermission.DENY),
        changed(principal="Group:of:a", host="::1"),
        changed(principal=":"),
        changed(principal="User:" + "ü" * 16381),
        changed(operation=AclOperation.TWO_PHASE_COMMIT, resource_type=ResourceType.USER),
    ],
    ids=str,
)
def test_a_valid_acl_is_itself_again_from_its_record(acl: Acl) -> None:
    assert why_invalid(acl) is None
    assert acl_in(acl_record(Uuid(b"i" * 16), acl)) == acl


@each(
    ("wanted", "why"),
    [
        (AclFilter(resource_type=ResourceType(0)), "Unknown patternFilter."),
        (AclFilter(pattern_type=PatternType(5)), "Unknown patternFilter."),
        (AclFilter(operation=AclOperation(-1)), "Unknown entryFilter."),
        (AclFilter(permission=AclPermission(4)), "Unknown entryFilter."),
    ],
    ids=str,
)
def test_a_filter_without_a_meaning_is_refused(wanted: AclFilter, why: str) -> None:
    assert why_invalid_filter(wanted) == (ErrorCode.INVALID_REQUEST, why)
    assert why_invalid_filter(AclFilter()) is None


# --- filters, against an oracle that goes through Kafka's description word by word

NAMES = ("*", "a", "ab", "abc", "b")
PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
PRINCIPALS = ("User:a", "User:*", "Group:a")
HOSTS = ("*", "::1")
OPERATIONS = (AclOperation.READ, AclOperation.ALL)
PERMISSIONS = (AclPermission.ALLOW, AclPermission.DENY)
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)


def matches(wanted: AclFilter, acl: Acl) -> bool:
    """Field by field: a filter that names a value finds only it, and a name with MATCH what the pattern reaches."""
    named = []
    for field, anything in (("resource_type", 1), ("operation", 1), ("permission", 1), ("principal", None)):
        named.append(getattr(wanted, field) == anything or getattr(wanted, field) == getattr(acl, field))
    named.append(wanted.host is None or wanted.host == acl.host)
    named.append(int(wanted.pattern_type) in (1, 2) or wanted.pattern_type == acl.pattern_type)
    name, pattern = wanted.resource_name, acl.resource_name
    if name is not None:
        reaches = name[: len(pattern)] == pattern if int(acl.pattern_type) == 4 else pattern == "*" or name == pattern
        named.append(reaches if int(wanted.pattern_type) == 2 else name == pattern)
    return all(named)


def test_a_filter_finds_resources_by_type_name_and_pattern() -> None:
    acls = [changed(resource_type=r, resource_name=n, pattern_type=p) for r, n, p in product(TYPES, NAMES, PATTERNS)]
    searched = product((ResourceType.ANY, *TYPES), (None, "", *NAMES), (PatternType.ANY, PatternType.MATCH, *PATTERNS))
    for kind, name, pattern in searched:
        wanted = AclFilter(resource_type=kind, resource_name=name, pattern_type=pattern)
        assert [acl for acl in acls if wanted.matches(acl)] == [acl for acl in acls if matches(wanted, acl)], wanted


def test_a_filter_finds_entries_by_each_of_their_fields() -> None:
    entries = product(PRINCIPALS, HOSTS, OPERATIONS, PERMISSIONS)
    acls = [changed(principal=who, host=h, operation=o, permission=p) for who, h, o, p in entries]
    for who, host, operation, permission in product(
        (None, *PRINCIPALS),
        (None, *HOSTS),
        (AclOperation.ANY, *OPERATIONS),
        (AclPermission.ANY, *PERMISSIONS),
    ):
        wanted = AclFilter(principal=who, host=host, operation=operation, permission=permission)
        assert [acl for acl in acls if wanted.matches(acl)] == [acl for acl in acls if matches(wanted, acl)], wanted


@settings(max_examples=100, deadline=None)
@given(
    wanted=st.builds(
        AclFilter,
        resource_type=st.sampled_from((ResourceType.ANY, *TYPES)),
        resource_name=st.none() | st.sampled_from(NAMES),
        pattern_type=st.sampled_from((PatternType.ANY, PatternType.MATCH, *PATTERNS)),
        principal=st.none() | st.sampled_from(PRINCIPALS),
        operation=st.sampled_from((AclOperation.ANY, *OPERATIONS)),
    ),
    name=st.sampled_from(NAMES),
    pattern=st.sampled_from(PATTERNS),
    principal=st.sampled_from(PRINCIPALS),
)
def test_a_filter_finds_what_agrees_with_resource_and_entry(
    wanted: AclFilter, name: str, pattern: PatternType, principal: str
) -> None:
    acl = changed(resource_name=name, pattern_type=pattern, principal=principal)
    assert wanted.matches(acl) == matches(wanted, acl)
    assert wanted.named is None or wanted.matches(acl) == (wanted.named == acl)


def test_a_filter_that_names_an_acl_is_known_by_it() -> None:
    fields = {name: getattr(VALID, name) for name in VALID.__struct_fields__}
    assert AclFilter(**fields).named == VALID
    for name in fields:
        assert AclFilter(**{**fields, name: getattr(AclFilter(), name)}).named is None, name
