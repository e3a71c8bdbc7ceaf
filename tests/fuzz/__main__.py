"""`python -m tests.fuzz`: hostile frames, requests, batches, and whole nodes under drawn requests.

    python -m tests.fuzz [--target frames|requests|batches|node] [--minutes N] [--seed N] [--found FOLDER]

Without a target each gets its share of the time. The first three are guided by coverage (atheris, in the extra `fuzz`);
without atheris their inputs are those of the corpus, changed at random. An input that breaks a promise, or a seed of
`node` that does, is printed, and the exit status is 1. `--found`: where guided inputs are kept, and used again.
"""

import argparse
import os
import subprocess
import sys
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import gettempdir

from tests.fuzz.corpus import changed, stored
from tests.fuzz.node import siege
from tests.fuzz.targets import TARGETS

STEPS = 400  # requests of one siege
REPORT_S = 10


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--target", choices=[*TARGETS, "node"])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", default=os.path.join(gettempdir(), "strandline-fuzz"))
    options = parser.parse_args(arguments)
    chosen = [options.target] if options.target else [*TARGETS, "node"]
    seconds = 60 * options.minutes / len(chosen)
    return max(run(target, seconds, options.seed, options.found) for target in chosen)


def run(target: str, seconds: float, seed: int, found: str) -> int:
    assert seconds > 0
    print(f"{target}: {seconds:.0f} s", flush=True)
    if target == "node":
        return besiege(seconds, seed)
    if find_spec("atheris") is None:
        print("atheris is not installed: inputs are changed at random (pip install -e '.[fuzz]')")
        return alter(target, seconds, seed)
    return guide(target, seconds, seed, found)


def guide(target: str, seconds: float, seed: int, found: str) -> int:
    folder = Path(found) / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in stored(target):
        (folder / name).write_bytes(data)
    limits = [f"-max_total_time={seconds:.0f}", f"-seed={seed}", "-timeout=60"]
    return min(1, abs(subprocess.call([sys.executable, "-m", "tests.fuzz.guided", target, str(folder), *limits])))


def alter(target: str, seconds: float, seed: int) -> int:
    rng, inputs = Random(seed), [data for _, data in stored(target)]
    until, reported_at, count = time.monotonic() + seconds, time.monotonic(), 0
    while time.monotonic() < until:
        data = changed(inputs, rng)
        count += 1
        try:
            TARGETS[target](data)
        except Exception:
            traceback.print_exc()
            print(f"{target}: this input breaks a promise: {data.hex()}")
            return 1
        if time.monotonic() - reported_at > REPORT_S:
            reported_at = time.monotonic()
            print(f"{target}: {count} inputs", flush=True)
    return 0


def besiege(seconds: float, seed: int) -> int:
    until = time.monotonic() + seconds
    first = seed
    while time.monotonic() < until:
        try:
            siege(seed, STEPS)
        except AssertionError as error:
            traceback.print_exception(error)
            return 1
        seed += 1
        print(f"node: seeds {first}..{seed - 1}, {STEPS} requests each", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
