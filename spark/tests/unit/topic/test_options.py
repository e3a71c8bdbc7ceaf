"""What the options of a topic source mean, and what is refused."""

import pytest
from tests.rows import each

from strandline_spark.errors import BadOption
from strandline_spark.topic.options import (
    EARLIEST,
    LATEST,
    Assigned,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Everywhere,
    Matching,
    Subscribed,
    batch_options,
    milliseconds,
    stream_options,
)

EVENTS = {"subscribe": "events"}


def test_defaults_are_those_of_sparks_kafka_connector() -> None:
    batch, stream = batch_options(EVENTS), stream_options(EVENTS)
    assert (batch.starting, batch.ending) == (Everywhere(EARLIEST), Everywhere(LATEST))
    assert stream.starting == Everywhere(LATEST)
    assert (stream.fail_on_data_loss, stream.include_headers) == (True, False)
    assert (stream.min_partitions, stream.max_records_per_partition) == (None, None)
    assert (stream.max_offsets_per_trigger, stream.min_offsets_per_trigger) == (None, None)
    assert (stream.max_trigger_delay_ms, stream.poll_timeout_ms) == (900_000, 120_000)
    assert (stream.retries, stream.retry_interval_ms) == (3, 10)


def test_names_of_options_have_no_case() -> None:
    assert stream_options({"SUBSCRIBE": "a", "StartingOFFSETS": "Earliest"}).starting == Everywhere(EARLIEST)


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({"subscribe": " b, a ,,a"}, Subscribed(("b", "a"))),
        ({"subscribePattern": "ev.*"}, Matching("ev.*")),
        ({"assign": '{"a":[1,0,1],"b":[2],"c":[]}'}, Assigned({"a": (0, 1), "b": (2,)})),
    ],
)
def test_topics_are_chosen_in_one_of_three_ways(given: dict[str, str], chosen: object) -> None:
    assert batch_options(given).chosen == chosen


