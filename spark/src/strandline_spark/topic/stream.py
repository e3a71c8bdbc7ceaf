"""A topic as a stream: where a query begins, how far each of its triggers reads, and what was lost on the way.

Invariants:
  - the records of a batch follow from its end and the end before it, whatever happened since: a first batch carries in
    its end where it began, for Spark does not keep that (and asks again after a crash)
  - while nothing is new, the end is the text of the start: no batch
  - what is lost is reported once, in the trigger that finds it; with failOnDataLoss=false the query goes on where the
    log does, and its offsets say so
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import KafkaError
from strandline_spark.errors import StrandlineError
from strandline_spark.topic.looking import Looking, Partition, View, partitions_of
from strandline_spark.topic.offsets import (
    Json,
    Lost,
    Offsets,
    Position,
    Positions,
    TopicPositions,
    data_loss,
    from_json,
    to_json,
)
from strandline_spark.topic.options import stream_options
from strandline_spark.topic.planning import TopicRange, share, split
from strandline_spark.topic.reading import RangePartition, Reading, warn

if TYPE_CHECKING:
    import pyarrow

IDLE_LOOKS = (0.1, 0.15, 0.25)  # seconds before each further look of one call while nothing is new
CONFIRM_S = 1.0  # at least so long a loss must be seen before it is believed: a broker may lag behind the metadata


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self,
        given: Mapping[str, str],
        schema: "pyarrow.Schema",
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = stream_options(given)
        self.config = ClientConfig.of(given)
        self.reading = Reading.of(self.config, self.options, schema)
        self.clock = clock
        self.sleep = sleep
        self.looking: Looking | None = None
        self.initial: Offsets | None = None
        self.refusal: StrandlineError | None = None  # why there is no beginning
        self.target: Offsets | None = None  # of Trigger.AvailableNow
        self.reported: Offsets | None = None
        self.triggered_s: float | None = None  # when records were last handed out

    def __getstate__(self) -> dict[str, Any]:
        """What workers need: they read, and never plan."""
        return {**self.__dict__, "looking": None, "initial": None, "target": None, "reported": None}

    # --- where a query begins

    def initialOffset(self) -> Json:  # noqa: N802  # PySpark's name
        """The starting offsets, the same in all calls of one process. Marked: no checkpoint has them yet.

        Where there are none, `latestOffset` says why: after a crash in the first batch Spark asks for them too, and has
        no need of them. Then the cluster may be another one than the options were made for.
        """
        if self.initial is None:
            looking = self.look_again()
            try:
                looking.look()
                resolved = looking.resolve(self.options.starting, "starting")
                self.notify(resolved.lost)
                self.initial = Offsets(positions(looking, resolved.offsets), is_fresh=True)
            except KafkaError:
                raise
            except StrandlineError as error:
                self.initial, self.refusal = Offsets({}, is_fresh=True), error
        return to_json(self.initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # PySpark's name
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
        looking = self.look_again()
        view = looking.look(may_be_gone=None)  # Missing records are reported where a batch should have read them.
        self.target = Offsets(ends_of(view))

    # --- how far a trigger reads

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802  # PySpark's name
        """The end of the next batch; `start` itself while there is none.

        Raises DataLoss for what was lost since `start` (failOnDataLoss=true), BadOption for a start that is none.
        """
        since = from_json(start)
        if since.is_fresh:
            self.initialOffset()
            if self.refusal is not None:
                raise self.refusal
        for wait_s in (0.0, *self.waits(since)):
            if wait_s:
                self.sleep(wait_s)
            end = self.end_of_batch(since, limit)
            if end is not None:
                return to_json(end)
        return start

    def waits(self, since: Offsets) -> tuple[float, ...]:
        """Spark asks again at once where nothing is new: without a wait, a hundred times a second."""
        return () if since.is_fresh or self.target is not None else IDLE_LOOKS

    def end_of_batch(self, since: Offsets, limit: ReadLimit) -> Offsets | None:
        """None: nothing to read yet."""
        looking, view, lost = self.look_and_compare(since)
        self.reported = Offsets(ends_of(view))
        begins = self.begins(since, view, lost)
        target = self.ends(begins, view)
        waiting = {at: target[at] - position.offset for at, position in begins.items()}
        given = self.admitted(waiting, limit)
        topics: dict[str, dict[int, Position]] = {topic: {} for topic in view}
        moved: dict[str, dict[int, Position]] = {}
        for (topic, partition), begin in begins.items():
            size = given.get((topic, partition), 0)
            topics[topic][partition] = looking.position(topic, partition, begin.offset + size) if size else begin
            if since.is_fresh or since.position(topic, partition, view[topic].topic_id) != begin:
                moved.setdefault(topic, {})[partition] = begin
        end = Offsets(with_ids(topics, view), with_ids(moved, view))
        if end.topics == since.topics and not moved and not since.is_fresh:
            return None
        self.notify(lost)  # Only now: with failOnDataLoss=false the next trigger begins behind it.
        if any(given.values()):
            self.triggered_s = self.clock()
        return end

    def look_and_compare(self, since: Offsets) -> tuple[Looking, View, list[Lost]]:
        """What there is, and what is lost, if it is lost for longer than a moment."""
        looking = self.look_again()
        tries = max(self.options.retries, 1)
        pause_s = max(self.options.retry_interval_ms / 1000, CONFIRM_S / tries)
        is_lenient = not (self.options.fail_on_data_loss or since.is_fresh)
        may_be_gone = None if is_lenient else since.topics
        view = looking.look(may_be_gone)
        lost = looking.losses(since.topics)
        for _ in range(tries if lost else 0):
            self.sleep(pause_s)
            view = looking.look(may_be_gone)
            lost = looking.losses(since.topics)
            if not lost:
                break
        if lost and self.options.fail_on_data_loss:
            raise data_loss(lost)
        return looking, view, lost

    def begins(self, since: Offsets, view: View, lost: list[Lost]) -> dict[Partition, Position]:
        """Where the next batch begins in each partition: where the last one ended, if that is still there."""
        resumed = {(each.topic, each.partition): each.resume for each in lost}
        begins: dict[Partition, Position] = {}
        for topic, partition in partitions_of(view):
            at = (topic, partition)
            known = since.position(topic, partition, view[topic].topic_id)
            resume = resumed.get(at)
            if resume is not None:
                begins[at] = resume
            elif known is not None:
                begins[at] = known
            else:
                first = view[topic].partitions[partition].log_start_offset
                begins[at] = Position(first)
                if first > 0:
                    what = f"Added partition {topic}-{partition} starts from {first} instead of 0"
                    lost.append(Lost(topic, partition, "late", what, begins[at]))
        return begins

    def ends(self, begins: Mapping[Partition, Position], view: View) -> dict[Partition, int]:
        """How far there is something, but no further than what there was when Trigger.AvailableNow began."""
        found = {}
        for at, begin in begins.items():
            topic, partition = at
            end = view[topic].partitions[partition].end_offset
            if self.target is not None:
                bound = self.target.position(topic, partition, view[topic].topic_id)
                end = min(end, bound.offset) if bound is not None else 0
            found[at] = max(begin.offset, end)
        return found

    def admitted(self, waiting: Mapping[Partition, int], limit: ReadLimit) -> dict[Partition, int]:
        """How many offsets of each partition this trigger takes."""
        total = sum(waiting.values())
        least = self.options.min_offsets_per_trigger
        if least is not None and self.target is None and not isinstance(limit, ReadAllAvailable):
            waited_ms = float("inf") if self.triggered_s is None else (self.clock() - self.triggered_s) * 1000
            if total < least and waited_ms < self.options.max_trigger_delay_ms:
                return {}
        if isinstance(limit, ReadMaxRows):
            return share(waiting, limit.max_rows)
        return dict(waiting)

    def notify(self, lost: list[Lost]) -> None:
        if lost and self.options.fail_on_data_loss:
            raise data_loss(lost)
        for each in lost:
            warn(each.what)

    # --- what a batch reads

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """From the two texts alone: after a restart they name the same records."""
        ranges = ranges_between(from_json(start), from_json(end))
        cut = split(ranges, self.options.min_partitions, self.options.max_records_per_partition)
        return [RangePartition(each) for each in cut]

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return self.reading.read(partition)

    def reportLatestOffset(self) -> Json | None:  # noqa: N802  # PySpark's name
        """The ends that the last trigger saw: less the end offset of a batch, that is the lag behind it."""
        return None if self.reported is None else to_json(self.reported)

    def commit(self, end: Json) -> None:
        """Nothing: Spark calls this a batch late, and never for the last one."""

    def stop(self) -> None:
        if self.looking is not None:
            self.looking.cluster.close()
            self.looking = None

    # --- the connection of this process

    def look_again(self) -> Looking:
        if self.looking is None:
            self.looking = Looking(Cluster(self.config), self.options, self.sleep)
        return self.looking


def positions(looking: Looking, offsets: Mapping[Partition, int]) -> Positions:
    found: dict[str, dict[int, Position]] = {topic: {} for topic in looking.view}
    for (topic, partition), offset in offsets.items():
        found[topic][partition] = looking.position(topic, partition, offset)
    return with_ids(found, looking.view)


def ends_of(view: View) -> Positions:
    """For people and as bounds: nothing is read from there on, so their epochs are not asked for."""
    return with_ids(
        {
            topic: {number: Position(seen.end_offset, seen.leader_epoch) for number, seen in row.partitions.items()}
            for topic, row in view.items()
        },
        view,
    )


def with_ids(tree: Mapping[str, dict[int, Position]], view: View) -> Positions:
    return {topic: TopicPositions(view[topic].topic_id, row) for topic, row in tree.items()}


def ranges_between(start: Offsets, end: Offsets) -> list[TopicRange]:
    ranges = []
    for topic, row in sorted(end.topics.items()):
        for partition, last in sorted(row.partitions.items()):
            begin = end.begin(topic, partition, row.topic_id) or start.position(topic, partition, row.topic_id)
            if begin is None:
                raise StrandlineError(
                    f"the checkpoint does not have the start of the batch in {topic}-{partition}",
                    "Its offsets were not written by this source: start the query with a new checkpointLocation.",
                )
            if last.offset < begin.offset:
                raise StrandlineError(
                    f"Partition {topic}-{partition}'s offset was changed from {begin.offset} to {last.offset}, "
                    "some data may have been missed",
                    "The checkpoint was changed by hand, or is another query's.",
                )
            ranges.append(
                TopicRange(
                    topic=topic,
                    topic_id=row.topic_id,
                    partition=partition,
                    start=begin.offset,
                    end=last.offset,
                    end_epoch=last.epoch,
                    start_epoch=begin.epoch,
                )
            )
    return ranges
