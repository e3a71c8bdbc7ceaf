"""Which of a client's quotas counts, and by whom it is shared."""

from itertools import product

from strandline.broker.quotas.limits import SHOWN_MAX, Limits, Quota
from strandline.metadata.security.quotas import CLIENT_KEYS, QuotaEntity

# As KIP-55 has them: a name, "*" for the default, None for what is not in the entity.
ORDER = (("u", "c"), ("u", "*"), ("u", None), ("*", "c"), ("*", "*"), ("*", None), (None, "c"), (None, "*"))


def entity(user: str | None, client: str | None) -> QuotaEntity:
    parts = [("client-id", client), ("user", user)]
    return tuple((kind, None if name == "*" else name) for kind, name in parts if name is not None)


def test_the_most_specific_entity_that_has_this_quota_counts() -> None:
    """All 256 sets of levels."""
    for chosen in product((False, True), repeat=len(ORDER)):
        levels = [level for level, is_there in zip(ORDER, chosen, strict=True) if is_there]
        quotas = {entity(*level): {"producer_byte_rate": float(ORDER.index(level) + 1)} for level in levels}
        quotas[entity("other", None)] = {"producer_byte_rate": 99.0}
        quotas[entity("u", "c")] = {**quotas.get(entity("u", "c"), {}), "request_percentage": 50.0}
        found = Limits(quotas).quota("producer_byte_rate", "u", "c")
        if not levels:
            assert found is None
            continue
        user, client = levels[0]
        assert found == Quota(float(ORDER.index(levels[0]) + 1), "u" if user else "", "c" if client else "")


def test_users_and_client_ids_that_no_entity_names_have_the_defaults() -> None:
    quotas = {
        entity("u", "c"): {"producer_byte_rate": 1.0},
        entity("*", "*"): {"producer_byte_rate": 2.0},
        entity("*", None): {"producer_byte_rate": 3.0},
        (("ip", None),): {"connection_creation_rate": 4.0},
    }
    limits = Limits(quotas)
    assert limits.quota("producer_byte_rate", "u", "d") == Quota(2.0, "u", "d")
    assert limits.quota("producer_byte_rate", "v", "") == Quota(3.0, "v", "")
    assert limits.quota("consumer_byte_rate", "u", "c") is None
    assert Limits({entity("u", "c"): {"producer_byte_rate": 1.0}}).quota("producer_byte_rate", "u", "") is None
    assert not Limits({(("ip", None),): {"connection_creation_rate": 4.0}})


def test_a_client_cannot_have_long_ids_remembered() -> None:
    found = Limits({entity(None, "*"): dict.fromkeys(CLIENT_KEYS, 1.0)}).quota("request_percentage", "u", "i" * 30_000)
    assert found is not None
    assert len(found.client_id) == SHOWN_MAX
