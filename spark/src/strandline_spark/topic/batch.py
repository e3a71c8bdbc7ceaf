"""A topic as a DataFrame: which offsets a query reads, narrowed by its filters.

Invariants:
  - two actions on one DataFrame read the same records: ends that are not named offsets are those of the time of `load`,
    if the topics were there
  - a filter is taken over only where offsets answer it exactly; any other is left to Spark
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline_spark.topic.filters import Narrowed, narrow
from strandline_spark.topic.looking import Looking, Partition, Resolved, flat, partitions_of
from strandline_spark.topic.offsets import Lost, data_loss
from strandline_spark.topic.options import AtOffsets, Edge, TopicOptions, batch_options
from strandline_spark.topic.planning import TopicRange, split
from strandline_spark.topic.reading import RangePartition, Reading, warn

if TYPE_CHECKING:
    import pyarrow

# Topic ids, and where a query ends by what there was at the time of `load`.
Snapshot = Mapping[str, tuple[str, Mapping[int, int]]]


def snapshot(given: Mapping[str, str]) -> Snapshot | None:
    """The ends that a DataFrame reads to; None where the options name all of them."""
    options = batch_options(given)
    if isinstance(options.ending, AtOffsets) and named_ends(options.ending) == flat(options.ending.offsets):
        return None
    with Cluster(ClientConfig.of(given)) as cluster:
        looking = Looking(cluster, options)
        view = looking.look()
        ends = looking.resolve(options.ending, "ending").offsets
    return {
        topic: (row.topic_id, {number: ends[topic, number] for number in row.partitions}) for topic, row in view.items()
    }


def named_ends(ending: Edge) -> dict[Partition, int]:
    """Where the query ends at an offset that its options name, wherever the log does."""
    if not isinstance(ending, AtOffsets):
        return {}
    return {at: offset for at, offset in flat(ending.offsets).items() if offset >= 0}


class Pushing:
    """`pushFilters` of one reader.

    Spark refuses a reader with a `pushFilters` of its own while spark.sql.python.filterPushdown.enabled is false, which
    is its default. It decides by `__func__`; so this one looks inherited, and is called only where that is true.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: "TopicReader") -> None:
        self.reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self.reader.narrowed, left = narrow(filters)
        return left


class TopicReader(DataSourceReader):
    def __init__(self, given: Mapping[str, str], schema: "pyarrow.Schema", ends: Snapshot | None) -> None:
        self.options: TopicOptions = batch_options(given)
        self.config = ClientConfig.of(given)
        self.reading = Reading.of(self.config, self.options, schema)
        self.ends = ends
        self.narrowed = Narrowed()

    @property
    def pushFilters(self) -> Pushing:  # noqa: N802  # see Pushing
        return Pushing(self)

    def partitions(self) -> list[InputPartition]:
        """Raises DataLoss where starting offsets are gone, and BadOption where options and cluster do not agree."""
        with Cluster(self.config) as cluster:
            ranges = self.ranges(Looking(cluster, self.options))
        cut = split(ranges, self.options.min_partitions, self.options.max_records_per_partition)
        return [RangePartition(each) for each in cut]

    def ranges(self, looking: Looking) -> list[TopicRange]:
        view = looking.look()
        starts = looking.resolve(self.options.starting, "starting")
        named = named_ends(self.options.ending)
        ends = looking.resolve(self.options.ending, "ending") if named or self.ends is None else Resolved({}, [])
        self.notify([*starts.lost, *ends.lost])
        wanted = []
        for topic, partition in partitions_of(view):
            at = (topic, partition)
            topic_id = view[topic].topic_id
            end = ends.offsets[at] if self.ends is None or at in named else self.end_at_load(at, topic_id)
            if self.narrowed.takes(topic, partition):
                start, end = self.narrowed.offsets(starts.offsets[at], end)
                wanted.append(TopicRange(topic, topic_id, partition, start, end))
        wanted = [each for each in self.not_older(looking, wanted) if each.size > 0]
        return [
            replace(each, end_epoch=looking.position(each.topic, each.partition, each.end).epoch) for each in wanted
        ]

    def end_at_load(self, at: Partition, topic_id: str) -> int:
        """A partition that came later is not read, and a topic that was created anew is another one."""
        assert self.ends is not None
        topic, partition = at
        known_id, ends = self.ends.get(topic, (topic_id, {}))
        if known_id != topic_id:
            what = f"topic {topic} was deleted and created anew since load(): its id was {known_id} and is {topic_id}"
            self.notify([Lost(topic, partition, "recreated", what, None)])
            return 0
        return ends.get(partition, 0)

    def not_older(self, looking: Looking, ranges: list[TopicRange]) -> list[TopicRange]:
        """Without the records before the first one that is as late as the query asks for."""
        since = self.narrowed.since_ms
        if since is None:
            return ranges
        ranges = [each for each in ranges if each.size > 0]
        found = looking.cluster.list_offsets({(each.topic, each.partition): since for each in ranges})
        firsts = [found[each.topic, each.partition].offset for each in ranges]
        return [
            replace(each, start=each.end if first < 0 else max(each.start, first))
            for each, first in zip(ranges, firsts, strict=True)
        ]

    def notify(self, lost: list[Lost]) -> None:
        if lost and self.options.fail_on_data_loss:
            raise data_loss(lost)
        for each in lost:
            warn(each.what)

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        """Record batches of exactly the reader's schema."""
        return self.reading.read(partition)
