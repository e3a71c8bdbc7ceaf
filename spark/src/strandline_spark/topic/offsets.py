"""How far a query has read, as Spark keeps it in a checkpoint; and what of a topic is lost to it.

A position is an offset and the leader epoch of the record before it: with the topic's id, these name one history. So
these are distinguished exactly:
  - recreated: the topic has another id
  - deleted: there is no such topic, or no such partition
  - truncated: the log has no record of that epoch as far as the position any more (an unclean election, a lost disk)
  - expired: the log begins after the position (retention, DeleteRecords)
A gap between offsets is none of these: compaction and transactions leave gaps.

Invariants:
  - equal offsets are equal text (Spark compares their JSON): keys are sorted
  - what a batch begins with, where that is not the end of the batch before (`begins`), stands in its end: the text of
    two ends says which records lie between them, after any restart
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import field

from strandline.base.value import Value
from strandline_spark.errors import DataLoss, StrandlineError

VERSION = 1
UNKNOWN = -1

Json = dict[str, Any]
# (topic, partition, leader epoch) -> the largest epoch of the log up to that one, and its end; (−1, −1): not known
AskEpochEnd = Callable[[str, int, int], tuple[int, int]]


class Position(Value, frozen=True):
    offset: int  # the next to read
    epoch: int = UNKNOWN  # leader epoch of the record before it


class TopicPositions(Value, frozen=True):
    topic_id: str
    partitions: dict[int, Position]


Positions = dict[str, TopicPositions]


class Offsets(Value, frozen=True):
    topics: Positions
    begins: Positions = field(default_factory=dict)
    is_fresh: bool = False  # where a query begins, which no checkpoint knows yet

    def position(self, topic: str, partition: int, topic_id: str) -> Position | None:
        """Of that very topic: one of the same name and another id has no position."""
        return position_in(self.topics, topic, partition, topic_id)

    def begin(self, topic: str, partition: int, topic_id: str) -> Position | None:
        return position_in(self.begins, topic, partition, topic_id)


def position_in(topics: Positions, topic: str, partition: int, topic_id: str) -> Position | None:
    row = topics.get(topic)
    if row is None or not is_same_topic(row.topic_id, topic_id):
        return None
    return row.partitions.get(partition)


def is_same_topic(one: str, two: str) -> bool:
    """Clusters before topic ids have none: names must do."""
    return one == two or not one or not two


# --- as JSON


def to_json(offsets: Offsets) -> Json:
    tree: Json = {"topics": topics_to_json(offsets.topics), "version": VERSION}
    if offsets.begins:
        tree["begins"] = topics_to_json(offsets.begins)
    if offsets.is_fresh:
        tree["fresh"] = True
    return dict(sorted(tree.items()))


def topics_to_json(topics: Positions) -> Json:
    return {
        topic: {
            "id": row.topic_id,
            "partitions": {
                str(partition): {"epoch": position.epoch, "offset": position.offset}
                for partition, position in sorted(row.partitions.items(), key=lambda item: str(item[0]))
            },
        }
        for topic, row in sorted(topics.items())
    }


def from_json(tree: Json) -> Offsets:
    """Raises StrandlineError where the checkpoint holds something else, such as another source's offsets."""
    version = tree.get("version") if isinstance(tree, dict) else None
    if version != VERSION:
        raise StrandlineError(
            f"the checkpoint's offsets are not those of a strandline topic source (version {VERSION}): {tree!r}"[:500],
            "Start the query with a new checkpointLocation.",
        )
    try:
        return Offsets(
            topics=topics_from_json(tree["topics"]),
            begins=topics_from_json(tree.get("begins", {})),
            is_fresh=tree.get("fresh") is True,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StrandlineError(
            f"the checkpoint's offsets are damaged ({type(error).__name__}: {error}): {tree!r}"[:500],
            "Restore the checkpoint, or start the query with a new one.",
        ) from None


def topics_from_json(tree: Json) -> Positions:
    return {
        topic: TopicPositions(
            topic_id=str(row["id"]),
            partitions={
                int(partition): Position(int(position["offset"]), int(position["epoch"]))
                for partition, position in row["partitions"].items()
            },
        )
        for topic, row in tree.items()
    }


# --- what is lost


class Seen(Value, frozen=True):
    """A partition as its leader has it now."""

    leader_epoch: int
    log_start_offset: int
    end_offset: int  # of what may be read: the high watermark, or the last stable offset


class SeenTopic(Value, frozen=True):
    topic_id: str
    partitions: dict[int, Seen]


class Lost(Value, frozen=True):
    topic: str
    partition: int
    kind: str  # recreated, deleted, truncated, expired, late
    what: str
    resume: Position | None  # where reading can go on; None: nowhere


def losses(known: Positions, seen: Mapping[str, SeenTopic], ask: AskEpochEnd) -> list[Lost]:
    """What was at or before the known positions and can be read no longer, or is something else now."""
    found = []
    for topic, row in known.items():
        there = seen.get(topic)
        for partition, position in row.partitions.items():
            if there is None or partition not in there.partitions:
                found.append(deleted(topic, partition, is_topic=there is None))
                continue
            at = there.partitions[partition]
            if not is_same_topic(row.topic_id, there.topic_id):
                found.append(recreated(topic, partition, row.topic_id, there.topic_id, at))
                continue
            lost = lost_in(topic, partition, position, at, ask)
            if lost is not None:
                found.append(lost)
    return found


def deleted(topic: str, partition: int, *, is_topic: bool) -> Lost:
    gone = f"topic {topic} does not exist any more" if is_topic else f"{topic}-{partition} does not exist any more"
    return Lost(topic, partition, "deleted", gone, None)


def recreated(topic: str, partition: int, was: str, now: str, at: Seen) -> Lost:
    what = (
        f"topic {topic} was deleted and created anew: its id was {was} and is {now}, "
        "so what was not read of the old one is lost"
    )
    return Lost(topic, partition, "recreated", what, Position(at.log_start_offset))


def lost_in(topic: str, partition: int, position: Position, at: Seen, ask: AskEpochEnd) -> Lost | None:
    """One partition of a topic that is still the same."""
    name, offset = f"{topic}-{partition}", position.offset
    if offset < at.log_start_offset:
        what = (
            f"{name} now begins at offset {at.log_start_offset}: the records from {offset} on "
            f"({at.log_start_offset - offset} offsets) were deleted before they were read"
        )
        return Lost(topic, partition, "expired", what, Position(at.log_start_offset))
    if position.epoch == UNKNOWN:
        if offset <= at.end_offset:
            return None
        what = f"{name} was at offset {offset} and now ends at {at.end_offset}"
        return Lost(topic, partition, "truncated", what, Position(at.end_offset))
    if position.epoch > at.leader_epoch:
        return None  # Who answered has not heard of the present leader yet.
    if position.epoch == at.leader_epoch and offset <= at.end_offset:
        return None  # While one leads, nothing of its log is cut off: nobody need be asked.
    epoch, end = ask(topic, partition, position.epoch)
    if epoch == position.epoch and end >= offset:
        return None  # It may end before the position for a moment: a new leader learns its high watermark.
    if epoch == UNKNOWN:
        end = min(at.end_offset, offset)  # A log without epochs has no record: what there was is gone, or was empty.
        if end == offset:
            return None
    what = (
        f"{name} was truncated: the record before offset {offset} was of leader epoch {position.epoch}, "
        f"and now the log has epochs up to that one only before offset {end} (the last is {epoch})"
    )
    return Lost(topic, partition, "truncated", what, Position(max(min(end, offset), at.log_start_offset)))


def epoch_before(topic: str, partition: int, offset: int, at: Seen, ask: AskEpochEnd) -> int:
    """Leader epoch of the record before `offset`; −1 if the log has none.

    Asks for epochs before the present one only: what is answered then holds as long as that lasts.
    """
    if offset <= at.log_start_offset:
        return UNKNOWN
    epoch = at.leader_epoch
    while epoch > 0:
        before, end = ask(topic, partition, epoch - 1)
        if before == UNKNOWN or end < offset:
            return epoch
        assert before < epoch, "the epoch up to one is not a later one"
        epoch = before
    return epoch


DATA_LOSS_ADVICE = (
    "Some data may have been lost. If it is fine that a query goes on without what is lost, set the source option "
    '"failOnDataLoss" to "false".'
)


def data_loss(lost: list[Lost], limit: int = 5) -> DataLoss:
    sentences = list(dict.fromkeys(each.what for each in lost))
    more = f"; and {len(sentences) - limit} more" if len(sentences) > limit else ""
    return DataLoss("; ".join(sentences[:limit]) + more, DATA_LOSS_ADVICE)
