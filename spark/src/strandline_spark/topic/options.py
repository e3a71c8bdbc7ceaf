"""What the options of a topic source say: names, defaults and refusals of Spark's Kafka connector.

Invariants:
  - an option that nobody knows is refused, with the nearest names that there are: it would be ignored otherwise
  - what is wrong is said before the cluster is asked anything
"""

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

from strandline.base.value import Value
from strandline_spark.errors import BadOption

EARLIEST, LATEST = -2, -1  # Kafka's timestamps for ListOffsets, and the connector's offsets in JSON

SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
OPTIONS: dict[str, str] = {  # name: default, as the page on the connector shows it
    "subscribe": "",
    "subscribePattern": "",
    "assign": "",
    "startingTimestamp": "",
    "startingOffsetsByTimestamp": "",
    "startingOffsets": "latest (stream), earliest (batch)",
    "startingOffsetsByTimestampStrategy": "error",
    "endingTimestamp": "",
    "endingOffsetsByTimestamp": "",
    "endingOffsets": "latest",
    "failOnDataLoss": "true",
    "minPartitions": "",
    "maxRecordsPerPartition": "",
    "maxOffsetsPerTrigger": "",
    "minOffsetsPerTrigger": "",
    "maxTriggerDelay": "15m",
    "includeHeaders": "false",
    "groupIdPrefix": "spark-kafka-source",
    "kafkaConsumer.pollTimeoutMs": "120000",
    "fetchOffset.numRetries": "3",
    "fetchOffset.retryIntervalMs": "10",
}
# One set of options may serve to read and to write.
OF_SINKS = ("topic", "deliveryGuarantee", "transactionName", "transactionVersion")
OF_SPARK = ("path", "checkpointLocation", "queryName")  # Spark passes its own along: of load, save and start
OF_CATALOG = "provider"  # only tables of Spark's catalog have it
BATCH_ONLY = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")

ASSIGN_EXAMPLE = '{"topicA":[0,1],"topicB":[0,1]}'
OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
TIMESTAMPS_EXAMPLE = '{"topicA":{"0":1000,"1":1000},"topicB":{"0":2000}}'

INT64_MAX = (1 << 63) - 1
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

Partitions = dict[str, dict[int, int]]  # topic: partition: an offset or a timestamp


class Everywhere(Value, frozen=True):
    """EARLIEST or LATEST, in all partitions."""

    point: int


class AtOffsets(Value, frozen=True):
    offsets: Partitions


class AtTimestamp(Value, frozen=True):
    """The first record that is not older, in each partition."""

    timestamp_ms: int


class AtTimestamps(Value, frozen=True):
    timestamps: Partitions


Edge = Everywhere | AtOffsets | AtTimestamp | AtTimestamps


class Subscribed(Value, frozen=True):
    topics: tuple[str, ...]


class Matching(Value, frozen=True):
    pattern: str


class Assigned(Value, frozen=True):
    partitions: dict[str, tuple[int, ...]]


Chosen = Subscribed | Matching | Assigned


class TopicOptions(Value, frozen=True):
    chosen: Chosen
    starting: Edge
    ending: Edge
    later_is_latest: bool  # where no record is as late as the starting timestamp: begin at the end
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    include_headers: bool
    poll_timeout_ms: int
    retries: int
    retry_interval_ms: int


def batch_options(given: Mapping[str, str]) -> TopicOptions:
    """Raises BadOption, as `stream_options` does."""
    options = read_options(given, Everywhere(EARLIEST))
    match options.starting:
        case Everywhere(point=point) if point == LATEST:
            raise BadOption("starting offset can't be latest for batch queries on Kafka", "Use earliest, or offsets.")
        case AtOffsets(offsets=offsets):
            refuse_point(offsets, LATEST, "startingOffsets for {} can't be latest for batch queries on Kafka")
    match options.ending:
        case Everywhere(point=point) if point == EARLIEST:
            raise BadOption("ending offset can't be earliest for batch queries on Kafka", "Use latest, or offsets.")
        case AtOffsets(offsets=offsets):
            refuse_point(offsets, EARLIEST, "ending offset for {} can't be earliest for batch queries on Kafka")
    return options


