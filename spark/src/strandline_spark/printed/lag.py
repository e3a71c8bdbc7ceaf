"""Lag."""

from typing import Annotated, Literal, NotRequired, TypedDict

from strandline.cli.printed.words import Milliseconds, Partition, Topic, says

Kind = Annotated[Literal["group", "query", "topic"], says("topic: it has no reader")]
Reader = Annotated[str, says("the group or query; empty for kind topic")]


class LagSample(TypedDict):
    """How far one reader was in one partition at one time."""

    time_ms: Milliseconds
    kind: Kind
    reader: Reader
    topic: Topic
    partition: Partition
    log_start_offset: int
    end_offset: Annotated[int, says("high watermark, or last stable offset with --read-committed")]
    position: NotRequired[Annotated[int, says("the next offset to be read; absent if none was committed")]]
    lag: NotRequired[int]
    expired: NotRequired[Annotated[int, says("offsets that were deleted before they were read")]]
    delay_ms: NotRequired[Annotated[int, says("the age of the next record; 0 if there is none; absent if not known")]]
    batch: NotRequired[Annotated[int, says("a query's last committed batch")]]


class LagSummary(TypedDict):
    """One reader of one topic in all samples."""

    kind: Kind
    reader: Reader
    topic: Topic
    partitions: int
    samples: Annotated[int, says("different times")]
    lag: Annotated[int | None, says("at the end")]
    lag_worst: int | None
    delay_ms: Annotated[int | None, says("at the end, in the worst partition")]
    delay_ms_worst: int | None
    expired: int | None
    written_per_s: Annotated[float | None, says("records a second; null if there is one time only")]
    read_per_s: float | None
    catch_up_s: Annotated[float | None, says("until the lag is 0, if it goes on like this; null if it does not shrink")]


class LagSkew(TypedDict):
    """How evenly a reader's lag, or a topic's records, lie over partitions, by the last samples."""

    kind: Kind
    reader: Reader
    topic: Topic
    partitions: Annotated[int, says("those whose count is known")]
    total: int | None
    largest: int | None
    largest_partition: int | None
    mean: float | None
    ratio: Annotated[float | None, says("the largest by the mean; 1: even; null: there is nothing")]


class LagReport(TypedDict):
    """With --from: what files of samples say."""

    summary: list[LagSummary]
    skew: list[LagSkew]
