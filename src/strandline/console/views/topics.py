"""Topics: how many partitions, how large, how fast; one of them with its settings, its replicas and its records."""

import json
from collections.abc import Iterable

from msgspec.structs import replace

from strandline.client.admin.nodes.configs import rows_of
from strandline.client.admin.partitions import PartitionState
from strandline.client.admin.topics import partitions_of
from strandline.client.cluster import Cluster
from strandline.client.errors import BadOption, StrandlineError
from strandline.console.changes.record import RECORD, bytes_of
from strandline.console.facts import Facts, Observed
from strandline.console.reading.browsing import (
    LIMIT_MAX,
    PARTITIONS_MAX,
    TIME_S,
    Budget,
    Page,
    Wanted,
    browse,
    partitions_in,
)
from strandline.console.reading.browsing import Seen as SeenRecord
from strandline.console.reading.texts import Format, Shown, format_of, shown
from strandline.console.table import Json, Rows
from strandline.console.view import INT64_MAX, Channel, Query, View, natural

STARTS = ("earliest", "latest", "offset", "time")
HEADERS_MAX = 100  # of one record that are shown


def topic_rows(facts: Facts) -> Rows:
    by_topic: dict[str, list[PartitionState]] = {}
    for state in facts.partitions:
        by_topic.setdefault(state.at.topic, []).append(state)
    return {topic: topic_row(facts, topic, states) for topic, states in by_topic.items()}


def topic_row(facts: Facts, topic: str, states: list[PartitionState]) -> Json:
    """Sizes are null while no broker has reported one, rates while there is no earlier look to compare with."""
    sizes = facts.sizes.replicas
    known = [row.size_bytes for state in states for row in sizes.get(state.at, ()) if not row.is_future]
    return {
        "topic": topic,
        "is_internal": topic.startswith("__"),
        "partitions": len(states),
        "replicas": max(len(state.replicas) for state in states),
        "size_bytes": sum(known) if known else None,
        "records_per_s": summed(facts.ends.rates.get(state.at) for state in states),
        "bytes_per_s": summed(facts.sizes.rates.get(state.at) for state in states),
        "leaderless": sum(state.is_unavailable for state in states),
        "out_of_sync": sum(len(state.isr) < len(state.replicas) - len(state.adding) for state in states),
    }


def summed(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 1) if known else None


def looked_rows(facts: Facts) -> Rows:
    """When the logs' ends were asked for last: rates over time have a point more."""
    return {"ends": facts.ends.time_ms}


def partition_rows(facts: Facts) -> Rows:
    return {f"{state.at.topic}:{state.at.partition}": partition_row(facts, state) for state in facts.partitions}


def partition_row(facts: Facts, state: PartitionState) -> Json:
    return {
        "topic": state.at.topic,
        "partition": state.at.partition,
        "leader": state.leader,
        "high_watermark": facts.ends.offsets.get(state.at),
        "records_per_s": summed([facts.ends.rates.get(state.at)]),
        "bytes_per_s": summed([facts.sizes.rates.get(state.at)]),
        "replicas": [
            {
                "broker": row.broker,
                "size_bytes": row.size_bytes,
                "offset_lag": row.offset_lag,
                "log_dir": row.log_dir,
                "is_future": row.is_future,
                "is_in_sync": row.broker in state.isr,
            }
            for row in sorted(facts.sizes.replicas.get(state.at, ()), key=lambda row: (row.broker, row.is_future))
        ],
    }


# --- what is asked for when a topic is opened


def topic_in(query: Query) -> str:
    topic = query.get("topic", "")
    if not topic:
        raise BadOption("no topic is named")
    return topic


def settings(observed: Observed, query: Query) -> Json:
    """All settings of a topic, with where each comes from; those that were set for it first."""
    rows = rows_of(observed.config, "topics", topic_in(query), everything=True)
    return sorted(rows, key=lambda row: (row["source"] != "DYNAMIC_TOPIC_CONFIG", row["name"]))


