"""How far a streaming query is, by its checkpoint folder, whether it runs or not.

    offsets/N   what batch N reads up to: "v1", a line about the batch, then one line a source; durable before it runs
    commits/N   batch N is done

So the position is what the last batch reads up to that has both. Spark replaces these files as wholes and deletes old
ones: a file that vanishes between listing and reading is asked for again.
"""

import os
from pathlib import Path
from urllib.parse import urlparse

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.positions import Positions, positions_in

TRIES = 5


class QueryProgress(Value, frozen=True):
    done: Positions  # behind the last committed batch
    batch: int  # that one; -1: none yet


def progress_of(checkpoint: str) -> QueryProgress:
    """Raises StrandlineError if the folder is not a checkpoint of a streaming query, or of one without topics."""
    folder = folder_of(checkpoint)
    for _ in range(TRIES):
        try:
            return read(folder)
        except FileNotFoundError:
            continue  # cleaned away meanwhile: a later batch is there
    raise StrandlineError(f"{checkpoint} changes faster than it can be read", "ask again")


def folder_of(checkpoint: str) -> Path:
    url = urlparse(checkpoint)
    if url.scheme not in ("", "file"):
        raise StrandlineError(
            f"{checkpoint}: only checkpoints in mounted folders can be read", "use a LagListener instead"
        )
    folder = Path(url.path if url.scheme else checkpoint)
    if not (folder / "offsets").is_dir():
        advice = "name the query's checkpointLocation, which has the folders offsets/ and commits/"
        raise StrandlineError(f"{checkpoint} is not a checkpoint of a streaming query", advice)
    return folder


def read(folder: Path) -> QueryProgress:
    both = set(batches_in(folder / "offsets")) & set(batches_in(folder / "commits"))
    if not both:
        return QueryProgress({}, -1)
    last = max(both)
    return QueryProgress(read_batch(folder, last), last)


def batches_in(folder: Path) -> list[int]:
    """Numbers of the batches that have a file there, rising. Spark's temporary and checksum files are no such."""
    names = os.listdir(folder) if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def read_batch(folder: Path, batch: int) -> Positions:
    """Positions of all sources."""
    path = folder / "offsets" / str(batch)
    lines = path.read_text(errors="replace").splitlines()
    if len(lines) < 2 or not lines[0].startswith("v"):
        raise StrandlineError(f"{path} is not a file of Spark's offset log", "check the folder's name")
    found: Positions = {}
    for line in lines[2:]:
        found |= positions_in(line)
    return found
