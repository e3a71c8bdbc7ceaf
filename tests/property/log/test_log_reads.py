"""Reads, indexes, epochs and cuts, each beside a naive oracle."""

from bisect import bisect_right
from contextlib import ExitStack
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.logs import NOW, append, content, open_log, produced, ranges, small

from strandline.base.errors import ErrorCode
from strandline.log import segment as of_segments
from strandline.log import timestamps
from strandline.log.epochs import Epochs, EpochStart
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.log.timestamps import Found
from strandline.sim.world import disk
from strandline.sim.world.disk import SimDisk
from strandline.sim.world.disk_file import SimFile
from strandline.wire.batch import batches, build
from strandline.wire.record import all_records

shapes = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 150)), min_size=1, max_size=15)


def naive_read(
    written: bytes, bases: list[int], offset: int, max_bytes: int, upto: int, *, min_one: bool, tailed: bool
) -> bytes:
    """Walk everything. A file's answer ends with its segment; the tail's does not."""
    out = b""
    segment: int | None = None
    for h in batches(written):
        if h.next_offset <= offset:
            continue
        own = bisect_right(bases, h.base_offset)
        segment = own if segment is None else segment
        if h.next_offset > upto or (own != segment and not tailed):
            break
        if len(out) + h.size > max_bytes and (out or not min_one):
            break
        out += written[h.position : h.end]
    return out


@settings(max_examples=250, deadline=None)
@given(
    shapes,
    st.sampled_from([0, 1200, 4 << 20]),
    st.integers(0, 40),
    st.integers(0, 1000),
    st.integers(0, 40),
    st.booleans(),
)
def test_a_read_answers_what_a_walk_over_everything_does(
    shape: list[tuple[int, int]], tail_bytes: int, offset: int, max_bytes: int, upto: int, min_one: bool
) -> None:
    log = open_log(SimDisk(), small(), tail_bytes=tail_bytes)
    for count, size in shape:
        append(log, produced(count, size=size))
    written = b"".join(bytes(s.file.read(0, s.size)) for s in log.segments)
    upto = min(upto, log.log_end_offset)
    read = log.read(offset, max_bytes, upto=upto, min_one=min_one)
    assert log.read(offset, max_bytes, upto=upto, min_one=min_one, is_checked=True) == read
    if offset > log.log_end_offset:
        assert isinstance(read, Refused)
        assert read.error is ErrorCode.OFFSET_OUT_OF_RANGE
        return
    assert isinstance(read, Read)
    tailed = bool(log.tail.bases) and log.tail.bases[0] <= offset
    got = b"".join(bytes(b) for b in read.buffers)
    assert got == naive_read(written, log.bases, offset, max_bytes, upto, min_one=min_one, tailed=tailed)
    assert read.size == len(got)


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_files_and_tail_hold_the_same_bytes(shape: list[tuple[int, int]]) -> None:
    logs = [open_log(SimDisk(), small(), tail_bytes=size) for size in (0, 4 << 20)]
    for log in logs:
        for count, size in shape:
            append(log, produced(count, size=size))
    for offset in range(logs[0].log_end_offset + 1):
        assert content(logs[0], offset) == content(logs[1], offset)


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_the_index_finds_the_batch_that_a_scan_finds(shape: list[tuple[int, int]]) -> None:
    log = open_log(SimDisk(), small())
    for count, size in shape:
        append(log, produced(count, size=size))
    for segment in log.segments:
        headers = list(segment.headers(0))
        for offset in range(segment.base_offset, segment.next_offset + 1):
            scanned = next((h.position for h in headers if h.next_offset > offset), None)
            assert segment.position_of(offset) == scanned
            assert segment.index.position_of(offset) <= (segment.size if scanned is None else scanned)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), min_size=1, max_size=12), st.integers(0, 30))
def test_a_timestamp_finds_the_first_record_that_is_not_older(stamps: list[list[int]], log_start: int) -> None:
    log = open_log(SimDisk(), small(segment_bytes=300))
    for group in stamps:
        append(log, build([(1000 + t, None, b"x" * 30, ()) for t in group]), epoch=3)
    written = content(log)
    log.advance_log_start(min(log_start, log.log_end_offset))
    records = [r for r in all_records(written) if r.offset >= log.log_start_offset]
    for timestamp in range(999, 1032):
        first = next((Found(r.timestamp, r.offset, 3) for r in records if r.timestamp >= timestamp), None)
        assert log.offset_for_timestamp(timestamp) == first
    latest = max(records, key=lambda r: r.timestamp, default=None)
    assert log.offset_of_max_timestamp() == (None if latest is None else Found(latest.timestamp, latest.offset, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 200)), min_size=1, max_size=15))
def test_a_search_by_time_reads_no_more_than_it_said_where_it_begins(rows: list[tuple[int, int]]) -> None:
    log = open_log(SimDisk(), small(segment_bytes=1_000, index_interval_bytes=100))
    for timestamp, size in rows:
        append(log, build([(1000 + timestamp, None, b"x" * size, ())]))
    seen: list[tuple[str, int, int]] = []

    class Noting(SimFile):
        def read(self, position: int, size: int) -> memoryview:
            seen.append((self.path, position, min(position + size, self.end)))
            return super().read(position, size)

    with ExitStack() as stack:
        for module in (timestamps, of_segments):
            stack.enter_context(patch.object(module, "SEEK_BYTES", 100))
        stack.enter_context(patch.object(disk, "SimFile", Noting))
        log.segments.rest_all()
        log.active.release()
        for timestamp in (*range(1000, 1031), None):
            said = timestamps.search_start(log.segments, timestamp, log.log_start_offset)
            seen.clear()
            found = log.offset_of_max_timestamp() if timestamp is None else log.offset_for_timestamp(timestamp)
            assert said is not None or found is None
            if said is not None:
                begun, position, size = said
                assert all(position <= a <= b <= position + size for path, a, b in seen if path == begun.path)


