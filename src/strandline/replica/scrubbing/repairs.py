"""Damaged batches are fetched again from a replica that has them, and written in their place.

A follower asks its leader first, a leader its ISR; then all other replicas are asked. It is a Fetch like a consumer's,
with this replica's leader epoch: so what is answered lies below the other's high watermark, and comes from one that
knows the same leadership. What of the answer is taken `fitting` decides. It is written where the damage is and synced;
a crash in the middle leaves damage, which is found again.

In a compacted log another replica may have what is missing in another form, since its own cleaner was at it: that
cannot be written in its place. Then this replica leaves ISR and ELR, if another one is in sync, and copies everything
from the damage on again (`withdraw`).

If every other replica has answered, and none has the records, they are lost here: that goes to the loss ledger. While
one has not answered, it is asked again.

Invariants (executed by `check`):
  - one question at most is in flight, and only its answer is taken
  - nothing is written into a log that has changed since its damage was found
"""

from collections.abc import Callable

from strandline.base.effects import Answered, Effect, Failed, Report, Send, Sync, Synced, SyncFailed
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.log.evidence.soundness import Damage
from strandline.log.log import Log
from strandline.log.segment import Segment
from strandline.metadata.losses import AT_MOST, EXACTLY
from strandline.metadata.records import LossEvent
from strandline.replica.hosting.follower import buffers_of
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.losses.losing import Notes, describe
from strandline.replica.scrubbing.fitting import FETCH_BYTES_MAX, fitting
from strandline.replica.tokens import RepairSent, RepairSynced
from strandline.wire.messages.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

VERSION = 18
RETRY_MS, RETRY_MAX_MS = 1_000, 60_000
DAMAGED_MAX = 10_000  # that are known at once; more are found in a later pass

Withdraw = Callable[[TopicIdPartition, int, int, Instant], list[Effect]]
Place = tuple[Hosted, int, int]  # the log, the segment's base offset, the position in its file


class Repair:
    """One piece of damage, and the brokers that are still to be asked about it."""

    __slots__ = (
        "asking",
        "cuts",
        "damage",
        "due",
        "has_other_form",
        "hosted",
        "is_final",
        "is_reported",
        "log",
        "rounds",
        "segment",
    )

    def __init__(self, hosted: Hosted, segment: Segment, damage: Damage) -> None:
        self.hosted = hosted
        self.log: Log = hosted.log
        assert segment in hosted.log.segments, hosted.name
        self.cuts = hosted.log.cuts
        self.segment = segment
        self.damage = damage
        self.asking: list[NodeId] = []
        self.is_final = True  # all brokers that were asked have answered for good
        self.has_other_form = False  # elsewhere: it is compacted there, and cannot be written here
        self.due = Instant(0)
        self.rounds = 0
        self.is_reported = False  # that it is lost

    @property
    def is_over(self) -> bool:
        """The log is another one now, or the damaged segment is not part of it."""
        hosted, log = self.hosted, self.log
        is_same = not hosted.gone and hosted.log is log and hosted.role is not None and log.cuts == self.cuts
        return not is_same or self.segment not in log.segments or self.damage.end <= log.log_start_offset


