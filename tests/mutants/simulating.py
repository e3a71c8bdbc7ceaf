"""How many drawn seeds does the simulator need to find a mutant? Its tests are not asked.

Each mutant has one process after another that runs seeds in its copy of the source; the first seed that fails ends it.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from tests.mutants.mutant import Mutant, Stale
from tests.mutants.running import Workshop

from strandline.base.value import Value
from strandline.sim.run import Outcome

SEED_LIMIT_S = 900.0  # a seed that takes longer than this runs in circles: that is found, too


class Hunt(Value, frozen=True):
    name: str
    breaks: str
    seeds: int  # how many were run
    seed: int  # the one that failed; -1: none did
    check: str  # what failed in it
    seconds: float


def hunt(shop: Workshop, mutant: Mutant, seeds: Sequence[int]) -> Hunt:
    began = time.monotonic()

    def told(count: int, seed: int, check: str) -> Hunt:
        return Hunt(mutant.name, mutant.breaks.value, count, seed, check, round(time.monotonic() - began, 1))

    try:
        with shop.with_changes(mutant), Runner(shop) as runner:
            for count, seed in enumerate(seeds, 1):
                outcome = runner.run(seed)
                if outcome is None:
                    return told(count, seed, "the process died or did not come to an end")
                if not outcome.is_ok:
                    return told(count, seed, outcome.check)
    except Stale as stale:
        return told(0, -1, str(stale))
    return told(len(seeds), -1, "")


class Runner:
    """`strandline.sim.worker`, with a limit for each seed."""

    def __init__(self, shop: Workshop) -> None:
        command = [sys.executable, "-m", "strandline.sim.worker"]
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

    def run(self, seed: int) -> Outcome | None:
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
        return msgspec.json.decode(line, type=Outcome) if line else None
