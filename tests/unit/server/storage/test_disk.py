"""The real disk: the conformance suite, and what only it can get wrong."""

import errno
import os
from pathlib import Path

import pytest
from tests.conformance.disk import DiskConformance

from strandline.base.ports import DiskError, DiskFull
from strandline.server.storage import disk as disk_module
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.lock import lock_directory
from strandline.server.storage.private import close_to_others


class TestRealDisk(DiskConformance):
    @pytest.fixture
    def disk(self) -> RealDisk:
        return RealDisk()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path)


def test_a_short_write_is_continued_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwritev

    def short(fd: int, buffers: list[memoryview], offset: int) -> int:
        return whole(fd, [b"".join(buffers)[:7]], offset)

    monkeypatch.setattr(disk_module.os, "pwritev", short)
    file = RealDisk().open(str(tmp_path / "a"))
    assert file.append([b"0123", b"", b"456789abc", b"de"]) == 15
    assert file.append([b"fg"]) == 2
    assert bytes(file.read(0, 100)) == b"0123456789abcdefg"
    file.close()


@pytest.mark.parametrize("count", [1, 100])
def test_of_files_that_are_flushed_together_each_has_its_own_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    whole, flushed = os.fsync, []

    def fsync(fd: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        if name == "rotten":
            raise OSError(5, "Input/output error")
        flushed.append(name)
        whole(fd)

    names = [f"file-{i:03}" for i in range(count)]
    for name in (*names, "rotten"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setattr(disk_module.os, "fsync", fsync)
    paths = [str(tmp_path / name) for name in (*names, "rotten", "gone")]
    errors = RealDisk().sync_each(paths)
    assert sorted(flushed) == names
    assert list(errors) == [str(tmp_path / "rotten")]
    with pytest.raises(DiskError, match="rotten: Input/output error"):
        RealDisk().sync(paths)


def test_a_full_disk_is_a_disk_error_with_path_and_reason() -> None:
    file = RealDisk().open("/dev/full")
    with pytest.raises(DiskError, match="/dev/full: No space left on device"):
        file.append([b"x"])
    file.close()


def test_save_leaves_the_content_and_no_temporary_file(tmp_path: Path) -> None:
    RealDisk().save(str(tmp_path / "a"), b"content")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"content"


def test_a_log_directory_belongs_to_one_process(tmp_path: Path) -> None:
    first = lock_directory(str(tmp_path))
    with pytest.raises(DiskError, match="another process"):
        lock_directory(str(tmp_path))
    os.close(first)
    os.close(lock_directory(str(tmp_path)))


def refusing(monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    def refused(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(disk_module.os, call, refused)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_a_write_without_room_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    disk, path = RealDisk(), str(tmp_path / "a")
    file = disk.open(path)
    refusing(monkeypatch, "pwritev", number)
    with pytest.raises(DiskFull, match=f"{path}: {os.strerror(number)}"):
        file.append([b"x"])
    with pytest.raises(DiskFull):
        file.append([b"x"] * 2000)
    assert file.size() == 0
    refusing(monkeypatch, "pwrite", number)
    with pytest.raises(DiskFull):
        file.write_at(0, b"x")
    refusing(monkeypatch, "fsync", number)
    for save in (lambda: disk.save(path, b"new"), lambda: disk.save_since(path, b"new", disk.saves(path))):
        with pytest.raises(DiskFull):
            save()
    assert disk.read_file(path) == b"", "the old content"
    file.close()


def test_a_write_that_writes_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(str(tmp_path / "a"))
    monkeypatch.setattr(disk_module.os, "pwritev", lambda fd, buffers, position: 0)
    with pytest.raises(DiskError, match="nothing was written"):
        file.append([b"x"])
    assert file.size() == 0


def test_another_error_is_no_lack_of_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(str(tmp_path / "a"))
    refusing(monkeypatch, "pwritev", errno.EIO)
    with pytest.raises(DiskError) as error:
        file.append([b"x"])
    assert not isinstance(error.value, DiskFull)


def test_a_flush_of_what_was_written_is_lost_whatever_it_failed_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may have dropped it: the node must not come back as if only the last write had failed."""
    path = str(tmp_path / "a")
    RealDisk().write_file(path, b"x")
    refusing(monkeypatch, "fsync", errno.ENOSPC)
    with pytest.raises(DiskError) as error:
        RealDisk().sync([path])
    assert not isinstance(error.value, DiskFull)


def test_the_files_that_a_node_leaves_open_are_closed_with_it(tmp_path: Path) -> None:
    disk = RealDisk()
    files = [disk.open(str(tmp_path / name)) for name in "abc"]
    files[0].close()
    disk.abandon()
    assert [file.fd for file in files] == [-1, -1, -1]


def test_others_read_what_the_umask_lets_them_and_nothing_of_the_metadata(tmp_path: Path) -> None:
    disk, old = RealDisk(), os.umask(0o022)
    try:
        for name in ("t-0", "__cluster_metadata-0"):
            disk.make_directory(f"{tmp_path}/{name}")
            disk.open(f"{tmp_path}/{name}/00000000000000000000.log").close()
            disk.save(f"{tmp_path}/{name}/saved", b"")
            disk.write_file(f"{tmp_path}/{name}/written", b"")
        disk.save(f"{tmp_path}/bootstrap.checkpoint", b"")
        disk.save(f"{tmp_path}/quarantined-requests", b"")
        disk.save(f"{tmp_path}/meta.properties", b"")
    finally:
        os.umask(old)
    modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    names = ("00000000000000000000.log", "saved", "written")
    assert modes == {
        "t-0": 0o755,
        "meta.properties": 0o644,
        "__cluster_metadata-0": 0o700,
        "bootstrap.checkpoint": 0o600,
        "quarantined-requests": 0o600,
        **{f"t-0/{name}": 0o644 for name in names},
        **{f"__cluster_metadata-0/{name}": 0o600 for name in names},
    }


def test_metadata_that_others_could_read_is_closed_to_them_at_a_start(tmp_path: Path) -> None:
    directory, bootstrap, log = (
        tmp_path / "__cluster_metadata-0",
        tmp_path / "bootstrap.checkpoint",
        tmp_path / "__cluster_metadata-0" / "00000000000000000000.log",
    )
    directory.mkdir()
    for path in (bootstrap, log):
        path.write_bytes(b"")
        path.chmod(0o644)
    directory.chmod(0o755)
    close_to_others(str(tmp_path))
    RealDisk().open(str(log)).close()
    assert [path.stat().st_mode & 0o777 for path in (directory, bootstrap, log)] == [0o700, 0o600, 0o600]
    close_to_others(str(tmp_path / "nothing"))
