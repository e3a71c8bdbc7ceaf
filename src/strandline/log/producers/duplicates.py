"""May a leader append a batch of an idempotent producer, or is it one that the log has already?

A duplicate's answer says that the batch is written, so it is given only for one that lies in the log, where it was
remembered. What is remembered may have come from a snapshot, and a file that came from elsewhere, or from before, looks
sound. If the batch is not there, nothing but the log is believed. What was deleted since, or compacted, is believed.
"""

from typing import Protocol

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.log.producers.producer_state import ProducerState
from strandline.log.producers.producers import Remembered
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.wire.batch import BatchHeader, read_header


class Readable(Protocol):
    """What must be known of a log to look for a batch in it."""

    log_start_offset: int
    log_end_offset: int
    producer_state: ProducerState

    @property
    def has_gaps(self) -> bool: ...

    def read(self, offset: int, max_bytes: int, *, upto: int, min_one: bool) -> Read | Refused: ...


def judge(log: Readable, batch: BatchHeader, now: Instant) -> Remembered | ErrorCode | None:
    """As `Producers.judge`; a batch that it calls a duplicate is there."""
    state = log.producer_state
    verdict = state.producers.judge(batch)
    if isinstance(verdict, Remembered) and not is_there(log, batch, verdict):
        state.distrust(log.log_start_offset, log.log_end_offset, now)
        verdict = state.producers.judge(batch)
    return verdict


def is_there(log: Readable, batch: BatchHeader, said: Remembered) -> bool:
    assert batch.producer_id >= 0, "only batches of idempotent producers are remembered"
    if said.base_offset < log.log_start_offset or log.has_gaps:
        return True
    found = log.read(said.base_offset, 1, upto=log.log_end_offset, min_one=True)
    if isinstance(found, Refused) or not found.size:
        return False
    there = read_header(found.buffers[0])
    return (there.producer_id, there.producer_epoch) == (batch.producer_id, batch.producer_epoch) and (
        Remembered(there.base_sequence, there.last_sequence, there.base_offset, there.last_offset, said.timestamp)
        == said
    )
