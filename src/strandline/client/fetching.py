"""Reading a partition: one fetch at a time, or fetch by fetch with the next one under way while a caller decodes.

What a caller gets is memory of the connection: nothing is copied between the socket and the decoder. It holds until
the next fetch.

Invariants:
  - records are whole batches; `next_offset` lies behind the last of them, or where the fetch began if there are none
  - bytes that are not a batch never count as a gap: brokers send the first batch whole, however few bytes may be sent
  - a topic is one topic: if its id is another one than the first fetch found, or than a caller expects, that is raised
  - each fetch says which leader epoch the record before it had, if that is known, so that a truncation between two
    fetches is noticed by the broker (KIP-320)
"""

import time
from collections.abc import Generator
from struct import Struct as Layout
from typing import NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, uuid_text
from strandline.client.connection import Connection
from strandline.client.errors import (
    CorruptRecords,
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    TimedOut,
    TopicIdChanged,
    UnknownTopic,
    refused,
)
from strandline.client.metadata import Metadata, TopicView
from strandline.client.offsets import list_offsets
from strandline.client.patience import Patience
from strandline.wire.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT
from strandline.wire.messages.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.wire.messages.records.list_offsets import EARLIEST, LATEST

TOPIC_IDS_SINCE = 13
OTHER_ID = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
UNKNOWN = -1
PREFERRED_MS = 60_000  # how long a closer replica is read before the leader is asked again
WAIT_SLACK_MS = 5_000
START = Layout(">qiib")  # of a batch: base offset, length, leader epoch, magic
LAST_OFFSET_DELTA = Layout(">i")
LAST_OFFSET_DELTA_AT = 23
NOTHING = memoryview(b"")


class Fetched(NamedTuple):
    """What one fetch brought. `records` are whole batches, the first of which may begin before the asked offset."""

    records: memoryview  # holds until the next fetch
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]  # (producer id, first offset); only for read_committed
    leader_epoch: int  # of the last batch; if there is none, what the caller said
    broker: int  # who answered
    throttled: bool = False  # the broker may have held records back

    def readable_end(self, isolation: int) -> int:
        return self.last_stable_offset if isolation and self.last_stable_offset >= 0 else self.high_watermark


class Asked(NamedTuple):
    """One fetch as it was sent."""

    connection: Connection
    broker: int
    view: TopicView
    offset: int
    leader_epoch: int


