"""What a broker answers from its image about users' credentials and clients' quotas."""

from typing import Any

from tests.rows import each
from tests.unit.broker.handlers.fake_node import FakeNode, ask
from tests.unit.metadata.test_image import quota, scram

from strandline.base.errors import ErrorCode as E
from strandline.broker.handlers import describe_client_quotas, describe_user_scram_credentials
from strandline.wire.messages.security.describe_client_quotas import (
    ANY,
    DEFAULT,
    EXACT,
    ComponentData,
    DescribeClientQuotasRequest,
)
from strandline.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

ENTITIES = {
    "alice": (("user", "alice"),),
    "anyone": (("user", None),),
    "alice's app": (("user", "alice"), ("client-id", "app")),
    "alice's others": (("user", "alice"), ("client-id", None)),
    "app": (("client-id", "app"),),
    "here": (("ip", "127.0.0.1"),),
    "elsewhere": (("ip", None),),
}
BY_PARTS = {frozenset(parts): name for name, parts in ENTITIES.items()}


def node() -> FakeNode:
    made = FakeNode()
    for record in (scram("alice", mechanism=2, iterations=8192), scram("alice"), scram("bob")):
        made.image.apply(record)
    for parts in ENTITIES.values():
        made.image.apply(quota(1.5, *parts))
    return made


def users(*names: str, everybody: bool = False) -> list[Any]:
    rows = None if everybody else tuple(UserName(name) for name in names)
    answer = ask(describe_user_scram_credentials, node(), DescribeUserScramCredentialsRequest(users=rows), 0)
    assert (answer.error_code, answer.error_message) == (0, None)
    return [
        (r.user, r.error_code, r.error_message, [(c.mechanism, c.iterations) for c in r.credential_infos])
        for r in answer.results
    ]


def test_users_are_described_by_mechanism_and_iterations() -> None:
    alice, bob = ("alice", 0, None, [(1, 4096), (2, 8192)]), ("bob", 0, None, [(1, 4096)])
    assert users(everybody=True) == users() == [alice, bob]
    assert users("bob") == [bob]
    assert users("carol", "bob", "bob", "alice") == [
        (
            "carol",
            E.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: carol",
            [],
        ),
        (
            "bob",
            E.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
            [],
        ),
        alice,
    ]


def user(match: int, name: str | None = None) -> ComponentData:
    return ComponentData("user", match, name)


def client(match: int, name: str | None = None) -> ComponentData:
    return ComponentData("client-id", match, name)


def ip(match: int, name: str | None = None) -> ComponentData:
    return ComponentData("ip", match, name)


def quotas(*components: ComponentData, strict: bool = False) -> Any:
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    return ask(describe_client_quotas, node(), request, 1)


ALICES = ["alice", "alice's app", "alice's others"]
FOUND = [
    ((), False, list(ENTITIES)),
    ((), True, []),
    ((user(EXACT, "alice"),), False, ALICES),
    ((user(EXACT, "alice"),), True, ["alice"]),
    ((user(DEFAULT),), False, ["anyone"]),
    ((user(ANY),), False, ["alice", "anyone", "alice's app", "alice's others"]),
    ((user(ANY),), True, ["alice", "anyone"]),
    ((user(ANY), client(EXACT, "app")), True, ["alice's app"]),
    ((client(DEFAULT), user(ANY)), False, ["alice's others"]),
    ((client(EXACT, "app"),), False, ["alice's app", "app"]),
    ((client(EXACT, "app"),), True, ["app"]),
    ((ip(ANY),), True, ["here", "elsewhere"]),
    ((ip(EXACT, "127.0.0.1"),), False, ["here"]),
    ((ip(DEFAULT),), False, ["elsewhere"]),
    ((user(EXACT, "nobody"),), False, []),
]


@each(("components", "strict", "names"), FOUND)
def test_a_filter_finds_the_entities_that_fit(components: Any, strict: bool, names: list[str]) -> None:
    answer = quotas(*components, strict=strict)
    assert answer.error_code == 0
    found = [BY_PARTS[frozenset((p.entity_type, p.entity_name) for p in row.entity)] for row in answer.entries]
    assert found == names
    assert all([(v.key, v.value) for v in row.values] == [("producer_byte_rate", 1.5)] for row in answer.entries)


REFUSED = [
    ((ComponentData("", EXACT, "x"),), E.INVALID_REQUEST, "Invalid empty entity type."),
    ((user(ANY), user(ANY)), E.INVALID_REQUEST, "Entity type user cannot appear more than once in the filter."),
    ((ComponentData("group", ANY),), E.UNSUPPORTED_VERSION, "Unsupported entity type group"),
    ((user(EXACT),), E.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
    (
        (user(DEFAULT, "x"),),
        E.INVALID_REQUEST,
        "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
    ),
    (
        (user(ANY, "x"),),
        E.INVALID_REQUEST,
        "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
    ),
    ((user(3),), E.INVALID_REQUEST, "Unknown match type 3"),
    (
        (user(ANY), ip(ANY)),
        E.INVALID_REQUEST,
        "Invalid entity filter component combination. IP filter component should not be used with user or clientId"
        " filter component.",
    ),
    (
        (ip(ANY), client(ANY)),
        E.INVALID_REQUEST,
        "Invalid entity filter component combination. IP filter component should not be used with user or clientId"
        " filter component.",
    ),
]


@each(("components", "error", "message"), REFUSED)
def test_a_filter_that_makes_no_sense_is_refused(components: Any, error: E, message: str) -> None:
    answer = quotas(*components)
    assert (answer.error_code, answer.error_message, answer.entries) == (error, message, None)
