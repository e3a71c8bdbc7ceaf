"""The simulated disk: it is a disk, power cuts take only what they may, and faults come when they were asked for."""

from collections.abc import Callable
from random import Random

import pytest
from tests.conformance.disk import DiskConformance
from tests.rows import each

from strandline.base.ports import DiskError
from strandline.sim.world.disk import SimDisk


class TestSimDisk(DiskConformance):
    @pytest.fixture
    def disk(self) -> SimDisk:
        return SimDisk()

    @pytest.fixture
    def root(self) -> str:
        return "/d"


class TestSimDiskWithLittleRoom(TestSimDisk):
    """The other way through the same code."""

    @pytest.fixture
    def disk(self) -> SimDisk:
        return SimDisk(capacity=20_000)


def holding(*paths: str) -> SimDisk:
    """Small files, all of them durable."""
    disk = SimDisk(("/d", "/e"))
    for path in paths:
        disk.make_directory(path.rpartition("/")[0])
        disk.save(path, b"0123456789")
        disk.sync([path.rpartition("/")[0]])
    return disk


# --- loss of power


@each("seed", range(20))
def test_what_was_synced_survives_every_power_cut(seed: int) -> None:
    disk = SimDisk()
    file = disk.open("/d/a")
    file.append([b"synced"])
    disk.sync(["/d/a", "/d"])
    file.append([b" and not"])
    disk.write_file("/d/b", b"never synced")
    disk.crash(Random(seed))
    content = disk.read_file("/d/a")
    assert content is not None
    assert content.startswith(b"synced")
    assert len(content) <= len(b"synced and not")


def test_what_was_not_synced_is_lost_torn_or_kept() -> None:
    outcomes = set()
    for seed in range(60):
        disk = SimDisk()
        disk.sync(["/d"])
        disk.open("/d/a").append([b"0123456789"])
        disk.sync(["/d"])
        disk.crash(Random(seed))
        content = disk.read_file("/d/a")
        outcomes.add("gone" if not content else "kept" if content == b"0123456789" else "torn")
    assert outcomes == {"gone", "torn", "kept"}


def test_where_a_file_was_appended_to_the_last_byte_that_was_not_synced_may_be_wrong() -> None:
    before = b"synced" * 100
    outcomes = set()
    for seed in range(200):
        disk = SimDisk()
        disk.save("/d/a", before)
        disk.write_file("/d/small", b"small")
        disk.open("/d/a").append([b"0123456789"])
        disk.crash(Random(seed))
        content = disk.read_file("/d/a")
        assert content is not None
        kept = content[len(before) :]
        assert content.startswith(before)
        assert b"0123456789".startswith(kept[:-1])
        outcomes.add(b"0123456789".startswith(kept))
        assert b"small".startswith(disk.read_file("/d/small") or b"")
    assert outcomes == {True, False}


def test_a_file_in_a_directory_that_was_not_synced_may_be_gone() -> None:
    found = set()
    for seed in range(20):
        disk = SimDisk()
        disk.open("/d/a").append([b"x"])
        disk.sync(["/d/a"])
        disk.crash(Random(seed))
        found.add(disk.read_file("/d/a"))
    assert found == {None, b"x"}


def test_a_directory_that_was_synced_is_found_under_its_name_though_the_one_above_was_not() -> None:
    for seed in range(20):
        disk = SimDisk()
        disk.make_directory("/d/beside")
        disk.make_directory("/d/old")
        disk.rename("/d/old", "/d/new")
        disk.save("/d/new/a", b"x")
        disk.crash(Random(seed))
        assert disk.read_file("/d/new/a") == b"x"
        assert not disk.exists("/d/old")


def test_a_cut_may_be_undone_but_not_in_front_of_a_name_that_came_after_it() -> None:
    found = set()
    for seed in range(60):
        disk = holding("/d/a")
        disk.open("/d/a").truncate(4)
        disk.open("/d/b")
        disk.crash(Random(seed))
        found.add((disk.read_file("/d/a"), disk.exists("/d/b")))
    assert found == {(b"0123456789", False), (b"0123", False), (b"0123", True)}


def test_the_same_seed_takes_the_same() -> None:
    def after(seed: int) -> dict[str, bytes]:
        disk = holding("/d/a", "/e/b")
        for path in ("/d/a", "/e/b", "/d/c", "/e/c"):
            disk.open(path).append([b"more"])
        disk.crash(Random(seed))
        return disk.contents()

    assert [after(seed) for seed in range(20)] == [after(seed) for seed in range(20)]
    assert after(1) != after(3)


def test_a_journal_does_not_grow_with_the_length_of_a_run() -> None:
    disk = SimDisk()
    index = disk.open("/d/index")
    for _ in range(2000):
        disk.write_file("/d/checkpoint", b"1")
        index.append([b"entry"])
        index.truncate(2)
    assert len(disk.names.changes) < 300
    assert len(index.content.changes) < 100


