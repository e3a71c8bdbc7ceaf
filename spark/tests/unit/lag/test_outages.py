"""Samples of a cluster where something is down, or moves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spark.tests.unit.lag.scripted_cluster import END, NOBODY, OTHER, OURS, SECOND, ScriptedCluster, batch, opened

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.errors import KafkaError
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag import trouble
from strandline_spark.jobs.lag.sampling import Sampler


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails may cost a tenth of a second."""
    monkeypatch.setattr(trouble, "LIMIT_MS", 100)


def lags(sampler: Sampler) -> dict[tuple[str, str], int | None]:
    return {(sample.reader, sample.topic): sample.lag for sample in sampler.sample()}


def test_a_partition_without_a_leader_is_left_out_and_told_once() -> None:
    reported: list[str] = []
    with ScriptedCluster(a=OURS, b=NOBODY) as scripted, opened(scripted) as cluster:
        scripted.positions["g"] = {"a": 4, "b": 4}
        sampler = Sampler(cluster, groups=["g"], notify=reported.append)
        assert lags(sampler) == lags(sampler) == {("", "a"): None, ("g", "a"): 6}
        assert reported == ["no sample of b-0: no leader now; `strandline explain b:0` says why"]
        assert list(sampler.lacking.values()) == reported
        scripted.leaders["b"] = OURS
        assert lags(sampler)["g", "b"] == 6
        assert not sampler.lacking
        scripted.leaders["b"] = NOBODY
        sampler.sample()
        assert len(reported) == 2, "it is told again when it comes again"


def test_a_leader_that_does_not_answer_hides_no_other() -> None:
    reported: list[str] = []
    with ScriptedCluster(a=OURS, b=OTHER) as scripted, opened(scripted) as cluster:
        sampler = Sampler(cluster, topics=["a", "b"], notify=reported.append)
        assert lags(sampler) == {("", "a"): None}
    assert len(reported) == 1
    assert reported[0].startswith("no sample of b-0 (broker 2): ")


def test_a_topic_that_is_deleted_while_it_is_asked_for_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.client import metadata as client

    monkeypatch.setattr(client, "MISSING_PATIENCE_MS", 0)
    with ScriptedCluster(a=OURS, b=OURS) as scripted, opened(scripted) as cluster:
        scripted.gone.add("b")
        sampler = Sampler(cluster, topics=["a", "b"])
        assert lags(sampler) == {("", "a"): None}
        assert not sampler.lacking


def test_a_group_without_a_coordinator_hides_no_other() -> None:
    reported: list[str] = []
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        scripted.positions["g"] = {"a": 4}
        scripted.silent.add("h")
        assert lags(Sampler(cluster, groups=["h", "g"], notify=reported.append)) == {("", "a"): None, ("g", "a"): 6}
        assert [line.partition(":")[0] for line in reported] == ["no sample of group h"]
        sampler = Sampler(cluster, groups=None)
        assert ("g", "a") in lags(sampler), "broker 2 is dead, and its groups are with others"
        assert set(sampler.lacking) == {"no sample of group h", "no groups of broker 2"}


def test_a_broker_that_still_loads_its_groups_is_reported() -> None:
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        scripted.group_error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        sampler = Sampler(cluster, groups=None, topics=["a"])
        assert lags(sampler) == {("", "a"): None}
        assert "COORDINATOR_LOAD_IN_PROGRESS" in sampler.lacking["no groups of broker 1"]


def test_a_checkpoint_that_goes_away_is_reported_and_one_that_never_was_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        sampler = Sampler(cluster, queries={"etl": str(tmp_path)}, topics=["a"])
        assert lags(sampler) == {("", "a"): None}
        (tmp_path / "offsets").rmdir()
        assert lags(sampler) == {("", "a"): None}
        assert "is not a checkpoint" in sampler.lacking["no sample of query etl"]
        with pytest.raises(StrandlineError, match="is not a checkpoint"):
            Sampler(cluster, queries={"etl": str(tmp_path)}).sample()


def test_a_cluster_where_nobody_answers_is_no_sample() -> None:
    with ScriptedCluster(a=OURS) as scripted:
        cluster = opened(scripted)
    with cluster, pytest.raises(KafkaError, match="no broker answers"):
        Sampler(cluster, topics=["a"]).sample()


Sampled = Callable[[], Any]


def sampled_at(cluster: Cluster, now_s: float) -> Sampled:
    sampler = Sampler(cluster, groups=["g"], clock=lambda: now_s)
    return lambda: next(sample.delay_ms for sample in sampler.sample() if sample.reader == "g")


def test_the_delay_of_a_reader_at_a_transactions_marker_is_that_of_the_record_behind_it() -> None:
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        scripted.positions["g"] = {"a": 4}
        scripted.records = [batch(4, 1000, control=True), batch(5, 2000, control=True), batch(6, 3000)]
        delay = sampled_at(cluster, 10)
        assert delay() == delay() == 7000
        assert scripted.fetched == [4, 5, 6], "what is known is not asked for again"


def test_a_reader_that_has_nothing_but_markers_before_it_has_no_delay() -> None:
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        scripted.positions["g"] = {"a": END - 1}
        scripted.records = [batch(END - 1, 1000, control=True)]
        assert sampled_at(cluster, 10)() == 0


def test_markers_without_an_end_are_not_walked_for_ever() -> None:
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        scripted.positions["g"] = {"a": 0}
        scripted.records = [batch(offset, 1000, control=True) for offset in range(END)]
        assert sampled_at(cluster, 10)() is None


def test_an_answer_without_records_is_asked_for_again() -> None:
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        scripted.positions["g"] = {"a": 4}
        delay = sampled_at(cluster, 10)
        assert delay() is None
        scripted.records = [batch(4, 3000)]
        assert delay() == 7000


def test_another_topic_of_the_same_name_has_other_records() -> None:
    with ScriptedCluster(a=OURS) as scripted, opened(scripted) as cluster:
        scripted.positions["g"] = {"a": 4}
        scripted.records = [batch(4, 3000), batch(4, 9000)]
        delay = sampled_at(cluster, 10)
        assert delay() == 7000
        scripted.topic_id = SECOND
        assert delay() == 1000
