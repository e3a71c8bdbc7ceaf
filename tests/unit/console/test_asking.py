"""What numbers were over time: of logs, groups and nodes."""

from strandline.base.errors import ErrorCode
from strandline.client.admin.groups.described import GroupState, Listed
from strandline.client.admin.nodes.gauges import COLUMNS
from strandline.client.admin.partitions import Place
from strandline.client.admin.replicas.sizes import ReplicaSize
from strandline.console.asking.groups import Groups, GroupSeen, lag_of, seen_of, total_lag, with_groups
from strandline.console.asking.logs import LogEnds, Sizes, with_ends, with_sizes
from strandline.console.asking.metrics import COUNTERS, Metrics, with_metrics
from strandline.console.asking.series import KEPT_MAX, growth, with_points

A, B, C = Place("t", 0), Place("t", 1), Place("u", 0)


def test_growth_is_by_the_second_and_unknown_where_something_began_anew_or_was_not_seen_before() -> None:
    assert growth(1_000, {"a": 10, "b": 5, "c": 3}, 3_000, {"a": 30, "b": 4, "c": 3, "d": 9}) == {"a": 10.0, "c": 0.0}
    assert growth(1_000, {"a": 1}, 1_000, {"a": 2}) == {}


def test_a_series_keeps_its_newest_points_and_ends_when_its_subject_is_gone() -> None:
    points = {"a": ((1, 1.0),), "gone": ((1, 1.0),)}
    assert with_points(points, 2, {"a": 5.0, "new": 7.0}) == {"a": ((1, 1.0), (2, 5.0)), "new": ((2, 7.0),)}
    full = {"a": tuple((at, float(at)) for at in range(KEPT_MAX))}
    kept = with_points(full, KEPT_MAX, {"a": 0.0})["a"]
    assert (len(kept), kept[0], kept[-1]) == (KEPT_MAX, (1, 1.0), (KEPT_MAX, 0.0))


def test_a_topics_rate_is_that_of_its_partitions_and_is_not_known_at_the_first_look() -> None:
    first = with_ends(LogEnds(), 1_000, {A: 5, B: 5, C: 0})
    assert (first.rates, first.topics) == ({}, {})
    then = with_ends(first, 3_000, {A: 25, B: 15, C: 0})
    assert then.rates == {A: 10.0, B: 5.0, C: 0.0}
    assert then.topics == {"t": ((3_000, 15.0),), "u": ((3_000, 0.0),)}


def test_a_partition_is_as_large_as_its_largest_replica_but_for_one_on_its_way_to_another_directory() -> None:
    rows = (ReplicaSize(1, 100, 0, "/a"), ReplicaSize(2, 300, 0, "/a"), ReplicaSize(1, 900, 0, "/b", is_future=True))
    first = with_sizes(Sizes(), 1_000, {A: rows}, {3: "does not run"})
    assert (first.largest, first.silent) == ({A: 300}, {3: "does not run"})
    grown = tuple(ReplicaSize(row.broker, row.size_bytes + 50, 0, row.log_dir, row.is_future) for row in rows)
    assert with_sizes(first, 2_000, {A: grown}, {}).rates == {A: 50.0}


# --- groups


def listed(name: str, state: str = "Stable") -> Listed:
    return Listed(name, "classic", "consumer", state, 1)


def test_the_lag_of_a_group_is_that_of_the_partitions_whose_ends_are_known() -> None:
    seen = GroupSeen(listed("g"), None, {A: 3, B: 9, C: 1})
    assert total_lag(seen, {A: 10, B: 5}) == 7, "a commit that is newer than the end is no negative lag"
    assert total_lag(seen, {}) is None
    assert total_lag(GroupSeen(listed("g"), None, {}), {}) == 0
    assert total_lag(GroupSeen(listed("g"), None, "its coordinator is not known"), {A: 1}) is None
    assert lag_of(3, None) is None


def test_lags_are_kept_over_time_and_forgotten_with_their_groups() -> None:
    seen = {"g": GroupSeen(listed("g"), None, {A: 3}), "unknown": GroupSeen(listed("unknown"), None, "why")}
    first = with_groups(Groups(), 1_000, {A: 10}, seen, {2: "does not run"})
    assert (first.lags, first.silent) == ({"g": ((1_000, 7),)}, {2: "does not run"})
    assert with_groups(first, 2_000, {A: 10}, {}, {}).lags == {}


def test_a_group_that_has_gone_since_it_was_listed_is_left_out() -> None:
    state = GroupState("g", 1, "classic", "Stable")
    assert seen_of(listed("g"), state, {"g": {A: 1}}) == GroupSeen(listed("g"), state, {A: 1})
    assert seen_of(listed("g", "Dead"), ErrorCode.GROUP_ID_NOT_FOUND, {}) is None
    assert seen_of(listed("g"), GroupState("g", 1, "classic", "Dead"), {}) is None
    undescribed = seen_of(listed("g"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, {})
    assert undescribed == GroupSeen(listed("g"), None, "its coordinator says nothing about it")


# --- metrics


def test_what_only_grows_is_shown_as_a_rate_and_the_rest_as_it_is() -> None:
    assert "records in" in COUNTERS and "partitions" not in COUNTERS and len(COUNTERS) < len(COLUMNS)
    urls = {1: "http://x/metrics"}
    first = with_metrics(Metrics(), 1_000, urls, 1_000, {1: {"records in": 50, "partitions": 3}})
    assert first.series == {1: {"partitions": ((1_000, 3.0),)}}
    then = with_metrics(first, 2_000, urls, 1_000, {1: {"records in": 90, "partitions": 4}})
    assert then.series[1] == {"partitions": ((1_000, 3.0), (2_000, 4.0)), "records in": ((2_000, 40.0),)}


def test_a_node_that_is_silent_for_a_while_keeps_its_series_and_a_node_that_left_does_not() -> None:
    urls = {1: "http://x/metrics", 2: None}
    first = with_metrics(Metrics(), 1_000, urls, 1_000, {1: {"partitions": 3, "records in": 5}, 2: None})
    silent = with_metrics(first, 2_000, urls, 1_000, {1: None, 2: None})
    assert (silent.gauges[1], silent.series[1]) == (None, {"partitions": ((1_000, 3.0),)})
    back = with_metrics(silent, 3_000, urls, 1_000, {1: {"partitions": 4, "records in": 9}, 2: None})
    assert back.series[1] == {"partitions": ((1_000, 3.0), (3_000, 4.0))}, "a rate over a gap is not known"
    later = with_metrics(back, 4_000, urls, 1_000, {1: {"partitions": 4, "records in": 19}, 2: None})
    gap = with_metrics(later, 5_000, urls, 1_000, {1: None, 2: None})
    after = with_metrics(gap, 6_000, urls, 1_000, {1: {"partitions": 4, "records in": 29}, 2: None})
    assert after.series[1]["records in"] == ((4_000, 10.0),)
    assert with_metrics(back, 4_000, {2: None}, 4_000, {2: None}).series == {}
