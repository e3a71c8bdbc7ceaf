"""How passes go: in steps, where they end, and what ends them."""

from collections.abc import Iterable

import pytest
from tests.unit.log.compaction.compacting import (
    begin,
    compact,
    compacted,
    finish,
    keyed,
    pairs,
    roll,
    sync,
    write,
)
from tests.unit.log.logs import NOW, ROOT, append, open_log

from strandline.base.time import Instant
from strandline.log.cleaning.compaction import KEY_COST, Uncleanable
from strandline.log.files.swapping import CLEANED, SWAP
from strandline.log.log import Log
from strandline.sim.world.disk import SimDisk


def test_where_the_map_is_full_a_pass_ends_and_the_next_goes_on(disk: SimDisk, log: Log) -> None:
    write(log, (("a", "1"), ("b", "1"), ("c", "1")), (("a", "2"), ("b", "2"), ("c", "2")))
    roll(log, disk)
    compact(log, disk, map_bytes=400)  # two keys
    assert log.cleaned_to == 2
    assert len(pairs(log)) == 6
    while log.cleaned_to is not None and log.cleaned_to < 6:
        compact(log, disk, map_bytes=400)
    assert pairs(log) == [(3, "a", "2"), (4, "b", "2"), (5, "c", "2")]


def test_a_map_that_is_full_amid_a_batch_leaves_it_to_the_next_pass(disk: SimDisk) -> None:
    """Its first tombstone would give a horizon to the last one, which no pass has seen yet: that would be late for the
    value that it deletes, and could go with it."""
    log = open_log(disk, compacted(delete_retention_ms=1000))
    write(log, ("b", "1"), ("q", "1"))
    write(log, (("a", None), ("c", "1"), ("b", None)))
    roll(log, disk)
    write(log, ("z", "1"))
    compact(log, disk, map_bytes=3 * KEY_COST)
    assert log.cleaned_to == 2
    compact(log, disk, now=NOW + 2000, map_bytes=3 * KEY_COST)
    assert log.cleaned_to == 5
    assert pairs(log) == [(1, "q", "1"), (2, "a", None), (3, "c", "1"), (4, "b", None), (5, "z", "1")]


def test_small_segments_become_one(disk: SimDisk, log: Log) -> None:
    for number in range(6):
        write(log, (f"k{number}", "1"))
        roll(log, disk)
    compact(log, disk)
    assert log.bases == [0, 6]
    assert log.producer_state.snapshots in ([], [6])
    assert len(pairs(log)) == 6


def test_a_step_is_bounded_and_a_pass_needs_many(disk: SimDisk) -> None:
    log = open_log(disk, compacted(segment_bytes=1 << 20))
    for number in range(40):
        write(log, (f"k{number % 5}", "x" * 50))
    roll(log, disk)
    run = begin(log)
    steps = 0
    while not run.is_copied:
        assert run.go_on(300) < 300 + 400
        steps += 1
    assert steps > 20
    finish(run, disk)
    assert len(pairs(log)) == 5


