"""`strandline acls`: who may do what. Options as kafka-acls has them; `metadata.security.acls` says what ACLs are."""

import json
import sys
from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, Parameter

from strandline.cli.admin.acl_options import (
    CREATABLE,
    Entries,
    Resources,
    checked_principal,
    grants,
    named,
    operation_of,
)
from strandline.cli.columns import show
from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.show import Row
from strandline.client.admin.acls import create_acls, delete_acls, describe_acls, sentence
from strandline.client.ask import Servers
from strandline.metadata.security.acls import Acl, AclFilter, AclOperation

app = App(name="acls", help="List, add and remove ACLs: who may do what with which resource.")
COLUMNS = {
    "resource_type": "ResourceType",
    "resource_name": "ResourceName",
    "pattern_type": "PatternType",
    "principal": "Principal",
    "host": "Host",
    "operation": "Operation",
    "permission": "PermissionType",
}
OfResources = Annotated[Resources, Parameter(name="*")]
OfEntries = Annotated[Entries, Parameter(name="*")]
EVERYTHING, NOBODY = Resources(), Entries()


@app.command(name="list")
def list_acls(
    *,
    resources: OfResources = EVERYTHING,
    principal: Annotated[list[str] | None, named("only ACLs of this principal, such as User:alice")] = None,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """List ACLs: all, or those of the named resources and principals."""
    principals: list[str | None] = [*map(checked_principal, principal or ())] or [None]
    if resources.given:
        filters = [resources.filter_of(one, principal=who) for one in resources.given for who in principals]
    else:
        filters = [AclFilter(principal=who) for who in principals]
    show([row_of(acl) for acl in found_by(cluster.config, filters)], COLUMNS, json_output)


@app.command
def add(
    *,
    resources: OfResources = EVERYTHING,
    entries: OfEntries = NOBODY,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Allow or deny principals operations on resources. ACLs that exist already stay."""
    if resources.pattern not in CREATABLE:
        known = " or ".join(one.name.lower() for one in CREATABLE)
        misuse(f"an ACL has no pattern of type {resources.resource_pattern_type}", f"add it as {known}")
    wanted = [acl for one in grants(resources, entries) if (acl := one.named) is not None]
    if not wanted:
        misuse("no principal is named", "name one with --allow-principal or --deny-principal")
    patterns = dict.fromkeys(
        AclFilter(resource_type=acl.resource_type, resource_name=acl.resource_name, pattern_type=acl.pattern_type)
        for acl in wanted
    )
    before = set(found_by(cluster.config, patterns))
    create_acls(cluster.config, [acl for acl in wanted if acl not in before])
    report(wanted, {acl: "exists" if acl in before else "added" for acl in wanted}, json_output)


@app.command
def remove(
    *,
    resources: OfResources = EVERYTHING,
    entries: OfEntries = NOBODY,
    force: Annotated[bool, Parameter(negative="", help="do not ask for confirmation")] = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Remove ACLs, after showing them: with principals, those that `add` adds with the same options; without, all ACLs
    of the resources."""
    filters = grants(resources, entries)
    if not entries.has_principal:
        operations = [operation_of(one) for one in entries.operation or ()] or [AclOperation.ANY]
        filters = [resources.filter_of(one, operation=wanted) for one in resources.given for wanted in operations]
    found = found_by(cluster.config, filters)
    if not found:
        print("no ACL matches: nothing is removed", file=sys.stderr)
    elif not force:
        confirm(found)
    deleted = delete_acls(cluster.config, found)
    report(deleted, dict.fromkeys(deleted, "removed"), json_output)


def confirm(found: list[Acl]) -> None:
    if not sys.stdin.isatty():
        advice = "confirm it with --force; `strandline acls list` shows them"
        fail(f"this would remove {len(found)} ACLs", advice, status=2)
    for acl in found:
        print(f"the ACL that {sentence(acl)}")
    if input(f"Remove {'it' if len(found) == 1 else f'these {len(found)} ACLs'}? [y/N] ").strip().lower() != "y":
        fail("nothing was removed", "answer y to remove them, or add --force")


def found_by(bootstrap: Servers, filters: Iterable[AclFilter]) -> list[Acl]:
    """Each once, in the order of the filters."""
    return list(dict.fromkeys(acl for wanted in filters for acl in describe_acls(bootstrap, wanted)))


def report(acls: list[Acl], outcomes: dict[Acl, str], json_output: bool) -> None:
    if json_output:
        print(json.dumps([{**row_of(acl), "outcome": outcomes[acl]} for acl in acls]))
        return
    for acl in acls:
        print(f"{outcomes[acl]}: {sentence(acl)}")


def row_of(acl: Acl) -> Row:
    return {
        "resource_type": acl.resource_type.name,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }
