"""ACLs (KIP-11): who may do what with which resource, and from which host. Values, the filters that find them, and
which ACLs and filters are refused, with Kafka's messages.

An ACL is one statement: a principal, on connections from a host, is allowed or denied an operation on the resources of
a pattern. What follows from all of them together is the authorizer's matter; nothing here decides about a request.

All numbers are Kafka's codes. A code without a meaning reads as UNKNOWN, which no valid ACL has.

Invariants:
  - the fields of a valid ACL are specific: its pattern is LITERAL or PREFIXED, no other field is ANY or UNKNOWN;
  - a filter that is refused matches nothing.
"""

from enum import IntEnum
from typing import Self

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.base.value import Value
from strandline.metadata.security.records import AccessControlEntryRecord

WILDCARD = "*"  # a LITERAL resource of this name is every resource of its type; so is a host
WILDCARD_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"  # the one resource of the type CLUSTER
TEXT_MAX = 32767  # bytes: older versions of the APIs have no room for more
SHOWN = 200  # characters of a text in a message, which has no more room either


class Code(IntEnum):
    """Each kind of code has UNKNOWN, which is 0, for those of its numbers that mean nothing here."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls(0)


class ResourceType(Code):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(Code):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(Code):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(Code):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(Value, frozen=True):
    """`principal` is "Type:name"; `host` is an IP address in text form, or "*"."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


class AclFilter(Value, frozen=True):
    """Which ACLs are meant: those that agree with every field. None and ANY agree with everything.

    With a resource name, LITERAL, PREFIXED and ANY find ACLs of exactly this name; MATCH finds all ACLs that affect the
    resource of this name, through a wildcard or a prefix too.
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    @property
    def named(self) -> Acl | None:
        """The one ACL that every field names; None if the filter may find several."""
        name, principal, host = self.resource_name, self.principal, self.host
        if name is None or principal is None or host is None:
            return None
        acl = Acl(self.resource_type, name, self.pattern_type, principal, host, self.operation, self.permission)
        return acl if why_meaningless(acl) is None else None

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermission.ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.matches_pattern(acl)
        )

    def matches_pattern(self, acl: Acl) -> bool:
        if self.pattern_type == PatternType.MATCH:
            return self.resource_name is None or affects(acl, self.resource_name)
        return self.pattern_type in (PatternType.ANY, acl.pattern_type) and self.resource_name in (
            None,
            acl.resource_name,
        )


def affects(acl: Acl, name: str) -> bool:
    """Is the resource of this name, and of the ACL's type, one of those that the ACL is about?"""
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    assert acl.pattern_type == PatternType.LITERAL, "no valid ACL has another pattern"
    return acl.resource_name in (name, WILDCARD)


def principals_in(text: str) -> tuple[str, ...]:
    """The principals of a list such as `super.users`, as "User:a;User:b": names may have commas in them."""
    return tuple(part.strip() for part in text.split(";") if part.strip())


# --- what is refused


Refused = tuple[ErrorCode, str]


def why_invalid(acl: Acl) -> Refused | None:
    """Why can no such ACL be created? In Kafka's order: a request with several faults gets the same message."""
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    why = "Invalid empty resource name" if not acl.resource_name else why_meaningless(acl)
    if why is None and not acl.host:
        why = "Host pattern cannot be null or empty"
    if why is not None:
        return ErrorCode.INVALID_REQUEST, why
    if "/" in acl.host:
        # No metadata.version of this program knows ranges of addresses: such an ACL would silently match nobody.
        why = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
        return ErrorCode.UNSUPPORTED_VERSION, why
    if any(len(text.encode()) > TEXT_MAX for text in (acl.resource_name, acl.principal, acl.host)):
        return ErrorCode.INVALID_REQUEST, f"No name, principal or host is longer than {TEXT_MAX} bytes"
    return None


def why_meaningless(acl: Acl) -> str | None:
    """Why can no authorizer know what this ACL says?"""
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return f"Invalid resourceType {acl.resource_type.name}"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {acl.pattern_type.name}"
    if acl.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        return f"Invalid operation {acl.operation.name}"
    if acl.permission not in (AclPermission.DENY, AclPermission.ALLOW):
        return f"Invalid permissionType {acl.permission.name}"
    if ":" not in acl.principal:
        shown = acl.principal[:SHOWN]
        return (
            f"Could not parse principal from `{shown}` (no colon is present separating the principal type from the"
            " principal name)"
        )
    return None


def why_invalid_filter(wanted: AclFilter) -> Refused | None:
    if wanted.resource_type == ResourceType.UNKNOWN or wanted.pattern_type == PatternType.UNKNOWN:
        return ErrorCode.INVALID_REQUEST, "Unknown patternFilter."
    if wanted.operation == AclOperation.UNKNOWN or wanted.permission == AclPermission.UNKNOWN:
        return ErrorCode.INVALID_REQUEST, "Unknown entryFilter."
    return None


# --- the same as records


def acl_in(record: AccessControlEntryRecord) -> Acl:
    return Acl(
        resource_type=ResourceType(record.resource_type),
        resource_name=record.resource_name,
        pattern_type=PatternType(record.pattern_type),
        principal=record.principal,
        host=record.host,
        operation=AclOperation(record.operation),
        permission=AclPermission(record.permission_type),
    )


def acl_record(acl_id: Uuid, acl: Acl) -> AccessControlEntryRecord:
    assert why_meaningless(acl) is None
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
