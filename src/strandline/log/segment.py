"""One segment: a file of batches, its two indexes, and the index of aborted transactions, if there are any.

Invariants:
  - batches lie one behind another; the file holds exactly `size` bytes of them
  - every offset in it is in [base_offset, next_offset)
"""

from collections.abc import Iterator, Sequence

from strandline.base.ports import Buffer, Cold, Disk, DiskError, File
from strandline.log.indexes.aborted import AbortedIndex
from strandline.log.indexes.sparse import OffsetIndex, TimeIndex
from strandline.log.tail import DELTA, DELTA_AT, STEP, cut
from strandline.wire.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    batches,
    read_header,
    why_invalid,
    why_no_batch,
)
from strandline.wire.control import EndTxnMarker, read_marker

WALK_BYTES = 1 << 20
SEEK_BYTES = 16 << 10
OFFSET_SPAN_MAX = (1 << 31) - 1


def file_name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def header_at(buffer: memoryview, at: int, room: int) -> BatchHeader | None:
    """The header there, if it is one that a batch could have. `room`: how many bytes of the file there are from there
    on."""
    if len(buffer) - at < HEADER_SIZE:
        return None
    header = read_header(buffer, at)
    if header.magic != MAGIC or not HEADER_SIZE <= header.batch_length + LOG_OVERHEAD <= room:
        return None
    return header


