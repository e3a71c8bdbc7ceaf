"""Replication quotas: the rate as Kafka measures it, and which replicas count."""

import pytest

from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from strandline.replica.quota import Quota, Rate

SECOND = 1_000
START = 1_000_000


def rate(*recorded: tuple[int, int]) -> Rate:
    """Eleven windows of a second, and (milliseconds, bytes)."""
    made = Rate(11, SECOND)
    for at, size in recorded:
        made.record(size, Instant(START + at))
    return made


def test_nothing_recorded_is_no_rate() -> None:
    assert rate().measure(Instant(START)) == 0


def test_a_burst_counts_as_if_it_had_taken_one_window() -> None:
    assert rate((0, 600), (1, 400)).measure(Instant(START + 1)) == 1_000


def test_later_the_time_since_the_oldest_window_counts() -> None:
    made = rate((0, 1_000), (1_000, 1_000), (2_000, 1_000))
    assert made.measure(Instant(START + 2_000)) == 1_500
    assert made.measure(Instant(START + 6_000)) == 500


def test_a_window_goes_when_nothing_was_counted_in_it_for_as_long_as_all_windows_last() -> None:
    made = rate((0, 5_000), (900, 5_000), (5_000, 100))
    assert made.measure(Instant(START + 900 + 10_999)) == pytest.approx(10_100 / 11.899)
    assert made.measure(Instant(START + 900 + 11_000)) == pytest.approx(100 / 6.9)
    assert made.measure(Instant(START + 60_000)) == 0
    assert made.size == 0


def test_windows_are_bounded() -> None:
    made = rate(*[(at, 10) for at in range(0, 100_000, 500)])
    assert len(made.windows) <= 12
    assert made.size == sum(window.size for window in made.windows)
    assert made.measure(Instant(START + 99_999)) == pytest.approx(20, rel=0.1)


# --- which replicas


def quota(bound: int = 1_000) -> Quota:
    return Quota(NodeId(2), "leader", bound, Rate(11, SECOND))


def image(*entries: tuple[int, str, str, str | None]) -> Image:
    made = Image()
    for kind, name, key, value in entries:
        made.apply(r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    return made


def configured(value: str | None, side: str = "leader") -> list[int]:
    """Which of the partitions 0 to 3 of a topic this broker throttles."""
    made = quota()
    known = image((TOPIC_RESOURCE, "t", f"{side}.replication.throttled.replicas", value))
    made.configure(known, known.configs)
    return [index for index in range(4) if made.is_throttled("t", index)]


@pytest.mark.parametrize(
    ("value", "throttled"),
    [
        ("*", [0, 1, 2, 3]),
        ("", []),
        ("0:2", [0]),
        ("0:2,1:1,3:2", [0, 3]),
        ("0:1,2:12,1:22", []),
        ("0:2, 1:2", [0, 1]),
    ],
)
def test_a_topic_names_its_throttled_replicas(value: str, throttled: list[int]) -> None:
    assert configured(value) == throttled


def test_the_followers_list_says_nothing_of_the_leaders() -> None:
    assert configured("*", side="follower") == []


def test_a_throttle_that_is_taken_back_or_whose_topic_goes_is_forgotten() -> None:
    made, key = quota(), "leader.replication.throttled.replicas"
    made.configure(image((TOPIC_RESOURCE, "t", key, "*")), [(TOPIC_RESOURCE, "t")])
    assert made.is_throttled("t", 7)
    made.configure(image((TOPIC_RESOURCE, "t", key, "*"), (TOPIC_RESOURCE, "t", key, None)), [(TOPIC_RESOURCE, "t")])
    assert not made.throttled
    made.configure(image((TOPIC_RESOURCE, "t", key, "7:2")), [(TOPIC_RESOURCE, "t")])
    made.configure(image(), [(TOPIC_RESOURCE, "t")])
    assert not made.throttled


def test_a_quota_is_exceeded_beyond_its_bound_not_at_it() -> None:
    made = quota(1_000)
    made.record(1_000, Instant(START))
    assert not made.is_exceeded(Instant(START))
    made.record(1, Instant(START))
    assert made.is_exceeded(Instant(START))
    assert not made.is_exceeded(Instant(START + 2_000))


def test_the_brokers_own_rate_goes_before_the_cluster_default_and_the_file() -> None:
    key = "leader.replication.throttled.rate"
    own, default = (BROKER_RESOURCE, "2", key, "70"), (BROKER_RESOURCE, "", key, "80")
    other = (BROKER_RESOURCE, "1", key, "90")
    made = quota(1_000)
    for entries, bound in (((own, default), 70), ((default,), 80), ((other,), 1_000)):
        made.configure(image(*entries), [])
        assert made.bound == bound
