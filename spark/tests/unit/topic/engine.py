"""What Spark does with a stream reader, without Spark: offsets are logged before a batch, commits after it."""

import json
import pickle
from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit

from strandline_spark.topic.source import DefaultSource
from strandline_spark.topic.stream import TopicStreamReader

Row = tuple[int, int, int]  # partition, offset, value


class Query:
    """A query with its checkpoint. `crash` forgets all but that; `lose_commit` also how the last batch ended."""

    def __init__(self, options: dict[str, str], *, available_now: bool = False) -> None:
        self.options = {"startingOffsets": "earliest", **options}
        self.available_now = available_now
        self.offsets: list[str] = []
        self.commits = 0
        self.slept: list[float] = []
        self.start()

    def start(self) -> None:
        source = DefaultSource(options=self.options)
        self.source = pickle.loads(pickle.dumps(source))
        self.schema = source.schema()
        self.reader: TopicStreamReader = self.source.streamReader(schema=self.schema)
        self.reader.sleep = self.slept.append
        if self.available_now:
            self.reader.prepareForTriggerAvailableNow()
        self.limit: ReadLimit = self.reader.getDefaultReadLimit()

    def crash(self) -> None:
        self.reader.stop()
        self.start()

    def close(self) -> None:
        self.reader.stop()

    def lose_commit(self) -> None:
        self.commits -= 1
        self.crash()

    def trigger(self) -> list[Row] | None:
        """The rows of the next batch; None if there is none."""
        if self.commits == len(self.offsets) and not self.plan():
            return None
        rows = self.batch(self.commits)
        self.commits += 1
        return rows

    def plan(self) -> bool:
        """Log the end of a next batch, if there is one."""
        start = self.end_of(len(self.offsets) - 1)
        end = json.dumps(self.reader.latestOffset(start, self.limit))
        if end == json.dumps(start):
            return False
        self.offsets.append(end)
        return True

    def batch(self, number: int) -> list[Row]:
        start, end = self.end_of(number - 1), self.end_of(number)
        worker = pickle.loads(pickle.dumps(self.source.streamReader(schema=self.schema)))
        rows: list[Row] = []
        for partition in self.reader.partitions(start, end):
            for records in worker.read(pickle.loads(pickle.dumps(partition))):
                columns = (records.column(name).to_pylist() for name in ("partition", "offset", "value"))
                rows += [(one, offset, int(value)) for one, offset, value in zip(*columns, strict=True)]
        return rows

    def end_of(self, number: int) -> dict[str, Any]:
        if number >= 0:
            ended: dict[str, Any] = json.loads(self.offsets[number])
            return ended
        initial: dict[str, Any] = json.loads(json.dumps(self.reader.initialOffset()))
        return initial

    def everything(self) -> list[Row]:
        """Until nothing is left."""
        rows: list[Row] = []
        while (more := self.trigger()) is not None:
            rows += more
        return rows

    def values(self) -> list[int]:
        return [value for _, _, value in self.everything()]
