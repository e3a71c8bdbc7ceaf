"""Who may do what, by the ACLs alone, one after another: as simple as it can be, and nothing of the authorizer's own.

A `Need` is a choice: one of its rights is enough. A right without a name is about any resource of its type.
"""

from collections.abc import Iterable

from strandline.metadata.security.acls import CLUSTER_NAME, Acl, AclOperation, AclPermission, PatternType, ResourceType

Right = tuple[AclOperation, ResourceType, str]
Need = tuple[Right, ...]
Acls = tuple[Acl, ...]
ANY = "\0any"

# What else allows an operation; it denies nothing else.
IMPLIED_BY = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


def on_topic(operation: AclOperation, name: str) -> Need:
    return ((operation, ResourceType.TOPIC, name),)


def on_group(operation: AclOperation, name: str) -> Need:
    return ((operation, ResourceType.GROUP, name),)


def on_id(operation: AclOperation, name: str) -> Need:
    return ((operation, ResourceType.TRANSACTIONAL_ID, name),)


def on_cluster(*operations: AclOperation) -> Need:
    return tuple((operation, ResourceType.CLUSTER, CLUSTER_NAME) for operation in operations)


def is_met(acls: Acls, principal: str, host: str, need: Need) -> bool:
    return any(is_permitted(acls, principal, host, right) for right in need)


def is_permitted(acls: Acls, principal: str, host: str, right: Right) -> bool:
    operation, kind, name = right
    mine = [acl for acl in acls if acl.resource_type == kind and is_about(acl, principal, host)]
    if name == ANY:  # more than what is permitted: denials may take it all away
        return any(acl.permission == AclPermission.ALLOW and allows(acl, operation) for acl in mine)
    mine = [acl for acl in mine if names(acl, name)]
    if any(acl.permission == AclPermission.DENY and is_of(acl, operation) for acl in mine):
        return False
    return any(acl.permission == AclPermission.ALLOW and allows(acl, operation) for acl in mine)


def is_about(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, "User:*") and acl.host in (host, "*")


def names(acl: Acl, name: str) -> bool:
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def is_of(acl: Acl, operation: AclOperation) -> bool:
    return acl.operation in (operation, AclOperation.ALL)


def allows(acl: Acl, operation: AclOperation) -> bool:
    return is_of(acl, operation) or acl.operation in IMPLIED_BY.get(operation, ())


def hidden(acls: Iterable[Acls], principal: str, host: str, topic: str) -> bool:
    """May it describe the topic in none of these states?"""
    return not any(is_met(one, principal, host, on_topic(AclOperation.DESCRIBE, topic)) for one in acls)