def stream_options(given: Mapping[str, str]) -> TopicOptions:
    folded = fold(given)
    for name in BATCH_ONLY:
        if name.lower() in folded:
            raise BadOption(f"ending offset not valid in streaming queries: {name}", "Remove it, or use spark.read.")
    options = read_options(given, Everywhere(LATEST))
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise BadOption(
            f"The value of minOffsetsPerTrigger({least}) must be less than or equal to maxOffsetsPerTrigger({most})"
        )
    return options


def refuse_point(offsets: Partitions, point: int, words: str) -> None:
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            if offset == point:
                raise BadOption(words.format(f"{topic}-{partition}"))


def read_options(given: Mapping[str, str], default_start: Edge) -> TopicOptions:
    folded = fold(given)
    if OF_CATALOG in folded:
        raise BadOption(
            "a topic cannot be a table of Spark's catalog: when such a table is read, Spark gives a source in Python "
            "none of the table's options",
            "Use CREATE TEMPORARY VIEW … USING strandline OPTIONS (…), which keeps them.",
        )
    refuse_unknown(given)
    return TopicOptions(
        chosen=chosen(folded),
        starting=edge(folded, "starting", default_start),
        ending=edge(folded, "ending", Everywhere(LATEST)),
        later_is_latest=one_of(folded, "startingOffsetsByTimestampStrategy", "error", ("error", "latest")) == "latest",
        fail_on_data_loss=boolean(folded, "failOnDataLoss", default=True),
        min_partitions=positive(folded, "minPartitions"),
        max_records_per_partition=positive(folded, "maxRecordsPerPartition"),
        max_offsets_per_trigger=positive(folded, "maxOffsetsPerTrigger"),
        min_offsets_per_trigger=positive(folded, "minOffsetsPerTrigger"),
        max_trigger_delay_ms=milliseconds(folded.get("maxtriggerdelay", "15m"), "maxTriggerDelay"),
        include_headers=boolean(folded, "includeHeaders", default=False),
        poll_timeout_ms=whole(folded, "kafkaConsumer.pollTimeoutMs", 120_000),
        retries=whole(folded, "fetchOffset.numRetries", 3),
        retry_interval_ms=whole(folded, "fetchOffset.retryIntervalMs", 10),
    )


def fold(given: Mapping[str, str]) -> dict[str, str]:
    """Spark takes the names of options as they come: their case means nothing."""
    return {name.lower(): value for name, value in given.items()}


def refuse_unknown(given: Mapping[str, str]) -> None:
    names = {name.lower(): name for name in (*OPTIONS, *OF_SINKS, *OF_SPARK)}
    for name in given:
        if name.lower() in names or name.lower().startswith("kafka."):
            continue
        near = difflib.get_close_matches(name.lower(), names, n=3)
        advice = "Did you mean " + " or ".join(names[each] for each in near) + "?" if near else ""
        raise BadOption(f"there is no option {name!r}", advice)


