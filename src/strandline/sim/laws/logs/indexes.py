"""What must hold of the indexes of a log: they say what a walk over its batches says.

- each entry of the offset index names the last offset of a batch, and where that batch begins
- each entry of the time index names the largest timestamp up to a batch, and the batch that first had it
- what is entered is as dense as `log.index.interval.bytes` asks for
"""

from strandline.log.log import Log
from strandline.log.segment import Segment


def check_indexes(who: str, log: Log) -> None:
    for segment in log.segments:
        why = why_not_right(segment)
        assert why is None, f"{who}: {segment.path}: {why}"


def why_not_right(segment: Segment) -> str | None:
    batches: dict[int, int] = {}  # position -> last offset
    firsts: dict[int, int] = {}  # timestamp -> the last offset of the batch that raised the maximum to it
    highest = -1
    sizes = [0]
    for header in segment.headers(0):
        batches[header.position] = header.last_offset
        sizes.append(header.size)
        if header.max_timestamp > highest:
            highest = header.max_timestamp
            firsts[highest] = header.last_offset
    index, base = segment.index, segment.base_offset
    for offset, position in zip(index.offsets, index.positions, strict=True):
        if batches.get(position) != base + offset:
            return (
                f"the index has offset {base + offset} at {position}, where a batch ends with {batches.get(position)}"
            )
    for timestamp, offset in zip(segment.time_index.timestamps, segment.time_index.offsets, strict=True):
        if firsts.get(timestamp) != base + offset:
            return f"the time index has {timestamp} at offset {base + offset}; first was {firsts.get(timestamp)}"
    last = 0
    for position in (*index.positions, segment.size):
        if position - last > segment.interval_bytes + 2 * max(sizes):
            return f"no index entry between {last} and {position}"
        last = position
    return None
