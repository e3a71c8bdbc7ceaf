"""The authorizer, with its index and what it keeps, decides as a naive one does that looks at all ACLs each time."""

from collections.abc import Iterable
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each

from strandline.base.ids import Uuid
from strandline.metadata.security.acls import Acl, AclOperation, AclPermission, PatternType, ResourceType
from strandline.security.acls.authorizer import Authorizer

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
NAMES = ("a", "ab", "*", "hardcode")
PRINCIPALS = ("User:ann", "User:*", "Service:ann")
HOSTS = ("::1", "*")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
ASKED = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
OPERATIONS = (AclOperation.ALL, AclOperation.DELETE, AclOperation.ALTER, *ASKED)
ASKERS = (("User:ann", "::1"), ("User:ann", "10.0.0.1"), ("User:bob", "::1"), ("User:root", "::1"))

acls = st.builds(
    Acl,
    resource_type=st.sampled_from(TYPES),
    resource_name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from((LITERAL, PREFIXED)),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    permission=st.sampled_from((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),
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


@settings(max_examples=120, deadline=None)
@given(st.booleans(), st.lists(st.one_of(acls, acls, st.integers(0, 30)), max_size=12))
def test_the_authorizer_decides_as_one_that_looks_at_all_acls(default: bool, changes: list[Acl | int]) -> None:
    authorizer = Authorizer(frozenset({"User:root"}), allows_if_no_acl=default)
    known: dict[Uuid, Acl] = {}
    asked = list(product(ASKERS, ASKED, TYPES))
    for version, change in enumerate([0, *changes]):
        if isinstance(change, Acl):
            known[Uuid(version.to_bytes(16, "big"))] = change
        elif known:
            del known[list(known)[change % len(known)]]
        authorizer.follow(known, version)
        authorizer.index.check()
        # All at the end, and some on the way, so that there are decisions to forget.
        for asker, operation, kind in asked if version == len(changes) else asked[version::11]:
            rights = authorizer.rights(*asker)
            found = rights.allows_some(operation, kind)
            assert found == naive_some(known.values(), asker, operation, kind, default), (asker, operation, kind)
            for name in (*NAMES, "abc"):
                expected = naive(known.values(), asker, operation, kind, name, default)
                for _ in range(2):  # decided, then remembered
                    assert rights.allows(operation, kind, name) == expected, (asker, operation, kind, name)


SOME = (  # what is allowed, what is denied, and whether some topic is left
    ((), (), False),
    (("a",), (), True),
    (("a*",), (), True),
    (("a",), ("a",), False),
    (("a",), ("b",), True),
    (("ab",), ("a*",), False),
    (("ab*",), ("a*",), False),
    (("ab*",), ("ab*",), False),
    (("ab*",), ("ab",), True),
    (("a*",), ("ab*",), True),
    (("*",), ("a*", "b"), True),
    (("*",), ("*",), False),
    (("a", "b*"), ("*",), False),
    (("ab", "b"), ("a*",), True),
)


@each("allowed, denied, expected", SOME)
def test_something_is_left_unless_all_that_is_allowed_is_denied(
    allowed: tuple[str, ...], denied: tuple[str, ...], expected: bool
) -> None:
    """`a*` is a prefix, `*` alone every topic."""

    def acl(text: str, permission: AclPermission) -> Acl:
        is_prefix = text.endswith("*") and text != "*"
        name, pattern = (text[:-1], PREFIXED) if is_prefix else (text, LITERAL)
        return Acl(ResourceType.TOPIC, name, pattern, "User:ann", "*", AclOperation.WRITE, permission)

    rows = [*(acl(text, AclPermission.ALLOW) for text in allowed), *(acl(text, AclPermission.DENY) for text in denied)]
    authorizer = Authorizer(frozenset(), allows_if_no_acl=False)
    authorizer.follow({Uuid(bytes([at]) * 16): one for at, one in enumerate(rows)}, 1)
    rights = authorizer.rights("User:ann", "here")
    assert rights.allows_some(AclOperation.WRITE, ResourceType.TOPIC) == expected
    assert not rights.allows_some(AclOperation.READ, ResourceType.TOPIC)
    assert not rights.allows_some(AclOperation.WRITE, ResourceType.GROUP)
