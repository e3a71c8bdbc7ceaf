"""Arrow batches into topics: which partition a row goes to, and when a batch leaves.

Rules, Kafka's default partitioner's:
  - a row with a partition goes there; one with a key where its murmur2 hash says, so that every client of Kafka agrees
  - rows without either go to one partition of the topic until a batch of it is full, then to another one
Rows of one partition keep their order.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import KafkaError, ProduceFailed, passes_by_itself
from strandline.client.patience import Patience
from strandline.client.producing import Produced, Producer
from strandline.client.two_phase import Begun
from strandline_spark.errors import BadRow
from strandline_spark.sink.batches import Growing, Where, encoders, splitter
from strandline_spark.sink.layout import I32, I64, NO_BYTES, U8, Rows, rows_of, valid_bytes

DONE, FULL, TOO_LARGE, NAMELESS = range(4)
OPEN_BYTES_MAX = 64 << 20  # of memory for batches that still grow, of all partitions
TOPIC_WAIT_MS = 10_000  # brokers may be creating it
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
NO_PARTITIONS: I32 = np.empty(0, np.int32)


class Reached(NamedTuple):
    """What one partition got. Offsets are −1 if the broker does not answer (acks=0)."""

    topic: str
    partition: int
    records: int
    first_offset: int
    last_offset: int


class Writing:
    """What one task writes. `write` each Arrow batch, then `finish`."""

    def __init__(
        self,
        cluster: Cluster,
        columns: list[str],
        topic: str | None,
        task: str = "",
        transaction: Begun | None = None,
    ) -> None:
        """`columns`: the names of the Arrow columns. `topic`: of all rows; None: the column says. `transaction`: all is
        written in it."""
        self.cluster = cluster
        self.config: ClientConfig = cluster.config
        self.columns = {name.lower(): at for at, name in enumerate(columns)}
        self.topic = topic
        self.task = task
        self.code = encoders()
        self.rows = 0
        self.growing: dict[tuple[str, int], Growing] = {}
        self.sticky: dict[str, int] = {}
        self.partitions: dict[str, int] = {}
        self.reached: dict[tuple[str, int], Reached] = {}
        self.producer = Producer(
            cluster,
            acknowledged=self.took,
            creates_topics=True,
            producer=None if transaction is None else transaction.producer,
            transactional_id=None if transaction is None else transaction.transactional_id,
            renews=transaction is None,
        )

    def __enter__(self) -> "Writing":
        return self

    def __exit__(self, *_: object) -> None:
        self.producer.close()

    # --- in

    def write(self, batch: pa.RecordBatch) -> None:
        """Raises `BadRow`, `KafkaError`."""
        if not batch.num_rows:
            return
        try:
            rows = rows_of(batch, self.columns)
            for topic, chosen in self.by_topic(batch):
                self.route(topic, chosen, rows, batch)
            self.rows += batch.num_rows
            if sum(growing.touched for growing in self.growing.values()) > OPEN_BYTES_MAX:
                self.seal_all()
                for growing in self.growing.values():
                    growing.release()
        except ProduceFailed as error:
            raise self.explained(error) from None

    def finish(self) -> list[Reached]:
        """Until the broker has everything. What each partition got. Raises `BadRow`, `KafkaError`."""
        try:
            self.seal_all()
            self.producer.flush()
        except ProduceFailed as error:
            raise self.explained(error) from None
        return [self.reached[at] for at in sorted(self.reached)]

    def by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, I64]]:
        if self.topic is not None:
            yield self.topic, np.arange(batch.num_rows, dtype=np.int64)
            return
        column = batch.column(self.columns["topic"])
        if column.null_count:
            row = int(np.argmin(valid_bytes(column)))
            raise BadRow(
                f"null topic present in the data. Use the topic option for setting a topic. ({self.place(row)})"
            )
        codes = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        for code, name in enumerate(codes.dictionary.to_pylist()):
            chosen = np.flatnonzero(numbers == code).astype(np.int64)
            if len(chosen):
                yield name, chosen

    # --- where to

    def route(self, topic: str, chosen: I64, rows: Rows, batch: pa.RecordBatch) -> None:
        count = self.partitions_of(topic)
        given, has_given = self.given(batch)
        to = np.empty(len(chosen), np.int32)
        bad = self.code.targets(rows.keys, given, has_given, chosen, count, int(self.config.ignores_keys), to)
        if bad >= 0:
            raise BadRow(
                f"Invalid partition given with record: {given[bad]} is not in the range [0...{count})"
                f" of topic {topic} ({self.place(int(bad))})"
            )
        order = np.argsort(to, kind="stable")
        edges = np.flatnonzero(np.diff(to[order])) + 1
        for part in np.split(order, edges):
            partition = int(to[part[0]])
            if partition >= 0:
                self.append(topic, partition, rows, chosen[part])
            else:
                self.append_anywhere(topic, count, rows, chosen[part])

    def given(self, batch: pa.RecordBatch) -> tuple[I32, U8]:
        if "partition" not in self.columns:
            return NO_PARTITIONS, NO_BYTES
        column = batch.column(self.columns["partition"])
        valid = valid_bytes(column)
        numbers: I32 = pc.fill_null(column, -1).to_numpy(zero_copy_only=False).astype(np.int32)
        return numbers, valid

    def partitions_of(self, topic: str) -> int:
        """How many there are; a missing topic is created if brokers do that."""
        found = self.partitions.get(topic)
        if found is None:
            patience = Patience(self.config, f"waiting for topic {topic}", TOPIC_WAIT_MS)
            while (why := self.why_not_there(topic)) is not None:
                try:
                    patience.pause(why.problem)
                except KafkaError:
                    raise why from None
            found = self.partitions[topic] = len(self.cluster.view(topic).partitions)
        return found

    def why_not_there(self, topic: str) -> KafkaError | None:
        """None: it is there. Raises what will not pass by itself."""
        try:
            if topic in self.cluster.refresh([topic], creates=True):
                return None
        except KafkaError as error:
            if not passes_by_itself(error):
                raise
            return error
        return KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic} does not exist, and the brokers do not create it",
            "create it first: strandline topics create, or any client of Kafka",
        )

    def append_anywhere(self, topic: str, count: int, rows: Rows, chosen: I64) -> None:
        at = 0
        while at < len(chosen):
            partition = self.sticky.get(topic, -1)
            if partition < 0:
                partition = self.sticky[topic] = self.another(topic, count)
            at = self.append_some(topic, partition, rows, chosen, at)
            if at < len(chosen):
                self.sticky.pop(topic)

    def another(self, topic: str, count: int) -> int:
        """A partition that has a leader, if one does."""
        view = self.cluster.view(topic).partitions
        led = [index for index, partition in view.items() if partition.leader >= 0]
        return random.choice(led) if led else random.randrange(count)

    # --- out

    def append(self, topic: str, partition: int, rows: Rows, chosen: I64) -> None:
        at = 0
        while at < len(chosen):
            at = self.append_some(topic, partition, rows, chosen, at)

    def append_some(self, topic: str, partition: int, rows: Rows, chosen: I64, at: int) -> int:
        """Rows from `at` on until the partition's batch is full, which then is sent; where it ended."""
        growing = self.growing.get((topic, partition))
        if growing is None:
            growing = self.growing[topic, partition] = Growing(self.config, self.code.encode)
        why, at, size = growing.append(rows, chosen, at, self.rows)
        if why == FULL:
            self.seal(topic, partition, growing)
        elif why == TOO_LARGE:
            raise BadRow(
                f"The message is {size} bytes when serialized which is larger than {self.config.max_request_size},"
                f" which is the value of the max.request.size configuration: {self.place(int(chosen[at]))}, to"
                f" {topic}-{partition}",
                "raise kafka.max.request.size, and max.message.bytes of the topic; or leave such rows out",
            )
        elif why == NAMELESS:
            raise BadRow(f"a header has no key: {self.place(int(chosen[at]))}, to {topic}-{partition}")
        return at

    def seal(self, topic: str, partition: int, growing: Growing) -> None:
        batch, where = growing.sealed()
        again = splitter(batch, where, growing.shrink)
        self.producer.send(topic, partition, batch, tag=where, split=again)

    def seal_all(self) -> None:
        for (topic, partition), growing in self.growing.items():
            if growing.count:
                self.seal(topic, partition, growing)

    def took(self, produced: Produced) -> None:
        at = (produced.topic, produced.partition)
        before = self.reached.get(at)
        first, last = produced.base_offset, produced.base_offset + produced.records - 1
        if produced.base_offset < 0:
            first = last = -1
        if before is not None:
            first = before.first_offset if before.first_offset >= 0 else first
            last = max(before.last_offset, last)
        count = produced.records + (before.records if before else 0)
        self.reached[at] = Reached(produced.topic, produced.partition, count, first, last)

    # --- words

    def place(self, row: int) -> str:
        """A row of the current Arrow batch."""
        return self.named(self.rows + row)

    def named(self, row: int) -> str:
        return f"row {row}{self.task}, counted from 0"

    def explained(self, error: ProduceFailed) -> ProduceFailed:
        """The same, with the rows that it is about."""
        where = error.tag
        if not isinstance(where, Where):
            return error
        rows = [where.row(delta) for delta in error.records] or (
            [where.row(0)] if error.count == 1 else [where.row(0), where.row(error.count - 1)]
        )
        if error.records or error.count == 1:
            numbers = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
            what = f"row {numbers}{self.task}, counted from 0"
        else:
            what = f"{error.count} rows from row {rows[0]} to {rows[-1]}{self.task}, counted from 0"
        advice = error.advice
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            advice = "raise max.message.bytes of the topic, or leave such rows out"
        elif self.producer.transactional_id is not None and error.code in FENCED:
            advice = (
                "the transaction was aborted: it was open for longer than kafka.transaction.timeout.ms, or the driver"
                " has gone on without this attempt. In the first case raise the timeout"
            )
        named_error = ProduceFailed(error.code, error.topic, error.partition, "")
        named_error.problem = f"{error.problem} ({what})"
        named_error.advice = advice
        named_error.args = (named_error.problem, advice)
        named_error.records, named_error.count, named_error.maybe_written = (
            error.records,
            error.count,
            error.maybe_written,
        )
        return named_error
