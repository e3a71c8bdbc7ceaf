"""A cluster as a client uses it: offsets, records, groups, on top of its metadata.

Blocking, for one thread: Spark's workers and planners have each their own. A `Cluster` is opened from a `ClientConfig`,
which travels between processes; it does not.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from strandline.client import groups
from strandline.client.fetching import Fetched, Reader
from strandline.client.groups import Committed
from strandline.client.metadata import Broker, Metadata, Partition, PartitionView, TopicView
from strandline.client.offsets import Found, epoch_end, list_offsets
from strandline.client.patience import Patience
from strandline.client.producing import Produced, Producer, init_producer_id
from strandline.wire.messages.records.list_offsets import EARLIEST, LATEST

__all__ = ["EARLIEST", "LATEST", "Broker", "Cluster", "PartitionView", "TopicView"]


class Cluster(Metadata):
    """`with Cluster(ClientConfig.of(options)) as cluster: …`."""

    # --- offsets and records

    def list_offsets(
        self,
        asked: Mapping[Partition, int],
        isolation: int | None = None,
        *,
        replica: int | None = None,
        patience_ms: int | None = None,
    ) -> dict[Partition, Found]:
        """Where each partition's log begins (EARLIEST), where it may be read up to (LATEST), or the first record that
        is as late as a timestamp in ms. `isolation` (default: the configured one) 1 is read_committed.

        With `replica`, that broker's own replica is asked, up to its log end, which may lie above the high watermark.
        Raises `UnknownTopic`, `KafkaError`, `TimedOut`."""
        level = self.config.isolation_level if isolation is None else isolation
        return list_offsets(self, asked, level, replica, patience_ms)

    def epoch_end(self, topic: str, partition: int, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset): the largest epoch up to `leader_epoch` that the leader's log has, and where it ends.
        (−1, −1): the log has none. An end below an offset that was read in `leader_epoch` is a truncation."""
        return epoch_end(self, topic, partition, leader_epoch)

    def reader(
        self,
        topic: str,
        partition: int,
        *,
        max_bytes: int | None = None,
        wait_ms: int | None = None,
        isolation: int | None = None,
        replica: int | None = None,
        topic_id: str | None = None,
    ) -> Reader:
        """Fetches of one partition. `replica`: from that broker's replica, up to its high watermark. `topic_id`: what
        the topic's id must be; without it, it may not change while it is read. Defaults are the configuration's."""
        config = self.config
        return Reader(
            self,
            topic,
            partition,
            isolation=config.isolation_level if isolation is None else isolation,
            max_bytes=config.max_partition_fetch_bytes if max_bytes is None else max_bytes,
            wait_ms=config.fetch_max_wait_ms if wait_ms is None else wait_ms,
            replica=replica,
            topic_id=topic_id,
        )

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        leader_epoch: int = -1,
        patience_ms: int | None = None,
        **how: Any,
    ) -> Fetched:
        """One fetch: whole batches from `offset` on, or none if there are none within `wait_ms`. `leader_epoch`: of the
        record before `offset`, −1 if not known. `how`: as for `reader`. Its records hold until the next fetch.

        Raises `OffsetOutOfRange`, `LogTruncated`, `TopicIdChanged`, `UnknownTopic`, `TimedOut`, `KafkaError`."""
        patience = Patience(self.config, f"fetching {topic}-{partition} at offset {offset}", patience_ms)
        fetched, connection = self.reader(topic, partition, **how).fetch(offset, leader_epoch, patience)
        self.release(connection)
        return fetched

    def read(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        leader_epoch: int = -1,
        patience_ms: int | None = None,
        **how: Any,
    ) -> Generator[Fetched, None, None]:
        """All batches with offsets from `start` to below `end`, fetch by fetch, the next one under way while the
        caller looks at one. Batches may reach over both edges. Offsets that a cleaner has taken are passed over.

        Each `Fetched` holds until the next one is asked for. Raises as `fetch` does, and `TimedOut` if for
        `patience_ms` (default: default.api.timeout.ms) no record comes though `end` is not reached."""
        limit_ms = self.config.default_api_timeout_ms if patience_ms is None else patience_ms
        return self.reader(topic, partition, **how).read(start, end, leader_epoch, limit_ms)

    # --- writing

    def produce(
        self, topic: str, partition: int, batch: bytes, *, acks: int = -1, timeout_ms: int | None = None
    ) -> Produced:
        """Write one batch as it is (its base offset 0), and wait. Tried again until delivery.timeout.ms is over: a
        batch without producer id and sequence may then be written twice. For many batches: `Producer`.

        Raises `ProduceFailed`, `UnknownTopic`, `KafkaError`."""
        taken: list[Produced] = []
        with Producer(self, acknowledged=taken.append, stamps=False, acks=acks, timeout_ms=timeout_ms) as producer:
            producer.send(topic, partition, bytearray(batch))
            producer.flush()
        return taken[0]

    def init_producer_id(self) -> tuple[int, int]:
        """A producer id that nobody had before, and its epoch."""
        return init_producer_id(self)

    # --- groups

    def offset_commit(
        self, group: str, offsets: Mapping[Partition, int | Committed], *, patience_ms: int | None = None
    ) -> None:
        """Commit for a group without members. Raises `KafkaError` (UNKNOWN_MEMBER_ID if it has some), `TimedOut`."""
        groups.offset_commit(self, group, offsets, patience_ms)

    def offset_fetch(
        self, group: str, asked: Sequence[Partition] | None = None, *, patience_ms: int | None = None
    ) -> dict[Partition, Committed]:
        """What the group has committed, for all partitions or those asked for; nothing where it has committed none."""
        return groups.offset_fetch(self, group, asked, patience_ms)
