"""What the cluster has now of the topics that were chosen, and which offsets the edges of a query mean there."""

import re
import time
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from strandline.base.value import Value
from strandline.client.cluster import Cluster, TopicView
from strandline.client.errors import UnknownTopic
from strandline_spark.errors import BadOption, Missing
from strandline_spark.topic.offsets import Lost, Position, Positions, Seen, SeenTopic, epoch_before, losses
from strandline_spark.topic.options import (
    EARLIEST,
    LATEST,
    Assigned,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Chosen,
    Edge,
    Everywhere,
    Matching,
    Subscribed,
    TopicOptions,
)

INTERNAL = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
    "__strandline_sink",  # decisions of the exactly-once sink
)

Partition = tuple[str, int]
View = Mapping[str, SeenTopic]


class Resolved(Value, frozen=True):
    """The offsets that an edge means, and what had to be passed over for it."""

    offsets: dict[Partition, int]
    lost: list[Lost]


def partitions_of(view: View) -> list[Partition]:
    return [(topic, partition) for topic, row in view.items() for partition in row.partitions]


class Looking:
    """Asks the cluster; remembers only what cannot change while a partition's leader epoch lasts."""

    def __init__(self, cluster: Cluster, options: TopicOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self.cluster = cluster
        self.options = options
        self.sleep = sleep
        self.epochs: dict[Partition, tuple[tuple[str, int], dict[int, tuple[int, int]]]] = {}
        self.view: View = {}

    def look(self, may_be_gone: Iterable[str] | None = ()) -> View:
        """Log starts and ends of all partitions that were chosen.

        Raises Missing if one that was asked for by name does not exist, unless that may be so (None: of all).
        """
        try:
            return self.look_once(may_be_gone)
        except UnknownTopic:
            return self.look_once(may_be_gone)  # deleted between two requests: now the first one reports it

    def look_once(self, may_be_gone: Iterable[str] | None) -> View:
        topics = self.topics(may_be_gone)
        asked = [(name, number) for name, topic in topics.items() for number in sorted(topic.partitions)]
        # The end first: records may come and go between the two, and a log's start never passes its end.
        ends = self.cluster.list_offsets(dict.fromkeys(asked, LATEST))
        starts = self.cluster.list_offsets(dict.fromkeys(asked, EARLIEST))
        seen: dict[str, dict[int, Seen]] = {name: {} for name in topics}
        for name, number in asked:
            start, end = starts[name, number].offset, ends[name, number]
            epoch = end.leader_epoch if end.leader_epoch >= 0 else topics[name].partitions[number].leader_epoch
            seen[name][number] = Seen(epoch, start, max(start, end.offset))
        self.view = {name: SeenTopic(topics[name].topic_id, seen[name]) for name in topics}
        return self.view

    def topics(self, may_be_gone: Iterable[str] | None) -> dict[str, TopicView]:
        wanted = self.options.chosen
        known = None if may_be_gone is None else set(may_be_gone)
        for attempt in range(self.options.retries + 1):
            found, missing = choose(wanted, self.cluster.topics(names_of(wanted)))
            if known is None:
                return found
            missing = {shown: name for shown, name in missing.items() if name not in known}
            if not missing:
                return found
            if attempt < self.options.retries:
                self.sleep(self.options.retry_interval_ms / 1000)
        raise Missing(
            f"{', '.join(missing)} does not exist in this cluster (UNKNOWN_TOPIC_OR_PARTITION)",
            "Create the topic first, or correct the option that names it.",
        )

    def ask(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        """Where `epoch` ended. Answers about epochs before the present one are remembered while that lasts."""
        row = self.view[topic]
        present = row.partitions[partition].leader_epoch
        if epoch >= present:
            return self.cluster.epoch_end(topic, partition, epoch)
        term = (row.topic_id, present)
        known, answers = self.epochs.get((topic, partition), (None, {}))
        if known != term:
            answers = {}
            self.epochs[topic, partition] = term, answers
        if epoch not in answers:
            answers[epoch] = self.cluster.epoch_end(topic, partition, epoch)
        return answers[epoch]

    def losses(self, known: Positions) -> list[Lost]:
        """What of the known positions is lost, by what was seen last; and what is not chosen any more."""
        found = losses(known, self.view, self.ask)
        return [
            each if is_chosen(self.options.chosen, each.topic, each.partition) else not_chosen(each) for each in found
        ]

    def position(self, topic: str, partition: int, offset: int) -> Position:
        """`offset` with the leader epoch of the record before it."""
        return Position(
            offset, epoch_before(topic, partition, offset, self.view[topic].partitions[partition], self.ask)
        )

    # --- edges

    def resolve(self, edge: Edge, side: str) -> Resolved:
        """The offset of each partition in view. `side` is starting or ending. Raises BadOption."""
        partitions = partitions_of(self.view)
        match edge:
            case Everywhere(point=point):
                return Resolved({at: self.point(at, point) for at in partitions}, [])
            case AtOffsets(offsets=offsets):
                refuse_others(flat(offsets), partitions, f"{side}Offsets")
                return self.resolve_offsets(flat(offsets), side)
            case AtTimestamp(timestamp_ms=timestamp):
                return Resolved(self.by_timestamp(dict.fromkeys(partitions, timestamp), side), [])
            case AtTimestamps(timestamps=timestamps):
                refuse_others(flat(timestamps), partitions, f"{side}OffsetsByTimestamp")
                return Resolved(self.by_timestamp(flat(timestamps), side), [])

    def point(self, at: Partition, point: int) -> int:
        seen = self.view[at[0]].partitions[at[1]]
        return seen.log_start_offset if point == EARLIEST else seen.end_offset

    def resolve_offsets(self, asked: Mapping[Partition, int], side: str) -> Resolved:
        offsets, lost = {}, []
        for at, offset in asked.items():
            if offset < 0:
                offsets[at] = self.point(at, offset)
                continue
            start, end = self.point(at, EARLIEST), self.point(at, LATEST)
            offsets[at] = min(max(offset, start), end)
            if offsets[at] != offset and (offset > end or side == "starting"):
                name = f"{at[0]}-{at[1]}"
                what = f"{side}Offsets for {name} was {offset}, and the partition has offsets {start} to {end}"
                lost.append(Lost(*at, "expired" if offset < start else "truncated", what, Position(offsets[at])))
        return Resolved(offsets, lost)

    def by_timestamp(self, asked: Mapping[Partition, int], side: str) -> dict[Partition, int]:
        found = self.cluster.list_offsets(dict(asked))
        offsets = {}
        for at, timestamp in asked.items():
            offset = found[at].offset
            if offset < 0:
                if side == "starting" and not self.options.later_is_latest:
                    raise BadOption(
                        f"No offset matched from request of topic-partition {at[0]}-{at[1]} and timestamp {timestamp}.",
                        "All its records are older. startingOffsetsByTimestampStrategy=latest begins at the end then.",
                    )
                offset = self.point(at, LATEST)
            offsets[at] = min(max(offset, self.point(at, EARLIEST)), self.point(at, LATEST))
        return offsets


def names_of(chosen: Chosen) -> list[str] | None:
    """None: all topics."""
    match chosen:
        case Subscribed(topics=topics):
            return list(topics)
        case Assigned(partitions=partitions):
            return list(partitions)
        case Matching():
            return None


def choose(chosen: Chosen, there: Mapping[str, TopicView]) -> tuple[dict[str, TopicView], dict[str, str]]:
    """What was chosen of what there is; and what is missing, with its topic."""
    match chosen:
        case Subscribed(topics=topics):
            found = {name: there[name] for name in sorted(topics) if name in there}
            return found, {name: name for name in topics if name not in there}
        case Matching(pattern=pattern):
            names = [name for name in sorted(there) if name not in INTERNAL and re.fullmatch(pattern, name)]
            return {name: there[name] for name in names}, {}
        case Assigned(partitions=partitions):
            found, missing = {}, dict[str, str]()
            for name in sorted(partitions):
                topic = there.get(name)
                numbers = [each for each in partitions[name] if topic and each in topic.partitions]
                missing |= {f"{name}-{each}": name for each in partitions[name] if each not in numbers}
                if topic is not None and numbers:
                    of = {each: topic.partitions[each] for each in numbers}
                    found[name] = TopicView(name=name, topic_id=topic.topic_id, partitions=of)
            return found, missing


def is_chosen(chosen: Chosen, topic: str, partition: int) -> bool:
    """Would it be read, if it is there?"""
    match chosen:
        case Subscribed(topics=topics):
            return topic in topics
        case Matching(pattern=pattern):
            return topic not in INTERNAL and re.fullmatch(pattern, topic) is not None
        case Assigned(partitions=partitions):
            return partition in partitions.get(topic, ())


def not_chosen(lost: Lost) -> Lost:
    what = f"{lost.topic}-{lost.partition} is in the checkpoint, and the source's options do not choose it any more"
    return replace(lost, kind="not chosen", what=what, resume=None)


def flat(tree: Mapping[str, Mapping[int, int]]) -> dict[Partition, int]:
    return {(topic, partition): value for topic, row in tree.items() for partition, value in row.items()}


def refuse_others(given: Mapping[Partition, int], there: list[Partition], name: str) -> None:
    if set(given) != set(there):
        raise BadOption(
            f"If {name} contains specific offsets, you must specify all TopicPartitions. "
            f"Specified: {listed(given)}. Assigned: {listed(there)}.",
            "Use -1 for latest, -2 for earliest." if name.endswith("Offsets") else "",
        )


def listed(partitions: Iterable[Partition], limit: int = 20) -> str:
    names = [f"{topic}-{partition}" for topic, partition in sorted(partitions)]
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
