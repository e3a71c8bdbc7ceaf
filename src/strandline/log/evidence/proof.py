"""Do the batches of a log bear out what its file of epochs says? The file may be another partition's, or an older one.

Epochs never fall along a log. So the file is right about a segment if it is right at both of the segment's ends, and on
both sides of each entry within it. These batches are read, and no others.

Where a cleaner took all records of an epoch, the file alone knows of that epoch: no batch says anything else, and so it
is believed. Where the file is wrong, only the batches count.

Base offset and epoch are what no CRC covers. Batches among which epochs fall are damaged themselves, and prove nothing
against the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.log.epochs import Epochs
from strandline.log.segment import Segment
from strandline.wire.batch import BatchHeader

if TYPE_CHECKING:
    from strandline.log.log import Log


def is_proved(log: Log, log_start: int) -> bool:
    """Is the file right about what lies before the segment that was added last? If not, the epochs are those of the
    batches there from now on. Records below `log_start` are deleted: nobody asks for their epochs."""
    *before, segment = log.segments
    is_right = not falls(log.epochs.epoch_at(segment.base_offset - 1), segment)
    if before:
        is_right = is_right and is_borne_out(log.epochs, before[-1], segment.base_offset, log_start)
        log.rest(before[-1])
    if is_right:
        return True
    told = told_by(log, before)
    if told is None or falls(told.latest, segment):
        return True  # the batches are damaged: nothing is proved
    log.epochs = told
    return False


def falls(epoch: int, segment: Segment) -> bool:
    """Does the segment begin with a batch of an older epoch?"""
    first = next(segment.beside(segment.base_offset), None) if epoch >= 0 else None
    return first is not None and first.partition_leader_epoch < epoch


def is_borne_out(epochs: Epochs, segment: Segment, end: int, log_start: int) -> bool:
    first = max(segment.base_offset, log_start)
    starts = (entry.start_offset for entry in epochs.entries if first < entry.start_offset < end)
    return all(agrees(epochs, header, log_start) for at in (first, *starts, end) for header in segment.beside(at))


def agrees(epochs: Epochs, header: BatchHeader, log_start: int) -> bool:
    if header.last_offset < log_start:
        return True
    first = epochs.epoch_at(max(header.base_offset, log_start))
    return first == epochs.epoch_at(header.last_offset) == header.partition_leader_epoch


def told_by(log: Log, segments: list[Segment]) -> Epochs | None:
    """What the batches of these segments say; None if they are damaged."""
    epochs = Epochs()
    for segment in segments:
        never_fall = learn(epochs, segment)
        log.rest(segment)
        if not never_fall:
            return None
    return epochs


def learn(epochs: Epochs, segment: Segment) -> bool:
    for header in segment.headers(0):
        if header.partition_leader_epoch < epochs.latest:
            return False
        epochs.assign(header.partition_leader_epoch, header.base_offset)
    return True
