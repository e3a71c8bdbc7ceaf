"""Data files of a table: what is known of each, how they are named, and how partition values stand in paths."""

import datetime
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import field

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError

NULL = "__HIVE_DEFAULT_PARTITION__"  # Hive's, Spark's and pyarrow's word for a partition value that is null
UNSAFE = frozenset("\"#%'*/:=?\\{}[]^\x7f" + "".join(map(chr, range(32))))  # what Hive escapes in paths
STAGED = ".staged"  # no reader takes a file of this name for a table's, not even one that looks into hidden folders
FILE_BYTES = 128 << 20
NAME_BYTES_MAX = 255  # of a folder's name, on about every file system


class DataFile(Value, frozen=True):
    """One Parquet file. `path` is relative to the table's folder, or a location with a scheme."""

    path: str
    rows: int
    size_bytes: int
    values: dict[str, str | None] = field(default_factory=dict)  # of the columns that the table is partitioned by


class Layout(Value, frozen=True):
    """How the tasks of one batch write: where to, and what their files look like."""

    folder: str  # a path, or a location with a scheme
    prefix: str  # what every file's name begins with
    suffix: str
    partition_by: tuple[str, ...] = ()
    keeps_values: bool = False  # do files have the columns that the table is partitioned by? Hive's do not
    file_bytes: int = FILE_BYTES


def value_text(value: Any) -> str | None:
    """A partition's value as it stands in paths and in Delta's log. Empty text is null there, as with Hive."""
    match value:
        case None | "":
            return None
        case bool():
            return "true" if value else "false"
        case str() | int() | datetime.date():
            return str(value)
    raise StrandlineError(
        f"a table cannot be partitioned by {value!r}: {type(value).__name__} has no place in a path",
        "partition by text, whole numbers, booleans or dates; of a timestamp take day = date(…)",
    )


def hive_folder(values: Mapping[str, str | None]) -> str:
    """`region=eu/day=2026-01-01`; empty where nothing is partitioned."""
    parts = [f"{escape(name)}={NULL if text is None else escape(text)}" for name, text in values.items()]
    for name, part in zip(values, parts, strict=True):
        if len(part.encode()) > NAME_BYTES_MAX:
            raise StrandlineError(
                f"a table cannot be partitioned by {name} where it is {len(str(values[name]))} characters long:"
                f" {str(values[name])[:60]}…",
                f"partition by something shorter, or set such rows aside: an expectation length({name}) <= 80",
            )
    return "/".join(parts)


def escape(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in UNSAFE else letter for letter in text)


def batch_prefix(application: str, batch: int) -> str:
    """Files carry their batch, so that people see it too. No two applications have the same: what one left unfinished
    is deleted by this name."""
    digest = hashlib.sha256(application.encode()).hexdigest()
    return f"batch-{batch:010d}-{digest[:16]}"


def local_path(location: str) -> str | None:
    """The path on this machine, or None for a location elsewhere. A % in it is a %, as for Iceberg's libraries."""
    if location.startswith("file:"):
        return "/" + location.removeprefix("file:").lstrip("/")
    return None if "://" in location else os.path.abspath(location)


def bins(files: Sequence[DataFile], target_bytes: int, files_min: int = 2) -> list[list[DataFile]]:
    """Which files are to become one: each bin of one partition and at most `target_bytes`; large files stay."""
    by_place: dict[tuple[tuple[str, str | None], ...], list[DataFile]] = {}
    for file in files:
        if file.size_bytes < target_bytes * 3 // 4:
            by_place.setdefault(tuple(file.values.items()), []).append(file)
    found: list[list[DataFile]] = []
    for place in by_place.values():
        current: list[DataFile] = []
        size = 0
        for file in place:
            if current and size + file.size_bytes > target_bytes:
                found.append(current)
                current, size = [], 0
            current.append(file)
            size += file.size_bytes
        found.append(current)
    return [each for each in found if len(each) >= files_min]
