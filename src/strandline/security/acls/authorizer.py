"""The authorizer: may this principal, from this host, do this with that resource? By the rules of Kafka's own.

Rules:
  - super users may do everything, whatever the ACLs say
  - an ACL counts for its own principal, or for everybody (`User:*`), from its own host, or from everywhere (`*`)
  - one ACL that denies outweighs all that allow
  - who is allowed Read, Write, Delete or Alter may Describe too; who is allowed AlterConfigs, DescribeConfigs too. To
    deny one of them does not deny the other
  - a resource that no ACL names, of anybody, is nobody's: or everybody's, if `allow.everyone.if.no.acl.found`

Decisions are kept until the ACLs change, so that the same question costs one lookup. At most `KEPT_MAX` are, and none
about a name that is longer than a topic's may be: a client can name as many groups as it likes.
"""

from collections.abc import Iterator, Mapping

from strandline.base.ids import Uuid
from strandline.metadata.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from strandline.security.acls.index import AclIndex, canonical

KEPT_MAX = 50_000
NAME_KEPT_MAX = 249  # letters
ANY_NAME = "hardcode"  # Kafka's: super users, and what is allowed without ACLs, are found by a name like any other

# By operation, the operations of ACLs that allow it.
ALLOWING: dict[int, tuple[int, ...]] = {
    operation: (operation, AclOperation.ALL) for operation in AclOperation if operation > AclOperation.ALL
}
ALLOWING[AclOperation.DESCRIBE] += (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
ALLOWING[AclOperation.DESCRIBE_CONFIGS] += (AclOperation.ALTER_CONFIGS,)

# What there is to be allowed on a resource of each type.
OPERATIONS: dict[int, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}


class Rights:
    """What one principal may do from one host, by the ACLs of one version: another one has another object."""

    __slots__ = ("authorizer", "decided", "host", "is_super", "principal", "readable", "writable")

    def __init__(self, authorizer: "Authorizer", principal: str, host: str) -> None:
        self.authorizer = authorizer
        self.principal = principal
        self.host = host
        self.is_super = principal in authorizer.super_users
        self.decided: dict[tuple[int, int, str], bool] = {}
        # Topics that are certainly permitted, by name and by id: the hot path looks nowhere else.
        self.readable: set[str | Uuid] = set()
        self.writable: set[str | Uuid] = set()

    def forget(self) -> None:
        self.decided.clear()
        self.readable.clear()
        self.writable.clear()

    def may_topic(self, operation: int, name: str, known_as: str | Uuid, permitted: set[str | Uuid]) -> bool:
        """As `allows`; and remember among `permitted` what clients call the topic."""
        allowed = self.allows(operation, ResourceType.TOPIC, name)
        if allowed and len(name) <= NAME_KEPT_MAX and self.authorizer.has_room():
            permitted.add(known_as)
        return allowed

    def allows(self, operation: int, resource_type: int, name: str) -> bool:
        found = self.decided.get((operation, resource_type, name))
        return self.decide(operation, resource_type, name) if found is None else found

    def decide(self, operation: int, resource_type: int, name: str) -> bool:
        allowed = self.authorizer.judge(self.principal, self.host, operation, resource_type, name)
        if len(name) <= NAME_KEPT_MAX and self.authorizer.has_room():
            self.decided[operation, resource_type, name] = allowed
        return allowed

    def allows_some(self, operation: int, resource_type: int) -> bool:
        """Is there a resource of this type with which it may be done? It need not exist."""
        key = (operation, resource_type, "")  # no resource has an empty name
        found = self.decided.get(key)
        if found is None:
            found = self.authorizer.judge_some(self.principal, self.host, operation, resource_type)
            if self.authorizer.has_room():
                self.decided[key] = found
        return found

    def operations(self, resource_type: int, name: str) -> int:
        """All that may be done, as the bits that responses carry: bit n is operation n."""
        return sum(1 << one for one in OPERATIONS[resource_type] if self.allows(one, resource_type, name))


class Authorizer:
    def __init__(self, super_users: frozenset[str], *, allows_if_no_acl: bool) -> None:
        self.super_users = super_users
        self.allows_if_no_acl = allows_if_no_acl
        self.index = AclIndex()
        self.version = -1  # nothing is known yet: only super users are permitted anything
        self.known: dict[tuple[str, str], Rights] = {}
        self.kept = 0  # decisions, and principals, at least as many as are in `known`

    def follow(self, acls: Mapping[Uuid, Acl], version: int) -> None:
        """Judge by these ACLs from now on, if their version is another one."""
        if version == self.version:
            return
        self.index.follow(acls)
        self.version = version
        self.forget()  # guard: decision-outlives-the-acls

    def forget(self) -> None:
        self.known.clear()
        self.kept = 0

    def has_room(self) -> bool:
        """Count one thing more to keep; what is kept is all forgotten when it is too much."""
        self.kept += 1
        if self.kept <= KEPT_MAX:
            return True
        if len(self.known) > KEPT_MAX // 2:
            self.forget()
        for rights in self.known.values():  # who has a fetch session keeps it
            rights.forget()
        self.kept = len(self.known)
        return False

    def rights(self, principal: str, host: str) -> Rights:
        found = self.known.get((principal, host))
        if found is None:
            found = Rights(self, principal, canonical(host))
            if self.has_room():
                self.known[principal, host] = found
        return found

    def judge(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        if principal in self.super_users:
            return True
        if self.version < 0:
            return False
        allowing = ALLOWING[operation]
        allowed = is_named = False
        for cells in self.index.about(resource_type, name):
            is_named = True
            for acl in counting(cells, principal, host):
                if acl.permission == AclPermission.DENY:
                    if acl.operation in (operation, AclOperation.ALL):  # guard: denial-does-not-win
                        return False
                elif acl.operation in allowing:
                    allowed = True
        return allowed or (not is_named and self.allows_if_no_acl)

    def judge_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """As in Kafka (KIP-679), only ACLs of the operation itself, or of all, count here."""
        if self.judge(principal, host, operation, resource_type, ANY_NAME):
            return True
        cells = {who: self.index.by_principal.get((resource_type, who), {}) for who in (principal, WILDCARD_PRINCIPAL)}
        found = [acl for acl in counting(cells, principal, host) if acl.operation in (operation, AclOperation.ALL)]
        denied = {(acl.pattern_type, acl.resource_name) for acl in found if acl.permission == AclPermission.DENY}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(acl.permission == AclPermission.ALLOW and not is_covered(acl, denied) for acl in found)


def counting(cells: Mapping[str, Mapping[Uuid, Acl]], principal: str, host: str) -> Iterator[Acl]:
    """Those that count for this principal on connections from this host."""
    for who in (principal,) if principal == WILDCARD_PRINCIPAL else (principal, WILDCARD_PRINCIPAL):
        for acl in cells.get(who, {}).values():
            if acl.host in (host, WILDCARD):
                yield acl


def is_covered(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Is everything that this ACL allows denied by one of these patterns?"""
    name = acl.resource_name
    if acl.pattern_type == PatternType.LITERAL:
        if name == WILDCARD:
            return False  # nothing shorter than the wildcard covers it
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
