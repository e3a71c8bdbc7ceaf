"""What is fuzzed with bytes: each target takes an input, and raises if a promise is broken."""

from collections.abc import Callable
from struct import pack_into
from typing import Any

from tests.fuzz.drawing import Draw, message

from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Appended, Log
from strandline.log.recompress import CODEC_OF
from strandline.log.refusals import Refused
from strandline.server.network.framing import SIZE, Framed
from strandline.server.network.request_memory import RequestMemory
from strandline.sim.world.disk import SimDisk
from strandline.wire.api import API_BY_KEY, API_VERSIONS, APIS
from strandline.wire.batch import CRC_AT, HEADER_SIZE, build, crc_of, read_header, read_produced, scan
from strandline.wire.codec import decoder_of, encode_bytes
from strandline.wire.codec_plan import layout_of
from strandline.wire.compress import Codec, Corrupt, compress, decompress
from strandline.wire.frame import Request, Unsupported, decode_request, encode_request
from strandline.wire.primitive import Malformed
from strandline.wire.record import are_records, records, records_without_key, timestamps

FRAME_MAX = 1 << 16
PLAIN_MAX = 1 << 20
NOW = Instant(1_000_000)
PAIRS = [(cls, version) for api in APIS for cls in (api.request, api.response) for version in cls.versions]


# --- frames: a stream of bytes in pieces, headers, and whatever message they name


class Stream(Framed):
    def __init__(self) -> None:
        super().__init__(FRAME_MAX, RequestMemory())
        self.found: list[bytes] = []
        self.refused = False

    def frame_received(self, frame: memoryview) -> None:
        self.found.append(bytes(frame))

    def size_refused(self, size: int) -> None:
        assert not 0 <= size <= FRAME_MAX
        self.refused = True

    def feed(self, piece: bytes) -> None:
        while piece and not self.refused:
            room = self.get_buffer(-1)
            taken = piece[: len(room)]
            room[: len(taken)] = taken
            self.buffer_updated(len(taken))
            piece = piece[len(taken) :]


def frames(data: bytes) -> None:
    """However a stream is cut, its frames are the same; each is decoded, or `Malformed` or `Unsupported`."""
    draw = Draw(data)
    pieces = [1 + draw.byte() for _ in range(draw.below(6))]
    stream, rest = Stream(), draw.rest()
    left = rest
    for size in pieces:
        stream.feed(left[:size])
        left = left[size:]
    stream.feed(left)
    whole, at = [], 0
    while at + 4 <= len(rest):
        (size,) = SIZE.unpack_from(rest, at)
        if not 0 <= size <= FRAME_MAX or at + 4 + size > len(rest):
            break
        whole.append(rest[at + 4 : at + 4 + size])
        at += 4 + size
    assert stream.found == whole
    for frame in (*whole, rest):
        one_frame(frame)


def one_frame(frame: bytes) -> None:
    try:
        request = decode_request(memoryview(bytearray(frame)))
    except (Malformed, Unsupported):
        return
    written = framed(request)
    again = framed(decode_request(memoryview(written)[4:]))
    assert again == written, "what was read is written, and read as the same"


def framed(request: Request) -> bytes:
    return b"".join(encode_request(request.message, request.api_version, request.correlation_id, request.client_id))


# --- requests: bodies of every message in every version, as bytes and by their schema


def requests(data: bytes) -> None:
    """The first bytes choose the message; the others are its body, or values for its schema."""
    draw = Draw(data)
    cls, version = PAIRS[draw.number(2) % len(PAIRS)]
    if draw.chance(128):
        drawn = message(layout_of(cls, version), draw)
        try:
            body = encode_bytes(drawn, version)
        except Exception:
            if fits(drawn):
                raise
            return
        found, end = decoder_of(cls, version)(memoryview(body), 0)
        assert end == len(body)
        assert encode_bytes(found, version) == body
        body = bytearray(body)
        for _ in range(draw.below(4)):  # and then damaged
            if body:
                body[draw.number(2) % len(body)] = draw.byte()
        body = bytes(body)
    else:
        body = draw.rest()
    try:
        found, end = decoder_of(cls, version)(memoryview(body), 0)
    except Malformed:
        return
    assert end <= len(body)
    written = encode_bytes(found, version)
    again, end = decoder_of(cls, version)(memoryview(written), 0)
    # By their bytes: a quota that is not a number does not equal itself.
    assert encode_bytes(again, version) == written and end == len(written)


def fits(part: Any) -> bool:
    """Strings of versions that are not flexible have at most 32,767 bytes."""
    if isinstance(part, str):
        return len(part.encode()) <= 0x7FFF
    if isinstance(part, tuple):
        return all(map(fits, part))
    return all(fits(getattr(part, name)) for name in getattr(part, "__struct_fields__", ()))


# --- batches: codecs, records, and a log that takes what is produced

CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
CONFIGS = (
    LogConfig(),
    LogConfig(cleanup_policy=("compact",)),
    LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000),
    LogConfig(message_timestamp_type="LogAppendTime"),
    *(LogConfig(compression_type=name) for name in CODEC_OF if name != "producer"),
)