class Repairs:
    def __init__(self, host: Host, uncleanable: dict[TopicIdPartition, Log], withdraw: Withdraw) -> None:
        self.host = host
        self.withdraw = withdraw
        self.uncleanable = uncleanable  # what the cleaner leaves alone because it is damaged
        self.known: dict[Place, Repair] = {}  # damage that is not repaired
        self.asked: Repair | None = None
        self.sequence = 0
        self.wake = Alarm(host.timers, self.go_on)
        self.damaged = self.repaired = self.lost = 0

    def found(self, hosted: Hosted, segment: Segment, damage: Damage, now: Instant) -> list[Effect]:
        if damage.start >= damage.end:
            return []  # no record is hidden by it
        place = (hosted, damage.base, damage.position)
        repair = self.known.get(place)
        if repair is not None and not repair.is_over:
            repair.due = min(repair.due, Instant(now + RETRY_MS))  # a read needs it
            return self.go_on(now)
        if len(self.known) >= DAMAGED_MAX:
            return []
        self.known[place] = Repair(hosted, segment, damage)
        assert len(self.known) <= DAMAGED_MAX
        self.damaged += 1
        what = f"offsets {damage.start} to {damage.end - 1} cannot be read"
        where = f"{segment.path} is damaged at byte {damage.position}"
        return [Report("warning", f"{hosted.name}: {what}, {where}"), *self.go_on(now)]

    def go_on(self, now: Instant) -> list[Effect]:
        """Ask about what is due, if nothing is in flight."""
        effects: list[Effect] = []
        for place, repair in list(self.known.items()):
            if repair.is_over and repair is not self.asked:
                del self.known[place]
        while self.asked is None:
            if not self.known:
                break
            place, repair = min(self.known.items(), key=lambda row: row[1].due)
            if repair.is_over:  # the one before it has taken the replica's role
                del self.known[place]
                continue
            if repair.due > now:
                self.wake.set(repair.due)
                break
            repair.asking, repair.is_final = self.others(repair.hosted), True
            repair.due = Instant(now + min(RETRY_MS << min(repair.rounds, 10), RETRY_MAX_MS))
            repair.rounds += 1
            effects += self.ask(repair, now)
        assert self.asked is not None or not self.known or not self.wake.done, "it is asked again some time"
        return effects

    def others(self, hosted: Hosted) -> list[NodeId]:
        """The leader, then the other replicas in sync, then the rest."""
        partition = self.host.image.partition(hosted.at)
        if partition is None:
            return []
        order = dict.fromkeys((partition.leader, *partition.isr, *partition.replicas))
        return [node for node in order if node not in (NOBODY, self.host.me)]

    def ask(self, repair: Repair, now: Instant) -> list[Effect]:
        hosted, damage = repair.hosted, repair.damage
        assert hosted.role is not None
        assert self.asked is None
        while repair.asking:
            node = repair.asking.pop(0)
            broker = self.host.image.brokers.get(node)
            endpoint = None if broker is None else broker.endpoints.get(self.host.config.inter_broker_listener)
            if endpoint is None:
                repair.is_final = False
                continue
            size = min(max(damage.until - damage.position, 1), FETCH_BYTES_MAX)
            asked = FetchPartition(
                partition=hosted.at.partition,
                current_leader_epoch=hosted.role.epoch,
                fetch_offset=max(damage.start, repair.log.log_start_offset),
                partition_max_bytes=size,
            )
            topics = (FetchTopic(topic_id=hosted.at.topic_id, partitions=(asked,)),)
            request = FetchRequest(min_bytes=1, max_bytes=size, session_epoch=-1, topics=topics)
            self.asked = repair
            self.sequence += 1
            token = RepairSent(self.sequence)
            timeout_ms = self.host.config.fetch_timeout_ms
            return [Send(endpoint, "repair", request, VERSION, timeout_ms, token, node)]
        return self.conclude(repair, now)

    def step(self, event: Answered | Failed | Synced | SyncFailed, now: Instant) -> list[Effect]:
        token = event.token
        if type(token) is RepairSynced:
            if isinstance(event, SyncFailed):
                self.host.fail(token.directory, DiskError(event.why))
            return []
        repair = self.asked
        if token.sequence != self.sequence or repair is None:
            return []
        assert self.sequence > 0
        self.asked = None
        effects: list[Effect] = []
        if not repair.is_over:
            row = row_of(event.message) if isinstance(event, Answered) else None
            try:
                effects += self.taken(repair, row, now)
            except DiskError as error:
                self.host.fail(repair.hosted.directory, error)
        return effects + self.go_on(now)

    def taken(self, repair: Repair, row: PartitionData | None, now: Instant) -> list[Effect]:
        """Write what fits, or ask the next one. Raises DiskError."""
        effects = None if row is None else self.written(repair, row, now)
        if effects is not None:
            return effects
        if row is None or not is_final(row, repair.damage):
            repair.is_final = False
        elif row.error_code == ErrorCode.NONE and repair.log.has_gaps:
            repair.has_other_form = True
        return self.ask(repair, now)

    def written(self, repair: Repair, row: PartitionData, now: Instant) -> list[Effect] | None:
        """None if nothing fits. Raises DiskError."""
        hosted, log, damage, segment = repair.hosted, repair.log, repair.damage, repair.segment
        records = b"".join(buffers_of(row.records)) if row.error_code == ErrorCode.NONE else b""
        upto = min(hosted.high_watermark, row.high_watermark)
        try:
            found = fitting(log, segment, damage, memoryview(records), upto)
            if found is None:
                return None
            patch, end = found
            assert damage.start < end <= upto, hosted.name
            assert damage.position + len(patch) <= damage.until, hosted.name
            how = {"gaps": log.has_gaps, "is_active": segment is log.active}
            segment.repair(damage.position, patch, **how)  # guard: repair-at-the-wrong-place
            log.mended(patch, damage.start, end, now)
        finally:
            log.segments.rest(segment)
        del self.known[(hosted, damage.base, damage.position)]
        self.repaired += 1
        self.uncleanable.pop(hosted.at, None)
        self.host.suspects.add(hosted, end, now)  # more may be damaged behind it
        return [
            Sync((segment.path, *segment.flush_indexes()), RepairSynced(hosted.directory)),
            Report("info", f"{hosted.name}: offsets {damage.start} to {end - 1} are repaired with another replica's"),
        ]

    def conclude(self, repair: Repair, now: Instant) -> list[Effect]:
        """All other replicas were asked, and none had it."""
        hosted, damage = repair.hosted, repair.damage
        partition = self.host.image.partition(hosted.at)
        if repair.has_other_form and partition is not None and set(partition.isr) - {self.host.me}:
            return self.withdraw(hosted.at, max(damage.start, repair.log.log_start_offset), damage.end, now)
        if not repair.is_final or repair.is_reported:
            return []
        assert hosted.role is not None
        assert not repair.asking
        event = LossEvent(
            start=max(damage.start, repair.log.log_start_offset),
            end=damage.end,
            # In a compacted topic the other replicas may have compacted what was there.
            certainty=EXACTLY if damage.is_exact and not repair.log.has_gaps else AT_MOST,
            old_epoch=repair.log.epochs.epoch_at(damage.start),
            new_epoch=hosted.role.epoch,
            time_ms=now,
            cause="they are damaged on the disk, and no other replica has them",
        )
        try:
            Notes(self.host, hosted).note([event])
        except DiskError as error:
            self.host.fail(hosted.directory, error)
            return []
        repair.is_reported = True
        repair.due = Instant(now + RETRY_MAX_MS)
        self.lost += 1
        return [Report("error", f"{hosted.name}: {describe(event)}")]

    def is_lost(self, hosted: Hosted, damage: Damage) -> bool:
        """Has every other replica answered, and none had it?"""
        repair = self.known.get((hosted, damage.base, damage.position))
        return repair is not None and not repair.is_over and repair.is_reported

    def first_of(self, at: TopicIdPartition) -> tuple[int, int] | None:
        """The first offsets of a partition that cannot be read here, half open."""
        found = [one.damage for one in self.known.values() if one.hosted.at == at and not one.is_over]
        return min(((one.start, one.end) for one in found), default=None)

    def check(self) -> None:
        assert len(self.known) <= DAMAGED_MAX
        assert self.asked is None or self.asked in self.known.values()
        assert min(self.damaged, self.repaired, self.lost) >= 0


def row_of(answer: FetchResponse) -> PartitionData | None:
    rows = [row for topic in answer.responses for row in topic.partitions]
    return rows[0] if len(rows) == 1 else None


def is_final(row: PartitionData, damage: Damage) -> bool:
    """Will that replica have nothing else to say a moment later?"""
    match error_of(row.error_code):
        case ErrorCode.NONE:
            return row.high_watermark >= damage.end
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            return row.log_start_offset > damage.start
        case error:
            return error is ErrorCode.CORRUPT_MESSAGE