def rates(observed: Observed, query: Query) -> Json:
    """Records per second since the console looks: rows of (ms, rate)."""
    return observed.facts.ends.topics.get(topic_in(query), ())


def browsed(observed: Observed, query: Query) -> Json:
    """Records, within bounds. Raises BadOption."""
    topic = topic_in(query)
    known = partitions_of(observed.config, topic)
    if not known:
        raise StrandlineError(f"topic '{topic}' does not exist")
    wanted = wanted_of(query, known)
    keys, values = format_in(query, "key"), format_in(query, "value")
    patient = replace(observed.config, default_api_timeout_ms=int(TIME_S * 1000))
    with Cluster(patient) as cluster:
        return page_json(browse(cluster, wanted, Budget()), keys, values)


def wanted_of(query: Query, known: list[int]) -> Wanted:
    places = partitions_in(query.get("partition", ""), known)
    if places is None:
        raise BadOption(f"there is no partition {query['partition']}", f"there are 0 to {max(known)}")
    if len(places) > PARTITIONS_MAX:
        raise BadOption(f"the topic has {len(places)} partitions, and at most {PARTITIONS_MAX} are read", "name one")
    start = query.get("start", "latest")
    if start not in STARTS:
        raise BadOption(f"'{start}' is not a place to start at", f"there are {', '.join(STARTS)}")
    return Wanted(
        query["topic"],
        places,
        start,
        number_in(query, "number", 0, INT64_MAX) if start in ("offset", "time") else 0,
        positions_in(query.get("positions", ""), places),
        bytes_of(query["key"], query.get("key_given_as", "text")) if query.get("key") else None,
        max(number_in(query, "limit", 50, LIMIT_MAX), 1),
    )


def number_in(query: Query, name: str, default: int, most: int) -> int:
    text = query.get(name, "") or str(default)
    number = natural(text, most)
    if number is None:
        raise BadOption(f"{name}: '{text}' is not a number from 0 to {most}")
    return number


def positions_in(text: str, places: Iterable[int]) -> dict[int, int]:
    if not text:
        return {}
    try:
        given = {int(partition): int(offset) for partition, offset in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError, OverflowError):
        raise BadOption("the positions are not a JSON object of offsets by partition") from None
    return {index: min(max(given[index], 0), INT64_MAX) for index in places if index in given}


def format_in(query: Query, of: str) -> Format:
    """`of`: "key" or "value"."""
    return format_of(
        query.get(f"{of}_as", "auto"),
        query.get(f"{of}_schema", ""),
        query.get(f"{of}_message", ""),
        query.get(f"{of}_framed", "") == "yes",
    )


def page_json(page: Page, keys: Format, values: Format) -> Json:
    return {
        "records": [record_json(one, keys, values) for one in page.seen],
        "next": {str(index): at for index, at in page.next.items()},
        "is_at_end": all(at >= page.ends[index] for index, at in page.next.items()),
        "examined": page.examined,
        "unread": list(page.unread),
        "stopped": page.stopped,
    }


def record_json(one: SeenRecord, keys: Format, values: Format) -> Json:
    record, plain = one.record, Format()
    return {
        "partition": one.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "is_transactional": one.is_transactional,
        "key": shown_json(shown(record.key, keys)),
        "value": shown_json(shown(record.value, values)),
        "headers": [[name, shown_json(shown(content, plain))] for name, content in record.headers[:HEADERS_MAX]],
        "headers_left_out": max(len(record.headers) - HEADERS_MAX, 0),
    }


def shown_json(one: Shown) -> Json:
    return {"form": one.form, "text": one.text, "size": one.size, "is_cut": one.is_cut, "problem": one.problem}


TOPICS = View(
    "topics",
    "Topics",
    channels=(
        Channel("topics", ("partitions", "sizes", "ends"), topic_rows),
        Channel("rates-looked", ("ends",), looked_rows),
        Channel("replica-sizes", ("partitions", "sizes", "ends"), partition_rows),
    ),
    reads={"topic-settings": settings, "topic-rates": rates, "records": browsed},
    changes={"record": RECORD},
)