def batches(data: bytes) -> None:
    draw = Draw(data)
    match draw.below(3):
        case 0:
            codec = draw.one_of(CODECS)
            limit = draw.one_of((0, 100, 5_000, PLAIN_MAX))
            unpack(codec, draw.rest(), limit)
        case 1:
            produced(draw.one_of(CONFIGS), bytearray(draw.rest()), mends=draw.chance(200))
        case _:
            config = draw.one_of(CONFIGS)
            produced(config, drawn_batch(draw), mends=True)


def unpack(codec: Codec, packed: bytes, limit: int) -> None:
    try:
        plain = decompress(codec, packed, limit)
    except Corrupt:
        return
    assert len(plain) <= limit
    assert decompress(codec, compress(codec, plain), limit) == plain


def drawn_batch(draw: Draw) -> bytearray:
    """A batch as producers make them, and then some of its bytes changed: before it was compressed, or after."""
    rows: list[Any] = []
    for _ in range(draw.below(5)):
        key = None if draw.chance(50) else draw.some(6)
        value = None if draw.chance(50) else draw.some(30)
        headers = [(draw.some(3).decode(errors="replace"), draw.some(5)) for _ in range(draw.below(3))]
        rows.append((NOW + draw.byte() - 128, key, value, headers))
    if not rows:
        rows = [(NOW, b"k", b"v", ())]
    producer = (draw.byte(), draw.below(3), draw.byte()) if draw.chance(80) else (-1, -1, -1)
    codec = draw.one_of(CODECS)
    plain = bytearray(build(rows, producer_id=producer[0], producer_epoch=producer[1], base_sequence=producer[2]))
    body = plain[HEADER_SIZE:]
    change(draw, body)
    if draw.chance(30):
        body = body * draw.below(2000)
    packed = bytearray(compress(codec, bytes(body)) if codec else body)
    if draw.chance(100):
        change(draw, packed)
    head = plain[:HEADER_SIZE]
    head[22] = (head[22] & ~7) | codec
    change(draw, head)
    batch = head + packed
    pack_into(">i", batch, 8, len(batch) - 12)
    return batch


def change(draw: Draw, part: bytearray) -> None:
    for _ in range(draw.below(4)):
        if part:
            part[draw.number(2) % len(part)] = draw.byte()


def produced(config: LogConfig, batch: bytearray, *, mends: bool) -> None:
    """A log takes the batch or refuses it; then what was taken is read, searched, copied, and opened again."""
    if mends and len(batch) > HEADER_SIZE:
        batch[16] = 2
        pack_into(">i", batch, 8, len(batch) - 12)
        pack_into(">I", batch, CRC_AT, crc_of(read_header(batch), batch))
    look_into(bytes(batch))
    disk = SimDisk(("/d",))
    log = open_log(disk, config)
    done = log.append_as_leader(bytearray(batch), 0, NOW)
    log.check()
    if isinstance(done, Refused):
        assert log.log_end_offset == 0, "a refused append changes nothing"
        return
    assert isinstance(done, Appended)
    end = log.log_end_offset
    assert end == done.last_offset + 1
    read = log.read(0, 1 << 20, upto=end, min_one=True, is_checked=True)
    assert not isinstance(read, Refused)
    stored = b"".join(map(bytes, read.buffers))
    for timestamp in (0, NOW, done.log_append_time, (1 << 63) - 1):
        found = log.offset_for_timestamp(timestamp)
        within_int64(found)
    within_int64(log.offset_of_max_timestamp())
    copy = open_log(SimDisk(("/d",)), config)
    assert copy.append_as_follower(stored, 5, NOW) == end, "what a leader accepted, a follower takes"
    copy.check()
    log.close()
    again = open_log(disk, config, clean=False)
    again.check()
    assert again.log_end_offset == end


def within_int64(found: Any) -> None:
    if found is not None:
        assert -(1 << 63) <= getattr(found, "timestamp", 0) < 1 << 63, "an answer has 64 bits for it"
        assert 0 <= found.offset < 1 << 63


def open_log(disk: SimDisk, config: LogConfig, *, clean: bool = True) -> Log:
    return Log.open(
        disk,
        "/d/t-0",
        config,
        NOW,
        clean=clean,
        recovery_point=0,
        log_start_offset=0,
        high_watermark=0,
        tail_bytes=1 << 20,
    )


def look_into(batch: bytes) -> None:
    """Readers of records raise `Corrupt` and nothing else, and agree with each other."""
    scan(batch)
    header = read_produced(memoryview(batch), 1 << 20)
    if not hasattr(header, "codec"):
        return
    try:
        found = list(records(header, batch, PLAIN_MAX))
    except Corrupt:
        found = None
    stamps, keyless = timestamps(header, batch), records_without_key(header, batch)
    if found is None:
        return
    assert stamps is not None and len(stamps) == header.record_count
    if keyless is not None:
        assert keyless == tuple(at for at, record in enumerate(found) if record.key is None)
    plain = decompress(Codec(header.codec), batch[HEADER_SIZE:], PLAIN_MAX)
    assert are_records(plain, header.record_count)


TARGETS: dict[str, Callable[[bytes], None]] = {"frames": frames, "requests": requests, "batches": batches}

assert API_VERSIONS in API_BY_KEY
