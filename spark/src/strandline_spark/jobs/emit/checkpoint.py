"""The folder of one emit run.

    lock            who runs holds it (flock): a second run at the same time is refused
    rows/           the staged rows, one Parquet file a lane; gone when the run has finished
    plan.json       durable before the first write
    lanes/N.json    lane N is in the topic, all of it
    finished.json   all lanes are

All processes must see the folder at the same path: a local disk, or one that is mounted on every machine of Spark's.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlparse

from msgspec import json

from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit.plan import (
    Finished,
    Plan,
    Written,
    decode_finished,
    decode_lane,
    decode_plan,
    encode,
)

STAGED = "_SUCCESS"  # Spark writes it when all files are complete
T = TypeVar("T")


class Checkpoint:
    def __init__(self, path: str) -> None:
        """Raises StrandlineError if `path` is not in a mounted file system."""
        url = urlparse(path)
        if url.scheme not in ("", "file"):
            problem = f"a checkpoint must be in a mounted folder, and {path} has the scheme {url.scheme}:"
            raise StrandlineError(
                problem, "give --checkpoint a path, on a shared disk if Spark runs on several machines"
            )
        self.folder = Path(url.path if url.scheme else path).absolute()
        self.rows = self.folder / "rows"
        self.lanes = self.folder / "lanes"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else on this machine runs with this checkpoint meanwhile. Raises StrandlineError if somebody does."""
        why = self.why_not_ours()
        if why:
            raise StrandlineError(
                f"{self.folder} is not a checkpoint of an emit run: {why}", "give --checkpoint a new folder"
            )
        self.lanes.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "lock", "wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StrandlineError(f"another run uses {self.folder} now", "wait for it to end, or stop it") from None
            except OSError:
                pass  # a file system without locks: two runs are harmless, they only waste each other's time
            yield

    def why_not_ours(self) -> str | None:
        if not self.folder.exists():
            return None
        if not self.folder.is_dir():
            return "it is a file"
        others = sorted(set(os.listdir(self.folder)) - {"lock", "rows", "lanes", "plan.json", "plan.json.tmp"})
        strange = [name for name in others if not name.startswith("finished.json")]
        return f"it holds {strange[0]}" if strange else None

    def plan(self) -> Plan | None:
        return self.read(self.folder / "plan.json", decode_plan)

    def finished(self) -> Finished | None:
        return self.read(self.folder / "finished.json", decode_finished)

    def lane_written(self, number: int) -> tuple[Written, ...] | None:
        return self.read(self.lane_path(number), decode_lane)

    def keep_plan(self, plan: Plan) -> None:
        """The staged rows are made durable first: the plan speaks of them."""
        for lane in plan.lanes:
            durable.sync(self.rows / lane.file)
        durable.sync(self.rows)
        durable.write(self.folder / "plan.json", encode(plan))
        durable.sync(self.folder.parent)

    def keep_lane(self, number: int, written: Sequence[Written]) -> None:
        """Several workers may do this at once: one that was thought dead, and the one in its place."""
        durable.write(self.lane_path(number), json.encode(tuple(written)), is_shared=True)

    def keep_finished(self, finished: Finished) -> None:
        durable.write(self.folder / "finished.json", encode(finished))
        shutil.rmtree(self.rows, ignore_errors=True)

    def lane_path(self, number: int) -> Path:
        return self.lanes / f"{number:05}.json"

    def forget_rows(self) -> None:
        """Rows that no plan speaks of: a run died while it staged them, and nothing was sent."""
        shutil.rmtree(self.rows, ignore_errors=True)

    def staged_files(self) -> list[str]:
        """The names of the Parquet files, in the order of the lanes."""
        assert (self.rows / STAGED).exists(), f"{self.rows} is not complete"
        found = sorted(name for name in os.listdir(self.rows) if name.endswith(".parquet"))
        if not found:  # Spark makes one even of no rows
            raise StrandlineError(
                f"Spark's tasks have staged their rows, and {self.rows} has none of their files",
                "give --checkpoint a folder that the driver and all of Spark's machines see at the same path",
            )
        return found

    @staticmethod
    def read(path: Path, decode: Callable[[bytes, str], T]) -> T | None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        return decode(content, str(path))
