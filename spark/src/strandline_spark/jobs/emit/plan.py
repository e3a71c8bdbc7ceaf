"""What an emit run has promised to itself before its first write, and why a later run may not go on with it.

The plan is durable before anything is sent: which staged file is which lane, the producer id of each, and where each
target partition ended then. Every batch of a lane lies at or behind those offsets, so a search from there finds it.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import ValidationError, json

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError

VERSION = 1
T = TypeVar("T")


class Lane(Value, frozen=True):
    """A staged file, its rows, and the producer id that only it has."""

    number: int
    file: str  # its name in the folder of staged rows
    rows: int
    producer_id: int
    producer_epoch: int


class Target(Value, frozen=True):
    """A partition of the topic as it was before the first write: every batch of ours lies at or behind `end_offset`."""

    partition: int
    end_offset: int
    leader_epoch: int


class Plan(Value, frozen=True):
    source: str  # what is emitted, as text: another text is another source
    topic: str
    topic_id: str
    targets: tuple[Target, ...]
    lanes: tuple[Lane, ...]
    made_ms: int  # for whoever reads the file; earlier programs reject a plan without it
    compacted: bool = False
    version: int = VERSION

    @property
    def rows(self) -> int:
        return sum(lane.rows for lane in self.lanes)


class Written(Value, frozen=True):
    """How many of a lane's rows for a partition are there, and where the last batch ends."""

    lane: int
    partition: int
    rows: int
    end_offset: int
    leader_epoch: int


class Finished(Value, frozen=True):
    """The last word of a checkpoint: all rows are in the topic, once."""

    rows: int
    at_ms: int
    written: tuple[Written, ...]


class TopicNow(Value, frozen=True):
    """What the cluster says of the topic today. Offsets by partition."""

    topic_id: str
    log_start_offsets: Mapping[int, int]
    end_offsets: Mapping[int, int]  # of the epoch that the plan knows, or of the log


def encode(value: Value) -> bytes:
    return json.format(json.encode(value), indent=1) + b"\n"


def decode_plan(content: bytes, path: str) -> Plan:
    """Raises StrandlineError if the file is damaged, or of a later version of this program."""
    try:
        plan = json.decode(content, type=Plan)
    except ValidationError as error:
        raise StrandlineError(
            f"{path} is not a plan of an emit run: {error}", "give --checkpoint another folder"
        ) from None
    except ValueError as error:
        raise StrandlineError(f"{path} is damaged: {error}", DAMAGED) from None
    if plan.version > VERSION:
        raise StrandlineError(f"{path} is of version {plan.version}, this program knows {VERSION}", "use the later one")
    return plan


def decode_lane(content: bytes, path: str) -> tuple[Written, ...]:
    """Raises StrandlineError if the file is damaged."""
    return decoded(content, tuple[Written, ...], path)


def decode_finished(content: bytes, path: str) -> Finished:
    """Raises StrandlineError if the file is damaged."""
    return decoded(content, Finished, path)


def decoded(content: bytes, kind: type[T], path: str) -> T:
    try:
        return json.decode(content, type=kind)
    except ValueError as error:
        raise StrandlineError(f"{path} is damaged: {error}", SEARCHED_ANEW) from None


DAMAGED = "it is unknown which rows of this run the topic has: restore the file, or find the rows by their content"
SEARCHED_ANEW = "remove this file and run the same command again: what it says is then found in the topic"
OTHER_CHECKPOINT = "one checkpoint is for one run: give --checkpoint another folder"
NEW_CHECKPOINT = "rows of this run may be in the topic already; a new run, with a new --checkpoint, writes all of them"


def why_not_this_run(plan: Plan, source: str, topic: str) -> StrandlineError | None:
    """Why does this checkpoint not belong to what is asked for now? None means that it does."""
    if plan.topic != topic:
        return StrandlineError(
            f"the checkpoint belongs to a run to topic '{plan.topic}', not '{topic}'", OTHER_CHECKPOINT
        )
    if plan.source != source:
        return StrandlineError(
            f"the checkpoint belongs to a run with another source:\n{shown(plan.source)}\nand not:\n{shown(source)}",
            OTHER_CHECKPOINT,
        )
    return None


def shown(source: str) -> str:
    return "\n".join(f"    {line}" for line in source.splitlines())


def why_not_same_topic(plan: Plan, now: TopicNow | None) -> StrandlineError | None:
    """Why is the topic not the one that the run began with? None: it is, though records may be gone."""
    if now is None:
        return StrandlineError(f"topic '{plan.topic}' does not exist any more", NEW_CHECKPOINT)
    if now.topic_id != plan.topic_id:
        return recreated(plan, now.topic_id)
    before, after = len(plan.targets), len(now.end_offsets)
    if before != after:
        counts = f"had {before} partitions when the run began, and has {after}"
        return StrandlineError(f"topic '{plan.topic}' {counts}: keys would go elsewhere", NEW_CHECKPOINT)
    return first_of(why_shorter(plan.topic, target, now) for target in plan.targets)


def why_not_searchable(plan: Plan, now: TopicNow) -> StrandlineError | None:
    """Why is it unknown which of this run's rows the topic has had? None: a search finds them."""
    for target in plan.targets:
        start = now.log_start_offsets[target.partition]
        if start > target.end_offset:
            begins = f"{plan.topic}-{target.partition} begins at offset {start} now"
            where = f"rows of this run may lie from {target.end_offset} on"
            problem = f"retention has passed the beginning of this run: {begins}, and {where}"
            return StrandlineError(problem, NEW_CHECKPOINT)
    return None


def why_shorter(topic: str, target: Target, now: TopicNow) -> StrandlineError | None:
    end = now.end_offsets[target.partition]
    if end >= target.end_offset:
        return None
    ends = f"it ended at offset {target.end_offset} when the run began, and at {end} now"
    return StrandlineError(
        f"{topic}-{target.partition} has lost its end: {ends}", f"see `strandline losses`; {NEW_CHECKPOINT}"
    )


def recreated(plan: Plan, topic_id: str) -> StrandlineError:
    ids = f"its id was {plan.topic_id} and is {topic_id}"
    return StrandlineError(
        f"topic '{plan.topic}' was deleted and created anew since the run began: {ids}", NEW_CHECKPOINT
    )


def first_of(reasons: Iterable[StrandlineError | None]) -> StrandlineError | None:
    return next((reason for reason in reasons if reason is not None), None)