class Segment:
    def __init__(self, disk: Disk, directory: str, base_offset: int, interval_bytes: int, suffix: str = "") -> None:
        """`suffix`: of the names of all three files, for a segment that does not count yet."""
        assert base_offset >= 0
        self.disk = disk
        self.path = f"{directory}/{file_name(base_offset, '.log')}{suffix}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.interval_bytes = interval_bytes
        self.opened: File | None = None
        self.size = self.file.size()
        stem = f"{directory}/{file_name(base_offset, '')}"
        self.index = OffsetIndex(disk, f"{stem}.index{suffix}", base_offset)
        self.time_index = TimeIndex(disk, f"{stem}.timeindex{suffix}", base_offset)
        self.aborted = AbortedIndex(disk, f"{stem}.txnindex{suffix}")
        self.since_entry = 0  # bytes appended since the last index entry
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.first_append = -1  # when the first batch came, for rolling by time

    @property
    def file(self) -> File:
        """Opened when it is needed: a log keeps few of its segments open."""
        if self.opened is None:
            self.opened = self.disk.open(self.path)
        return self.opened

    def check(self) -> None:
        assert self.size >= 0 and self.base_offset <= self.next_offset
        self.index.check()
        self.time_index.check()
        self.aborted.check()
        assert not len(self.index.positions) or self.index.positions[-1] < self.size, "an entry points behind the file"
        assert not len(self.index.offsets) or self.base_offset + self.index.offsets[-1] < self.next_offset
        assert self.opened is None or self.opened.size() == self.size, "the file has something else than its batches"

    def release(self) -> None:
        """Close the file until somebody reads it again."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None

    # --- loading

    def load(self, *, next_base: int | None, gaps: bool) -> bool:
        """Trust the file: find its end and its largest timestamp, with the indexes' help or by rebuilding them. False
        if the file does not bear the trust: its batches do not follow one another up to its end."""
        assert next_base is None or next_base > self.base_offset
        assert self.next_offset == self.base_offset and not self.since_entry, "loaded once"
        sound = self.index.load(self.size) and self.time_index.load()
        if not sound or (len(self.index.positions) and self.time_index.latest is None):
            self.forget()
        elif next_base is not None and self.time_index.latest is not None:
            self.max_timestamp, self.max_timestamp_offset = self.time_index.latest
            self.next_offset = next_base
            return True
        if self.walk_on(gaps=gaps):
            return True
        self.forget()  # an index that is not right, or a file that is not
        return self.walk_on(gaps=gaps)

    def forget(self) -> None:
        """Empty the indexes: they are built again from the file."""
        self.index.clear()
        self.time_index.clear()
        assert self.index.position_of(self.base_offset) == 0 and self.time_index.latest is None
        self.next_offset = self.base_offset
        self.max_timestamp, self.max_timestamp_offset, self.since_entry = -1, self.base_offset, 0

    def walk_on(self, *, gaps: bool) -> bool:
        """From the last index entry to the end of the file, adding the entries that are missing. Do the batches begin
        where that entry says, and follow one another (but for `gaps` that a cleaner made) to the file's very end?"""
        self.max_timestamp, self.max_timestamp_offset = self.time_index.latest or (-1, self.base_offset)
        self.next_offset, self.since_entry = self.base_offset, 0
        indexed = self.index.positions[-1] if len(self.index.positions) else -1
        end = 0
        for header in self.headers(max(indexed, 0)):
            if header.last_offset < header.base_offset:
                return False
            if header.position == indexed:
                if header.last_offset - self.base_offset != self.index.offsets[-1]:
                    return False
                self.note(header.max_timestamp, header.last_offset)
                self.next_offset, self.since_entry = header.next_offset, header.size
            else:
                if not (header.base_offset == self.next_offset or (gaps and header.base_offset > self.next_offset)):
                    return False
                self.enter(header.position, header.size, header.last_offset, header.max_timestamp)
            end = header.end
        return end == self.size

    def recover(self, epoch: int, *, gaps: bool) -> Iterator[BatchHeader]:
        """Check every batch's CRC and place; cut the file at the first that is not right; rebuild the indexes.

        Base offset and epoch are not covered by the CRC: so unless a cleaner made `gaps`, each batch must begin where
        the one before it ended, and epochs never fall below `epoch`, that of the segment before.

        Yields the good headers, for the epochs that they prove.
        """
        self.forget()
        good = 0
        for buffer, start in self.windows(0):
            position = 0
            while why_no_batch(buffer, position) is None:
                header = read_header(buffer, position)
                gap = header.base_offset - self.next_offset
                if gap < 0 or (gap and not gaps) or header.partition_leader_epoch < epoch:
                    break
                if why_invalid(header, buffer) is not None:  # guard: recovery-keeps-torn-batches
                    break
                epoch = header.partition_leader_epoch
                self.enter(start + position, header.size, header.last_offset, header.max_timestamp)
                position = header.end
                good = start + position
                yield header
            else:
                continue
            if position < len(buffer):
                break
        assert good <= self.size
        if good < self.size:
            self.file.truncate(good)
            self.size = good

    def started(self, now: int) -> None:
        """Rolling by time goes on where it was, as far as the batches show."""
        assert self.first_append < 0, "nothing was appended yet"
        if self.size:
            self.first_append = self.max_timestamp if self.max_timestamp >= 0 else now

    # --- walking

    def window(self, position: int, step: int) -> memoryview:
        """The file from `position` on: `step` bytes of it, or a batch if that is more."""
        buffer = self.file.read(position, step)
        if why_no_batch(buffer, 0) is not None and len(buffer) >= HEADER_SIZE:
            wanted = read_header(buffer, 0).size
            if step < wanted <= self.size - position:
                return self.file.read(position, wanted)
        return buffer

    def windows(self, position: int, step: int = WALK_BYTES) -> Iterator[tuple[memoryview, int]]:
        """The file from `position` on, in pieces that begin with a batch and hold at least one if it is complete."""
        while position < self.size:
            buffer = self.window(position, step)
            at = 0
            while why_no_batch(buffer, at) is None:
                at += read_header(buffer, at).size
            yield buffer, position
            if at == 0:
                return
            position += at

    def headers(self, position: int, step: int = WALK_BYTES) -> Iterator[BatchHeader]:
        """Headers from `position` on; their positions are those in the file. Contents are not checked."""
        while position < self.size:
            header = None
            for header in batches(self.window(position, step), 0, position):
                yield header
            if header is None:
                return
            position = header.end

    def beside(self, offset: int) -> Iterator[BatchHeader]:
        """The last batch that ends before `offset`, and the one that holds it or comes next, as far as they are there.
        Only headers are wanted, so little is read."""
        before = None
        for header in self.headers(self.index.position_of(offset - 1), SEEK_BYTES):
            if header.last_offset >= offset:
                yield header
                break
            before = header
        if before is not None:
            yield before

    # --- appending

    def append(self, buffers: Sequence[Buffer], size: int, last_offset: int, max_timestamp: int) -> None:
        """Write whole batches that end at `last_offset`."""
        assert last_offset >= self.next_offset, "offsets grow"
        position = self.size
        written = self.file.append(buffers)
        assert written == size, "the index would point elsewhere"
        self.size = position
        self.enter(position, size, last_offset, max_timestamp)
        self.size = position + size

    def enter(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        self.note(max_timestamp, last_offset)
        if self.since_entry > self.interval_bytes:
            self.index.append(last_offset, position)
            if self.max_timestamp >= 0:
                self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self.since_entry = 0
        self.since_entry += size
        self.next_offset = last_offset + 1

    def note(self, timestamp: int, offset: int) -> None:
        if timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = timestamp, offset

    # --- reading

    def position_of(self, offset: int) -> int | None:
        """Where the batch that holds `offset`, or the next one after it, begins; None if there is none."""
        position = self.index.position_of(offset)
        while position < self.size:
            buffer = self.file.read(position, SEEK_BYTES)
            at = 0
            while len(buffer) - at >= HEADER_SIZE:
                base, length = STEP.unpack_from(buffer, at)
                if base + DELTA.unpack_from(buffer, at + DELTA_AT)[0] >= offset:
                    return position + at
                if length < 0:
                    return None  # the medium has rotted
                at += length + LOG_OVERHEAD
            position += at
            if at == 0:
                return None
        return None

    def cold_part(self, offset: int, max_bytes: int) -> Cold | None:
        """What a `read` from `offset` would wait for. The batch may begin anywhere between two entries of the index."""
        position, bound = self.index.position_of(offset), self.index.bound_of(offset)
        end = self.size if bound is None else min(bound + max(max_bytes, HEADER_SIZE), self.size)
        if position >= end or self.file.is_cached(position, end - position):  # as `cold_at`: this is the hot path
            return None
        return Cold(self.path, position, end - position)

    def cold_at(self, position: int, size: int) -> Cold | None:
        """So many bytes from there on, as far as the file has them; None if they are cached."""
        assert position >= 0
        size = min(size, self.size - position)
        if size <= 0 or self.file.is_cached(position, size):
            return None
        return Cold(self.path, position, size)

    def read(self, offset: int, max_bytes: int, upto: int, *, min_one: bool) -> memoryview:
        """Whole batches from the one that holds `offset`, below the offset `upto`."""
        position = self.position_of(offset)
        if position is None:
            return memoryview(b"")
        buffer = self.file.read(position, max(max_bytes, HEADER_SIZE))
        if len(buffer) >= HEADER_SIZE:
            first = read_header(buffer, 0).size
            if len(buffer) < first <= self.size - position and min_one:
                buffer = self.file.read(position, first)
        start, end, _ = cut(buffer, 0, offset, max_bytes, upto, min_one=min_one)
        found = buffer[start:end]
        # A slice keeps all that was read in memory, perhaps for long.
        return found if 2 * (end - start) >= len(buffer) else memoryview(bytes(found))

    def batch_at(self, position: int) -> tuple[BatchHeader, memoryview] | None:
        """The header and the bytes of what begins there; None if that has no header that a batch could have."""
        header = header_at(self.file.read(position, HEADER_SIZE), 0, self.size - position)
        if header is None:
            return None
        batch = self.file.read(position, header.size)
        return (header, batch) if len(batch) == header.size else None

    def marker_of(self, header: BatchHeader) -> EndTxnMarker | None:
        """What a control batch of this segment says; None if that is no end of a transaction, or damage."""
        found = self.batch_at(header.position)
        return None if found is None else read_marker(found[1])

    # --- changing

    def truncate_to(self, offset: int) -> bool:
        """Cut every batch that holds `offset` or a later one. Returns whether what is left ends before it: where a
        cleaner made a gap, the log ends in that. Raises DiskError if damage hides where to cut."""
        assert offset > self.base_offset, "or it would be deleted"
        position = self.position_of(offset)
        end = offset
        if position is not None and position < self.size:
            end = min(offset, read_header(self.file.read(position, HEADER_SIZE)).base_offset)
            self.file.truncate(position)
            self.size = position
            self.index.truncate(position)
            self.time_index.truncate(offset)
        is_whole = self.walk_on(gaps=True)
        if self.next_offset > offset or (position is None and not is_whole):
            raise DiskError(f"{self.path}: a batch before offset {offset} is damaged, and the log cannot be cut there")
        assert end <= offset
        ends_in_gap = self.next_offset < end
        self.next_offset = max(self.next_offset, end)
        if not self.size:
            self.first_append = -1
        return ends_in_gap

    # --- repairing

    def repair(self, position: int, patch: memoryview, *, gaps: bool, is_active: bool) -> None:
        """Write sound batches over damaged ones. A start may have built the indexes from what the damage says, and then
        they are built anew: a timestamp that is too large would keep the segment for ever. Where other damage ends the
        walk, that is left to its repair."""
        before = self.file.read(position, len(patch))
        self.file.write_at(position, patch)
        if indexed_of(before) == indexed_of(patch) or not self.is_whole(gaps=gaps):
            return
        if self.first_append == self.max_timestamp:
            self.first_append = -1
        next_offset = self.next_offset
        self.forget()
        walked = self.walk_on(gaps=gaps)
        assert walked and self.next_offset <= next_offset, "as before, but for what the damage said"
        self.next_offset = next_offset  # a cleaner may have left a gap there
        if self.first_append < 0:
            self.first_append = self.max_timestamp
        if is_active:
            self.flush_indexes()
        else:
            self.seal()

    def is_whole(self, *, gaps: bool) -> bool:
        """Do all batches follow one another?"""
        following, end = self.base_offset, 0
        for header in self.headers(0):
            if header.last_offset < header.base_offset or header.base_offset < following:
                return False
            if header.base_offset > following and not gaps:
                return False
            following, end = header.next_offset, header.end
        return end == self.size

    def seal(self) -> None:
        """No more appends: the time index ends with the largest timestamp, as Kafka's does."""
        if self.max_timestamp >= 0:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self.index.flush()
        self.time_index.flush()

    def flush_indexes(self) -> list[str]:
        """Write the indexes; their files that were changed since the segment was opened."""
        self.index.flush()
        self.time_index.flush()
        assert self.index.written == len(self.index.offsets) and self.time_index.written == len(self.time_index.offsets)
        return [index.path for index in (self.index, self.time_index) if index.is_changed]

    @property
    def paths(self) -> tuple[str, str, str]:
        return self.path, self.index.path, self.time_index.path

    def rename(self, old: str, new: str) -> None:
        """Give the files of a sealed segment another suffix; the records' comes last, and what it says counts."""
        assert all(path.endswith(old) for path in self.paths)
        self.release()
        for part in (self.aborted, self.index, self.time_index, self):
            path = part.path
            part.path = f"{path.removesuffix(old)}{new}"
            if part is not self.aborted or self.disk.exists(path):
                self.disk.rename(path, part.path)
            else:
                self.disk.remove(part.path)  # it is of records that this segment no longer has

    def took_place_of(self, last: "Segment") -> None:
        """It is the cleaned copy of segments of which `last` is the last: it ends where that ended."""
        assert self.base_offset <= last.base_offset
        assert self.next_offset <= last.next_offset
        self.next_offset = last.next_offset
        self.first_append = last.first_append

    def close(self) -> None:
        self.index.close()
        self.time_index.close()
        self.release()
        assert self.opened is None

    def delete(self) -> None:
        """Renamed first, so that a crash in the middle leaves nothing that looks like a segment."""
        self.close()
        for path in self.paths:
            assert not path.endswith(".deleted"), "it is deleted once"
            self.disk.rename(path, f"{path}.deleted")
        self.disk.remove(self.aborted.path)
        for path in self.paths:
            self.disk.remove(f"{path}.deleted")


def indexed_of(content: memoryview) -> list[tuple[int, int, int]]:
    """What indexes say of these batches: places, last offsets and largest timestamps."""
    return [(header.position, header.last_offset, header.max_timestamp) for header in batches(content)]
