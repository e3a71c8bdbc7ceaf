"""Runs one block, in a process of its own, and writes its file: the core that every engine calls."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.simulate.child import OTHER_CODE
from strandline_spark.jobs.simulate.definition import HASH_SEEDS, Task
from strandline_spark.jobs.simulate.seed_row import SeedRow
from strandline_spark.jobs.simulate.store import write_rows


class Written(Value, frozen=True):
    """What a block has come to. `schemas.SEED_BLOCK` says the same to Spark."""

    run: str
    first: int
    last: int
    seeds: int  # that counted
    failed: int
    ms: int  # of all its seeds, on the wall


def write_block(task: Task, folder: Path) -> Written:
    """Run a block and make its file. Raises StrandlineError if its process cannot go on."""
    rows = list(seed_rows(task))
    write_rows(folder, task.block, rows)
    failed = sum(not row.is_ok for row in rows)
    return Written(*(task.block.run, task.block.first, task.block.last), len(rows), failed, sum(r.ms for r in rows))


def seed_rows(task: Task) -> Iterator[SeedRow]:
    """A row per seed that counts, as they come. Closing the iterator ends the process, and the seed that it runs."""
    # The child finds what this process has found, whatever it was that put it on the path.
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONHASHSEED": HASH_SEEDS[task.block.run], "PYTHONPATH": path}
    command = [sys.executable, "-m", "strandline_spark.jobs.simulate.child"]
    pipe = subprocess.PIPE
    complaints = TemporaryFile()  # noqa: SIM115  # closed below, with the pipes
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=complaints, env=environment)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        with suppress(BrokenPipeError):  # its exit status says why
            child.stdin.write(msgspec.json.encode(task) + b"\n")
            child.stdin.flush()
        for line in child.stdout:
            yield msgspec.json.decode(line, type=SeedRow)
        if child.wait():
            complaints.seek(0)
            raise broken(task, child.returncode, complaints.read().decode(errors="replace").strip())
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, complaints):
            with suppress(BrokenPipeError):
                stream.close()


def broken(task: Task, status: int, output: str) -> StrandlineError:
    last = output.splitlines()[-1] if output else "no output"
    if status == OTHER_CODE:
        return StrandlineError(
            f"{last}, and this campaign has {task.campaign.code_version}",
            "install the same version on all machines of the Spark cluster",
        )
    return StrandlineError(f"the process that ran the seeds {task.block.name} ended with status {status}: {last}")