@settings(max_examples=150, deadline=None)
@given(shapes, st.integers(0, 45), st.booleans(), st.booleans())
def test_a_truncation_leaves_the_batches_that_end_before_the_offset(
    shape: list[tuple[int, int]], cut: int, reopened: bool, tailed: bool
) -> None:
    disk = SimDisk()
    log = open_log(disk, small(), tail_bytes=(4 << 20) if tailed else 0)
    for epoch, (count, size) in enumerate(shape):
        append(log, produced(count, size=size), epoch)
    written = content(log)
    if reopened:
        log.close()
        log = open_log(disk, small())
    log.truncate_to(cut)
    log.check()
    kept = [h for h in batches(written) if h.next_offset <= cut or cut >= len(list(all_records(written)))]
    end = kept[-1].next_offset if kept else 0
    assert log.log_end_offset == end
    assert content(log) == b"".join(written[h.position : h.end] for h in kept)
    assert log.latest_epoch == (kept[-1].partition_leader_epoch if kept else -1)
    assert log.active.max_timestamp == max((h.max_timestamp for h in log.active.headers(0)), default=-1)
    append(log, produced(3), 50)
    log.close()
    again = open_log(disk, small())
    assert again.log_end_offset == end + 3
    assert content(again).startswith(b"".join(written[h.position : h.end] for h in kept))
    assert again.epochs.entries == log.epochs.entries


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12),
    st.integers(0, 30),
    st.integers(0, 12),
    st.integers(0, 40),
)
def test_epochs_answer_as_a_list_of_every_offset_does(
    growth: list[tuple[int, int]], epoch: int, start: int, cut: int
) -> None:
    """The oracle knows the epoch of every single record."""
    epochs, of, latest, first = Epochs(), [], 0, start
    for by, records in growth:
        latest += by
        if records:
            epochs.assign(latest, first + len(of))
        of += [latest] * records
    end = first + len(of)
    assert [epochs.epoch_at(first + i) for i in range(len(of))] == of
    at_most = [e for e in of if e <= epoch]
    if not of or epoch > of[-1]:
        expected = (-1, -1)
    elif not at_most:
        expected = (epoch, first)
    else:
        expected = (at_most[-1], first + len(at_most) if epoch < of[-1] else end)
    assert epochs.end_offset_for(epoch, end) == expected
    for after in (True, False):
        copy = Epochs(epochs.entries)
        assert (copy.cut_end(cut) if after else copy.cut_start(cut)) == (copy.entries != epochs.entries)
        copy.check()
        if first <= cut < end:
            kept = range(first, cut) if after else range(cut, end)
            assert [copy.epoch_at(o) for o in kept] == [of[o - first] for o in kept]
            assert after or copy.entries[0] == EpochStart(of[cut - first], cut)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=20),
    st.integers(-1, 3000),
    st.integers(-1, 120),
    st.integers(0, 25),
    st.integers(0, 25),
)
def test_retention_takes_the_oldest_segments_and_nothing_above_the_high_watermark(
    ages: list[int], retention_bytes: int, retention_ms: int, high_watermark: int, log_start: int
) -> None:
    log = open_log(SimDisk(), small(retention_bytes=retention_bytes, retention_ms=retention_ms))
    for age in ages:
        append(log, produced(1, size=100, timestamp=NOW - age))
    high_watermark = min(high_watermark, log.log_end_offset)
    log.advance_log_start(min(log_start, high_watermark))
    before, end = [(s.base_offset, s.next_offset, s.size, s.max_timestamp) for s in log.segments], log.log_end_offset
    start = log.log_start_offset
    count = log.delete_old_segments(NOW, high_watermark)
    log.check()
    assert log.log_end_offset == end
    assert start <= log.log_start_offset <= max(high_watermark, start)
    for _, after, _, latest in before[:count]:
        left = sum(size for _, other_end, size, _ in before if other_end > after)
        assert after <= high_watermark
        assert after <= start or 0 <= retention_bytes <= left or 0 <= retention_ms < NOW - latest
    assert_the_next_one_had_to_stay(log, before[count:], high_watermark, retention_bytes, retention_ms)


def assert_the_next_one_had_to_stay(
    log: Log, rest: list[tuple[int, int, int, int]], high_watermark: int, retention_bytes: int, retention_ms: int
) -> None:
    if len(rest) < 2 or rest[0][1] > high_watermark:
        return
    _, after, size, latest = rest[0]
    assert after > log.log_start_offset
    assert not 0 <= retention_bytes <= sum(r[2] for r in rest) - size
    assert not 0 <= retention_ms < NOW - latest


def test_the_oracle_of_reads_sees_batches() -> None:
    log = open_log(SimDisk(), small())
    append(log, produced(3))
    append(log, produced(2))
    assert ranges(content(log)) == [(0, 3), (3, 5)]
    assert ranges(naive_read(content(log), [0], 4, 0, 5, min_one=True, tailed=True)) == [(3, 5)]
