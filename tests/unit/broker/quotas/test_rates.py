"""Rates over windows and buckets of tokens, against oracles that keep every event."""

from math import inf
from random import Random

from strandline.base.time import Instant
from strandline.broker.quotas.rates import WAIT_MS_MAX, Rate, TokenBucket


def kept(events: list[tuple[int, float]], now: int, count: int, window_ms: int) -> float:
    """What was recorded in the windows that count."""
    return sum(amount for at, amount in events if at // window_ms > now // window_ms - count)


def test_a_rate_is_what_was_recorded_in_the_windows_that_count() -> None:
    for seed in range(200):
        rng = Random(seed)
        count, window_ms = rng.choice((1, 2, 11)), rng.choice((1, 7, 1000))
        rate, events, now = Rate(count, window_ms), [], rng.randrange(10_000)
        for _ in range(60):
            now += rng.choice((0, 1, window_ms // 2, window_ms, 3 * window_ms, count * window_ms))
            if rng.random() < 0.7:
                amount = float(rng.randrange(1000))
                rate.record(amount, Instant(now))
                events.append((now, amount))
            total = kept(events, now, count, window_ms)
            limit = rng.choice((1.0, 10.0, 1000.0))
            # At this rate the total lasts so long; the windows have lasted so long.
            lasts, lasted = 1000 * total / limit, (count - 1) * window_ms + now % window_ms
            assert rate.throttle_ms(limit, Instant(now)) == max(0, round(lasts - max(lasted, 1))), seed
            assert rate.is_idle(Instant(now)) == (
                not [at for at, _ in events if kept([(at, 1)], now, count, window_ms)]
            )
            assert len(rate.windows) <= count


def test_the_wait_is_as_long_as_what_was_used_lasts_at_the_limit_less_the_windows() -> None:
    rate, now = Rate(11, 1000), Instant(50_000)
    rate.record(12_000, now)
    wait_ms = rate.throttle_ms(1000.0, now)
    assert wait_ms == 2000
    assert rate.throttle_ms(1000.0, Instant(now + 500)) == 1500
    assert rate.throttle_ms(2000.0, now) == 0
    assert rate.throttle_ms(1000.0, Instant(now + 11_000)) == 0


def test_a_bucket_holds_what_all_windows_allow_and_fills_at_the_limit() -> None:
    for seed in range(200):
        rng = Random(seed)
        count, window_ms, limit = rng.choice((1, 11)), rng.choice((500, 1000)), rng.choice((0.5, 5.0))
        bucket, full, now = TokenBucket(count, window_ms), limit * count * window_ms / 1000, 77
        tokens = full
        for _ in range(60):
            step = rng.choice((0, 1, 900, 20_000))
            now += step
            tokens = min(full, tokens + limit * step / 1000)
            if rng.random() < 0.6:
                amount = rng.choice((1.0, 7.0))
                bucket.record(amount, limit, Instant(now))
                tokens -= amount
            assert abs(bucket.refilled(limit, Instant(now)) - tokens) < 1e-6, seed
            assert abs(bucket.throttle_ms(limit, Instant(now)) - max(0, -1000 * tokens / limit)) <= 1, seed


def test_an_idle_rate_and_an_idle_bucket_are_as_good_as_new() -> None:
    rate, bucket, now = Rate(3, 1000), TokenBucket(3, 1000), Instant(10_500)
    rate.record(5.0, now)
    bucket.record(9.0, 2.0, now)
    assert not rate.is_idle(Instant(12_999)) and rate.is_idle(Instant(13_000))
    assert not bucket.is_idle(Instant(14_999)) and bucket.is_idle(Instant(15_000))
    assert bucket.refilled(2.0, Instant(15_000)) == TokenBucket(3, 1000).refilled(2.0, Instant(15_000))


def test_no_limit_that_a_quota_may_have_makes_a_wait_that_is_not_a_number() -> None:
    for limit, waits in ((5e-324, WAIT_MS_MAX), (1e-300, WAIT_MS_MAX), (1e308, 0), (inf, 0)):
        rate, bucket, now = Rate(11, 1000), TokenBucket(11, 1000), Instant(50_000)
        for _ in range(2):
            rate.record(12_000, now)
            bucket.record(7.0, limit, now)
            assert (rate.throttle_ms(limit, now), bucket.throttle_ms(limit, now)) == (waits, waits), limit
            now = Instant(now + 500)
        bucket.is_idle(now)
