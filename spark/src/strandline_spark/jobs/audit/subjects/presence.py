"""Which logs should be where: a checkpoint names a log that has no folder, or a folder says to be another topic's.

A broker saves the high watermark of each log that it has every few seconds. A log that was moved away or deleted is
named until the next time, and while a broker runs the audit looks again after that. Where no directory has anything of
a topic, it was deleted. A stop in order has a marker that knows better (`stopped`).
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from strandline.base.ids import METADATA_TOPIC
from strandline.base.ports import DiskError
from strandline.log.directory import DirectoryMeta, directory_name, parse_directory_name, read_meta
from strandline.replica.hosting.rows import HIGH_WATERMARKS, RECOVERY_POINTS
from strandline_spark.jobs.audit.metadata.registrations import Registered, registrations_in, stale_directories
from strandline_spark.jobs.audit.metadata.segments import Held, held_in, segment_findings
from strandline_spark.jobs.audit.metadata.state import beside_the_log
from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import ERROR, WARNING, Row, plain
from strandline_spark.jobs.audit.subjects.stopped import changes_since_stop, saved_in
from strandline_spark.replica.left import ReadDisk, Stopped
from strandline_spark.replica.options import Request
from strandline_spark.replica.places import log_directories

RULES = {
    "missing-replica": "a checkpoint names a log that is not there",
    "topic-id": "a replica's topic id is missing, another topic's, or not that of the other replicas",
}


def by_directory(request: Request) -> list[Row]:
    """What log directories show without any batch being read."""
    found: list[Row] = []
    unmarked: list[tuple[int, str]] = []
    stops: list[Stopped] = []
    for directory in log_directories(request):
        stopped = Stopped.at(directory)
        if stopped is not None:
            stops.append(stopped)
            found += changes_since_stop(stopped, request.wanted)
        else:
            unmarked.append((broker_at(directory), directory))
    return [*found, *of_metadata(request, stops), *missing_replicas(request, unmarked)]


def of_metadata(request: Request, stops: Sequence[Stopped]) -> Iterator[Row]:
    """Whatever topics are wanted: it is all nodes' metadata."""
    logs: list[Held] = []
    registered: Registered = {}
    for directory in log_directories(request):
        node, cluster_id = broker_at(directory), cluster_at(directory)
        yield from beside_the_log(directory, node)
        held = held_in(directory, node, cluster_id)
        if held is not None:
            logs.append(held)
        for key, epoch in registrations_in(directory, cluster_id).items() if stops else ():
            registered[key] = max(registered.get(key, -1), epoch)
    yield from segment_findings(logs)
    yield from stale_directories(stops, registered)


def broker_at(directory: str) -> int:
    meta = meta_at(directory)
    return -1 if meta is None else meta.node_id


def cluster_at(directory: str) -> str:
    meta = meta_at(directory)
    return "" if meta is None else meta.cluster_id


def meta_at(directory: str) -> DirectoryMeta | None:
    try:
        return read_meta(ReadDisk(), directory)
    except DiskError:
        return None


def missing_replicas(request: Request, unmarked: Sequence[tuple[int, str]]) -> Iterator[Row]:
    """Checkpoints are read before folders are listed."""
    named = []
    for broker, directory in unmarked:
        rows = saved_in(f"{directory}/{HIGH_WATERMARKS}") or saved_in(f"{directory}/{RECOVERY_POINTS}") or {}
        named += [(broker, directory, name, offset) for name, offset in sorted(rows.items())]
    if not named:
        return
    directories = log_directories(request)
    entries = {one: os.listdir(one) for one in directories}
    topics = {name.topic for held in entries.values() for entry in held if (name := parse_directory_name(entry))}
    of_broker: dict[int, set[str]] = {}  # a log may move between directories
    for one in directories:
        of_broker.setdefault(broker_at(one), set()).update(entries[one])
    for broker, directory, name, offset in named:
        if name.topic not in topics or name.topic == METADATA_TOPIC or not request.wanted.has(*name):
            continue
        if directory_name(name) not in of_broker[broker]:
            what = f"{directory} has no log of it, and knew it to be committed up to {offset}"
            key = (broker, directory, name.topic, "", name.partition)
            yield plain("missing-replica", what, key, 0, max(offset, 1))


def topic_ids(known: Sequence[Known]) -> Iterator[Row]:
    """The topic id that most replicas of a topic have is its own. Where a broker has that one and another, or another
    topic has it, something is wrong; else the broker may have been down while the topic was made anew."""
    of_topic: dict[str, Counter[str]] = {}
    of_broker: dict[tuple[int, str], set[str]] = {}
    for one in known:
        broker, _, topic, topic_id, _ = one.key
        of_topic.setdefault(topic, Counter())[topic_id] += 1
        of_broker.setdefault((broker, topic), set()).add(topic_id)
    own = {topic: max(ids, key=lambda each: (each != "", ids[each], each)) for topic, ids in of_topic.items()}
    owners = {topic_id: topic for topic, topic_id in own.items()}
    for one in known:
        broker, _, topic, topic_id, _ = one.key
        usual = own[topic]
        if topic_id == usual:
            continue
        whose = owners.get(topic_id)
        what = f"it has the topic id {topic_id}" if topic_id else "it has no topic id"
        what += f", that of {whose}" if whose and whose != topic else ""
        is_sure = not topic_id or (whose is not None and whose != topic) or usual in of_broker[broker, topic]
        what += f"; other replicas of the topic have {usual}"
        yield plain(
            "topic-id", what, one.key, one.start, max(one.end, one.start + 1), severity=ERROR if is_sure else WARNING
        )
