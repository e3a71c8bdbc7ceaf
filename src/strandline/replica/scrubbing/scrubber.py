"""The scrubber of a broker: it reads what was written long ago, slowly, and checks every batch.

A pass goes through all logs, each from its start to its high watermark, and then rests for
`log.scrub.interval.ms`. A step reads a bounded number of bytes, and the pause behind it keeps the rate below
`log.scrub.max.bytes.per.second`. Where a read came upon damage (`Suspects`), that place is looked at at once.
What is damaged is repaired from other replicas (`Repairs`).

Invariant: a pass goes on in a log only while nothing was cut from its end, and at a segment that it still has.
"""

from bisect import bisect_right

from strandline.base.effects import Effect
from strandline.base.ids import TopicIdPartition
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.log.evidence.soundness import Checked, Damage, check, find
from strandline.log.log import Log
from strandline.log.segment import Segment
from strandline.replica.cold import ColdReads
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.scrubbing.repairs import Repairs, Withdraw

STEP_MS = 10
STEP_BYTES = 256 << 10
LOGS_MAX = 100  # that are looked at in a step
FIRST_MS = 60_000  # after a start


class Place:
    """How far the pass is in one log: all below `offset` is checked, which begins at `position` of the segment."""

    __slots__ = ("cuts", "hosted", "log", "offset", "position", "segment")

    def __init__(self, hosted: Hosted) -> None:
        assert hosted.log.segments
        self.hosted = hosted
        self.log: Log = hosted.log
        self.cuts = hosted.log.cuts
        self.segment: Segment = hosted.log.segments[0]
        self.position = 0
        self.offset = self.segment.base_offset

    @property
    def is_over(self) -> bool:
        hosted = self.hosted
        return hosted.gone or hosted.log is not self.log or hosted.role is None or self.log.cuts != self.cuts

    def find_segment(self) -> bool:
        """Come to the segment that has `offset`, at its beginning if it is another one. False: there is none."""
        bases = self.log.bases
        at = max(0, bisect_right(bases, self.offset) - 1)
        if self.log.segments[at] is not self.segment:
            self.segment = self.log.segments[at]
            self.position, self.offset = 0, self.segment.base_offset
        return self.position < self.segment.size or at + 1 < len(bases)

    def passed(self, checked: Checked) -> None:
        damage = checked.damage
        assert damage is not None or checked.offset >= self.offset
        if damage is None:
            self.position, self.offset = checked.position, checked.offset
        else:
            self.position, self.offset = damage.until, damage.resume
        at = bisect_right(self.log.bases, self.segment.base_offset)
        if self.position >= self.segment.size and at < len(self.log.bases):
            self.segment, self.position, self.offset = self.log.segments[at], 0, self.log.bases[at]


class Scrubber:
    def __init__(
        self, host: Host, uncleanable: dict[TopicIdPartition, Log], withdraw: Withdraw, cold: ColdReads
    ) -> None:
        self.host = host
        self.cold = cold
        self.repairs = Repairs(host, uncleanable, withdraw)
        self.wake = Alarm(host.timers, self.go_on)
        self.todo: dict[TopicIdPartition, None] = {}  # what the pass has not come to
        self.place: Place | None = None
        self.bytes = 0
        self.ring = Alarm(host.timers, self.look)
        host.suspects.report_to(self.ring)

    def rest(self, now: Instant, most_ms: int | None = None) -> list[Effect]:
        """Until the next pass."""
        span = int(self.host.number("log.scrub.interval.ms"))
        self.wake.set(now + max(span if most_ms is None else min(span, most_ms), STEP_MS))
        return []

    def go_on(self, now: Instant) -> list[Effect]:
        rate = int(self.host.number("log.scrub.max.bytes.per.second"))
        if not rate:
            self.place = None
            return self.rest(now, FIRST_MS)  # the setting may change
        if not self.todo and self.place is None:
            self.todo = dict.fromkeys(hosted.at for hosted in self.host.partitions.all())
        assert rate > 0
        effects: list[Effect] = []
        left = limit = min(STEP_BYTES, rate)
        for _ in range(LOGS_MAX):
            if left <= 0 or not self.begin():
                break
            stepped = self.step(left, now)
            if stepped is None:
                break
            left -= stepped[0]
            effects += stepped[1]
        self.bytes += limit - left
        if not self.todo and self.place is None:
            return effects + self.rest(now)
        self.wake.set(now + max(STEP_MS, (limit - left) * 1000 // rate))
        return effects

    def begin(self) -> bool:
        """Is there a log to go on with?"""
        while self.place is None or self.place.is_over:
            self.place = None
            if not self.todo:
                return False
            at = next(iter(self.todo))
            del self.todo[at]
            hosted = self.host.partitions.find(at)
            if hosted is not None and hosted.role is not None:
                self.place = Place(hosted)
        return True

    def step(self, limit: int, now: Instant) -> tuple[int, list[Effect]] | None:
        """Check some batches of the log. How many bytes do they have, and what follows from it? None: they are not
        cached yet."""
        assert limit > 0
        place = self.place
        assert place is not None
        assert not place.is_over, place.hosted.name
        hosted, log = place.hosted, place.log
        upto = hosted.high_watermark
        if not place.find_segment() or place.offset >= upto:
            self.place = None
            return 0, []
        segment, before = place.segment, place.position
        try:
            if self.cold.must_wait(segment.cold_at(before, limit), now):
                log.segments.rest(segment)
                return None
            checked = check(log, segment, before, place.offset, upto, limit)
            log.segments.rest(segment)
        except DiskError as error:
            self.host.fail(hosted.directory, error)
            self.place = None
            return 0, []
        damage, effects = checked.damage, list[Effect]()
        if damage is not None and damage.end > log.log_start_offset:
            effects = self.repairs.found(hosted, segment, damage, now)
        place.passed(checked)
        return max(checked.position - before, 1), effects

    def look(self, now: Instant) -> list[Effect]:
        """At where a read came upon damage."""
        suspects = self.host.suspects
        effects: list[Effect] = []
        hosted, offset = suspects.take()
        log = hosted.log
        if not hosted.gone and hosted.role is not None and log.log_start_offset <= offset < hosted.high_watermark:
            try:
                damage = find(log, offset, STEP_BYTES)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
            else:
                if damage is not None:
                    segment = log.segments[max(0, bisect_right(log.bases, damage.base) - 1)]
                    effects += self.repairs.found(hosted, segment, damage, now)
        if suspects.places:
            self.ring.set(now + STEP_MS)
        return effects

    def is_awaited(self, hosted: Hosted, damage: Damage, now: Instant) -> bool:
        """A reader needs what is damaged. May another replica have it? Then it is looked at and repaired."""
        if damage.end <= hosted.log.log_start_offset or self.repairs.is_lost(hosted, damage):
            return False
        self.host.suspects.add(hosted, max(damage.start, hosted.log.log_start_offset), now)
        return True
