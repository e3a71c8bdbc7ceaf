"""The disk in memory: it is a disk, and its power cuts take only what they may."""

from random import Random

import pytest
from tests.conformance.disk import DiskConformance

from strandline.sim.disk import SimDisk


class TestSimDisk(DiskConformance):
    @pytest.fixture
    def disk(self) -> SimDisk:
        return SimDisk()

    @pytest.fixture
    def root(self) -> str:
        return "/d"


@pytest.mark.parametrize("seed", range(20))
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


def test_a_file_in_a_directory_that_was_not_synced_may_be_gone() -> None:
    found = set()
    for seed in range(20):
        disk = SimDisk()
        disk.open("/d/a").append([b"x"])
        disk.sync(["/d/a"])
        disk.crash(Random(seed))
        found.add(disk.read_file("/d/a"))
    assert found == {None, b"x"}
