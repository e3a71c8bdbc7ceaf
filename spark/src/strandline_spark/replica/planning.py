"""What is read together: a split for each segment, small ones packed, large ones divided where an index says so.

Invariants:
  - every byte of every segment in the snapshot belongs to exactly one piece;
  - a piece that does not begin at its file's beginning begins with a batch that was looked at: its CRC is right, and
    its last offset is what the index says.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from strandline.log.indexes.sparse import OFFSET_ENTRY
from strandline.wire.batch import HEADER_SIZE, read_header, why_invalid, why_no_batch
from strandline_spark.errors import BadOption, StrandlineError
from strandline_spark.replica.errors import LogChanged, UnreadableLog
from strandline_spark.replica.located import Replica, SegmentFile
from strandline_spark.replica.options import Request
from strandline_spark.replica.places import content_of, epochs_content, replicas, segments
from strandline_spark.replica.windows import BATCH_BYTES_MAX, File

SPLIT_BYTES_MIN = 8 << 20  # below, a task costs more than what it saves
REPLICAS_PER_SPLIT = 64


class Piece(NamedTuple):
    """A part of one segment: the bytes [start, end). `lead` is where the batches begin that are only looked at for
    where they end, so that the piece's first offset can be judged; `start` if there are none."""

    replica: Replica
    file: SegmentFile
    start: int
    end: int
    lead: int
    epochs: bytes | None  # of the active segment: the epochs' checkpoint, as it was in the snapshot


class Pieces(InputPartition):
    """One split of the levels batch and record."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(None)
        self.pieces = tuple(pieces)


class Unplanned(InputPartition):
    """One log that could not even be looked at, where that is reported in its place."""

    def __init__(self, replica: Replica, why: StrandlineError) -> None:
        super().__init__(None)
        self.replica = replica
        self.why = why


class Logs(InputPartition):
    """One split of the other levels."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        super().__init__(None)
        self.replicas = tuple(replicas)


def plan(request: Request) -> list[InputPartition]:
    """The splits; none if nothing is there. Raises `StrandlineError`: for a log that cannot be read, `UnreadableLog` or
    `LogChanged`, unless the request wants it as a row."""
    found = replicas(request)
    check_brokers(found)
    if request.level not in ("batch", "record"):
        size = max(1, min(REPLICAS_PER_SPLIT, -(-len(found) // request.min_partitions)))
        return [Logs(found[at : at + size]) for at in range(0, len(found), size)]
    snapshot: list[tuple[Replica, list[SegmentFile], bytes | None]] = []
    unplanned: list[InputPartition] = []
    for replica in found:
        try:
            epochs = epochs_content(replica)  # before the sizes: what is written later is younger than both
            snapshot.append((replica, segments(replica), epochs))
        except (LogChanged, UnreadableLog) as error:
            if not request.reports_changes:
                raise
            unplanned.append(Unplanned(replica, error))
    total = sum(file.size for _, files, _ in snapshot for file in files)
    target = min(request.split_bytes, max(SPLIT_BYTES_MIN, -(-total // request.min_partitions)))
    pieces = (piece for replica, files, epochs in snapshot for piece in pieces_of(replica, files, epochs, target))
    return [*(Pieces(pack) for pack in packed(pieces, target)), *unplanned]


def check_brokers(found: Iterable[Replica]) -> None:
    """Two logs of one partition that say to be of one broker, or of nobody, could not be told apart."""
    seen: dict[tuple[int | None, str, int], Replica] = {}
    for replica in found:
        other = seen.setdefault((replica.broker, replica.topic, replica.partition), replica)
        if other is not replica and replica.broker is None:
            raise BadOption(
                f"{other.directory} and {replica.directory} have no meta.properties, so their nodes are unknown",
                "copy that file along with the logs, or read them apart with option('node', …)",
            )


def pieces_of(replica: Replica, files: Iterable[SegmentFile], epochs: bytes | None, target: int) -> Iterator[Piece]:
    for file in files:
        if not file.size:
            continue
        bounds = [(0, 0), *boundaries(file, target)]
        for index, (start, lead) in enumerate(bounds):
            end = bounds[index + 1][0] if index + 1 < len(bounds) else file.size
            yield Piece(replica, file, start, end, lead, epochs if file.is_active else None)


def boundaries(file: SegmentFile, target: int) -> list[tuple[int, int]]:
    """Where a large file is divided: batches that its index has, each with the position of one shortly before it."""
    if file.size < 2 * target:
        return []
    found: list[tuple[int, int]] = []
    wanted = target
    try:
        entries = index_entries(file)
        with File(file) as opened:
            for index, (offset, position) in enumerate(entries):
                if position < wanted or file.size - position < target // 2:
                    continue
                if is_batch(opened, position, offset):
                    found.append((position, entries[index - 2][1] if index > 1 else 0))
                    wanted = position + target
    except (LogChanged, UnreadableLog):
        return []  # whoever reads it will see the same, and say so
    return found


def is_batch(file: File, position: int, last_offset: int) -> bool:
    buffer = file.read(position, HEADER_SIZE)
    if len(buffer) < HEADER_SIZE:
        return False
    header = read_header(buffer)
    if header.last_offset != last_offset or not HEADER_SIZE <= header.size <= BATCH_BYTES_MAX:
        return False
    buffer = file.read(position, header.size)
    return why_no_batch(buffer, 0) is None and why_invalid(header, buffer) is None


def index_entries(file: SegmentFile) -> list[tuple[int, int]]:
    """The entries of the offset index, as far as they make sense: (last offset of a batch, its position)."""
    entries: list[tuple[int, int]] = []
    last = (-1, -1)
    for entry in raw_entries(content_of(file.beside(".index"))):
        if entry[0] < last[0] or entry[1] <= last[1] or entry[1] >= file.size:
            break
        entries.append((file.base + entry[0], entry[1]))
        last = entry
    return entries


def raw_entries(content: bytes | None) -> list[tuple[int, int]]:
    """Of an offset index, relative offsets. Without the zeros that Kafka allots before it needs them, and without
    half an entry."""
    content = content or b""
    found = [(o, p) for o, p in OFFSET_ENTRY.iter_unpack(content[: len(content) - len(content) % OFFSET_ENTRY.size])]
    while found and found[-1] == (0, 0):
        found.pop()
    return found


def packed(pieces: Iterable[Piece], target: int) -> Iterator[list[Piece]]:
    """Neighbours together, up to `target` bytes; the replicas of one directory apart from those of another."""
    pack: list[Piece] = []
    size = 0
    for piece in pieces:
        length = piece.end - piece.start
        if pack and (size + length > target or pack[-1].replica.directory != piece.replica.directory):
            yield pack
            pack, size = [], 0
        pack.append(piece)
        size += length
    if pack:
        yield pack