@pytest.mark.parametrize(
    ("given", "edge"),
    [
        ({"startingOffsets": "latest"}, Everywhere(LATEST)),
        ({"startingOffsets": '{"a":{"0":23,"1":-2}}'}, AtOffsets({"a": {0: 23, 1: -2}})),
        ({"startingOffsetsByTimestamp": '{"a":{"0":5}}'}, AtTimestamps({"a": {0: 5}})),
        ({"startingTimestamp": "7"}, AtTimestamp(7)),
        ({"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a":{"0":5}}'}, AtTimestamps({"a": {0: 5}})),
        ({"startingTimestamp": "7", "startingOffsetsByTimestamp": '{"a":{"0":5}}'}, AtTimestamp(7)),
    ],
)
def test_a_timestamp_goes_before_timestamps_and_those_before_offsets(given: dict[str, str], edge: object) -> None:
    assert stream_options({**EVENTS, **given}).starting == edge


def test_ends_have_the_same_order() -> None:
    given = {**EVENTS, "endingTimestamp": "9", "endingOffsetsByTimestamp": '{"a":{"0":5}}', "endingOffsets": "latest"}
    assert batch_options(given).ending == AtTimestamp(9)
    del given["endingTimestamp"]
    assert batch_options(given).ending == AtTimestamps({"a": {0: 5}})


@each(
    ("given", "words"),
    [
        ({}, "One of the following options must be specified"),
        ({"subscribe": "a", "assign": "{}"}, "Only one of the following options can be specified"),
        ({"subscribe": " , "}, "No topics to subscribe to"),
        ({"subscribePattern": ""}, "Pattern to subscribe is empty"),
        ({"subscribePattern": "a("}, "not a valid regular expression"),
        ({"assign": "a"}, "No topicpartitions to assign"),
        ({"assign": '{"a":[]}'}, "No topicpartitions to assign"),
        ({"assign": '{"a":[-1]}'}, 'Expected e.g. {"topicA":[0,1]'),
        ({"assign": '{"a":["0"]}'}, 'Expected e.g. {"topicA":[0,1]'),
        ({"assign": '{"a":[true]}'}, 'Expected e.g. {"topicA":[0,1]'),
        ({**EVENTS, "minPartitions": "0"}, "minPartitions must be positive"),
        ({**EVENTS, "minPartitions": "many"}, "minPartitions must be a whole number"),
        ({**EVENTS, "maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be positive"),
        ({**EVENTS, "failOnDataLoss": "perhaps"}, "failOnDataLoss must be one of true, false"),
        ({**EVENTS, "startingOffsetsByTimestampStrategy": "x"}, "must be one of error, latest"),
        ({**EVENTS, "startingTimestamp": "-5"}, "startingTimestamp must be"),
        ({**EVENTS, "startingTimestamp": "1" + "0" * 19}, "startingTimestamp must be at most 9223372036854775807"),
        ({**EVENTS, "minPartitions": "1" + "0" * 9000}, "minPartitions must be at most 9223372036854775807"),
        ({**EVENTS, "startingOffsetsByTimestamp": '{"a":{"0":10000000000000000000}}'}, "Expected e.g."),
        ({**EVENTS, "startingOffsets": '{"a":' * 100_000}, "Expected e.g."),
        ({**EVENTS, "startingOffsets": "beginning"}, "Expected e.g."),
        ({**EVENTS, "startingOffsets": '{"a":{"0":-3}}'}, "Expected e.g."),
        ({**EVENTS, "startingOffsets": '{"a":{"x":1}}'}, "Expected e.g."),
        ({**EVENTS, "startingOffsets": '{"a":5}'}, "Expected e.g."),
        ({**EVENTS, "startingOffsets": "[1]"}, "Expected e.g."),
        ({**EVENTS, "startingOffsetsByTimestamp": '{"a":{"0":-1}}'}, "Expected e.g."),
        ({**EVENTS, "maxTriggerDelay": "soon"}, "maxTriggerDelay must be a time"),
        ({**EVENTS, "kafkaConsumer.pollTimeoutMs": "1s"}, "kafkaConsumer.pollTimeoutMs must be"),
    ],
)
def test_invalid_input_is_rejected(given: dict[str, str], words: str) -> None:
    for options in (batch_options, stream_options):
        with pytest.raises(BadOption) as refused:
            options(given)
        assert words in refused.value.problem


def test_an_option_that_nobody_knows_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(BadOption) as refused:
        stream_options({**EVENTS, "startingOffset": "earliest"})
    assert "no option 'startingOffset'" in refused.value.problem
    assert "startingOffsets" in refused.value.advice


def test_options_of_the_sink_and_of_spark_itself_may_be_there_too() -> None:
    assert batch_options({**EVENTS, "topic": "out", "path": "/warehouse/t", "kafka.acks": "all"})


def test_a_table_of_the_catalog_is_refused_since_its_options_would_be_lost() -> None:
    table = {**EVENTS, "option.subscribe": "events", "provider": "strandline", "owner": "me"}
    with pytest.raises(BadOption) as refused:
        batch_options(table)
    assert "CREATE TEMPORARY VIEW" in refused.value.advice


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets for a-0 can't be latest for batch queries"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "ending offset for a-0 can't be earliest for batch queries"),
    ],
)
def test_a_batch_has_a_beginning_and_an_end(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption) as refused:
        batch_options({**EVENTS, **given})
    assert words in refused.value.problem


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(BadOption) as refused:
        stream_options({**EVENTS, name: "latest"})
    assert "ending offset not valid in streaming queries" in refused.value.problem


def test_the_least_of_a_trigger_is_not_more_than_the_most() -> None:
    given = {**EVENTS, "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "10"}
    assert stream_options(given).min_offsets_per_trigger == 10
    with pytest.raises(BadOption) as refused:
        stream_options({**given, "minOffsetsPerTrigger": "11"})
    assert "minOffsetsPerTrigger(11)" in refused.value.problem


@pytest.mark.parametrize(
    ("text", "ms"),
    [("15m", 900_000), ("2 min", 120_000), ("30s", 30_000), ("500ms", 500), ("70", 70), ("1H", 3_600_000)],
)
def test_times_are_written_as_for_spark(text: str, ms: int) -> None:
    assert milliseconds(text, "maxTriggerDelay") == ms
