"""The options of `strandline acls`, which are those of kafka-acls, and which ACLs they mean."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from strandline.cli.connect import misuse
from strandline.client.admin.acls import CONSUMER, OPERATIONS, PLACES, PRODUCER
from strandline.metadata.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

Resource = tuple[ResourceType, str]
PATTERNS = {one.name.lower(): one for one in PatternType if one is not PatternType.UNKNOWN}
CREATABLE = (PatternType.LITERAL, PatternType.PREFIXED)
NO_OPERATION = (AclOperation.UNKNOWN, AclOperation.ANY)


def named(what: str) -> Parameter:
    return Parameter(negative="", help=f"{what}; may be repeated")


@dataclass(frozen=True)
class Resources:
    """Of which resources the ACLs are."""

    topic: Annotated[list[str] | None, named("a topic, or * for each")] = None
    group: Annotated[list[str] | None, named("a consumer group, or * for each")] = None
    cluster: Annotated[bool, Parameter(negative="", help="the cluster itself")] = False
    transactional_id: Annotated[list[str] | None, named("a transactional id, or * for each")] = None
    delegation_token: Annotated[list[str] | None, named("a delegation token, or * for each")] = None
    user_principal: Annotated[list[str] | None, named("a user as a resource, such as User:alice")] = None
    resource_pattern_type: Annotated[
        str,
        Parameter(
            help="literal: resources of these names; prefixed: resources whose names begin so. To list or remove, also"
            " any: ACLs of exactly these names, of either type; match: all ACLs that affect these resources"
        ),
    ] = "literal"

    @property
    def pattern(self) -> PatternType:
        found = PATTERNS.get(self.resource_pattern_type.lower())
        if found is None:
            misuse(f"'{self.resource_pattern_type}' is not a pattern type", f"the types are {', '.join(PATTERNS)}")
        return found

    @property
    def given(self) -> list[Resource]:
        names = {
            ResourceType.TOPIC: self.topic,
            ResourceType.GROUP: self.group,
            ResourceType.TRANSACTIONAL_ID: self.transactional_id,
            ResourceType.DELEGATION_TOKEN: self.delegation_token,
            ResourceType.USER: self.user_principal,
        }
        found = [(kind, name.strip()) for kind, given in names.items() for name in given or ()]
        if any(not name for _, name in found):
            misuse("the name of a resource is empty", "name one; * stands for each resource of its type")
        return [*found, (ResourceType.CLUSTER, CLUSTER_NAME)] if self.cluster else found

    def filter_of(self, resource: Resource, **fields: object) -> AclFilter:
        """The cluster is one resource, of which every ACL is literal."""
        kind, name = resource
        pattern = PatternType.LITERAL if kind == ResourceType.CLUSTER else self.pattern
        return AclFilter(resource_type=kind, resource_name=name, pattern_type=pattern, **fields)  # type: ignore[arg-type]  # by name


@dataclass(frozen=True)
class Entries:
    """Who may do what, or may not."""

    allow_principal: Annotated[list[str] | None, named("who is allowed, such as User:alice, or User:*")] = None
    deny_principal: Annotated[list[str] | None, named("who is denied, whatever else allows it")] = None
    allow_host: Annotated[list[str] | None, named("from which addresses it is allowed; without it, from all")] = None
    deny_host: Annotated[list[str] | None, named("from which addresses it is denied; without it, from all")] = None
    operation: Annotated[list[str] | None, named("an operation, such as Read; without it, All")] = None
    producer: Annotated[bool, Parameter(negative="", help="what producers need: Write, Describe, Create")] = False
    consumer: Annotated[bool, Parameter(negative="", help="what consumers need: Read, Describe; groups: Read")] = False
    idempotent: Annotated[
        bool, Parameter(negative="", help="with --producer: also IdempotentWrite, which brokers before 3.0 need")
    ] = False

    @property
    def has_role(self) -> bool:
        return self.producer or self.consumer

    @property
    def has_principal(self) -> bool:
        return bool(self.allow_principal or self.deny_principal)


# --- which ACLs are meant


def grants(resources: Resources, entries: Entries) -> list[AclFilter]:
    """A filter for each ACL of these principals. With the patterns LITERAL and PREFIXED it names the ACL."""
    why = why_contradictory(resources, entries)
    if why is not None:
        misuse(*why)
    if not resources.given:
        options = "--topic, --group, --cluster, --transactional-id, --delegation-token or --user-principal"
        misuse("no resource is named", f"name one with {options}")
    operations = by_resource(resources, entries)
    return [
        resources.filter_of(resource, principal=principal, host=host, operation=operation, permission=permission)
        for resource, wanted in operations.items()
        for permission, principals, hosts in (
            (AclPermission.ALLOW, entries.allow_principal, entries.allow_host),
            (AclPermission.DENY, entries.deny_principal, entries.deny_host),
        )
        for principal in dict.fromkeys(map(checked_principal, principals or ()))
        for operation in wanted
        for host in dict.fromkeys(one.strip() for one in hosts or (WILDCARD,))
    ]


def by_resource(resources: Resources, entries: Entries) -> dict[Resource, tuple[AclOperation, ...]]:
    if not entries.has_role:
        operations = tuple(dict.fromkeys(map(operation_of, entries.operation or ("All",))))
        for kind, _ in resources.given:
            check_operations(kind, operations)
        return dict.fromkeys(resources.given, operations)
    found: dict[Resource, tuple[AclOperation, ...]] = {}
    for role, is_wanted in ((PRODUCER, entries.producer), (CONSUMER, entries.consumer)):
        for resource in resources.given:
            if is_wanted and resource[0] in role:
                found[resource] = tuple(dict.fromkeys(found.get(resource, ()) + role[resource[0]]))
    if entries.idempotent:
        found[ResourceType.CLUSTER, CLUSTER_NAME] = (AclOperation.IDEMPOTENT_WRITE,)
    return found


def why_contradictory(resources: Resources, entries: Entries) -> tuple[str, str] | None:
    if entries.has_role and (entries.operation or entries.deny_principal or entries.deny_host):
        return "--producer and --consumer stand for allowed operations", "leave out --operation and --deny-…"
    if entries.has_role and not entries.allow_principal:
        return "--producer and --consumer need --allow-principal", "for example --allow-principal User:alice"
    if entries.allow_host and not entries.allow_principal:
        return "--allow-host needs --allow-principal", "User:* is everybody"
    if entries.deny_host and not entries.deny_principal:
        return "--deny-host needs --deny-principal", "User:* is everybody"
    if entries.idempotent and not entries.producer:
        return "--idempotent needs --producer", "add --producer, or leave --idempotent out"
    if entries.producer and not resources.topic:
        return "--producer needs --topic", "name the topic to which the producer writes"
    if entries.consumer and not (resources.topic and resources.group):
        return "--consumer needs --topic and --group", "name the topic that is read, and the consumer group"
    unused = [PLACES[kind] for kind, _ in resources.given if not has_part(kind, entries)]
    if unused:
        return f"the role has nothing to do with a {unused[0]}", "add ACLs for it with --operation"
    return None


def has_part(kind: ResourceType, entries: Entries) -> bool:
    roles = ((PRODUCER, entries.producer), (CONSUMER, entries.consumer))
    return not entries.has_role or any(is_wanted and kind in role for role, is_wanted in roles)


# --- texts


def checked_principal(text: str) -> str:
    principal = text.strip()
    if ":" not in principal:
        misuse(f"'{principal}' is not TYPE:NAME", f"for example User:{principal}")
    return principal


def operation_of(text: str) -> AclOperation:
    """`DescribeConfigs`, as kafka-acls has it, or `DESCRIBE_CONFIGS`."""
    wanted = squeezed(text)
    for operation in AclOperation:
        if squeezed(operation.name) == wanted and operation not in NO_OPERATION:
            return operation
    known = [operation_text(one) for one in AclOperation if one not in NO_OPERATION]
    return misuse(f"'{text}' is not an operation", f"the operations are {', '.join(known)}")


def squeezed(text: str) -> str:
    return text.strip().replace("_", "").replace("-", "").lower()


def operation_text(operation: AclOperation) -> str:
    return operation.name.title().replace("_", "")


def check_operations(kind: ResourceType, wanted: Iterable[AclOperation]) -> None:
    wrong = [one for one in wanted if one not in OPERATIONS[kind] and one is not AclOperation.ALL]
    if wrong:
        known = ", ".join(operation_text(one) for one in (AclOperation.ALL, *OPERATIONS[kind]))
        misuse(f"a {PLACES[kind]} has no operation {operation_text(wrong[0])}", f"its operations are {known}")
