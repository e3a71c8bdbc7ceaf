"""Many seeds, on several processes: every outcome as it comes, and nothing stops because one seed fails."""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence

import msgspec

from strandline.sim.run import Outcome


def outcomes(
    seeds: Sequence[int], jobs: int, *, planted: str = "", environment: dict[str, str] | None = None
) -> Iterator[Outcome]:
    """The outcomes of all seeds, in the order in which they are ready. Closing the iterator stops the processes."""
    left = iter(seeds)
    lock = threading.Lock()
    done: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
    workers = [start_worker(planted, environment) for _ in range(min(jobs, len(seeds)))]

    def following() -> int | None:
        with lock:
            return next(left, None)

    def drive(worker: "subprocess.Popen[bytes]") -> None:
        assert worker.stdin is not None
        assert worker.stdout is not None
        while (seed := following()) is not None:
            try:
                worker.stdin.write(b"%d\n" % seed)
                worker.stdin.flush()
                line = worker.stdout.readline()
            except OSError:
                line = b""
            if not line:
                done.put(Outcome(seed, "the process that ran this seed died", "", "", 0, 0, 0, 0, ()))
                break
            done.put(msgspec.json.decode(line, type=Outcome))
        done.put(None)

    threads = [threading.Thread(target=drive, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        running = len(workers)
        while running:
            outcome = done.get()
            if outcome is None:
                running -= 1
            else:
                yield outcome
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    pipe.close()


def start_worker(planted: str, environment: dict[str, str] | None) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "strandline.sim.worker", *([planted] if planted else [])]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}
    )
