"""What numbers were over time, since the console looks; and how fast they grow."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

KEPT_MAX = 300  # points of one series
Point = tuple[int, float]  # a time in ms since 1970, and the value
Points = tuple[Point, ...]  # the oldest first
K = TypeVar("K", bound=Hashable)


def with_points(before: Mapping[K, Points], time_ms: int, values: Mapping[K, float]) -> dict[K, Points]:
    """Each series with its newest point. A series without one ends: what it is about is gone."""
    return {key: (*before.get(key, ())[-(KEPT_MAX - 1) :], (time_ms, value)) for key, value in values.items()}


def growth(before_ms: int, before: Mapping[K, float], now_ms: int, now: Mapping[K, float]) -> dict[K, float]:
    """By how much each of these grew in a second. What got less has begun anew, and is not known."""
    if now_ms <= before_ms:
        return {}
    return {
        key: (value - before[key]) * 1000 / (now_ms - before_ms)
        for key, value in now.items()
        if key in before and value >= before[key]
    }
