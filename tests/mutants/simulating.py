"""How many drawn seeds does the simulator need to find a mutant? Its tests are not asked.

First each seed is run once with the source as it is, and tells which mutants do anything else in it (`differing`): with
the others it need not be run. Then each mutant has a process that runs its seeds in its copy of the source, the short
ones first; the first seed that fails ends it.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
from tests.mutants.differing import Looked
from tests.mutants.mutant import ROOT, Mutant, Stale
from tests.mutants.running import Workshop

from strandline.base.value import Value
from strandline.sim.runs.run import RunResult

SEED_LIMIT_S = 900.0  # a seed that takes longer than this runs in circles: that is found, too


class Hunt(Value, frozen=True):
    name: str
    breaks: str
    differing: int  # in how many seeds it does anything else than the source
    seeds: int  # how many of these were run
    seed: int  # the one that failed; -1: none did
    check: str  # what failed in it
    seconds: float


def look(seeds: Sequence[int]) -> Iterator[Looked]:
    """Each seed, once, with the source as it is."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-m", "tests.mutants.differing"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for seed in seeds:
            process.stdin.write(f"{seed}\n".encode())
            process.stdin.flush()
            yield msgspec.json.decode(process.stdout.readline(), type=Looked)


def hunt(shop: Workshop, mutant: Mutant, looked: Sequence[Looked]) -> Hunt:
    began = time.monotonic()
    seeds = [one.seed for one in sorted(looked, key=lambda one: one.events) if mutant.name in one.names]

    def result(count: int, seed: int, check: str) -> Hunt:
        spent = round(time.monotonic() - began, 1)
        return Hunt(mutant.name, mutant.breaks.value, len(seeds), count, seed, check, spent)

    try:
        with shop.with_changes(mutant), Runner(shop) as runner:
            for count, seed in enumerate(seeds, 1):
                outcome = runner.run(seed)
                if outcome is None:
                    return result(count, seed, "the process died or did not come to an end")
                if not outcome.is_ok:
                    return result(count, seed, outcome.check)
    except Stale as stale:
        return result(0, -1, str(stale))
    return result(len(seeds), -1, "")


class Runner:
    """`strandline.sim.runs.worker`, with a limit for each seed."""

    def __init__(self, shop: Workshop) -> None:
        command = [sys.executable, "-m", "strandline.sim.runs.worker"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=shop.environment()
        )

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def run(self, seed: int) -> RunResult | None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        watch = threading.Timer(SEED_LIMIT_S, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(f"{seed}\n".encode())
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            return None
        finally:
            watch.cancel()
        return msgspec.json.decode(line, type=RunResult) if line else None
