"""The partitions of an internal topic, as the replicas of this broker offer them to a coordinator."""

from collections.abc import Callable, Iterable
from typing import Protocol

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.wire.control import EndTxnMarker
from strandline.wire.record import Record

# Called when a write is committed (acks=all) or refused: the error, the first offset, and when that was.
Done = Callable[[ErrorCode, int, Instant], list[Effect]]


class Replayed(Value, frozen=True):
    """A record of an internal topic, and the transaction that it is part of; or the marker that ends a transaction."""

    record: Record | None
    marker: EndTxnMarker | None = None
    producer_id: int = -1  # -1: it is part of no transaction
    producer_epoch: int = -1


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

    def is_whole(self, topic: str, partition: int, now: Instant) -> bool:
        """Can all be read of a partition that this broker leads? If not, that is seen to: ask again later."""
        ...

    def is_committed(self, topic: str, partition: int) -> bool:
        """Is all committed that a partition had when this broker began to lead it?"""
        ...

    def replay(self, topic: str, partition: int) -> Iterable[Replayed]:
        """Every record of a partition that this broker leads, from the log's start to its end."""
        ...

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None: ...
