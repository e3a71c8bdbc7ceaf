"""May a leader append a batch of an idempotent producer, or is it one that the log has already?

A duplicate's answer says that the batch is written, so it is given only for one that lies in the log, where it was
remembered. What is remembered may have come from a snapshot, and a file that came from elsewhere, or from before, looks
sound. If the batch is not there, nothing but the log is believed. What was deleted since, or compacted, is believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.log.producers import producer_snapshot
from strandline.log.producers.producers import Remembered
from strandline.log.refusals import Refused
from strandline.wire.batch import BatchHeader, read_header

if TYPE_CHECKING:
    from strandline.log.log import Log


def judge(log: Log, batch: BatchHeader, now: Instant) -> Remembered | ErrorCode | None:
    """As `Producers.judge`; a batch that it calls a duplicate is there."""
    verdict = log.producers.judge(batch)
    if isinstance(verdict, Remembered) and not is_there(log, batch, verdict):
        producer_snapshot.distrust(log, now)
        verdict = log.producers.judge(batch)
    return verdict


def is_there(log: Log, batch: BatchHeader, said: Remembered) -> bool:
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