class Reader:
    """Fetches of one partition, one behind the other."""

    def __init__(
        self,
        cluster: Metadata,
        topic: str,
        partition: int,
        *,
        isolation: int,
        max_bytes: int,
        wait_ms: int,
        replica: int | None,
        topic_id: str | None,
    ) -> None:
        self.cluster = cluster
        self.topic = topic
        self.partition = partition
        self.isolation = isolation
        self.max_bytes = max_bytes
        self.wait_ms = wait_ms
        self.replica = replica
        self.topic_id = topic_id  # of the topic that is read; None until the first fetch
        self.waits = True  # for records, if there are none
        self.preferred: tuple[int, float] | None = None  # a closer replica, and until when it is read
        self.stays = False  # with the leader, since a closer replica did not have what was asked for

    # --- asking

    def source(self) -> int:
        """The broker to fetch from."""
        if self.replica is not None:
            return self.replica
        if self.preferred is not None and time.monotonic() < self.preferred[1]:
            return self.preferred[0]
        self.preferred = None
        return self.cluster.leader_of(self.topic, self.partition)

    def pinned(self) -> TopicView:
        """The topic, which must be the one that was read before."""
        view = self.cluster.partition(self.topic, self.partition)[0]
        if self.is_other(view):
            view = self.cluster.view(self.topic, fresh=True)  # what is known may be old
        if self.topic_id and self.is_other(view):
            raise TopicIdChanged(self.topic, self.topic_id, view.topic_id)
        self.topic_id = self.topic_id or view.topic_id
        return view

    def is_other(self, view: TopicView) -> bool:
        return bool(self.topic_id and view.topic_id) and view.topic_id != self.topic_id

    def ask(self, offset: int, leader_epoch: int, leased: Connection | None = None) -> Asked:
        """Send one fetch. `leased` is gone on with if it leads to the right broker, else given back."""
        connection = leased
        try:
            view = self.pinned()
            broker = self.source()
            if connection is not None and (connection.host, connection.port) != self.cluster.address_of(broker):
                self.cluster.release(connection)
                connection = None
            connection = connection or self.cluster.lease(broker)
            version = connection.version_of(FetchRequest)
            by_id = version >= TOPIC_IDS_SINCE and view.topic_id != ""
            if not by_id:
                version = min(version, TOPIC_IDS_SINCE - 1)
            connection.send(self.request(view, by_id, offset, leader_epoch), version)
        except BaseException:
            if connection is not None:
                self.cluster.release(connection)
            raise
        return Asked(connection, broker, view, offset, leader_epoch)

    def request(self, view: TopicView, by_id: bool, offset: int, leader_epoch: int) -> FetchRequest:
        row = FetchPartition(
            partition=self.partition,
            current_leader_epoch=view.partitions[self.partition].leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=leader_epoch,
            partition_max_bytes=self.max_bytes,
        )
        topic = FetchTopic(topic=self.topic, topic_id=view.raw_id if by_id else ZERO_UUID, partitions=(row,))
        config = self.cluster.config
        return FetchRequest(
            max_wait_ms=self.wait_ms if self.waits else 0,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max(config.fetch_max_bytes, self.max_bytes),
            isolation_level=self.isolation,
            topics=(topic,),
            rack_id="" if self.stays or self.replica is not None else config.client_rack,
        )

    # --- answers

    def answer(self, asked: Asked) -> Fetched | None:
        """What a fetch brought; None if another broker is to be asked. Raises `KafkaError`."""
        config = self.cluster.config
        response = asked.connection.receive(config.request_timeout_ms + self.wait_ms + WAIT_SLACK_MS)
        assert isinstance(response, FetchResponse)
        where = f"{self.topic}-{self.partition} at offset {asked.offset}"
        row = self.row_in(response, asked, where)
        if self.is_out_of_a_closer_ones_range(row, asked):
            self.preferred, self.stays = None, True
            return None
        if row.error_code:
            self.preferred = None
            raise self.refusal(row, asked, where)
        if row.diverging_epoch.end_offset >= 0:
            raise LogTruncated(
                self.topic,
                self.partition,
                asked.offset,
                asked.leader_epoch,
                row.diverging_epoch.epoch,
                row.diverging_epoch.end_offset,
            )
        if row.preferred_read_replica >= 0 and self.replica is None:
            self.preferred = (row.preferred_read_replica, time.monotonic() + PREFERRED_MS / 1000)
            return None
        return self.fetched(row, asked, response.throttle_time_ms > 0)

    def row_in(self, response: FetchResponse, asked: Asked, where: str) -> PartitionData:
        """The only one that was asked for."""
        if response.error_code:
            raise refused(response.error_code, f"cannot fetch {where}")
        rows = [row for topic in response.responses for row in topic.partitions]
        if len(rows) != 1 or rows[0].partition_index != self.partition:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"{asked.connection} answers {where} with other partitions"
            )
        return rows[0]

    def fetched(self, row: PartitionData, asked: Asked, is_throttled: bool) -> Fetched:
        """Its whole batches. Raises `CorruptRecords` if it begins with none."""
        records = NOTHING if row.records is None else memoryview(row.records)  # type: ignore[arg-type]  # mypy knows our Buffer for none
        size, next_offset, epoch = whole_batches(records)
        if not size and len(records):
            raise CorruptRecords(
                self.topic,
                self.partition,
                asked.offset,
                asked.broker,
                is_old=len(records) > MAGIC_AT and records[MAGIC_AT] < MAGIC,
                size=len(records),
                log_start_offset=row.log_start_offset,
                high_watermark=row.high_watermark,
            )
        return Fetched(
            records[:size],
            max(next_offset, asked.offset),
            row.high_watermark,
            row.last_stable_offset,
            row.log_start_offset,
            tuple((t.producer_id, t.first_offset) for t in row.aborted_transactions or ()),
            asked.leader_epoch if epoch is None else epoch,
            asked.broker,
            is_throttled,
        )

    def is_out_of_a_closer_ones_range(self, row: PartitionData, asked: Asked) -> bool:
        """A replica that only follows may lag behind: what is lost, the leader alone knows (KIP-392)."""
        if self.replica is not None or asked.broker == asked.view.partitions[self.partition].leader:
            return False
        return row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE or row.diverging_epoch.end_offset >= 0

    def refusal(self, row: PartitionData, asked: Asked, where: str) -> KafkaError:
        match row.error_code:
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                return self.out_of_range(row, asked)
            case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return UnknownTopic(self.topic, self.partition)
            case _ if row.error_code in OTHER_ID:
                return self.other_id(asked)
            case _:
                return refused(row.error_code, f"cannot fetch {where}")

    def out_of_range(self, row: PartitionData, asked: Asked) -> KafkaError:
        """Kafka's own brokers do not say with this refusal what their log has."""
        start, end = row.log_start_offset, row.high_watermark
        if start < 0:
            at = (self.topic, self.partition)
            try:
                start, end = (
                    list_offsets(self.cluster, {at: edge}, 0, self.replica)[at].offset for edge in (EARLIEST, LATEST)
                )
            except KafkaError as error:
                return error
        return OffsetOutOfRange(self.topic, self.partition, asked.offset, start, end)

    def other_id(self, asked: Asked) -> KafkaError:
        """The broker has no topic of this id: it is deleted, created anew, or not yet known there."""
        found = self.cluster.topics([self.topic]).get(self.topic)
        if found is None:
            return UnknownTopic(self.topic)
        if found.topic_id != asked.view.topic_id:
            return TopicIdChanged(self.topic, uuid_text(asked.view.raw_id), found.topic_id)
        return refused(ErrorCode.UNKNOWN_TOPIC_ID, f"cannot fetch {self.topic}-{self.partition}")

    # --- one behind the other

    def fetch(
        self, offset: int, leader_epoch: int, patience: Patience, ahead: Asked | None = None
    ) -> tuple[Fetched, Connection]:
        """One fetch, tried again until it succeeds. `ahead` was sent before. Returns the connection too, which the
        caller releases when the records are no longer needed."""
        kept: Connection | None = None
        while True:
            asked: Asked | None = None
            try:
                leased, kept = kept, None
                asked, ahead = ahead or self.ask(offset, leader_epoch, leased), None
                fetched = self.answer(asked)
                if fetched is not None:
                    return fetched, asked.connection
                kept = asked.connection
            except KafkaError as error:
                ahead = None
                if asked is not None:
                    self.cluster.release(asked.connection)
                self.preferred = None
                self.cluster.raise_or_wait(patience, error, [self.topic])
            except BaseException:
                if asked is not None:
                    asked.connection.close()
                raise

    def read(self, start: int, end: int, leader_epoch: int, patience_ms: int) -> Generator[Fetched, None, None]:
        """See `Cluster.read`."""
        patience = Patience(self.cluster.config, f"reading {self.topic}-{self.partition}", patience_ms)
        offset, ahead = start, None
        connection: Connection | None = None
        try:
            while offset < end:
                sent, ahead, connection = ahead, None, None
                fetched, connection = self.fetch(offset, leader_epoch, patience, sent)
                if fetched.next_offset == offset:
                    self.cluster.release(connection)
                    connection = None
                    bound = fetched.readable_end(self.isolation)
                    if bound <= offset or fetched.throttled or not self.is_gap(offset, bound, patience):
                        if patience.left_ms <= 0:
                            raise self.starved(offset, end, fetched, patience)
                        continue
                    fetched = fetched._replace(next_offset=min(end, bound))
                offset, leader_epoch = fetched.next_offset, fetched.leader_epoch
                if offset < end:
                    try:
                        ahead = self.ask(offset, leader_epoch, connection)
                        connection = ahead.connection
                    except KafkaError:
                        ahead = connection = None  # the next fetch asks again, and says why if it cannot
                yield fetched
                patience.renew()  # what the caller took for it is not the cluster's
        finally:
            if ahead is not None:
                ahead.connection.close()
            elif connection is not None:
                self.cluster.release(connection)

    def is_gap(self, offset: int, bound: int, patience: Patience) -> bool:
        """A fetch at `offset` has found nothing, though `bound` may be read up to. Has a cleaner taken all between?
        A broker that only holds records back (it throttles, or waits for remote storage) has those at the end."""
        self.waits = False  # what is below the bound is there at once, or not at all
        try:
            return self.is_nothing_at(offset, patience) and self.is_nothing_at(bound - 1, patience)
        finally:
            self.waits = True

    def is_nothing_at(self, offset: int, patience: Patience) -> bool:
        try:
            fetched, connection = self.fetch(offset, UNKNOWN, patience)
        except CorruptRecords:
            return False
        self.cluster.release(connection)
        return fetched.next_offset == offset and not fetched.throttled

    def starved(self, offset: int, end: int, fetched: Fetched, patience: Patience) -> TimedOut:
        return TimedOut(
            f"Cannot fetch record for offset {offset} of {self.topic}-{self.partition} in {patience.limit_ms}"
            f" milliseconds: {end} is to be read up to, but the high watermark is {fetched.high_watermark}",
        )


def whole_batches(records: memoryview) -> tuple[int, int, int | None]:
    """How many bytes are whole batches of format 2, the offset behind them, and the last one's leader epoch (None: no
    batch)."""
    position, last, size = 0, -1, len(records)
    unpack = START.unpack_from
    while size - position >= HEADER_SIZE:
        _, length, _, magic = unpack(records, position)
        if length < HEADER_SIZE - LOG_OVERHEAD or position + LOG_OVERHEAD + length > size or magic != MAGIC:
            break
        last, position = position, position + LOG_OVERHEAD + length
    if last < 0:
        return 0, -1, None
    base, _, epoch, _ = unpack(records, last)
    return position, base + LAST_OFFSET_DELTA.unpack_from(records, last + LAST_OFFSET_DELTA_AT)[0] + 1, epoch