def test_only_what_a_loss_of_power_may_change_is_lossy() -> None:
    disk = holding("/d/a", "/d/b")
    assert not disk.lossy("/d/a")
    file = disk.open("/d/a")
    file.append([b"x"])
    disk.rename("/d/b", "/d/c")
    assert [disk.lossy(path) for path in ("/d/a", "/d/b", "/d/c", "/d", "/e")] == [True, True, True, False, False]
    disk.sync(["/d/a", "/d"])
    assert not any(disk.lossy(path) for path in ("/d/a", "/d/b", "/d/c"))


def test_a_file_of_a_process_that_died_is_not_used_again() -> None:
    disk = holding("/d/a")
    file = disk.open("/d/a")
    disk.abandon()
    assert not disk.opened
    with pytest.raises(AssertionError, match="closed"):
        file.append([b"x"])
    assert disk.read_file("/d/a") == b"0123456789"


# --- a full disk


def test_a_write_that_does_not_fit_fails_and_leaves_its_first_part_behind_the_end() -> None:
    disk = SimDisk(capacity=16)
    file = disk.open("/d/a")
    file.append([b"0123456789"])
    with pytest.raises(DiskError, match="/d/a: No space left on device"):
        file.append([b"abcd", b"efgh"])
    assert file.size() == 10
    assert disk.read_file("/d/a") == b"0123456789abcdef"
    with pytest.raises(DiskError, match="/d/b"):
        disk.open("/d/b").append([b"x"])
    assert disk.read_file("/d/b") == b""


def test_the_next_append_takes_the_place_of_what_was_left_of_a_write_that_failed() -> None:
    disk = SimDisk(capacity=16)
    file = disk.open("/d/a")
    file.append([b"0123456789"])
    with pytest.raises(DiskError):
        file.append([b"abcdefgh"])
    assert file.append([b"XYZ"]) == 3
    assert disk.read_file("/d/a") == b"0123456789XYZdef"


@pytest.mark.parametrize(
    "freeing",
    [
        lambda disk: disk.remove("/d/old"),
        lambda disk: disk.open("/d/old").truncate(0),
        lambda disk: disk.remove_tree("/d/t"),
        lambda disk: disk.rename("/d/empty", "/d/old"),
        lambda disk: disk.write_file("/d/empty", b""),
    ],
)
def test_what_is_taken_away_makes_room(freeing: Callable[[SimDisk], None]) -> None:
    disk = SimDisk(capacity=20)
    disk.make_directory("/d/t")
    disk.open("/d/empty")
    for path in ("/d/old", "/d/t/a"):
        disk.open(path).append([b"0123456789"])
    freed = disk.used
    freeing(disk)
    disk.open("/d/new").append([bytes(disk.room)])
    assert disk.used == freed == sum(map(len, disk.contents().values()))
    with pytest.raises(DiskError):
        disk.open("/d/new").append([b"x"])


def test_overwriting_needs_no_room_and_a_file_without_a_name_takes_none() -> None:
    disk = SimDisk(capacity=10)
    file = disk.open("/d/a")
    file.append([b"0123456789"])
    file.write_at(2, b"xy")
    disk.remove("/d/a")
    file.truncate(3)
    assert (disk.used, disk.room) == (0, 10)


def test_replacing_a_file_needs_room_for_both() -> None:
    disk = SimDisk(capacity=15)
    disk.write_file("/d/a", b"0123456789")
    with pytest.raises(DiskError, match=r"/d/a\.tmp: No space left on device"):
        disk.write_file("/d/a", b"9876543210")
    assert disk.contents() == {"/d/a": b"0123456789", "/d/a.tmp": b"98765"}
    disk.write_file("/d/a", b"new")
    assert disk.contents() == {"/d/a": b"new"}


# --- a sync that fails


def test_what_a_failed_sync_was_about_is_lost_or_not_whatever_is_synced_after_it() -> None:
    outcomes = set()
    for seed in range(80):
        disk = holding("/d/a")
        file = disk.open("/d/a")
        file.append([b"doubtful"])
        disk.fail_next_sync(lambda path: path.endswith("/a"))
        disk.sync(["/d"])
        with pytest.raises(DiskError, match="/d/a: Input/output error"):
            disk.sync(["/d/a"])
        file.append([b"sound"])
        disk.sync(["/d/a"])
        assert disk.read_file("/d/a") == b"0123456789doubtfulsound"
        assert (disk.doubtful(), disk.lossy("/d/a")) == (("/d/a",), True)
        disk.crash(Random(seed))
        content = disk.read_file("/d/a")
        assert content is not None
        assert content[:10] + content[18:] == b"0123456789sound"
        kept = content[10:18].rstrip(b"\0")
        assert b"doubtful".startswith(kept)
        outcomes.add("kept" if kept == b"doubtful" else "part" if kept else "lost")
        assert disk.doubtful() == ()
    assert outcomes == {"kept", "part", "lost"}


def test_doubtful_bytes_at_the_end_are_cut_off_and_overwritten_ones_are_the_old() -> None:
    found = set()
    for seed in range(80):
        disk = holding("/d/a")
        file = disk.open("/d/a")
        file.append([b"x"])
        file.write_at(1, b"y")
        disk.fail_next_sync()
        with pytest.raises(DiskError):
            disk.sync(["/d/a"])
        disk.crash(Random(seed))
        found.add(disk.read_file("/d/a"))
    assert found == {b"0123456789", b"0123456789x", b"0y23456789", b"0y23456789x"}


