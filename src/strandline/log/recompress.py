"""compression.type: the codec in which a topic stores its records, whatever the producer used.

Only the leader does this, before it gives the batch its offsets: followers copy what it wrote. It is done only where
the topic names a codec and the batch has another one. A batch of the right codec stays as it is, whatever its level
(KIP-390), and so does a control batch. No record is taken apart: they are decompressed and compressed as one piece.

Invariants:
  - the records are the same bytes before and after, and the header says of them what it said before; only its length,
    codec and CRC are new;
  - what decompresses to more than a bound is refused, whatever a topic allows.
"""

from strandline.base.errors import ErrorCode
from strandline.log.config import LogConfig
from strandline.log.refusals import Refused
from strandline.wire.batch import HEADER_SIZE, BatchHeader, repacked
from strandline.wire.compress import Codec, Corrupt, Oversized, compress
from strandline.wire.record import PRODUCED_SIZE_MAX, are_records, plain_records

# By compression.type. None: as the producer sent it.
CODEC_OF: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def recompressed(
    header: BatchHeader, buffer: memoryview, codec: Codec, config: LogConfig, where: str, *, size_max: int | None
) -> memoryview | Refused:
    """The batch with its records in `codec`, for the partition `where`. `size_max`: of the batch as it is stored.

    The CRC was right, so these are the bytes that the producer meant, and to send them again would not help: records
    that make no sense are refused as INVALID_RECORD and not as CORRUPT_MESSAGE, on which clients try again.
    """
    assert codec != header.codec and not header.is_control
    try:
        plain = plain_records(header, buffer, PRODUCED_SIZE_MAX)
    except Oversized as error:
        return Refused(ErrorCode.MESSAGE_TOO_LARGE, f"The records in the append to {where} cannot be stored: {error}.")
    except Corrupt as error:
        return Refused(ErrorCode.INVALID_RECORD, f"The records in the append to {where} cannot be read: {error}.")
    if not are_records(plain, header.record_count):
        return Refused(
            ErrorCode.INVALID_RECORD,
            f"The batch in the append to {where} does not have the {header.record_count} records that it says.",
        )
    packed = compress(codec, plain, level_of(codec, config))
    size = HEADER_SIZE + len(packed)
    if size_max is not None and size > size_max:
        return Refused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {where} "
            f"which exceeds the maximum configured size of {size_max}.",
        )
    return memoryview(repacked(header, buffer, codec, packed))


def level_of(codec: Codec, config: LogConfig) -> int | None:
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level
        case Codec.LZ4:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case Codec.NONE | Codec.SNAPPY:
            return None
