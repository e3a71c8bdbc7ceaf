"""Do the batches of a log bear out what its file of epochs says? The file may be another partition's, or an older one.

Epochs never fall along a log. So the file is right about a segment if it is right at both of the segment's ends, and on
both sides of each entry within it. These batches are read, and no others.

Where a cleaner took all records of an epoch, the file alone knows of that epoch: no batch says anything else, and so it
is believed. Where the file is wrong, only the batches count.

Base offset and epoch are what no CRC covers. Batches among which epochs fall are damaged themselves, and prove nothing
against the file.
"""

from itertools import pairwise

from strandline.log.epochs import Epochs
from strandline.log.segment import Segment
from strandline.log.segments import Segments
from strandline.wire.batch import BatchHeader


def contradiction(epochs: Epochs, segments: Segments, log_start: int) -> Epochs | None:
    """Is the file, which says `epochs`, right about what lies before the segment that was added last? If not, the
    epochs are those of the batches there from now on, and are returned. Records below `log_start` are deleted: nobody
    asks for their epochs."""
    assert segments, "one was added last"
    *before, segment = segments
    is_right = not falls(epochs.epoch_at(segment.base_offset - 1), segment)
    if before:
        is_right = is_right and is_borne_out(epochs, before[-1], segment.base_offset, log_start)
        segments.rest(before[-1])
    if is_right:
        return None
    proved = epochs_of(segments, before)
    if proved is None or falls(proved.latest, segment):
        return None  # the batches are damaged: nothing is proved
    proved.check()
    return proved


def falls(epoch: int, segment: Segment) -> bool:
    """Does the segment begin with a batch of an older epoch?"""
    first = next(segment.beside(segment.base_offset), None) if epoch >= 0 else None
    return first is not None and first.partition_leader_epoch < epoch


def is_borne_out(epochs: Epochs, segment: Segment, end: int, log_start: int) -> bool:
    assert segment.base_offset < end, "another segment begins there"
    first = max(segment.base_offset, log_start)
    starts = (entry.start_offset for entry in epochs.entries if first < entry.start_offset < end)
    return all(agrees(epochs, header, log_start) for at in (first, *starts, end) for header in segment.beside(at))


def agrees(epochs: Epochs, header: BatchHeader, log_start: int) -> bool:
    if header.last_offset < log_start:
        return True
    first = epochs.epoch_at(max(header.base_offset, log_start))
    return first == epochs.epoch_at(header.last_offset) == header.partition_leader_epoch


def epochs_of(segments: Segments, before: list[Segment]) -> Epochs | None:
    """The epochs that the batches of these segments bear; None if they are damaged."""
    assert all(one.base_offset < two.base_offset for one, two in pairwise(before))
    epochs = Epochs()
    for segment in before:
        never_fall = learn(epochs, segment)
        segments.rest(segment)
        if not never_fall:
            return None
    return epochs


def learn(epochs: Epochs, segment: Segment) -> bool:
    """Add the epochs of a segment; False if they fall."""
    for header in segment.headers(0):
        if header.partition_leader_epoch < epochs.latest:
            return False
        epochs.assign(header.partition_leader_epoch, header.base_offset)
    return True