def test_bytes_that_are_written_again_after_a_failed_sync_are_in_doubt_no_more() -> None:
    for seed in range(20):
        disk = holding("/d/a")
        file = disk.open("/d/a")
        file.append([b"doubtful"])
        disk.fail_next_sync()
        with pytest.raises(DiskError):
            disk.sync(["/d/a"])
        file.truncate(10)
        file.append([b"again"])
        disk.sync(["/d/a"])
        disk.crash(Random(seed))
        assert disk.read_file("/d/a") == b"0123456789again"


def test_a_sync_fails_once_and_only_for_the_path_that_was_meant() -> None:
    disk = holding("/d/a", "/d/b")
    disk.fail_next_sync(lambda path: path == "/d")
    disk.sync(["/d/a", "/d/b", "/d/missing"])
    disk.open("/d/c")
    with pytest.raises(DiskError, match="/d: Input/output error"):
        disk.sync(["/d"])
    assert disk.lossy("/d/c")
    disk.sync(["/d"])
    assert not disk.lossy("/d/c")


# --- several directories; other disks


def test_everything_below_a_root_that_fails_is_an_error_until_it_is_mended_and_nothing_beside_it() -> None:
    disk = holding("/d/a", "/e/a")
    disk.make_directory("/dd")
    file, other = disk.open("/d/a"), disk.open("/e/a")
    before = disk.contents()
    disk.fail("/d")
    for use in (
        lambda: file.append([b"x"]),
        lambda: file.write_at(0, b"x"),
        lambda: file.read(0, 1),
        lambda: file.truncate(0),
        lambda: disk.open("/d/a"),
        lambda: disk.exists("/d/a"),
        lambda: disk.list("/d"),
        lambda: disk.make_directory("/d/t"),
        lambda: disk.rename("/d/a", "/d/b"),
        lambda: disk.rename("/e/a", "/d/b"),
        lambda: disk.remove("/d/a"),
        lambda: disk.remove_tree("/d/t"),
        lambda: disk.read_file("/d/a"),
        lambda: disk.write_file("/d/a", b"x"),
        lambda: disk.sync(["/d/a"]),
        lambda: disk.sync(["/d"]),
    ):
        with pytest.raises(DiskError, match=r"/d.*: Input/output error"):
            use()
    assert disk.contents() == before
    other.append([b"x"])
    disk.sync(["/e/a", "/dd"])
    disk.mend("/d")
    assert bytes(file.read(0, 4)) == b"0123"


def test_a_new_disk_is_empty_works_and_stays_empty_after_a_loss_of_power() -> None:
    disk = holding("/d/t/a", "/e/a")
    disk.rename("/d/t", "/d/u")
    disk.fail("/d")
    disk.wipe("/d")
    assert disk.list("/d") == []
    disk.crash(Random(1))
    assert disk.contents() == {"/e/a": b"0123456789"}
    assert disk.used == 10
    disk.save("/d/new", b"x")


def test_an_image_brings_back_that_day_and_keeps_it() -> None:
    disk = holding("/d/t/a", "/e/b")
    disk.make_directory("/d/empty")
    disk.open("/d/t/a").append([b"unsynced"])
    then, image = disk.contents(), disk.snapshot()
    disk.remove_tree("/d/t")
    disk.write_file("/e/b", b"later")
    disk.write_file("/e/c", b"later")
    disk.restore(image)
    assert disk.list("/d") == ["empty", "t"]
    for _ in range(2):
        assert disk.contents() == then
        assert disk.used == sum(map(len, then.values()))
        disk.crash(Random(3))


# --- rot


def test_one_synced_bit_rots_in_a_segment_of_a_topic_and_nowhere_else() -> None:
    disk = holding("/d/t-0/0.log", "/d/t-0/0.index", "/d/__cluster_metadata-0/0.log", "/e/meta.properties")
    disk.open("/d/t-0/0.log").append([b"unsynced"])
    for seed in range(50):
        before = disk.contents()
        where = disk.rot(Random(seed))
        assert where is not None
        path, position = where
        assert path == "/d/t-0/0.log"
        assert position < 10
        after = disk.contents()
        assert (before[path][position] ^ after[path][position]).bit_count() == 1
        restored = bytearray(after[path])
        restored[position] = before[path][position]
        assert after | {path: bytes(restored)} == before


def test_nothing_rots_where_nothing_is_synced_and_the_metadata_log_does_if_it_is_meant() -> None:
    disk = SimDisk()
    disk.open("/d/0.log").append([b"unsynced"])
    assert disk.rot(Random(1)) is None
    disk = holding("/d/__cluster_metadata-0/0.log")
    assert disk.rot(Random(1)) is None
    where = disk.rot(Random(1), lambda path: "metadata" in path)
    assert where is not None
    assert where[0] == "/d/__cluster_metadata-0/0.log"
