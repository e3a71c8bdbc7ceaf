"""Many seeds, on several processes: every outcome as it comes, and nothing stops because one seed fails.

`prepare`: `MODULE:NAME`, what each process does first (see `prepared`). `twice`: each seed runs in two processes that
hash differently, and must do the same thing in both. `workload`: all runs have this one alone. `secured`: and
are secured so (see `alone`).
"""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from strandline.sim.runs.run import RunResult

HASH_SEEDS = ("1", "2")


class Worker:
    """A process that runs seeds, one after another, drawing their plans or with one that is written down."""

    def __init__(
        self,
        prepare: str = "",
        hash_seed: str = HASH_SEEDS[0],
        plan: Path | None = None,
        workload: str = "",
        secured: str = "",
    ) -> None:
        command = [sys.executable, "-m", "strandline.sim.runs.worker", prepare, workload, secured]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        self.plan = plan or ""
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)

    def run(self, seed: int) -> RunResult:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{seed} {self.plan}\n".encode())
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except (OSError, ValueError):  # ValueError: it was stopped from outside
            line = b""
        if not line:
            return RunResult(seed, "the process that ran this seed died", "", "", 0, 0, 0, 0, ())
        return msgspec.json.decode(line, type=RunResult)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # a thread had just given it the next seed
                    pipe.close()


def outcomes(
    seeds: Sequence[int],
    jobs: int,
    *,
    prepare: str = "",
    plan: Path | None = None,
    workload: str = "",
    secured: str = "",
    twice: bool = False,
) -> Iterator[RunResult]:
    """The outcomes of all seeds, in the order in which they are ready. Closing the iterator stops the processes."""
    left = iter(seeds)
    lock = threading.Lock()
    done: queue.SimpleQueue[RunResult | None] = queue.SimpleQueue()
    hash_seeds = HASH_SEEDS if twice else HASH_SEEDS[:1]
    teams = [
        [Worker(prepare, hash_seed, plan, workload, secured) for hash_seed in hash_seeds]
        for _ in range(min(jobs, len(seeds)))
    ]

    def following() -> int | None:
        with lock:
            return next(left, None)

    def drive(team: list[Worker]) -> None:
        while (seed := following()) is not None:
            done.put(alike([worker.run(seed) for worker in team]))
        done.put(None)

    for team in teams:
        threading.Thread(target=drive, args=(team,), daemon=True).start()
    try:
        running = len(teams)
        while running:
            outcome = done.get()
            if outcome is None:
                running -= 1
            else:
                yield outcome
    finally:
        for team in teams:
            for worker in team:
                worker.stop()


def alike(found: list[RunResult]) -> RunResult:
    """The outcome of one seed, if all its runs did the same."""
    first = found[0]
    for other in found[1:]:
        if other != first and first.is_ok:
            why = f"not deterministic: digest {first.digest}, and {other.digest} in a process that hashes differently"
            return msgspec.structs.replace(first, check=why, evidence=other.check)
    return first
