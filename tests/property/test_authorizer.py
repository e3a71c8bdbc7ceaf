"""The authorizer, with its index and what it keeps, decides as a naive one does that looks at all ACLs each time."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.ids import Uuid
from strandline.metadata.acls import Acl, AclOperation, AclPermission, PatternType, ResourceType
from strandline.security.acls.authorizer import Authorizer

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
NAMES = ("a", "ab", "abc", "b", "*", "*x", "hardcode")
PRINCIPALS = ("User:ann", "User:bob", "User:*", "Service:ann")
HOSTS = ("10.0.0.1", "::1", "*")
OPERATIONS = tuple(one for one in AclOperation if one > AclOperation.ANY)
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)

acls = st.builds(
    Acl,
    resource_type=st.sampled_from(TYPES),
    resource_name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from((LITERAL, PREFIXED)),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    permission=st.sampled_from((AclPermission.ALLOW, AclPermission.DENY)),
)
askers = st.tuples(st.sampled_from(("User:ann", "User:bob", "User:root")), st.sampled_from(("10.0.0.1", "::1")))
questions = st.tuples(
    askers,
    st.sampled_from([o for o in OPERATIONS if o > AclOperation.ALL]),
    st.sampled_from(TYPES),
    st.sampled_from((*NAMES, "abd")),
)
IMPLIED = {
    AclOperation.DESCRIBE: {
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    },
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS},
}


def counts(acl: Acl, asker: tuple[str, str]) -> bool:
    return acl.principal in (asker[0], "User:*") and acl.host in (asker[1], "*")


def matches(acl: Acl, name: str) -> bool:
    if acl.pattern_type == PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def naive(
    known: Iterable[Acl], asker: tuple[str, str], operation: AclOperation, kind: ResourceType, name: str, default: bool
) -> bool:
    if asker[0] == "User:root":
        return True
    about = [acl for acl in known if acl.resource_type == kind and matches(acl, name)]
    mine = [acl for acl in about if counts(acl, asker)]
    if any(acl.permission == AclPermission.DENY and acl.operation in (operation, AclOperation.ALL) for acl in mine):
        return False
    wanted = IMPLIED.get(operation, {operation}) | {AclOperation.ALL}
    return any(acl.permission == AclPermission.ALLOW and acl.operation in wanted for acl in mine) or (
        default and not about
    )


def naive_some(
    known: Iterable[Acl], asker: tuple[str, str], operation: AclOperation, kind: ResourceType, default: bool
) -> bool:
    """Kafka's rules (KIP-679): a name that is allowed and not denied, or a prefix of which not all is denied."""
    if naive(known, asker, operation, kind, "hardcode", default):
        return True
    mine = [
        a
        for a in known
        if a.resource_type == kind and counts(a, asker) and a.operation in (operation, AclOperation.ALL)
    ]
    denied = [acl for acl in mine if acl.permission == AclPermission.DENY]
    if any(acl.pattern_type == LITERAL and acl.resource_name == "*" for acl in denied):
        return False
    for acl in mine:
        if acl.permission == AclPermission.DENY:
            continue
        if acl.pattern_type == LITERAL and acl.resource_name == "*":
            return True
        if any(
            acl.resource_name.startswith(no.resource_name)
            if no.pattern_type == PREFIXED
            else acl.pattern_type == LITERAL and acl.resource_name == no.resource_name
            for no in denied
        ):
            continue
        return True
    return False


@settings(max_examples=150, deadline=None)
@given(
    st.booleans(),
    st.lists(st.one_of(acls, st.integers(0, 30)), max_size=25),
    st.lists(questions, min_size=1, max_size=8),
)
def test_the_authorizer_decides_as_one_that_looks_at_all_acls(
    default: bool, changes: list[Acl | int], asked: list[tuple[tuple[str, str], AclOperation, ResourceType, str]]
) -> None:
    authorizer = Authorizer(frozenset({"User:root"}), allows_if_no_acl=default)
    known: dict[Uuid, Acl] = {}
    for version, change in enumerate(changes):
        if isinstance(change, Acl):
            known[Uuid(version.to_bytes(16, "big"))] = change
        elif known:
            del known[list(known)[change % len(known)]]
        authorizer.follow(known, version)
        authorizer.index.check()
        for asker, operation, kind, name in asked:
            rights = authorizer.rights(*asker)
            for _ in range(2):  # decided, then remembered
                assert rights.allows(operation, kind, name) == naive(
                    known.values(), asker, operation, kind, name, default
                ), (asker, operation.name, kind.name, name)
                assert rights.allows_some(operation, kind) == naive_some(
                    known.values(), asker, operation, kind, default
                ), (asker, operation.name, kind.name)
