"""The folder of a campaign: what it is (`campaign.json`), and a Parquet file per block that is done.

A file appears whole or not at all, so its name alone says that its seeds need not be run again. All that run blocks
must see the same folder.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.simulate.definition import Block, Campaign, block_named, differences
from strandline_spark.jobs.simulate.seed_row import SeedRow

DEFINITION = "campaign.json"
BLOCKS = "blocks"
FAILED = b"failed"  # in a file's metadata: how many of its seeds
COUNTS = pa.map_(pa.string(), pa.int64())
SEED = pa.schema(
    [
        ("seed", pa.int64()),
        ("run", pa.string()),
        ("verdict", pa.string()),
        ("check", pa.string()),
        ("error", pa.string()),
        ("replay", pa.string()),
        ("digest", pa.string()),
        ("ms", pa.int64()),
        ("virtual_ms", pa.int64()),
        ("events", pa.int64()),
        ("operations", pa.int64()),
        ("exceeded", pa.int64()),
        ("code_version", pa.string()),
        ("place", pa.string()),
        ("faults", COUNTS),
        ("seen", COUNTS),
    ]
)


@contextmanager
def opened(folder: Path, campaign: Campaign) -> Iterator[None]:
    """`folder` is this campaign's, and nobody else runs it meanwhile. Raises StrandlineError if it is another's."""
    try:
        (folder / BLOCKS).mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StrandlineError(f"{folder} cannot be used: {error.strerror}", "name another folder with --out") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StrandlineError(f"another process runs the campaign in {folder}", "wait until it has ended") from None
        claim(folder, campaign)
        for left in (folder / BLOCKS).glob(f".*{durable.UNFINISHED}"):  # of a run that was killed
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(lock)


def claim(folder: Path, campaign: Campaign) -> None:
    known = definition(folder)
    if known is None:
        text = msgspec.json.format(msgspec.json.encode(campaign), indent=1) + b"\n"
        durable.write(folder / DEFINITION, text, is_shared=True)
    elif known != campaign:
        raise StrandlineError(
            f"{folder} has a campaign of another kind ({'; '.join(differences(known, campaign))})",
            "name another folder with --out: results of other code or other options are not added up",
        )


def definition(folder: Path) -> Campaign | None:
    """None: there is no campaign in it."""
    path = folder / DEFINITION
    try:
        return msgspec.json.decode(path.read_bytes(), type=Campaign)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StrandlineError(f"{path} does not describe a campaign: {error}") from None


def done(folder: Path) -> list[Block]:
    """The blocks whose files are there, in order."""
    files = (folder / BLOCKS).glob("*.parquet")
    return sorted(block for path in files if (block := block_named(path.stem)) is not None)


# --- files


def path_of(folder: Path, block: Block) -> Path:
    return folder / BLOCKS / f"{block.name}.parquet"


def write_rows(folder: Path, block: Block, rows: Sequence[SeedRow]) -> None:
    """All at once. If another process has written the same block meanwhile, it has the same rows."""
    table = table_of(rows).replace_schema_metadata({FAILED: str(sum(not row.is_ok for row in rows)).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    path = path_of(folder, block)
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, memoryview(sink.getvalue()), is_shared=True)


def table_of(rows: Sequence[SeedRow]) -> pa.Table:
    def column(field: pa.Field) -> list[Any]:
        values = [getattr(row, field.name) for row in rows]
        return [list(counts.items()) for counts in values] if field.type == COUNTS else values

    return pa.table({field.name: column(field) for field in SEED}, schema=SEED)


def rows_in(folder: Path, block: Block) -> Iterator[SeedRow]:
    path = path_of(folder, block)
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise StrandlineError(f"{path} cannot be read: {error}", "remove it to run its seeds again") from None
    for row in table.to_pylist(maps_as_pydicts="strict"):
        yield SeedRow(**row)


def counts_of(folder: Path, block: Block) -> tuple[int, int]:
    """How many seeds a block has, and how many of them failed; its rows are not read."""
    found = pq.read_metadata(path_of(folder, block))
    return found.num_rows, int((found.metadata or {}).get(FAILED, b"0"))