def chosen(folded: Mapping[str, str]) -> Chosen:
    given = [name for name in SUBSCRIPTIONS if name.lower() in folded]
    listed = ", ".join(SUBSCRIPTIONS)
    if not given:
        raise BadOption(f"One of the following options must be specified for Kafka source: {listed}")
    if len(given) > 1:
        raise BadOption(
            f"Only one of the following options can be specified for Kafka source: {listed}",
            f"These were given: {', '.join(given)}.",
        )
    name = given[0]
    value = folded[name.lower()].strip()
    if name == "assign":
        return Assigned(assigned(value))
    if name == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in value.split(",") if topic.strip()))
        if not topics:
            raise BadOption(f"No topics to subscribe to as specified value for option 'subscribe' is {value!r}")
        return Subscribed(topics)
    if not value:
        raise BadOption(f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is {value!r}")
    try:
        re.compile(value)
    except re.error as error:
        raise BadOption(f"subscribePattern {value!r} is not a valid regular expression (Python): {error}") from None
    return Matching(value)


def assigned(value: str) -> dict[str, tuple[int, ...]]:
    if not value.startswith("{"):
        raise BadOption(
            f"No topicpartitions to assign as specified value for option 'assign' is {value!r}",
            f"Expected e.g. {ASSIGN_EXAMPLE}.",
        )
    tree = parsed(value, "assign", ASSIGN_EXAMPLE)
    partitions: dict[str, tuple[int, ...]] = {}
    for topic, numbers in tree.items():
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            raise malformed("assign", ASSIGN_EXAMPLE, value)
        if numbers:
            partitions[topic] = tuple(sorted(set(numbers)))
    if not partitions:
        raise BadOption(f"No topicpartitions to assign as specified value for option 'assign' is {value!r}")
    return partitions


def edge(folded: Mapping[str, str], side: str, default: Edge) -> Edge:
    """Where to begin or to end. A timestamp for all goes before timestamps, and those before offsets."""
    at, by_timestamp, offsets = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if at.lower() in folded:
        return AtTimestamp(whole(folded, at, 0))
    if by_timestamp.lower() in folded:
        return AtTimestamps(partition_map(folded[by_timestamp.lower()], by_timestamp, TIMESTAMPS_EXAMPLE, least=0))
    value = folded.get(offsets.lower())
    if value is None:
        return default
    match value.strip().lower():
        case "earliest":
            return Everywhere(EARLIEST)
        case "latest":
            return Everywhere(LATEST)
        case _:
            return AtOffsets(partition_map(value, offsets, OFFSETS_EXAMPLE, least=EARLIEST))


def partition_map(value: str, name: str, example: str, *, least: int) -> Partitions:
    found: Partitions = {}
    for topic, numbers in parsed(value, name, example).items():
        if not isinstance(numbers, dict):
            raise malformed(name, example, value)
        row = found.setdefault(topic, {})
        for partition, number in numbers.items():
            if not partition.isascii() or not partition.isdigit() or type(number) is not int:
                raise malformed(name, example, value)
            if not least <= number <= INT64_MAX:
                raise malformed(name, example, value)
            row[int(partition)] = number
    return found


def parsed(value: str, name: str, example: str) -> dict[str, Any]:
    try:
        tree = json.loads(value)
    except (ValueError, RecursionError):
        raise malformed(name, example, value) from None
    if not isinstance(tree, dict):
        raise malformed(name, example, value)
    return tree


def malformed(name: str, example: str, value: str) -> BadOption:
    return BadOption(f"{name}: Expected e.g. {example}, got {value[:1000]}")


def boolean(folded: Mapping[str, str], name: str, *, default: bool) -> bool:
    return one_of(folded, name, str(default).lower(), ("true", "false")) == "true"


def one_of(folded: Mapping[str, str], name: str, default: str, values: tuple[str, ...]) -> str:
    value = folded.get(name.lower(), default).strip().lower()
    if value not in values:
        raise BadOption(f"{name} must be one of {', '.join(values)}, and is {value!r}")
    return value


def positive(folded: Mapping[str, str], name: str) -> int | None:
    if name.lower() not in folded:
        return None
    number = whole(folded, name, 0)
    if number == 0:
        raise BadOption(f"{name} must be positive")
    return number


def whole(folded: Mapping[str, str], name: str, default: int) -> int:
    value = folded.get(name.lower(), str(default)).strip()
    if not value.isascii() or not value.isdigit():
        raise BadOption(f"{name} must be a whole number that is not negative, and is {value!r}")
    if len(value) > len(str(INT64_MAX)) or int(value) > INT64_MAX:
        raise BadOption(f"{name} must be at most {INT64_MAX}, and is {value[:40]}")
    return int(value)


def milliseconds(value: str, name: str) -> int:
    """As Spark reads times: `15m`, `30s`, `500ms`; a bare number counts milliseconds."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", value.strip().lower())
    if match is None or (match[2] or "ms") not in UNITS_MS:
        raise BadOption(f"{name} must be a time such as 30s, 15m or 1h, not {value!r}")
    return int(match[1]) * UNITS_MS[match[2] or "ms"]
