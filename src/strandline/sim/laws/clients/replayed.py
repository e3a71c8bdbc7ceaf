"""What the records of one coordinator's log say, each with its offset: read from the log alone, and not by what the
coordinator remembers."""

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.log.reading import Read
from strandline.replica.hosting.hosted import Hosted
from strandline.sim.laws.clients.consumers import Consumers
from strandline.wire.batch import BatchHeader, batches
from strandline.wire.control import read_marker
from strandline.wire.messages.consumer_groups.records import CONSUMER_GROUP_RECORDS
from strandline.wire.messages.groups.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from strandline.wire.record import Record, records

READ_BYTES = 1 << 20
Key = tuple[str, str, int]  # group, topic, partition
Position = tuple[int, Uuid]  # what was committed, and of which topic
NOTHING: Position = (-1, ZERO_UUID)
Producer = tuple[int, int]  # id and epoch


class Replayed:
    """For one leader epoch. A position has the offset from which on it counts: that of its record, or of the marker
    that commits its transaction."""

    def __init__(self, epoch: int, removed: set[Key]) -> None:
        self.epoch = epoch
        self.removed = removed
        self.end = 0
        self.positions: dict[Key, list[tuple[int, Position]]] = {}
        self.counted: dict[Key, int] = {}  # the offset of the record that counts
        self.pending: dict[int, dict[Key, tuple[int, Position]]] = {}  # by producer id, in its open transaction
        self.ends: dict[Key, int] = {}  # the last marker of a transaction that had one of these
        self.written: dict[tuple[Key, Producer], list[tuple[int, int]]] = {}  # in transactions: where, and what
        self.groups: dict[str, list[tuple[int, GroupMetadataValue]]] = {}
        self.consumers: dict[str, Consumers] = {}  # groups of the consumer protocol
        self.acknowledged: dict[Key, int] = {}  # by key: where that is which was acknowledged last

    def read(self, hosted: Hosted) -> None:
        log = hosted.log
        self.end = max(self.end, log.log_start_offset)
        while self.end < log.log_end_offset:
            found = log.read(self.end, READ_BYTES, upto=log.log_end_offset, min_one=True)
            if not isinstance(found, Read) or not found.size:
                return
            for buffer in found.buffers:
                for header in batches(buffer):
                    self.take_batch(header, memoryview(buffer))
                    self.end = header.next_offset

    def take_batch(self, header: BatchHeader, buffer: memoryview) -> None:
        if header.is_control:
            marker = read_marker(buffer[header.position : header.end])
            if marker is not None:
                self.transaction_ends(header, commits=marker.commits)
            return
        for record in records(header, buffer):
            self.take(header, record)

    def take(self, header: BatchHeader, record: Record) -> None:
        key, offset = decode_key(record.key), record.offset
        match key, None if key is None else decode_value(key, record.value):
            case OffsetCommitKey(), OffsetCommitValue() as value:
                which = key.group, key.topic, key.partition
                position = value.offset, Uuid(value.topic_id)
                if header.is_transactional:
                    self.pending.setdefault(header.producer_id, {})[which] = offset, position
                    producer = header.producer_id, header.producer_epoch
                    self.written.setdefault((which, producer), []).append((offset, value.offset))
                else:
                    self.counts(which, offset, offset, position)
            case OffsetCommitKey(), None:
                self.is_removed((key.group, key.topic, key.partition), offset)
            case GroupMetadataKey(), GroupMetadataValue() as value:
                self.groups.setdefault(key.group, []).append((offset, value))
                group = self.consumers.setdefault(key.group, Consumers(key.group))
                group.is_classic(value, offset, header.base_offset)
            case GroupMetadataKey(), None:
                self.groups.pop(key.group, None)
            case _ if key is not None and type(key) in CONSUMER_GROUP_RECORDS and not header.is_transactional:
                group = self.consumers.setdefault(key.group, Consumers(key.group))
                group.take(key, decode_value(key, record.value), offset, header.max_timestamp)
                known = self.groups.get(key.group)
                assert not known or not known[-1][1].members, f"{key.group} is a classic group with members, too"

    def counts(self, key: Key, since: int, offset: int, position: Position) -> None:
        """The record at `offset`, from `since` on."""
        self.positions.setdefault(key, []).append((since, position))
        self.counted[key] = offset

    def is_removed(self, key: Key, offset: int) -> None:
        """Also what was pending."""
        known = self.groups.get(key[0])
        assert not known or not known[-1][1].members, (
            f"an offset of {key[0]} is removed, which has members: {known[-1][1]}"
        )
        group = self.consumers.get(key[0])
        assert group is None or not group.members(), f"an offset of {key[0]} is removed, which has {group.members()}"
        self.counts(key, offset, offset, NOTHING)
        self.removed.add(key)
        for rows in self.pending.values():
            rows.pop(key, None)

    def transaction_ends(self, header: BatchHeader, *, commits: bool) -> None:
        """Of what counts and what was pending that with the later record wins."""
        for key, (offset, position) in self.pending.pop(header.producer_id, {}).items():
            self.ends[key] = header.base_offset
            if commits and self.counted.get(key, -1) < offset:
                self.counts(key, header.base_offset, offset, position)

    def is_unstable(self, key: Key, committed: int) -> bool:
        """May an open transaction change it, of which a record is committed?"""
        open_at = [rows[key][0] for rows in self.pending.values() if key in rows]
        return any(offset < committed for offset in open_at) or self.ends.get(key, -1) >= committed

    def last_of(self, group: str, committed: int) -> GroupMetadataValue | None:
        """Its last generation whose record is committed."""
        known = [value for offset, value in self.groups.get(group, ()) if offset < committed]
        return known[-1] if known else None
