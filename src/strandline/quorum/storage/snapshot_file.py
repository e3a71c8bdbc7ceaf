"""The content of a metadata snapshot (KIP-630): a header, batches of records, a footer; all with the snapshot's epoch.

Invariant: what `why_incomplete` lets pass ends with a footer, every batch before it is whole, and it is the snapshot
that its name says, as far as it says itself which one it is. Kafka's say only the epoch.
"""

from collections.abc import Iterable, Iterator

from strandline.base.ports import Buffer
from strandline.base.time import Instant
from strandline.quorum.ports import SnapshotId
from strandline.wire.batch import Draft, Tail, batches, build, scan, why_invalid
from strandline.wire.compress import Corrupt
from strandline.wire.control import (
    Control,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    build_control,
    decode_control,
)
from strandline.wire.record import records as records_of

BATCH_BYTES = 1 << 20


NOT_SAID = -1


def encode_snapshot(records: Iterable[bytes], epoch: int, now: Instant, end_offset: int = NOT_SAID) -> bytes:
    assert epoch >= 0
    assert end_offset >= NOT_SAID
    out = bytearray()
    header = SnapshotHeaderRecord(last_contained_log_timestamp=now, end_offset=end_offset)
    out += build_control([header], timestamp=now, base_offset=0, leader_epoch=epoch)
    offset = 1
    for drafts in grouped(records, now):
        out += build(drafts, base_offset=offset, leader_epoch=epoch)
        offset += len(drafts)
    out += build_control([SnapshotFooterRecord()], timestamp=now, base_offset=offset, leader_epoch=epoch)
    return bytes(out)


def grouped(records: Iterable[bytes], now: Instant) -> Iterator[list[Draft]]:
    drafts: list[Draft] = []
    size = 0
    for record in records:
        drafts.append((now, None, record, ()))
        size += len(record)
        if size >= BATCH_BYTES:
            yield drafts
            drafts, size = [], 0
    if drafts:
        yield drafts


def snapshot_records(content: Buffer) -> Iterator[bytes]:
    """The payloads, without header and footer."""
    for header in batches(content):
        if not header.is_control:
            for record in records_of(header, content):
                yield b"" if record.value is None else bytes(record.value)


def why_incomplete(content: Buffer, named: SnapshotId | None = None) -> str | None:
    """Why is this no snapshot? None if it is a whole one, and the one with this name."""
    found = scan(content)
    if not found.headers or found.tail is not Tail.COMPLETE:
        return "the file does not end with a batch"
    if any(why_invalid(header, content) is not None for header in found.headers):
        return "a batch is damaged"
    first, last = found.headers[0], found.headers[-1]
    try:
        begins: list[Control | None] = (
            [decode_control(r) for r in records_of(first, content)] if first.is_control else []
        )
        ends: list[Control | None] = [decode_control(r) for r in records_of(last, content)] if last.is_control else []
    except Corrupt as error:
        return str(error)
    if not begins or not isinstance(begins[0], SnapshotHeaderRecord):
        return "it has no header"
    if not ends or not isinstance(ends[-1], SnapshotFooterRecord):
        return "it has no footer"
    if named is not None and begins[0].end_offset not in (NOT_SAID, named.end_offset):
        return f"it ends at {begins[0].end_offset}"
    if named is not None and first.partition_leader_epoch != named.epoch:
        return f"it is of epoch {first.partition_leader_epoch}"
    return None
