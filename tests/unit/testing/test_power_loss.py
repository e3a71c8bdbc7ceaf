"""The disk that loses power: the conformance suite, what is left after a cut, and what a process is told by signals."""

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.conformance.disk import DiskConformance

from strandline.server.node import run_node
from strandline.server.storage.disk import RealDisk
from strandline.testing.disk_faults import disk_of
from strandline.testing.power_loss import DURABLE, PowerLossDisk, durable_files, restore


class TestPowerLossDisk(DiskConformance):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        (tmp_path / "data").mkdir()
        return str(tmp_path / "data")

    @pytest.fixture
    def disk(self, root: str, tmp_path: Path) -> PowerLossDisk:
        return PowerLossDisk([root], tmp_path / "durable")


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "data").mkdir()
    return str(tmp_path / "data")


@pytest.fixture
def durable(tmp_path: Path) -> Path:
    return tmp_path / "durable"


def test_a_node_in_production_has_the_real_disk_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, data: str, durable: Path
) -> None:
    monkeypatch.setenv(DURABLE, str(durable))
    assert type(disk_of([data])) is PowerLossDisk
    assert [type(default([data])) for default in run_node.__defaults__ or ()] == [RealDisk]


def test_what_was_there_when_the_process_began_is_durable(data: str, durable: Path) -> None:
    RealDisk().make_directory(f"{data}/d")
    RealDisk().write_file(f"{data}/d/a", b"old")
    disk = PowerLossDisk([data], durable)
    disk.write_file(f"{data}/d/a", b"new")
    disk.remove_tree(f"{data}/d")
    restore(durable)
    assert disk.read_file(f"{data}/d/a") == b"old"


def test_appended_and_synced_survives_and_what_came_after_is_gone(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    file = disk.open(f"{data}/log")
    file.append([b"synced"])
    disk.sync([f"{data}/log", data])
    file.append([b" lost"])
    assert disk.read_file(f"{data}/log") == b"synced lost"
    restore(durable)
    assert disk.read_file(f"{data}/log") == b"synced"


def test_a_synced_file_in_a_directory_that_was_not_is_gone(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    disk.open(f"{data}/log").append([b"x"])
    disk.sync([f"{data}/log"])
    restore(durable)
    assert disk.list(data) == []


def test_a_name_that_survives_alone_names_an_empty_file(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    disk.open(f"{data}/log").append([b"x"])
    disk.sync([data])
    restore(durable)
    assert disk.read_file(f"{data}/log") == b""


def test_a_saved_file_survives_and_a_written_one_does_not(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    disk.save(f"{data}/a", b"one")
    disk.write_file(f"{data}/a", b"two")
    restore(durable)
    assert disk.read_file(f"{data}/a") == b"one"
    assert disk.list(data) == ["a"]


def test_a_cut_that_was_not_synced_comes_back(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    file = disk.open(f"{data}/log")
    file.append([b"0123456789"])
    disk.sync([f"{data}/log", data])
    file.truncate(4)
    file.append([b"ab"])
    restore(durable)
    assert disk.read_file(f"{data}/log") == b"0123456789"


def test_a_cut_that_was_synced_stays_and_so_does_what_followed_it(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    file = disk.open(f"{data}/log")
    file.append([b"0123456789"])
    disk.sync([f"{data}/log", data])
    file.truncate(4)
    file.append([b"ab"])
    disk.sync([f"{data}/log"])
    restore(durable)
    assert disk.read_file(f"{data}/log") == b"0123ab"


def test_a_renamed_directory_keeps_its_old_name_until_its_parent_is_synced(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    disk.make_directory(f"{data}/d")
    disk.save(f"{data}/d/a", b"x")
    disk.rename(f"{data}/d", f"{data}/e")
    restore(durable)
    assert disk.list(data) == ["d"]
    disk = PowerLossDisk([data], durable)
    disk.rename(f"{data}/d", f"{data}/e")
    disk.sync([data])
    restore(durable)
    assert disk.list(data) == ["e"]
    assert disk.read_file(f"{data}/e/a") == b"x"


def test_what_the_system_writes_back_by_itself_survives(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    disk.make_directory(f"{data}/d")
    disk.open(f"{data}/d/log").append([b"x"])
    disk.write_back()
    restore(durable)
    assert disk.read_file(f"{data}/d/log") == b"x"


def test_a_random_write_back_keeps_a_first_part_of_what_was_appended(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    file = disk.open(f"{data}/log")
    file.append([b"0123"])
    disk.sync([f"{data}/log", data])
    content = bytes(range(48, 122))
    file.append([content[4:]])
    rng = random.Random(4)
    sizes = []
    for _ in range(12):
        disk.write_back(rng)
        sizes.append(next(p for p in durable_files(durable).values() if p is not None).stat().st_size)
    assert sizes == sorted(sizes)
    assert any(4 < size < len(content) for size in sizes)
    restore(durable)
    found = disk.read_file(f"{data}/log")
    assert found is not None
    assert content.startswith(found)


def test_a_line_of_the_journal_that_was_not_finished_does_not_count(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    disk.save(f"{data}/a", b"x")
    with (durable / "journal").open("a") as journal:
        journal.write('[[1, "a", null')
    restore(durable)
    assert disk.list(data) == ["a"]


def test_a_process_that_is_killed_while_it_copies_at_its_start_leaves_the_copy_of_before(
    data: str, durable: Path
) -> None:
    PowerLossDisk([data], durable).save(f"{data}/a", b"x")
    half = durable.with_name(durable.name + ".new")
    half.mkdir()
    (half / "journal.tmp").write_text("{")
    restore(durable)
    assert RealDisk().read_file(f"{data}/a") == b"x"


def test_appends_and_syncs_at_the_same_time_lose_nothing_that_was_synced(data: str, durable: Path) -> None:
    disk = PowerLossDisk([data], durable)
    file = disk.open(f"{data}/log")
    disk.sync([data])
    synced = []

    def sync() -> None:
        size = 0
        while size < 8000:  # half of what is written, so that what follows need not be found
            size = file.size()
            disk.sync([f"{data}/log"])
            synced.append(size)

    thread = threading.Thread(target=sync)
    thread.start()
    for number in range(2000):
        file.append([b"%08d" % number])
    thread.join()
    restore(durable)
    found = disk.read_file(f"{data}/log")
    assert found is not None
    assert len(found) >= max(synced) >= 8000
    assert found == b"".join(b"%08d" % number for number in range(2000))[: len(found)]


PROGRAM = """
import sys, time
from strandline.testing.disk_faults import disk_of
disk = disk_of([sys.argv[1]])
file = disk.open(sys.argv[1] + "/log")
file.append([b"kept"])
print("written", flush=True)
sys.stdin.readline()
file.append([b" lost"])
print("written", flush=True)
time.sleep(60)
"""


def test_a_process_is_killed_and_keeps_what_it_was_asked_to_write_back(data: str, durable: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, data]
    environment = {**os.environ, DURABLE: str(durable)}
    log = f"{data}/log"
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdout.readline()
            process.send_signal(signal.SIGUSR1)
            while not ((copy := durable_files(durable).get(log)) and copy.exists() and copy.stat().st_size == 4):
                assert process.poll() is None
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
        finally:
            process.kill()
    assert RealDisk().read_file(log) == b"kept lost"
    restore(durable)
    assert RealDisk().read_file(log) == b"kept"
