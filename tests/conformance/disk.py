"""What every Disk must do, real or simulated. A test module makes a suite of it:

class TestRealDisk(DiskConformance):
    @pytest.fixture
    def disk(self, tmp_path): return RealDisk()
    @pytest.fixture
    def root(self, tmp_path): return str(tmp_path)
"""

from typing import Any

import pytest

from strandline.base.ports import Disk, DiskError


class DiskConformance:
    @pytest.fixture
    def disk(self) -> Any:
        raise NotImplementedError("the suite's subclass says which disk")

    @pytest.fixture
    def root(self) -> Any:
        raise NotImplementedError("the suite's subclass says in which existing directory")

    def test_an_opened_file_is_created_empty(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        assert file.path == f"{root}/a"
        assert file.size() == 0
        assert bytes(file.read(0, 100)) == b""
        assert disk.exists(f"{root}/a")
        file.close()

    def test_appended_buffers_follow_one_another(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        assert file.append([b"one", bytearray(b"two"), memoryview(b"three")]) == 11
        assert file.append([b"four"]) == 4
        assert file.size() == 15
        assert bytes(file.read(0, 100)) == b"onetwothreefour"
        file.close()

    def test_appending_nothing_changes_nothing(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        assert file.append([]) == 0
        assert file.append([b"", b""]) == 0
        assert file.size() == 0
        file.close()

    def test_more_buffers_than_one_system_call_takes(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        pieces = [b"%05d" % n for n in range(3000)]
        assert file.append(pieces) == 15_000
        assert bytes(file.read(0, 20_000)) == b"".join(pieces)
        file.close()

    def test_a_read_ends_at_the_end_of_the_file(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        file.append([b"0123456789"])
        assert bytes(file.read(4, 3)) == b"456"
        assert bytes(file.read(8, 100)) == b"89"
        assert bytes(file.read(10, 1)) == b""
        assert bytes(file.read(11, 1)) == b""
        file.close()

    def test_a_read_is_not_changed_by_a_later_write(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        file.append([b"before"])
        seen = file.read(0, 6)
        file.truncate(0)
        file.append([b"after!"])
        assert bytes(seen) == b"before"
        file.close()

    def test_appended_memory_may_be_reused_by_the_caller(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        memory = bytearray(b"mine")
        file.append([memory])
        memory[:] = b"gone"
        assert bytes(file.read(0, 4)) == b"mine"
        file.close()

    def test_write_at_patches_in_place_and_may_lengthen(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        file.append([b"0123456789"])
        file.write_at(2, b"xy")
        assert file.size() == 10
        file.write_at(9, b"zzz")
        assert file.size() == 12
        assert bytes(file.read(0, 100)) == b"01xy45678zzz"
        file.close()

    def test_what_is_cut_is_gone_and_the_next_append_goes_to_the_cut(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        file.append([b"0123456789"])
        file.truncate(4)
        assert file.size() == 4
        file.append([b"ab"])
        assert bytes(file.read(0, 100)) == b"0123ab"
        file.close()

    def test_a_write_or_a_cut_behind_the_end_fills_up_with_zeros(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        file.append([b"01"])
        file.write_at(4, b"45")
        assert bytes(file.read(0, 100)) == b"01\0\x0045"
        file.truncate(8)
        assert file.size() == 8
        assert bytes(file.read(6, 100)) == b"\0\0"
        file.close()

    def test_an_append_after_another_files_cut_of_the_same_path_goes_where_its_own_file_ended(
        self, disk: Disk, root: str
    ) -> None:
        """Nobody should: but a file that knows its own end behaves like this, real or not."""
        one, other = disk.open(f"{root}/a"), disk.open(f"{root}/a")
        one.append([b"0123"])
        assert (one.size(), other.size()) == (4, 0)
        other.append([b"xy"])
        assert disk.read_file(f"{root}/a") == b"xy23"
        one.close()
        other.close()

    def test_a_file_opened_again_has_its_content_and_appends_at_its_end(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        file.append([b"one"])
        file.close()
        again = disk.open(f"{root}/a")
        assert again.size() == 3
        again.append([b"two"])
        assert bytes(again.read(0, 100)) == b"onetwo"
        again.close()
        again.close()

    def test_opening_in_a_missing_directory_is_a_disk_error_with_the_path(self, disk: Disk, root: str) -> None:
        with pytest.raises(DiskError, match="missing/a"):
            disk.open(f"{root}/missing/a")

    @pytest.mark.parametrize("letter", ["n", "é"])
    def test_a_name_has_255_bytes_at_most(self, disk: Disk, root: str, letter: str) -> None:
        fits = f"{root}/{letter * (255 // len(letter.encode()))}"
        disk.make_directory(fits)
        disk.open(f"{fits}/a").close()
        long = f"{root}/{letter * (255 // len(letter.encode()) + 1)}"
        disk.write_file(f"{root}/b", b"x")
        for refused in (
            lambda: disk.open(long),
            lambda: disk.open(f"{long}/a"),
            lambda: disk.make_directory(long),
            lambda: disk.make_directory(f"{long}/a"),
            lambda: disk.rename(fits, long),
            lambda: disk.rename(f"{root}/b", long),
            lambda: disk.rename(long, f"{root}/c"),
            lambda: disk.write_file(long, b"x"),
            lambda: disk.write_file(f"{fits}", b"x"),  # by way of a longer name
            lambda: disk.save(long, b"x"),
            lambda: disk.read_file(long),
            lambda: disk.list(long),
            lambda: disk.remove(long),
            lambda: disk.remove_tree(long),
            lambda: disk.sync([long]),
        ):
            with pytest.raises(DiskError, match="File name too long"):
                refused()
        assert not disk.exists(long)
        assert disk.list(root) == sorted(["b", fits.removeprefix(f"{root}/")])
        assert disk.list(fits) == ["a"]

    def test_listing_is_sorted_and_a_missing_directory_is_empty(self, disk: Disk, root: str) -> None:
        for name in ("c", "a", "b"):
            disk.make_directory(f"{root}/d/{name}")
        assert disk.list(f"{root}/d") == ["a", "b", "c"]
        assert disk.list(f"{root}/missing") == []

    def test_making_a_directory_twice_is_no_error(self, disk: Disk, root: str) -> None:
        disk.make_directory(f"{root}/x/y")
        disk.make_directory(f"{root}/x/y")
        assert disk.exists(f"{root}/x/y")

    def test_rename_replaces_a_file(self, disk: Disk, root: str) -> None:
        disk.write_file(f"{root}/a", b"new")
        disk.write_file(f"{root}/b", b"old")
        disk.rename(f"{root}/a", f"{root}/b")
        assert not disk.exists(f"{root}/a")
        assert disk.read_file(f"{root}/b") == b"new"

    def test_an_open_file_survives_the_rename_of_its_directory(self, disk: Disk, root: str) -> None:
        disk.make_directory(f"{root}/topic-0")
        file = disk.open(f"{root}/topic-0/log")
        disk.rename(f"{root}/topic-0", f"{root}/topic-0-delete")
        file.append([b"still here"])
        assert disk.read_file(f"{root}/topic-0-delete/log") == b"still here"
        file.close()

    def test_renaming_what_is_not_there_is_a_disk_error(self, disk: Disk, root: str) -> None:
        with pytest.raises(DiskError, match="missing"):
            disk.rename(f"{root}/missing", f"{root}/b")

    def test_a_file_is_no_directory_and_a_directory_no_file(self, disk: Disk, root: str) -> None:
        disk.write_file(f"{root}/file", b"x")
        disk.make_directory(f"{root}/directory/inner")
        for wrong in (
            lambda: disk.open(f"{root}/directory"),
            lambda: disk.open(f"{root}/file/a"),
            lambda: disk.read_file(f"{root}/directory"),
            lambda: disk.remove(f"{root}/directory"),
            lambda: disk.list(f"{root}/file"),
            lambda: disk.make_directory(f"{root}/file"),
            lambda: disk.remove_tree(f"{root}/file"),
            lambda: disk.rename(f"{root}/file", f"{root}/directory"),
            lambda: disk.rename(f"{root}/directory", f"{root}/file"),
        ):
            with pytest.raises(DiskError, match=root):
                wrong()
        assert disk.list(root) == ["directory", "file"]

    def test_a_directory_may_take_the_place_of_an_empty_one_only(self, disk: Disk, root: str) -> None:
        for path in ("old", "empty", "full/inner"):
            disk.make_directory(f"{root}/{path}")
        with pytest.raises(DiskError, match="full"):
            disk.rename(f"{root}/old", f"{root}/full")
        disk.rename(f"{root}/old", f"{root}/empty")
        assert disk.list(root) == ["empty", "full"]

    def test_removing_twice_is_no_error(self, disk: Disk, root: str) -> None:
        disk.write_file(f"{root}/a", b"x")
        disk.remove(f"{root}/a")
        disk.remove(f"{root}/a")
        assert not disk.exists(f"{root}/a")

    def test_a_tree_goes_with_all_that_is_in_it(self, disk: Disk, root: str) -> None:
        disk.make_directory(f"{root}/t/sub")
        disk.write_file(f"{root}/t/sub/a", b"x")
        disk.remove_tree(f"{root}/t")
        disk.remove_tree(f"{root}/t")
        assert not disk.exists(f"{root}/t/sub/a")
        assert disk.list(root) == []

    def test_write_file_replaces_the_whole_content_and_leaves_nothing_else(self, disk: Disk, root: str) -> None:
        disk.write_file(f"{root}/a", b"a long first content")
        disk.write_file(f"{root}/a", b"short")
        assert disk.read_file(f"{root}/a") == b"short"
        assert disk.list(root) == ["a"]

    def test_reading_a_missing_file_is_none(self, disk: Disk, root: str) -> None:
        assert disk.read_file(f"{root}/missing") is None

    def test_sync_takes_files_and_directories_and_forgives_what_is_gone(self, disk: Disk, root: str) -> None:
        file = disk.open(f"{root}/a")
        file.append([b"x"])
        disk.sync([f"{root}/a", root, f"{root}/missing"])
        assert bytes(file.read(0, 1)) == b"x"
        file.close()

    def test_the_room_that_is_left_is_no_more_than_there_is(self, disk: Disk, root: str) -> None:
        total, usable = disk.usage(root)
        assert (total, usable) == (-1, -1) or 0 <= usable <= total

    def test_a_save_that_was_asked_for_before_another_does_not_come_after_it(self, disk: Disk, root: str) -> None:
        path = f"{root}/checkpoint"
        older = disk.saves(path)
        disk.save(path, b"newer")
        disk.save_since(path, b"older", older)
        assert disk.read_file(path) == b"newer"
        disk.save_since(path, b"newest", disk.saves(path))
        assert disk.read_file(path) == b"newest"
        assert disk.list(root) == ["checkpoint"]

    def test_saves_of_one_path_do_not_touch_another(self, disk: Disk, root: str) -> None:
        since = disk.saves(f"{root}/a")
        disk.save(f"{root}/b", b"b")
        disk.save_since(f"{root}/a", b"a", since)
        assert disk.read_file(f"{root}/a") == b"a"

    def test_a_save_that_failed_leaves_the_path_free(self, disk: Disk, root: str) -> None:
        disk.make_directory(f"{root}/a")
        for save in (lambda: disk.save(f"{root}/a", b"x"), lambda: disk.save_since(f"{root}/a", b"x", 1)):
            with pytest.raises(DiskError, match=root):
                save()
        disk.remove_tree(f"{root}/a")
        disk.save(f"{root}/a", b"y")
        assert disk.read_file(f"{root}/a") == b"y"
