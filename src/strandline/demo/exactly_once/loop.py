"""The workers of one loop: processes that share a consumer group, and that are started again when they end."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from strandline.demo.exactly_once.worker import Job
from strandline.server import lifeline
from strandline.testing.local_cluster import uninterrupted

AGAIN_AFTER_S = 0.7


class WorkerProcess:
    def __init__(self, job: Job, log_path: Path) -> None:
        self.job = job
        self.log_path = log_path
        self.process: subprocess.Popen[bytes] | None = None
        self.ended_at: float | None = None  # when it was noticed

    def start(self) -> None:
        command = [sys.executable, "-m", "strandline.demo.exactly_once.worker", msgspec.json.encode(self.job).decode()]
        self.ended_at = None
        with self.log_path.open("ab") as output, uninterrupted():
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **lifeline.environment()},
                pass_fds=(lifeline.reading_end(),),
                start_new_session=True,  # Ctrl-C reaches the parent alone
            )

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


class Loop:
    def __init__(self, name: str, bootstrap: str, workers: int, *, transactions: bool, pace_ms: float, folder: Path):
        self.name = name
        self.topic = f"bookings-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        self.workers = [
            WorkerProcess(
                Job(bootstrap, name, self.topic, number, f"{name}-{number}" if transactions else "", pace_ms),
                folder / f"{name}-{number}.log",
            )
            for number in range(workers)
        ]

    def start(self) -> None:
        for worker in self.workers:
            worker.start()

    def revive(self) -> Iterator[int]:
        """Start again what ended some time ago; which workers were not known to have ended."""
        now = time.monotonic()
        for worker in self.workers:
            if worker.is_running:
                continue
            if worker.ended_at is None:
                worker.ended_at = now
                yield worker.job.worker
            elif now - worker.ended_at >= AGAIN_AFTER_S:
                worker.start()

    def kill(self, number: int) -> None:
        worker = self.workers[number]
        if worker.is_running:
            worker.kill()
        worker.ended_at = worker.ended_at or time.monotonic()

    def kill_all(self) -> None:
        for worker in self.workers:
            if worker.is_running:
                worker.kill()
