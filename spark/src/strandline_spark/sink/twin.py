"""What the kernel does, in Python, from the project's own record writer: the oracle, and what runs without numba."""

from strandline.wire.batch import Draft, append_record
from strandline_spark.sink.layout import I32, I64, U8, Blobs, Rows, blob

DONE, FULL, TOO_LARGE, NAMELESS = range(4)
HEADER_SIZE = 61
MASK = 0xFFFF_FFFF
SEED, M = 0x9747B28C, 0x5BD1E995


def encode(
    rows: Rows,
    chosen: I64,
    at: int,
    out: U8,
    position: int,
    count: int,
    time_delta: int,
    limit: int,
    size_max: int,
) -> tuple[int, int, int, int]:
    """See `kernel.encode`."""
    view = memoryview(out)  # type: ignore[arg-type]  # a numpy array is a buffer
    room = min(len(out), size_max)
    while at < len(chosen):
        draft = draft_of(rows, int(chosen[at]), time_delta)
        if draft is None:
            return NAMELESS, at, position, count
        record = bytearray()
        append_record(record, count, 0, draft)
        end = position + len(record)
        if count and end > min(limit, room):
            return FULL, at, position, count
        if end > room:
            return TOO_LARGE, at, HEADER_SIZE + len(record), count
        view[position:end] = record
        position = end
        count += 1
        at += 1
    return DONE, at, position, count


def draft_of(rows: Rows, row: int, time_delta: int) -> Draft | None:
    """None: a header has no key."""
    headers: list[tuple[str, bytes | None]] = []
    if len(rows.headers.lists):
        for i in range(int(rows.headers.lists[row]), int(rows.headers.lists[row + 1])):
            name = blob(rows.headers.names, i)
            if name is None:
                return None
            headers.append((name.decode(), blob(rows.headers.contents, i)))
    return time_delta, blob(rows.keys, row), blob(rows.values, row), headers


def murmur2(key: bytes) -> int:
    """Kafka's hash of a key, as an unsigned number of 32 bits."""
    h = (SEED ^ len(key)) & MASK
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * M & MASK
        k = (k ^ k >> 24) * M & MASK
        h = h * M & MASK ^ k
    rest = key[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * M & MASK
    h = (h ^ h >> 13) * M & MASK
    return h ^ h >> 15


def targets(keys: Blobs, given: I32, has_given: U8, chosen: I64, partitions: int, ignores_keys: int, out: I32) -> int:
    """See `kernel.targets`."""
    for i, row in enumerate(chosen.tolist()):
        if len(given) and (not len(has_given) or has_given[row]):
            if not 0 <= given[row] < partitions:
                return int(row)
            out[i] = given[row]
            continue
        key = None if ignores_keys else blob(keys, row)
        out[i] = -1 if key is None else (murmur2(key) & 0x7FFF_FFFF) % partitions
    return -1
