"""Which metrics a client is asked for: the subscriptions of the metadata that match it, put together (KIP-714).

Patterns are matched in a bounded number of steps (`base.pattern`), since clients choose what they are matched with.

Invariant: what cannot be read is no subscription. The controller refuses it, but a log may come from elsewhere.
"""

from collections.abc import Iterable, Mapping

from strandline.base.crc32c import crc32c
from strandline.base.ids import Uuid
from strandline.base.pattern import Invalid, Pattern
from strandline.base.value import Value
from strandline.metadata.configs.client_metrics import (
    CLIENT_METRICS_CONFIGS,
    DEFAULT_INTERVAL_MS,
    INTERVAL,
    MATCH,
    METRICS,
    Matches,
    matches_in,
    why_invalid_subscription,
)
from strandline.metadata.records import CLIENT_METRICS_RESOURCE

ALL_METRICS = "*"


class Subscription(Value, frozen=True):
    name: str
    metrics: tuple[str, ...]  # prefixes of names, or "*"
    interval_ms: int
    matches: Matches


class Interest(Value, frozen=True):
    """What one client is asked for."""

    metrics: tuple[str, ...]
    interval_ms: int

    def wants(self, metric: str) -> bool:
        return self.metrics == (ALL_METRICS,) or metric.startswith(self.metrics)


def subscriptions_in(configs: Mapping[tuple[int, str], Mapping[str, str]]) -> tuple[Subscription, ...]:
    found = (subscription_in(name, own) for (kind, name), own in configs.items() if kind == CLIENT_METRICS_RESOURCE)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.name))


def subscription_in(name: str, own: Mapping[str, str]) -> Subscription | None:
    if any(why_invalid_subscription(key, text) is not None for key, text in own.items()):
        return None
    value = {key: row.parse(own[key]) if key in own else row.default for key, row in CLIENT_METRICS_CONFIGS.items()}
    metrics, interval_ms, entries = value[METRICS], value[INTERVAL], value[MATCH]
    assert isinstance(metrics, tuple) and isinstance(interval_ms, int) and isinstance(entries, tuple)
    matches = matches_in(entries)
    assert matches is not None, "checked above"
    return Subscription(name, metrics, interval_ms, matches)


def interest_in(subscriptions: Iterable[Subscription], client: Mapping[str, str]) -> Interest:
    """`client`: its attributes, as far as they are known. The shortest interval counts, as the KIP says (Kafka never
    lets a client wait for longer than five minutes)."""
    found = [one for one in subscriptions if is_match(one.matches, client)]
    metrics = sorted({metric for one in found for metric in one.metrics})
    interval_ms = min((one.interval_ms for one in found), default=DEFAULT_INTERVAL_MS)
    assert interval_ms > 0, "another interval is no subscription's"
    return Interest((ALL_METRICS,) if ALL_METRICS in metrics else tuple(metrics), interval_ms)


def is_match(matches: Matches, client: Mapping[str, str]) -> bool:
    """A client does not match by what nobody knows of it."""
    try:
        return all(name in client and Pattern(text).matches(client[name]) for name, text in matches)
    except Invalid:
        return False  # it takes too many steps


def subscription_id(interest: Interest, instance_id: Uuid) -> int:
    """It changes with what the client is asked for; another client's is another one. 32 bits with a sign."""
    halves = int.from_bytes(instance_id[:8], "big") ^ int.from_bytes(instance_id[8:], "big")
    asked = crc32c(repr((interest.metrics, interest.interval_ms)).encode())
    number = asked ^ (halves >> 32) ^ (halves & 0xFFFF_FFFF)
    assert 0 <= number < 1 << 32
    return number - (1 << 32) if number >> 31 else number
