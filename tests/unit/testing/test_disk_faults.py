"""A full disk takes nothing and still gives what it has; one that has failed does neither; both can be repaired."""

from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.base.ports import DiskError, DiskFull
from strandline.testing.disk_faults import FAILED, FULL, DiskFault, FaultyDisk


@pytest.fixture
def fault(tmp_path: Path) -> Path:
    return tmp_path / "fault"


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "data").mkdir()
    return str(tmp_path / "data")


@pytest.fixture
def disk(tmp_path: Path, fault: Path, root: str) -> FaultyDisk:
    return FaultyDisk([root], tmp_path / "durable", DiskFault(str(fault)))


TAKES_ROOM: dict[str, Callable[[FaultyDisk, str], object]] = {
    "append": lambda disk, root: disk.open(f"{root}/a").append([b"more"]),
    "write at": lambda disk, root: disk.open(f"{root}/a").write_at(0, b"more"),
    "new file": lambda disk, root: disk.open(f"{root}/new"),
    "directory": lambda disk, root: disk.make_directory(f"{root}/new"),
    "write file": lambda disk, root: disk.write_file(f"{root}/b", b"more"),
    "save": lambda disk, root: disk.save(f"{root}/b", b"more"),
}
TAKES_NONE: dict[str, Callable[[FaultyDisk, str], object]] = {
    "read": lambda disk, root: disk.open(f"{root}/a").read(0, 3),
    "truncate": lambda disk, root: disk.open(f"{root}/a").truncate(1),
    "list": lambda disk, root: disk.list(root),
    "read file": lambda disk, root: disk.read_file(f"{root}/a"),
    "rename": lambda disk, root: disk.rename(f"{root}/a", f"{root}/c"),
    "remove": lambda disk, root: disk.remove(f"{root}/a"),
    "remove tree": lambda disk, root: disk.remove_tree(f"{root}/a-folder"),
    "there already": lambda disk, root: disk.make_directory(root),
    "sync": lambda disk, root: disk.sync([f"{root}/a"]),
}


def prepared(disk: FaultyDisk, root: str) -> None:
    disk.make_directory(f"{root}/a-folder")
    file = disk.open(f"{root}/a")
    file.append([b"abc"])
    file.close()


@pytest.mark.parametrize("name", TAKES_ROOM)
def test_a_full_disk_takes_nothing_until_there_is_room(disk: FaultyDisk, root: str, fault: Path, name: str) -> None:
    prepared(disk, root)
    fault.write_text(FULL)
    with pytest.raises(DiskFull, match="No space left"):
        TAKES_ROOM[name](disk, root)
    assert disk.read_file(f"{root}/a") == b"abc"
    fault.unlink()
    TAKES_ROOM[name](disk, root)


@pytest.mark.parametrize("name", TAKES_NONE)
def test_a_full_disk_still_gives_and_frees(disk: FaultyDisk, root: str, fault: Path, name: str) -> None:
    prepared(disk, root)
    fault.write_text(FULL)
    TAKES_NONE[name](disk, root)


@pytest.mark.parametrize("name", [*TAKES_ROOM, *TAKES_NONE])
def test_a_disk_that_has_failed_does_nothing(disk: FaultyDisk, root: str, fault: Path, name: str) -> None:
    prepared(disk, root)
    fault.write_text(FAILED)
    with pytest.raises(DiskError, match="Input/output error") as raised:
        (TAKES_ROOM | TAKES_NONE)[name](disk, root)
    assert not isinstance(raised.value, DiskFull)
    fault.unlink()
    (TAKES_ROOM | TAKES_NONE)[name](disk, root)


def test_an_open_file_fails_too(disk: FaultyDisk, root: str, fault: Path) -> None:
    prepared(disk, root)
    file = disk.open(f"{root}/a")
    for what, kind in ((FULL, DiskFull), (FAILED, DiskError)):
        fault.write_text(what)
        with pytest.raises(kind):
            file.append([b"x"])
        with pytest.raises(kind):
            file.write_at(0, b"x")
    with pytest.raises(DiskError):
        file.read(0, 1)
    with pytest.raises(DiskError):
        file.truncate(0)
    assert disk.sync_each([f"{root}/a"]).keys() == {f"{root}/a"}
    fault.unlink()
    assert bytes(file.read(0, 9)) == b"abc"
