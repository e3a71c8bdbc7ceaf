"""What a compacted log may lack of what was committed, and what of it may be another.

The oracle knows each committed record, and nothing of how a cleaner goes about it:

- a record is missing only if a later one of its key is committed, or if it is a tombstone whose time is over, or has
  no key;
- a record of a transaction counts when the transaction is committed. One that was aborted may be missing, and takes the
  place of no other; one of an open transaction is there;
- what is there is what was committed, record by record, in the batches in which it was: their offsets, epochs and
  producers;
- a batch may be empty.
"""

from collections.abc import Iterator

from strandline.log.log import Log
from strandline.sim.laws.logs.truth import Truth
from strandline.wire.batch import BatchHeader, batches, read_header
from strandline.wire.control import EndTxnMarker, read_marker
from strandline.wire.record import Record, records


class Committed:
    """The truth of one partition, record by record; made where a log of it is compacted."""

    def __init__(self) -> None:
        self.batches = 0  # of the truth, that are known here
        self.headers: dict[int, BatchHeader] = {}  # by base offset
        self.records: dict[int, Record] = {}
        self.last: dict[bytes, int] = {}  # of each key, among those that count
        self.open: dict[int, dict[int, bytes | None]] = {}  # by producer id: keys, by offset
        self.decoded: dict[bytes, dict[int, Record]] = {}  # batches that were met in logs, by what they are

    def follow(self, truth: Truth) -> None:
        for at in range(self.batches, len(truth.bases)):
            start = truth.positions[at]
            end = truth.positions[at + 1] if at + 1 < len(truth.positions) else len(truth.content)
            batch = bytes(truth.content[start:end])
            header = read_header(batch)
            self.headers[header.base_offset] = header
            if header.is_control:
                self.end(header.producer_id, read_marker(batch))
                continue
            for record in records(header, batch):
                self.records[record.offset] = record
                if header.is_transactional:
                    self.open.setdefault(header.producer_id, {})[record.offset] = record.key
                elif record.key is not None:
                    self.last[record.key] = record.offset
        self.batches = len(truth.bases)

    def end(self, producer_id: int, marker: EndTxnMarker | None) -> None:
        """A transaction is decided."""
        if marker is not None:
            for offset, key in self.open.pop(producer_id, {}).items():
                if marker.commits and key is not None:
                    self.last[key] = max(offset, self.last.get(key, -1))

    def is_undecided(self, offset: int) -> bool:
        return any(offset in keys for keys in self.open.values())

    def differs(self, truth: Truth, log: Log, upto: int, elapsed_ms: int) -> str | None:
        """Compare a log with it from its start to `upto`; None if it may be like this."""
        self.follow(truth)
        end = min(log.log_end_offset, truth.end, upto)
        found: dict[int, Record] = {}
        for segment_header, batch in stored(log):
            if segment_header.base_offset >= end:
                break
            known = self.headers.get(segment_header.base_offset)
            if known is None:
                continue  # it begins in a hole of what is known
            if identity(known) != identity(segment_header):
                return f"the batch at {known.base_offset} is {identity(segment_header)}, committed is {identity(known)}"
            if not segment_header.is_control:
                found |= self.records_of(bytes(batch))
        for offset, record in self.records.items():
            if not log.log_start_offset <= offset < end:
                continue
            if offset in found:
                if found[offset] != record:
                    return f"at offset {offset} stands {found[offset]}, committed is {record}"
            elif self.is_undecided(offset):
                return f"the record at offset {offset} is gone, and its transaction is open"
            elif record.key is not None and self.last.get(record.key) == offset:
                if record.value is not None:
                    return f"the last record of {record.key!r}, at offset {offset}, is gone"
                if elapsed_ms < log.config.delete_retention_ms:
                    return f"the tombstone of {record.key!r}, at offset {offset}, is gone before its time"
        return None

    def records_of(self, batch: bytes) -> dict[int, Record]:
        """Every look at a log meets the same batches again."""
        known = self.decoded.get(batch)
        if known is None:
            known = {record.offset: record for record in records(read_header(batch), batch)}
            self.decoded[batch] = known
        return known


def identity(header: BatchHeader) -> tuple[int, ...]:
    """What no cleaner changes."""
    return (
        header.base_offset,
        header.last_offset_delta,
        header.partition_leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )


def stored(log: Log) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of the files: what is in memory may be older."""
    for segment in log.segments:
        for buffer, _ in segment.windows(0):
            for header in batches(buffer):
                yield header, buffer[header.position : header.end]
        log.segments.rest(segment)