def test_a_log_that_is_cut_meanwhile_ends_the_pass_and_nothing_is_left_of_it(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    write(log, ("a", "3"))
    run = begin(log)
    while not run.is_copied:
        run.go_on(100)
    assert not run.is_stale
    log.truncate_to(1)
    assert run.is_stale
    run.abandon()
    assert [name for name in disk.list(ROOT) if name.endswith((CLEANED, SWAP))] == []
    assert log.cleaned_to == 0
    write(log, ("a", "4"))
    assert pairs(log) == [(0, "a", "1"), (1, "a", "4")]


def test_a_segment_that_retention_deletes_meanwhile_ends_the_pass(disk: SimDisk) -> None:
    log = open_log(disk, compacted(cleanup_policy=("compact", "delete"), retention_ms=1000))
    write(log, ("a", "1"))
    roll(log, disk)
    write(log, ("b", "1"))
    roll(log, disk)
    run = begin(log)
    run.go_on(10)
    assert log.delete_old_segments(Instant(NOW + 1001), 2) == 2
    assert run.is_stale


def test_a_segment_that_was_read_may_go_and_the_pass_goes_on(disk: SimDisk) -> None:
    log = open_log(disk, compacted(cleanup_policy=("compact", "delete")))
    for key in "abcd":
        write(log, (key, "x" * 200))
        roll(log, disk)
    assert len(log.segments) == 5
    run = begin(log)
    while run.source < 2:
        run.go_on(10)
    log.advance_log_start(log.bases[1])
    assert log.delete_old_segments(NOW, log.log_end_offset) == 1
    assert not run.is_stale  # while it maps
    while len(run.groups) != 2:  # b is copied
        run.go_on(10)
        if run.is_copied:
            disk.sync(run.unsynced())
            run.swap()
    log.advance_log_start(log.bases[1])
    assert log.delete_old_segments(NOW, log.log_end_offset) == 1
    assert not run.is_stale  # while it copies
    finish(run, disk)
    assert [key for _, key, _ in pairs(log)] == ["c", "d"]
    assert log.cleaned_to == 4


def test_a_pass_of_which_retention_leaves_nothing_ends(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    run = begin(log)
    while run.source < 1:
        run.go_on(10)
    log.advance_log_start(2)
    assert log.delete_old_segments(NOW, 2) == 1
    run.go_on(10)
    assert run.is_stale
    run.abandon()


def test_a_log_that_is_compacted_and_deleted_loses_what_is_old(disk: SimDisk) -> None:
    log = open_log(disk, compacted(cleanup_policy=("compact", "delete"), retention_ms=1000))
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    compact(log, disk)
    append(log, keyed(("b", "1"), timestamp=NOW + 900))
    log.delete_old_segments(Instant(NOW + 1001), 3)
    assert log.log_start_offset == 2
    assert pairs(log) == [(2, "b", "1")]


def test_damage_is_not_copied(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    disk.flip(log.segments[0].path, 70, 0)
    run = begin(log)
    with pytest.raises(Uncleanable):
        finish(run, disk)
    run.abandon()
    assert not [name for name in disk.list(ROOT) if name.endswith(CLEANED)]


class Journal(SimDisk):
    """Writes down which names were changed, and when directories were synced."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self.calls.append(("rename", new))

    def remove(self, path: str) -> None:
        super().remove(path)
        self.calls.append(("remove", path))

    def sync(self, paths: Iterable[str]) -> None:
        named = list(paths)
        super().sync(named)
        self.calls += [("sync", path) for path in named]


def test_the_names_of_a_swap_are_durable_before_what_it_replaces_is_deleted() -> None:
    """File systems may keep a deletion and forget the rename before it: then the records would be in no file."""
    disk = Journal()
    log = open_log(disk, compacted())
    for _ in range(2):
        write(log, ("a", "1"), ("b", "1"))
        roll(log, disk)
    write(log, ("a", "2"))
    roll(log, disk)
    disk.calls.clear()
    run = compact(log, disk)
    assert run.log is log
    kinds = [(kind, path.rpartition(".")[2] if kind != "sync" else path) for kind, path in disk.calls]
    last_swap = max(at for at, (kind, what) in enumerate(kinds) if (kind, what) == ("rename", "swap"))
    first_gone = kinds.index(("rename", "deleted"))
    assert ("sync", ROOT) in kinds[last_swap:first_gone]


def test_the_last_names_of_a_swap_are_synced_with_the_log(disk: SimDisk, log: Log) -> None:
    """Also of one that takes the place of a single segment, where nothing else is deleted."""
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    write(log, ("a", "3"))
    sync(log, disk)
    assert ROOT not in log.unsynced()
    compact(log, disk)
    assert pairs(log) == [(1, "a", "2"), (2, "a", "3")]
    assert ROOT in log.unsynced()
