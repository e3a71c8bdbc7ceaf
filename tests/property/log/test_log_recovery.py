"""Whatever a power cut takes: the log that comes back is a prefix of what was written, with all that was synced."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.logs import ROOT, append, content, open_log, produced, ranges, small

from strandline.log.log import Log
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 200)),
        st.tuples(st.just("epoch"), st.just(0), st.just(0)),
        st.tuples(st.just("sync"), st.just(0), st.just(0)),
        st.tuples(st.just("roll"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


def play(log: Log, disk: SimDisk, script: list[tuple[str, int, int]]) -> int:
    """Run the steps; return the offset up to which all is durable."""
    epoch, synced = 0, 0
    for what, count, size in script:
        if what == "append":
            append(log, produced(count, size=size), epoch)
        elif what == "epoch":
            epoch += 1
            log.assign_epoch(epoch, log.log_end_offset)
        elif what == "roll" and log.active.size:
            log.roll(log.log_end_offset)
        elif what == "sync":
            disk.sync(log.unsynced())
            log.mark_synced(log.log_end_offset)
            disk.sync(["/d"])
            synced = log.log_end_offset
    return synced


def epochs_of(piece: bytes) -> dict[int, int]:
    """Naive: the epoch of every offset, from the batches."""
    return {offset: h.partition_leader_epoch for h in batches(piece) for offset in range(h.base_offset, h.next_offset)}


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 1 << 32), st.integers(0, 2))
def test_a_power_cut_leaves_a_prefix_with_all_that_was_synced(
    script: list[tuple[str, int, int]], seed: int, times: int
) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    synced = play(log, disk, script)
    written = content(log)
    for again in range(times + 1):
        disk.crash(Random(seed + again))
        log = open_log(disk, small(), clean=False, recovery_point=synced)
        kept = content(log)
        assert written.startswith(kept)
        assert log.log_end_offset >= synced
        assert {o: log.epoch_at(o) for o in epochs_of(kept)} == epochs_of(kept)
        assert all(e.start_offset < max(log.log_end_offset, 1) for e in log.epochs.entries)
        written = kept
    append(log, produced(2), log.latest_epoch + 1)
    assert content(log).startswith(written)
    end = log.log_end_offset
    log.close()
    again_clean = open_log(disk, small())
    assert again_clean.log_end_offset == end
    assert again_clean.latest_epoch == log.latest_epoch


@settings(max_examples=100, deadline=None)
@given(steps, st.booleans())
def test_a_process_that_dies_loses_nothing(script: list[tuple[str, int, int]], indexes_gone: bool) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    synced = play(log, disk, script)
    written, entries = content(log), [e for e in log.epochs.entries if e.start_offset < log.log_end_offset]
    if indexes_gone:
        for name in disk.list(ROOT):
            if name.endswith("index"):
                disk.remove(f"{ROOT}/{name}")
    again = open_log(disk, small(), clean=False, recovery_point=synced)
    assert content(again) == written
    assert again.epochs.entries == entries


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=12), st.data())
def test_a_flipped_bit_behind_the_recovery_point_cuts_the_log_before_it(counts: list[int], data: st.DataObject) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for count in counts:
        append(log, produced(count))
    written = content(log)
    files = [s for s in log.segments if s.size]
    segment = data.draw(st.sampled_from(files))
    at = data.draw(st.integers(0, segment.size - 1))
    hit = next(h for h in segment.headers(0) if h.end > at)
    if 12 <= at - hit.position < 16:
        return  # the leader epoch: no checksum covers it, and it may be any
    disk.flip(segment.path, at, data.draw(st.integers(0, 7)))
    again = open_log(disk, small(), clean=False, recovery_point=0)
    kept = content(again)
    assert written.startswith(kept)
    assert len(kept) < len(written)
    assert all(end <= again.log_end_offset for _, end in ranges(kept))


@settings(max_examples=100, deadline=None)
@given(steps, st.integers(0, 40), steps, st.integers(0, 1 << 32))
def test_a_power_cut_after_a_truncation_never_mixes_old_and_new(
    before: list[tuple[str, int, int]], cut: int, after: list[tuple[str, int, int]], seed: int
) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    synced = play(log, disk, before)
    old = content(log)
    log.truncate_to(min(cut, log.log_end_offset))
    synced = min(synced, log.log_end_offset)
    epoch = log.latest_epoch + 7
    for what, count, size in after:
        if what == "append":
            append(log, produced(count, size=size), epoch)
    new = content(log)
    disk.crash(Random(seed))
    again = open_log(disk, small(), clean=False, recovery_point=synced)
    kept = content(again)
    assert new.startswith(kept) or old.startswith(kept)
    assert again.log_end_offset >= synced
