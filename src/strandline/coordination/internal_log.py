"""The partitions of an internal topic, as the replicas of this broker offer them to a coordinator."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.wire.control import EndTxnMarker
from strandline.wire.record import Row

# Called when a write is committed (acks=all) or refused: the error, the first offset, and when that was.
Done = Callable[[ErrorCode, int, Instant], list[Effect]]


class Replayed(NamedTuple):
    """The records of one batch of an internal topic; or the marker that ends a transaction, and no records."""

    rows: Sequence[Row]
    marker: EndTxnMarker | None = None
    producer_id: int = -1  # in whose transaction it is; -1: in none


class Reached(Enum):
    MORE = "there is more to read"
    END = "all is read"
    COLD = "the next batch is not in the page cache, and is being read: ask again in a moment"
    DAMAGE = "the next batch is damaged, and may be repaired: ask again later"


class Part(NamedTuple):
    """What was read in one go. `size` is in bytes."""

    batches: Sequence[Replayed]
    size: int
    reached: Reached


class Reader(Protocol):
    """Reads a partition that this broker leads, from its log's start to the `end` that it had when the reader was
    made: all but what is lost. Damage that another replica may repair is waited for, and so is a slow medium."""

    @property
    def end(self) -> int: ...

    def read(self, bytes_max: int, now: Instant) -> Part:
        """What comes next: about so many bytes, and one batch at least."""
        ...


class InternalLog(Protocol):
    def append_internal(
        self,
        topic: str,
        partition: int,
        batch: bytearray,
        now: Instant,
        done: Done,
        *,
        transaction: str = "",
        adds: bool = False,
    ) -> list[Effect]:
        """Append a batch that the coordinator made. `transaction`: the transactional id if the batch is part of a
        transaction; then the partition is first verified with that id's coordinator or, if `adds`, added (KIP-890)."""
        ...

    def is_committed(self, topic: str, partition: int) -> bool:
        """Is all committed that a partition had when this broker began to lead it?"""
        ...

    def reader(self, topic: str, partition: int) -> Reader: ...

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None: ...
