"""Queries over a topic of a real node: where they begin, how far they read, and what a crash or a loss does to them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from spark.tests.unit.topic.conftest import Topic
from spark.tests.unit.topic.engine import Query
from tests.cluster.driving import create, until

from strandline_spark.errors import DataLoss, StrandlineError

MakeTopic = Callable[..., Topic]
StartQuery = Callable[..., Query]


def test_a_query_reads_what_there_is_and_then_what_comes(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic(2)
    topic.write(1, 2)
    topic.write(3, partition=1)
    query = start_query(topic.options)
    assert sorted(query.trigger() or []) == [(0, 0, 1), (0, 1, 2), (1, 0, 3)]
    assert query.trigger() is None
    topic.write(4)
    assert query.trigger() == [(0, 2, 4)]


def test_trap_1_a_query_from_the_latest_offset_that_crashes_in_its_first_batch_loses_nothing(
    make_topic: MakeTopic,
    start_query: StartQuery,
) -> None:
    """Spark asks for the initial offset again after the crash, when the latest one is another."""
    topic = make_topic()
    topic.write(1, 2)
    query = start_query({**topic.options, "startingOffsets": "latest"})
    assert query.trigger() == []  # the first batch: its end says where the query began
    topic.write(3, 4)
    query.lose_commit()
    assert query.trigger() == []
    assert query.trigger() == [(0, 2, 3), (0, 3, 4)]


def test_trap_1_a_first_batch_is_repeated_although_the_options_have_no_beginning_any_more(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    grown, timed = make_topic(), make_topic()
    for topic in (grown, timed):
        topic.write(1, 2, timestamp_ms=5000)
    by_offsets = start_query({**grown.options, "startingOffsets": json.dumps({grown.name: {"0": 1}})})
    by_time = start_query({**timed.options, "startingTimestamp": "5000"})
    assert by_offsets.plan()
    assert by_time.plan()
    grown.grow(2)
    timed.write(3, timestamp_ms=1000)
    timed.delete_records(2)
    by_offsets.crash()
    assert by_offsets.values() == [2]
    by_time.crash()
    with pytest.raises(DataLoss, match="records 0 to 1 were deleted"):
        by_time.trigger()


def test_a_first_batch_whose_topic_is_gone_is_passed_over_where_loss_is_fine(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(1)
    query = start_query({**topic.options, "failOnDataLoss": "false"})
    assert query.plan()
    topic.delete()
    query.crash()
    assert query.values() == []


def test_trap_1_records_between_the_first_question_and_the_first_batch_are_read(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(1)
    query = start_query({**topic.options, "startingOffsets": "latest"})
    assert query.reader.initialOffset() == query.reader.initialOffset()
    topic.write(2)
    assert query.plan()
    topic.write(3)
    query.crash()
    assert query.trigger() == [(0, 1, 2)]
    assert query.trigger() == [(0, 2, 3)]


def test_a_batch_whose_commit_was_lost_is_the_same_again(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    topic.write(*range(10))
    query = start_query(topic.options)
    first = query.trigger()
    topic.write(*range(10, 20))
    query.lose_commit()
    assert query.trigger() == first
    assert query.values() == list(range(10, 20))


def test_while_nothing_is_new_the_offset_is_the_same_text_and_spark_is_held_up_a_little(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(1)
    query = start_query(topic.options)
    query.trigger()
    end = query.end_of(0)
    query.slept.clear()
    assert json.dumps(query.reader.latestOffset(end, ReadAllAvailable())) == query.offsets[0]
    assert 0.3 <= sum(query.slept) <= 0.6


def test_a_trigger_takes_no_more_than_its_limit_in_proportion_to_what_waits(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic(2)
    topic.write(*range(300))
    topic.write(*range(100), partition=1)
    query = start_query({**topic.options, "maxOffsetsPerTrigger": "40"})
    assert query.limit == ReadMaxRows(40)
    rows = query.trigger() or []
    assert (len(rows), sum(partition for partition, _, _ in rows)) == (40, 10)
    assert len(query.everything()) == 360
    assert len(query.offsets) == 10


def test_few_records_wait_for_more_but_not_for_ever(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    topic.write(1)
    query = start_query({**topic.options, "minOffsetsPerTrigger": "3", "maxTriggerDelay": "10s"})
    assert query.limit == ReadMinRows(3)
    now = [100.0]
    query.reader.clock = lambda: now[0]
    assert query.trigger() == [(0, 0, 1)]  # the first batch does not wait
    topic.write(2)
    assert query.trigger() is None
    topic.write(3, 4)
    assert query.values() == [2, 3, 4]
    topic.write(5)
    assert query.trigger() is None
    now[0] += 10
    assert query.values() == [5]


def test_available_now_reads_to_where_the_log_ended_and_does_not_wait_for_more(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(1, 2, 3, 4, 5)
    options = {**topic.options, "minOffsetsPerTrigger": "4", "maxOffsetsPerTrigger": "4"}
    query = start_query(options, available_now=True)
    topic.write(6)
    assert query.values() == [1, 2, 3, 4, 5]
    assert query.slept == []
    query.crash()
    assert query.values() == [6]


def test_available_now_with_nothing_to_read_ends(make_topic: MakeTopic, start_query: StartQuery) -> None:
    query = start_query({**make_topic().options, "startingOffsets": "latest"}, available_now=True)
    assert query.values() == []
    query.crash()
    assert query.trigger() is None


def test_the_lag_is_what_the_reported_offset_is_ahead_of_the_end(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(*range(10))
    query = start_query({**topic.options, "maxOffsetsPerTrigger": "4"})
    query.trigger()
    reported = query.reader.reportLatestOffset()
    assert reported is not None
    latest, end = (tree["topics"][topic.name]["partitions"]["0"]["offset"] for tree in (reported, query.end_of(0)))
    assert (latest, end) == (10, 4)


def test_a_new_partition_is_read_from_its_beginning(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    topic.write(1)
    query = start_query({**topic.options, "startingOffsets": "latest"})
    assert query.trigger() == []
    topic.grow(2)
    topic.write(7, partition=1)
    assert query.trigger() == [(1, 0, 7)]
    query.lose_commit()
    assert query.trigger() == [(1, 0, 7)]


def test_a_topic_that_matches_later_is_read_from_its_beginning(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    options = {"kafka.bootstrap.servers": topic.cluster.bootstrap, "subscribePattern": f"{topic.name}.*"}
    query = start_query({**options, "startingOffsets": "latest"})
    assert query.trigger() == []
    later = Topic(topic.cluster, f"{topic.name}-later")
    create(topic.cluster, later.name)
    later.write(5)
    assert query.values() == [5]


def test_a_topic_created_anew_stops_the_query(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    topic.write(1, 2)
    query = start_query(topic.options)
    query.trigger()
    topic.recreate()
    topic.write(3, 4, 5)  # more than before: by offsets alone it would look like two more records
    with pytest.raises(DataLoss) as lost:
        query.trigger()
    assert "was deleted and created anew" in lost.value.problem
    assert "failOnDataLoss" in lost.value.advice


def test_a_topic_created_anew_is_read_from_its_beginning_where_loss_is_fine(
    make_topic: MakeTopic, start_query: StartQuery, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic()
    topic.write(1, 2)
    query = start_query({**topic.options, "failOnDataLoss": "false"})
    query.trigger()
    topic.recreate()
    topic.write(3)
    assert query.values() == [3]
    assert capfd.readouterr().err.count("created anew") == 1
    query.crash()
    assert query.trigger() is None


def test_a_topic_created_anew_between_plan_and_read_is_not_taken_for_the_old_one(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(1, 2)
    query = start_query(topic.options)
    assert query.plan()
    topic.recreate()
    topic.write(3, 4, 5)
    with pytest.raises(DataLoss):
        query.trigger()


def test_retention_that_overtakes_the_reader_stops_the_query(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    topic.write(*range(10))
    query = start_query({**topic.options, "maxOffsetsPerTrigger": "3"})
    query.trigger()
    topic.delete_records(5)
    with pytest.raises(DataLoss) as lost:
        query.trigger()
    assert f"{topic.name}-0 now begins at offset 5: the records from 3 on (2 offsets)" in lost.value.problem


def test_retention_up_to_where_the_reader_is_stops_nothing(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    topic.write(*range(10))
    query = start_query({**topic.options, "maxOffsetsPerTrigger": "5"})
    query.trigger()
    topic.delete_records(5)
    assert query.values() == [5, 6, 7, 8, 9]


def test_where_loss_is_fine_the_query_goes_on_at_the_new_beginning_of_the_log(
    make_topic: MakeTopic, start_query: StartQuery, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic()
    topic.write(*range(10))
    query = start_query({**topic.options, "maxOffsetsPerTrigger": "3", "failOnDataLoss": "false"})
    query.trigger()
    topic.delete_records(5)
    assert query.values() == [5, 6, 7, 8, 9]
    assert capfd.readouterr().err.count("now begins at offset 5") == 1


def test_retention_between_plan_and_read_is_noticed(
    make_topic: MakeTopic, start_query: StartQuery, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic()
    topic.write(*range(10))
    strict, lenient = start_query(topic.options), start_query({**topic.options, "failOnDataLoss": "false"})
    assert strict.plan()
    assert lenient.plan()
    topic.delete_records(5)
    with pytest.raises(DataLoss) as lost:
        strict.trigger()
    assert "records 0 to 4 were deleted" in lost.value.problem
    assert lenient.values() == [5, 6, 7, 8, 9]
    assert "records 0 to 4 were deleted" in capfd.readouterr().err


def test_a_topic_that_is_gone_stops_the_query_and_is_passed_over_where_loss_is_fine(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(1)
    strict, lenient = start_query(topic.options), start_query({**topic.options, "failOnDataLoss": "false"})
    strict.trigger()
    lenient.trigger()
    topic.delete()
    with pytest.raises(DataLoss) as lost:
        strict.trigger()
    assert "does not exist any more" in lost.value.problem
    assert lenient.values() == []


def test_a_topic_that_goes_between_two_questions_is_gone_like_any_other(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic = make_topic()
    topic.write(1)
    query = start_query({**topic.options, "failOnDataLoss": "false"})
    query.trigger()
    cluster = query.reader.look_again().cluster
    ask = cluster.list_offsets

    def too_late(*asked: Any) -> Any:
        topic.delete()
        cluster.list_offsets = ask  # type: ignore[method-assign]
        return ask(*asked)

    cluster.list_offsets = too_late  # type: ignore[method-assign]
    assert query.values() == []


def test_a_query_that_goes_on_with_other_topics_learns_what_it_leaves(
    make_topic: MakeTopic, start_query: StartQuery
) -> None:
    topic, other = make_topic(), make_topic()
    query = start_query(topic.options)
    query.trigger()
    query.options["subscribe"] = other.name
    query.crash()
    with pytest.raises(DataLoss) as lost:
        query.trigger()
    assert f"{topic.name}-0 is in the checkpoint, and the source's options do not choose it" in lost.value.problem


def test_a_topic_that_never_was_is_an_error_that_says_so(make_topic: MakeTopic, start_query: StartQuery) -> None:
    query = start_query({**make_topic().options, "subscribe": "nowhere"})
    with pytest.raises(StrandlineError) as refused:
        query.trigger()
    assert "nowhere does not exist in this cluster" in refused.value.problem


def test_offsets_to_begin_with_must_lie_in_the_log(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic()
    topic.write(1, 2, 3)
    starting = json.dumps({topic.name: {"0": 9}})
    with pytest.raises(DataLoss) as lost:
        start_query({**topic.options, "startingOffsets": starting}).trigger()
    assert f"startingOffsets for {topic.name}-0 was 9, and the partition has offsets 0 to 3" in lost.value.problem


def test_a_compacted_topic_has_gaps_and_no_losses(make_topic: MakeTopic, start_query: StartQuery) -> None:
    topic = make_topic(cleanup_policy="compact", internal_segment_bytes="4000", min_cleanable_dirty_ratio="0.01")
    query = start_query({**topic.options, "maxOffsetsPerTrigger": "100"})
    topic.write(-1, key=b"first")
    assert query.values() == [-1]
    for turn in range(40):
        topic.write(*range(turn * 50, turn * 50 + 50), key=b"k%d" % (turn % 2))
    folder = topic.cluster.nodes[0].data_path / f"{topic.name}-0"
    until(lambda: sum(path.stat().st_size for path in folder.glob("*.log")) < 20_000, 30)
    rows = query.everything()
    offsets = [offset for _, offset, _ in rows]
    assert offsets == sorted(set(offsets))
    assert len(rows) < 1000
    assert rows[-1] == (0, 2000, 1999)
    assert all(value == offset - 1 for _, offset, value in rows)
