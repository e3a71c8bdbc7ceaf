"""Log directories as brokers leave them, written by the log's own parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from strandline.base.ids import TopicPartition, Uuid
from strandline.log.checkpoints import format_epochs, format_offsets
from strandline.log.directory import DirectoryMeta, write_meta, write_partition_metadata
from strandline.log.epochs import EpochStart
from strandline.log.segment import Segment
from strandline.server.storage.disk import RealDisk
from strandline.wire.batch import build, read_header
from strandline_spark.replica.options import SCHEMAS, parse
from strandline_spark.replica.planning import Piece, Pieces, plan
from strandline_spark.replica.rows import batch_rows
from strandline_spark.replica.source import ReplicaReader
from strandline_spark.replica.walking import judged

DISK = RealDisk()
TOPIC_ID = Uuid(bytes(range(16)))
VALUE = bytes(range(256)) * 2


def batch(base: int, count: int = 4, epoch: int = 1, value: bytes = VALUE, **more: Any) -> bytes:
    records = [(1000 + i, b"k%04d" % (base + i), value, []) for i in range(count)]
    return build(records, base_offset=base, leader_epoch=epoch, **more)


def batches(start: int, count: int, **more: Any) -> list[bytes]:
    """`count` batches of four records, one behind another."""
    return [batch(start + 4 * i, **more) for i in range(count)]


def directory(root: Path, node: int = 1) -> Path:
    path = root / f"node{node}"
    write_meta(DISK, str(path), DirectoryMeta("cluster", node, Uuid(bytes([node]) * 16)))
    return path


def write_log(at: Path, name: str, *segments: Sequence[bytes], interval: int = 2048) -> Path:
    """The log `name` ("t-0") of these segments; each begins at the offset of its first batch."""
    path = at / name
    DISK.make_directory(str(path))
    write_partition_metadata(DISK, str(path), TOPIC_ID)
    starts: list[EpochStart] = []
    for content in segments:
        segment = Segment(DISK, str(path), read_header(content[0]).base_offset if content else 0, interval)
        for each in content:
            header = read_header(each)
            # Not by `append`, which takes no batch that lies before the one in front of it.
            position = segment.size
            segment.file.append([each])
            segment.enter(position, len(each), header.last_offset, header.max_timestamp)
            segment.size = position + len(each)
            if not starts or starts[-1].epoch < header.partition_leader_epoch:
                starts.append(EpochStart(header.partition_leader_epoch, header.base_offset))
        segment.seal()
        segment.close()
    (path / "leader-epoch-checkpoint").write_bytes(format_epochs(starts))
    return path


def checkpoint(at: Path, file: str, offsets: dict[str, int]) -> None:
    rows = {TopicPartition(name.rpartition("-")[0], int(name.rpartition("-")[2])): at for name, at in offsets.items()}
    (at / file).write_bytes(format_offsets(rows))


def log_file(path: Path, base: int = 0) -> Path:
    return path / f"{base:020d}.log"


def change(path: Path, position: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def pieces(path: Path, **options: str) -> list[Piece]:
    """The pieces of the log directory, in order."""
    splits = plan(parse({"path": str(path), "minPartitions": "1", **options}))
    return [piece for split in splits if isinstance(split, Pieces) for piece in split.pieces]


def rows(path: Path, level: str = "batch", **options: str) -> list[dict[str, Any]]:
    """What a query over the directory sees."""
    schema = SCHEMAS[level]
    reader = ReplicaReader(parse({"path": str(path), "level": level, **options}), schema)
    found: list[dict[str, Any]] = []
    for split in reader.partitions():
        for part in reader.read(split):
            if isinstance(part, pa.RecordBatch):
                part.validate(full=True)
                assert part.schema.equals(to_arrow_schema(schema, timezone="UTC"))
                found += part.to_pylist()
            else:
                found.append(dict(zip(schema.fieldNames(), part, strict=True)))
    return found


def rows_of(piece: Piece) -> list[dict[str, Any]]:
    schema = to_arrow_schema(SCHEMAS["batch"], timezone="UTC")
    return [row for part in batch_rows(piece, judged(piece), schema, reports_changes=False) for row in part.to_pylist()]


def faults(found: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Where, and of which kind."""
    return [(row["position"], row["fault"]) for row in found if row["fault"] is not None]


def bases(found: list[dict[str, Any]]) -> list[int]:
    """The offsets of the batches that are sound."""
    return [row["base_offset"] for row in found if row["fault"] is None]
