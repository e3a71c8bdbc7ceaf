"""The log that the quorum replicates, as the quorum sees it: offsets and epochs, opaque batches, snapshots.

Contract:
  - batches lie one behind the other; the next one starts at `log_end_offset`, and epochs never fall;
  - nothing is durable before the paths of `take_unsynced` have been synced; writing and truncating add to them;
  - a snapshot, once it has its name, never changes.
"""

from collections.abc import Iterator
from typing import Protocol

from strandline.base.ports import Buffer
from strandline.base.value import Value
from strandline.wire.schema import RecordsValue


class SnapshotId(Value, frozen=True):
    """The state after all records below `end_offset`, the last of which has `epoch`. Its file bears both numbers."""

    end_offset: int
    epoch: int


class EpochEnd(Value, frozen=True):
    """An epoch of the log, and the offset after its last record."""

    epoch: int
    end_offset: int


class CommittedBatch(Value, frozen=True):
    """A batch of committed records; `records` are payloads, opaque to the quorum. They are none where there is a
    `fault`: why they cannot be read."""

    base_offset: int
    last_offset: int
    epoch: int
    append_time: int
    records: list[bytes]
    fault: str = ""


class Unfit(Value, frozen=True):
    """A record of the log that cannot be applied. What lies before its batch can: the log vouches for that alone."""

    sound: EpochEnd  # where that batch begins, and the epoch of the record before it
    offset: int  # of the record
    text: str  # what it is, and why it does not fit


class RaftLog(Protocol):
    quorum_state_path: str
    directory: str

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or of the snapshot below the log; 0 if there is neither."""
        ...

    def read_quorum_state(self) -> bytes | None:
        """What the last `Save` of `quorum_state_path` wrote."""
        ...

    def append_as_leader(self, batch: bytes) -> None:
        """`batch` starts at `log_end_offset` and bears the leader's epoch."""
        ...

    def append_as_follower(self, records: Buffer, epoch: int) -> str | None:
        """Append what fits behind the log, and is of no later epoch than the leader's; say why the rest (or everything)
        was refused."""
        ...

    def read(self, offset: int, size_max: int) -> RecordsValue:
        """Whole batches from the one that has `offset` on: at least one, if there is one."""
        ...

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch of the log that is not larger than `epoch`, and its end."""
        ...

    def truncate_to(self, end_offset: int) -> None: ...

    def take_unsynced(self) -> tuple[str, ...]:
        """The paths that were written to and must be synced. The caller sees to it; they are not named again until they
        are written to again."""
        ...

    def mark_synced(self, end_offset: int) -> None:
        """What `take_unsynced` named when the log ended at `end_offset` is durable."""
        ...

    def latest_snapshot(self) -> SnapshotId | None: ...

    def earliest_snapshot(self) -> SnapshotId | None: ...

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        """In bytes; None if there is no such snapshot."""
        ...

    def read_snapshot_bytes(self, snapshot: SnapshotId, position: int, size: int) -> Buffer: ...

    def part_path(self, snapshot: SnapshotId) -> str: ...

    def begin_part(self, snapshot: SnapshotId) -> None:
        """Start a download: an empty file, whatever an earlier download left."""
        ...

    def append_part(self, snapshot: SnapshotId, content: Buffer) -> None: ...

    def name_part(self, snapshot: SnapshotId) -> str | None:
        """Give a complete, durable download its name; or say why it is refused."""
        ...

    def install_snapshot(self, snapshot: SnapshotId) -> None:
        """Start the log anew at the end of a snapshot whose name is durable."""
        ...

    def committed_batches(self, from_offset: int, upto: int) -> Iterator[CommittedBatch]: ...
