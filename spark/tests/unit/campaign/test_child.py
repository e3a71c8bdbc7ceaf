"""The process of a block: seeds know nothing of one another, and nothing that one of them does stops the others."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from strandline.sim.runs.plan import draw_plan
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.simulate.block import seed_rows
from strandline_spark.jobs.simulate.code import code_version
from strandline_spark.jobs.simulate.definition import AGAIN, FIRST, Block, Campaign, Task
from strandline_spark.jobs.simulate.seed_row import SeedRow

BROOD = """
import os, signal, sys, time
import msgspec
from strandline_spark.jobs.simulate.child import SeedProcesses
from strandline_spark.jobs.simulate.definition import FIRST, Block, Campaign
from strandline.sim.runs.run import RunResult

left = []  # what a module remembers

def run(seed):
    left.append(seed)
    if seed == 3:
        time.sleep(60)
    if seed == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 5:
        sys.exit("no more")
    check = "a law" if seed == 6 else ""
    seen = {"struck: kill": 2, "leads": 1}
    return RunResult(seed, check, "why", f"d{len(left)}", 1, 2, 3, 0, ("x" * 200_000,) * 2, seen)

processes = SeedProcesses(Campaign("code", limit_s=0.5), Block(FIRST, 1, 7), run, RunResult)
for seed in range(1, 8):
    sys.stdout.buffer.write(msgspec.json.encode(processes.row(seed)) + b"\\n")
"""


pytestmark = pytest.mark.xdist_group("seed-processes")  # whose rows all tests look at


@pytest.fixture(scope="module")
def processes() -> dict[int, SeedRow]:
    life_line, other_end = os.pipe()
    try:
        process = subprocess.run(
            [sys.executable, "-c", BROOD], stdin=life_line, capture_output=True, check=True, timeout=60
        )
    finally:
        os.close(life_line)
        os.close(other_end)
    rows = [msgspec.json.decode(line, type=SeedRow) for line in process.stdout.splitlines()]
    return {row.seed: row for row in rows}


def test_no_seed_finds_what_another_has_left_in_memory(processes: dict[int, SeedRow]) -> None:
    assert [processes[seed].digest for seed in (1, 2, 6, 7)] == ["d1"] * 4


def test_a_seed_that_takes_too_long_is_given_up_and_the_next_ones_run(processes: dict[int, SeedRow]) -> None:
    row = processes[3]
    assert (row.verdict, row.check, row.replay) == ("timed out", "it took longer than 0.5 s", "strandline sim --seed 3")
    assert 500 <= row.ms < 20_000
    assert processes[7].is_ok


def test_a_seed_that_takes_its_process_with_it_has_a_row(processes: dict[int, SeedRow]) -> None:
    assert (processes[4].verdict, processes[4].check) == ("died", "its process died (SIGKILL)")
    assert processes[5].verdict == "died"


def test_what_failed_has_its_evidence_and_the_command_that_shows_it(processes: dict[int, SeedRow]) -> None:
    row = processes[6]
    assert (row.verdict, row.check, row.replay) == ("failed", "a law", "strandline sim --seed 6")
    assert row.error.startswith("why\nxxx")
    assert (processes[7].error, processes[7].replay) == ("", "")


def test_faults_that_struck_are_distinguished_from_what_else_was_seen(processes: dict[int, SeedRow]) -> None:
    assert processes[1].faults == {"kill": 2}
    assert processes[1].seen == {"leads": 1}


# --- with the simulator


def task(first: int, last: int, **options: object) -> Task:
    run = AGAIN if options.pop("again", False) else FIRST
    return Task(Campaign(code_version(), **options), Block(run, first, last))  # type: ignore[arg-type]


def test_only_seeds_that_count_are_run() -> None:
    eligible = [seed for seed in range(101, 121) if draw_plan(seed).options.elr]
    gentle = [seed for seed in eligible if not draw_plan(seed).options.is_ruthless]
    assert 0 < len(gentle) < len(eligible) < 20
    rows = list(seed_rows(task(101, 120, eligible="gentle", limit_s=0.05)))
    assert [row.seed for row in rows] == gentle
    assert {row.verdict for row in rows} == {"timed out"}


def test_a_process_with_other_code_says_so() -> None:
    with pytest.raises(StrandlineError, match=f"has the code {code_version()}, and this campaign has abc"):
        list(seed_rows(Task(Campaign("abc"), Block(FIRST, 1, 1))))


def test_a_process_that_cannot_go_on_is_an_error_that_says_why() -> None:
    with pytest.raises(StrandlineError, match=r"first-1-1 ended with status 1: .*no-such-bug"):
        list(seed_rows(task(1, 1, prepare="tests.planted:no-such-bug")))


def test_nobody_runs_on_when_the_rows_are_wanted_no_more() -> None:
    rows: Iterator[SeedRow] = seed_rows(task(40, 1000))
    with closing(rows):  # type: ignore[type-var]
        place = next(rows).place
    process = int(place.rpartition(":")[2])
    assert is_gone(process)


@pytest.mark.parametrize(("again", "hash_seed"), [(False, b"1"), (True, b"2")])
def test_second_runs_are_in_processes_that_hash_differently(again: bool, hash_seed: bytes) -> None:
    rows: Iterator[SeedRow] = seed_rows(task(18, 1000, again=again, again_per_10000=10_000, limit_s=0.05))
    with closing(rows):  # type: ignore[type-var]
        process = next(rows).place.rpartition(":")[2]
        assert b"PYTHONHASHSEED=" + hash_seed in Path(f"/proc/{process}/environ").read_bytes().split(b"\0")


def test_a_cut_life_line_ends_the_process_in_the_middle_of_a_seed() -> None:
    """As when what started it was killed and could not do anything about it."""
    command = [sys.executable, "-m", "strandline_spark.jobs.simulate.child"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    with child, child.stdin as line:
        line.write(msgspec.json.encode(task(40, 1000)) + b"\n")
        line.flush()
        assert msgspec.json.decode(child.stdout.readline(), type=SeedRow).is_ok
        line.close()
        assert child.wait(20) == 0


def is_gone(process: int) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
    return False
