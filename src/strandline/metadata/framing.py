"""How a metadata record becomes the value of a record in the log: a frame version, the record's number and version
(unsigned varints), then the message.

Reading raises `Corrupt`, and nothing else. A record that this program does not know is corrupt too: a node may not
skip what the cluster has agreed on.
"""

from collections.abc import Sequence
from typing import Any

from strandline.base.ports import Buffer
from strandline.metadata.records import RECORDS
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.compress import Corrupt
from strandline.wire.schema import Message
from strandline.wire.varint import append_unsigned, read_unsigned

FRAME_VERSION = 1

BY_KEY: dict[int, type[Message]] = {cls.api_key: cls for cls in RECORDS}

assert len(BY_KEY) == len(RECORDS), "a number names one record"

WRITTEN: dict[type[Message], int] = {cls: cls.versions[-1] for cls in RECORDS}  # as at metadata.version 4.3


BATCH_BYTES_MAX = 8 * 1024 * 1024  # of records that are written at once: all of them are one batch of the log
ROW_BYTES_MAX = 40  # what a batch adds to a record
HEADER_BYTES_MAX = 100


def fits_in_batch(records: Sequence[Any]) -> bool:
    """May these records be written at once?"""
    if not records:
        return True
    return HEADER_BYTES_MAX + sum(len(encode_record(one)) + ROW_BYTES_MAX for one in records) <= BATCH_BYTES_MAX


def encode_record(record: Message, version: int | None = None) -> bytes:
    """`version` None: the one that metadata.version 4.3 writes."""
    written = WRITTEN[type(record)] if version is None else version
    assert written in record.versions, f"{type(record).__name__} has no version {written}"
    frame = bytearray()
    append_unsigned(frame, FRAME_VERSION)
    append_unsigned(frame, record.api_key)
    append_unsigned(frame, written)
    return bytes(frame + encode_bytes(record, written))


def decode_record(buffer: Buffer | None) -> Message:
    """The record in the value of a data record of the metadata log. Raises `Corrupt`."""
    if buffer is None:
        raise Corrupt("a metadata record is null")
    try:
        frame, position = read_unsigned(buffer, 0)
        key, position = read_unsigned(buffer, position)
        version, position = read_unsigned(buffer, position)
        if frame != FRAME_VERSION:
            raise Corrupt(f"metadata frame version {frame} is not known")
        cls = BY_KEY.get(key)
        if cls is None or version not in cls.versions:
            raise Corrupt(f"metadata record {key} version {version} is not known")
        record: Message = decode_all(cls, version, memoryview(buffer)[position:])
    except Corrupt:
        raise
    except ValueError as error:
        raise Corrupt(f"metadata record: {error}") from None
    return record
