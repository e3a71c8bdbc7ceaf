"""Which code a seed has run: a digest of all that the simulator is made of."""

import importlib.resources
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources.abc import Traversable

SIMULATED = (  # what a run can depend on: the layers below the pipeline, without the driver for real machines
    "base",
    "wire",
    "log",
    "metadata",
    "quorum",
    "controller",
    "replica",
    "group",
    "broker",
    "history",
    "sim",
)
DIGITS = 12


def code_version() -> str:
    """Twelve hexadecimal digits that are the same wherever the sources are, also in an archive on a worker."""
    digest = sha256()
    root = importlib.resources.files("strandline")
    for folder in SIMULATED:
        for path, file in sources(root / folder, folder):
            digest.update(path.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:DIGITS]


def sources(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        where = f"{path}/{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            yield from sources(entry, where)
        elif entry.is_file() and entry.name.endswith((".py", ".json")):
            yield where, entry


def python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
