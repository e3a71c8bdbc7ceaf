"""Somebody who grants rights and takes them away while others work, and leaves everything permitted in the end.

What clients may do follows from a few ACLs that permit all of them everything (`basis`), and from those that come and
go: denials of one operation, for one client or for all, of one resource or of a prefix, and sometimes a part of the
basis that is missing.
"""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.metadata.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from strandline.sim.clients.client import Client, Life, Request, Stage
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.messages.security.describe_acls import DescribeAclsRequest

VERSION, TIMEOUT_MS = 3, 500  # the next change does not wait for a node that is down
EXTRAS_MAX = 4  # denials at a time
FOUND_TIMES = (
    4  # looks in a row that must find the basis and nothing else: a request that nobody answered may come late
)
LOOK_MS = 1_000
TOPIC, GROUP, ID, CLUSTER = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
)
Op = AclOperation
OPERATIONS = {  # what may be denied of each
    TOPIC: (Op.READ, Op.WRITE, Op.WRITE, Op.DESCRIBE, Op.ALL),
    GROUP: (Op.READ, Op.DESCRIBE, Op.ALL),
    ID: (Op.WRITE, Op.DESCRIBE, Op.ALL),
    CLUSTER: (Op.IDEMPOTENT_WRITE,),
}


def acl(
    kind: ResourceType,
    name: str,
    principal: str,
    operation: AclOperation,
    permission: AclPermission = AclPermission.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
) -> Acl:
    return Acl(kind, name, pattern, principal, WILDCARD, operation, permission)


def basis(denied: str) -> list[Acl]:
    """Everything for everybody, and nothing for `denied`: a denial outweighs what is allowed."""
    kinds = (TOPIC, GROUP, ID)
    permitted = [acl(kind, WILDCARD, WILDCARD_PRINCIPAL, Op.ALL) for kind in kinds]
    permitted.append(acl(CLUSTER, CLUSTER_NAME, WILDCARD_PRINCIPAL, Op.IDEMPOTENT_WRITE))
    refused = [acl(kind, WILDCARD, denied, Op.ALL, AclPermission.DENY) for kind in kinds]
    return [*permitted, *refused, acl(CLUSTER, CLUSTER_NAME, denied, Op.ALL, AclPermission.DENY)]


class Permitter(Client):
    """`clients` and `resources`: of whom and of what rights change, by names."""

    def __init__(
        self, stage: Stage, name: str, pause_ms: int, denied: str, resources: dict[ResourceType, Sequence[str]]
    ) -> None:
        super().__init__(stage, name)
        self.pause_ms = pause_ms
        self.basis = basis(denied)
        self.resources = resources
        self.clients: list[str] = []
        self.extras: list[Acl] = []
        self.missing: list[Acl] = []
        self.may_change = False

    def live(self) -> Life:
        while not (yield from self.is_there(self.basis)):
            yield from self.create(self.basis)
        while not self.is_stopped:
            if self.may_change and self.pause_ms:
                yield from self.change()
            yield self.pause(1, 2 * max(self.pause_ms, 10))
        yield from self.restore_basis()

    def change(self) -> Life:
        """One ACL more or less."""
        rng = self.rng
        if self.missing:  # soon again: nobody gets anything done meanwhile
            yield from self.create([self.missing.pop()])
        elif len(self.extras) >= EXTRAS_MAX or (self.extras and rng.randrange(5) < 2):
            yield from self.delete(self.extras.pop(rng.randrange(len(self.extras))))
        elif rng.randrange(8) == 0:
            lost = rng.choice([one for one in self.basis if one.permission == AclPermission.ALLOW])
            self.missing.append(lost)
            yield from self.delete(lost)
        else:
            extra = self.drawn()
            if extra not in self.extras:
                self.extras.append(extra)
                yield from self.create([extra])

    def drawn(self) -> Acl:
        rng = self.rng
        kind = rng.choice((TOPIC, TOPIC, TOPIC, GROUP, ID, CLUSTER))
        names = self.resources.get(kind, ())
        name, pattern = (rng.choice(names) if names else WILDCARD), PatternType.LITERAL
        if name not in (WILDCARD, CLUSTER_NAME) and rng.randrange(3) == 0:
            name, pattern = name[: rng.randrange(1, len(name))], PatternType.PREFIXED
        who = f"User:{rng.choice(self.clients)}" if self.clients and rng.randrange(2) else WILDCARD_PRINCIPAL
        is_denied = rng.randrange(6) > 0
        permission = AclPermission.DENY if is_denied else AclPermission.ALLOW
        return acl(kind, name, who, rng.choice(OPERATIONS[kind]), permission, pattern)

    def restore_basis(self) -> Life:
        found = 0
        while found < FOUND_TIMES:
            if (yield from self.is_there(self.basis)):
                found += 1
            else:
                found = 0
                yield from self.delete_all()
                yield from self.create(self.basis)
            yield LOOK_MS

    # --- requests

    def create(self, wanted: Sequence[Acl]) -> Life:
        rows = tuple(
            AclCreation(
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                resource_pattern_type=one.pattern_type,
                principal=one.principal,
                host=one.host,
                operation=one.operation,
                permission_type=one.permission,
            )
            for one in wanted
        )
        answer = yield from self.ask(CreateAclsRequest(creations=rows))
        self.report(f"creates {', '.join(map(shown, wanted))}: {'no answer' if answer is None else 'answered'}")

    def delete(self, one: Acl) -> Life:
        row = DeleteAclsFilter(
            resource_type_filter=one.resource_type,
            resource_name_filter=one.resource_name,
            pattern_type_filter=one.pattern_type,
            principal_filter=one.principal,
            host_filter=one.host,
            operation=one.operation,
            permission_type=one.permission,
        )
        answer = yield from self.ask(DeleteAclsRequest(filters=(row,)))
        self.report(f"deletes {shown(one)}: {'no answer' if answer is None else 'answered'}")

    def delete_all(self) -> Life:
        every = DeleteAclsFilter(
            resource_type_filter=ResourceType.ANY,
            pattern_type_filter=PatternType.ANY,
            operation=AclOperation.ANY,
            permission_type=AclPermission.ANY,
        )
        yield from self.ask(DeleteAclsRequest(filters=(every,)))

    def is_there(self, wanted: Sequence[Acl]) -> Generator[Any, Any, bool]:
        """These ACLs, and no others, as one broker says that it has applied."""
        request = DescribeAclsRequest(
            resource_type_filter=ResourceType.ANY,
            pattern_type_filter=PatternType.ANY,
            operation=AclOperation.ANY,
            permission_type=AclPermission.ANY,
        )
        answer = yield from self.ask(request)
        if answer is None or answer.error_code:
            return False
        found = {
            (r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
            for r in answer.resources
            for a in r.acls
        }
        return found == {tuple(getattr(one, field) for field in Acl.__struct_fields__) for one in wanted}

    def ask(self, message: Any) -> Generator[Any, Any, Any]:
        return (yield Request(self.any_node(), message, VERSION, TIMEOUT_MS))


def shown(one: Acl) -> str:
    kind, operation, permission = one.resource_type.name, one.operation.name, one.permission.name
    star = "…" if one.pattern_type == PatternType.PREFIXED else ""
    return f"{permission} {one.principal} {operation} {kind} {one.resource_name}{star}"
