"""What the options of `format("strandline-replica")` ask for."""

import difflib
import json
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from strandline.base.ids import METADATA_TOPIC
from strandline_spark import schemas
from strandline_spark.errors import BadOption

SCHEMAS = {
    "batch": schemas.REPLICA_BATCH,
    "record": schemas.REPLICA_RECORD,
    "segment": schemas.REPLICA_SEGMENT,
    "index": schemas.REPLICA_INDEX,
    "checkpoint": schemas.REPLICA_CHECKPOINT,
    "epoch": schemas.REPLICA_EPOCH,
}
OVER_THE_WIRE = ("batch", "record")
DEFAULT_LEVEL = "batch"
SPLIT_BYTES = 128 << 20
BOOTSTRAP = "kafka.bootstrap.servers"
PATHS = "paths"  # how Spark passes on load(["/one", "/two"]), as JSON
FILTERS = ("subscribe", "subscribePattern", "assign")
MODES = ("FAILFAST", "DROPMALFORMED")
NAMES = ("path", "level", *FILTERS, "splitBytes", "minPartitions", "node", "mode", "whenChanged")


class Wanted(NamedTuple):
    """Which topics and partitions are read; all of them if nothing is said."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def has(self, topic: str, partition: int) -> bool:
        """The metadata log only if it is named."""
        if self.topics:
            return topic in self.topics
        if self.assigned:
            return partition in dict(self.assigned).get(topic, ())
        if topic == METADATA_TOPIC:
            return False
        return not self.pattern or re.fullmatch(self.pattern, topic) is not None


class Request(NamedTuple):
    """The options, checked."""

    level: str
    paths: tuple[str, ...]  # as given, with their wildcards; none: over the wire
    kafka: tuple[tuple[str, str], ...]
    wanted: Wanted
    split_bytes: int
    min_partitions: int
    node: int | None
    drops_damage: bool  # of the record level: leave out what makes no sense, else fail
    reports_changes: bool  # a row of the batch level says that a log could not be read, else fail; of the levels record
    # and index the rest of it is left out


def parse(options: Mapping[str, str]) -> Request:
    """Names count without case, as Spark has them. Raises `BadOption`."""
    given = {name.lower(): value for name, value in options.items()}
    kafka = {name: value for name, value in given.items() if name.startswith("kafka.")}
    check_names(given)
    level = given.get("level", DEFAULT_LEVEL).lower()
    if level not in SCHEMAS:
        raise BadOption(f"level = {level!r} is not one of {', '.join(SCHEMAS)}")
    texts = [given.get("path", ""), *json.loads(given.get(PATHS, "[]"))]
    paths = tuple(part.strip() for part in ",".join(texts).split(",") if part.strip())
    if paths and kafka:
        raise BadOption(f"both path and {BOOTSTRAP} are set", "read log directories, or replicas over the wire")
    if not paths and BOOTSTRAP not in kafka:
        raise BadOption(
            "no log directories and no brokers are named",
            f"load('/node1/logs,/node2/logs') reads directories, option('{BOOTSTRAP}', 'host:port') the brokers'",
        )
    if not paths and level not in OVER_THE_WIRE:
        raise BadOption(
            f"level = {level} cannot be read over the wire: brokers show batches and records only",
            "load() the log directories, mounted or copied",
        )
    mode = given.get("mode", MODES[0]).upper()
    if mode not in MODES:
        raise BadOption(f"mode = {mode!r} is not one of {', '.join(MODES)}")
    changed = given.get("whenchanged", "fail").lower()
    if changed not in ("fail", {"batch": "report", "record": "skip", "index": "skip"}.get(level)):
        raise BadOption(
            f"whenChanged = {changed!r} is not fail (or, at level batch, report; at levels record and index, skip)"
        )
    return Request(
        level,
        paths,
        tuple(sorted(kafka.items())),
        wanted_of(given),
        number(given, "splitBytes", SPLIT_BYTES, least=1),
        number(given, "minPartitions", os.cpu_count() or 1, least=1),
        number(given, "node", 0, least=0) if "node" in given else None,
        mode == "DROPMALFORMED",
        changed != "fail",
    )


def check_names(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in NAMES}
    for name in given:
        if name in known or name.startswith("kafka.") or name == PATHS:
            continue
        near = difflib.get_close_matches(name, known, 1)
        advice = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(NAMES)} and kafka.*"
        raise BadOption(f"there is no option {name!r}", advice)


def number(given: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = given.get(name.lower(), str(default))
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise BadOption(f"{name} = {text!r} is not a number of at least {least}")
    return int(text)


def wanted_of(given: Mapping[str, str]) -> Wanted:
    named = [name for name in FILTERS if name.lower() in given]
    if len(named) > 1:
        raise BadOption(f"only one of {', '.join(FILTERS)} can be given, not {' and '.join(named)}")
    topics = tuple(part.strip() for part in given.get("subscribe", "").split(",") if part.strip())
    if "subscribe" in given and not topics:
        raise BadOption("subscribe names no topic")
    pattern = given.get("subscribepattern", "")
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadOption(f"subscribePattern = {pattern!r} is not a regular expression: {error}") from None
    return Wanted(topics, pattern, assigned_of(given["assign"]) if "assign" in given else ())


def assigned_of(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    example = """assign is like {"topicA":[0,1],"topicB":[2]}"""
    try:
        rows = json.loads(text)
        assigned = tuple((str(topic), tuple(int(each) for each in partitions)) for topic, partitions in rows.items())
    except (ValueError, AttributeError, TypeError):
        raise BadOption(f"assign = {text!r} cannot be read", example) from None
    if not assigned:
        raise BadOption("assign names no partition", example)
    return assigned
