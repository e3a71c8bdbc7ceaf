"""A partition of an internal topic is read by a new coordinator, in parts.

Each batch is checked before its records are read. Damage is passed once it is known that no replica has what was there.
Before that the reader waits where the damage begins. What is not cached is read elsewhere first.
"""

from strandline.base.ports import Buffer, DiskError
from strandline.base.time import Instant
from strandline.coordination.internal_log import Part, Reached, Replayed
from strandline.log.evidence.soundness import check
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.scrubbing.scrubber import Place, Scrubber
from strandline.wire.batch import BatchHeader, batches
from strandline.wire.compress import Corrupt
from strandline.wire.control import EndTxnMarker, decode_control
from strandline.wire.record import Row, records, rows


class PartitionReader:
    def __init__(self, scrubber: Scrubber, hosted: Hosted) -> None:
        self.scrubber = scrubber
        self.hosted = hosted
        self.end = hosted.log.log_end_offset
        self.offset = hosted.log.log_start_offset  # all below is read: a cleaner may have the rest read once more
        self.place = Place(hosted)
        self.unreadable = 0  # batches, or places with damage, that were skipped

    def read(self, bytes_max: int, now: Instant) -> Part:
        assert bytes_max > 0
        found: list[Replayed] = []
        size, reached = 0, Reached.MORE
        while size < bytes_max and reached is Reached.MORE:
            if self.place.is_over:
                reached = Reached.DAMAGE  # leadership ends, or the log's directory has failed
            elif not self.place.find_segment() or self.place.offset >= self.end:
                reached = Reached.END
            else:
                try:
                    more, reached = self.read_on(bytes_max - size, found, now)
                except DiskError as error:
                    self.scrubber.host.fail(self.hosted.directory, error)
                    more, reached = 0, Reached.DAMAGE
                size += more
        assert size >= bytes_max or reached is not Reached.MORE, "a part is full, or it is the last one for now"
        return Part(found, size, reached)

    def read_on(self, limit: int, found: list[Replayed], now: Instant) -> tuple[int, Reached]:
        place, log, segment = self.place, self.place.log, self.place.segment
        before = place.position
        try:
            if self.scrubber.cold.must_wait(segment.cold_at(before, limit), now):
                return 0, Reached.COLD
            checked = check(log, segment, before, place.offset, self.end, limit)
            assert checked.position >= before, "a reader never goes back"
            size = checked.position - before
            buffer = segment.file.read(before, size) if size else b""
        finally:
            log.segments.rest(segment)
        for header in batches(buffer):
            if header.next_offset > self.offset:
                self.offset = header.next_offset
                self.read_batch(header, buffer, found)
        if checked.damage is None:
            place.passed(checked)
            return size, Reached.MORE
        place.position, place.offset = checked.position, checked.offset
        if self.scrubber.is_awaited(self.hosted, checked.damage, now):
            return size, Reached.DAMAGE
        self.unreadable += 1
        place.passed(checked)
        return size, Reached.MORE

    def read_batch(self, header: BatchHeader, buffer: Buffer, found: list[Replayed]) -> None:
        """A batch whose content makes no sense must not keep its coordinator from all the others."""
        producer_id = header.producer_id if header.is_transactional else -1
        try:
            if header.is_control:
                for record in records(header, buffer):
                    if isinstance(marker := decode_control(record), EndTxnMarker):
                        found.append(Replayed((), marker, producer_id))
            else:
                of_batch: list[Row] = []
                found.append(Replayed(of_batch, None, producer_id))
                rows(header, buffer, of_batch)
        except Corrupt:
            self.unreadable += 1
