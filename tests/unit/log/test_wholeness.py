"""Which logs are whole, as a start reads it from the files of the process before."""

from collections.abc import Callable

import pytest
from tests.unit.replica.disk import DictDisk

from strandline.base.ids import TopicIdPartition, Uuid
from strandline.log.evidence.clean_shutdown import Place
from strandline.log.evidence.wholeness import FILE, Vouched, page_of, take_vouched

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)
PLACE = Place("cluster", 1, (("/d1", ONE), ("/d2", TWO)))
PROCESS, LATER = Uuid(b"p" * 16), Uuid(b"q" * 16)
ORDERS = TopicIdPartition(Uuid(b"o" * 16), 0)
OTHERS = TopicIdPartition(Uuid(b"o" * 16), 7), TopicIdPartition(Uuid(b"t" * 16), 3)
SAID = Vouched(PROCESS, {"/d1": frozenset([ORDERS]), "/d2": frozenset(OTHERS)})


def disk_of(place: Place = PLACE) -> DictDisk:
    disk = DictDisk()
    for (path, directory_id), logs in zip(place.directories, ((ORDERS,), OTHERS), strict=False):
        disk.write_file(f"{path}/{FILE}", page_of(place, directory_id, disk.boot_id(), PROCESS, logs))
    return disk


def took(disk: DictDisk, place: Place = PLACE, *, is_clean: bool = False) -> Vouched | None:
    return take_vouched(disk, place, is_clean=is_clean)


def test_in_the_same_run_of_the_system_the_files_are_believed() -> None:
    assert took(disk_of()) == SAID


def test_they_are_believed_once() -> None:
    disk = disk_of()
    took(disk)
    assert not disk.exists(f"/d1/{FILE}")
    assert took(disk) is None


def test_in_another_run_only_if_the_stop_was_in_order() -> None:
    disk = disk_of()
    disk.boot = "boot 2"
    assert took(disk) is None
    disk = disk_of()
    disk.boot = "boot 2"
    assert took(disk, is_clean=True) == SAID


def test_a_system_that_does_not_say_which_run_it_is_proves_nothing() -> None:
    disk = DictDisk()
    disk.boot = ""
    place = Place("cluster", 1, (("/d1", ONE),))
    disk.write_file(f"/d1/{FILE}", page_of(place, ONE, "", PROCESS, (ORDERS,)))
    assert took(disk, place) is None


def rewritten(disk: DictDisk, path: str, place: Place, directory: Uuid, process: Uuid = PROCESS) -> None:
    disk.write_file(f"{path}/{FILE}", page_of(place, directory, disk.boot_id(), process, (ORDERS,)))


def with_byte(disk: DictDisk, old: bytes, new: bytes) -> None:
    content = disk.read_file(f"/d2/{FILE}")
    assert content is not None and content.count(old) == 1
    disk.write_file(f"/d2/{FILE}", content.replace(old, new))


WRONG: dict[str, Callable[[DictDisk], None]] = {
    "a directory has none: it is new": lambda disk: disk.remove(f"/d2/{FILE}"),
    "a directory has that of another process": lambda disk: rewritten(disk, "/d2", PLACE, TWO, LATER),
    "it is of another directory": lambda disk: rewritten(disk, "/d2", PLACE, ONE),
    "it is of another node": lambda disk: rewritten(disk, "/d2", Place("cluster", 2, PLACE.directories), TWO),
    "it is of another cluster": lambda disk: rewritten(disk, "/d2", Place("other", 1, PLACE.directories), TWO),
    "there were other directories": lambda disk: rewritten(disk, "/d2", Place("cluster", 1, (("/d2", TWO),)), TWO),
    "one was dead": lambda disk: rewritten(disk, "/d2", Place("cluster", 1, PLACE.directories, dead=1), TWO),
    "it was cut": lambda disk: disk.write_file(f"/d2/{FILE}", (disk.read_file(f"/d2/{FILE}") or b"")[:-20]),
    "it is empty": lambda disk: disk.write_file(f"/d2/{FILE}", b""),
    "a partition was changed": lambda disk: with_byte(disk, b"[7]", b"[8]"),
    "a topic makes no sense": lambda disk: with_byte(disk, b'"logs":{"', b'"logs":{"?'),
}


@pytest.mark.parametrize("damage", WRONG.values(), ids=list(WRONG))
def test_nothing_is_believed_unless_all_directories_have_it_of_one_process(damage: Callable[[DictDisk], None]) -> None:
    disk = disk_of()
    damage(disk)
    assert took(disk, is_clean=True) is None
    assert not disk.exists(f"/d1/{FILE}")
