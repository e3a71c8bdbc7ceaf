"""A naive leader of one partition, and processes that emit the same lane to it, alive, dead or thought dead.

Everything is under way on channels: one channel keeps its order, several do not, and a channel outlives its process.
"""

from dataclasses import dataclass, field
from random import Random

from strandline.base.errors import ErrorCode
from strandline_spark.jobs.emit.lane import (
    Acknowledged,
    Event,
    Fail,
    Found,
    Offered,
    Refused,
    Search,
    Searched,
    Send,
    Track,
)

REMEMBERED = 5
MODULO = 1 << 31


@dataclass
class Batch:
    producer: int
    sequence: int
    rows: tuple[int, ...]
    base_offset: int
    epoch: int

    @property
    def end(self) -> int:
        return self.base_offset + len(self.rows)


@dataclass
class Leader:
    """Knows of a producer what its log's last batches say."""

    log: list[Batch] = field(default_factory=list)
    high_watermark: int = 0
    shown: int = 0  # what a reader is told of the high watermark: a new leader's is behind
    epoch: int = 0

    @property
    def end(self) -> int:
        return self.log[-1].end if self.log else 0

    def append(self, producer: int, sequence: int, rows: tuple[int, ...]) -> Batch | ErrorCode:
        known = [batch for batch in self.log if batch.producer == producer][-REMEMBERED:]
        for old in known:
            if old.sequence == sequence and len(old.rows) == len(rows):
                return old
        if known and sequence != (known[-1].sequence + len(known[-1].rows)) % MODULO:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.log.append(Batch(producer, sequence, rows, self.end, self.epoch))
        return self.log[-1]

    def replicate(self, upto: int) -> None:
        self.high_watermark = max(self.high_watermark, min(upto, self.end))

    def show(self) -> None:
        self.shown = self.high_watermark

    def change(self, random: Random) -> None:
        """A clean election: what was not committed may be cut, and the new high watermark is not known at once."""
        keep = random.choice([self.high_watermark, self.end])
        self.log = [batch for batch in self.log if batch.end <= keep]
        self.shown = random.choice([0, self.shown])
        self.epoch += 1


@dataclass
class Request:
    first: int
    sequence: int
    rows: tuple[int, ...]
    process: "Process"
    taken: Batch | None = None  # it waits for all in-sync replicas


@dataclass
class Process:
    """One run of the lane: it reads `rows` from the beginning, and sends what its track decides."""

    random: Random
    leader: Leader
    rows: int
    producer: int = 7
    origin: int = 0  # the offset that was recorded before the first write
    base: int = 0  # row numbers begin here, for sequences that wrap
    read: int = 0
    channel: list[Request] = field(default_factory=list)
    old_channels: list[list[Request]] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)
    search: Search | None = None
    failed: Fail | None = None
    dead: bool = False

    def __post_init__(self) -> None:
        self.track = Track(written=self.base, end_offset=self.origin, leader_epoch=0)
        self.track.offered = self.base
        self.report(self.origin)

    def report(self, offset: int) -> None:
        for batch in self.leader.log:
            if batch.producer == self.producer and batch.base_offset >= offset and batch.end <= self.leader.shown:
                last = (batch.sequence + len(batch.rows) - 1) % MODULO
                self.notify(Found(batch.sequence, last, batch.base_offset, batch.end - 1, batch.epoch))

    def notify(self, event: Event) -> None:
        for decision in self.track.step(event):
            match decision:
                case Send(first, count, sequence):
                    self.channel.append(Request(first, sequence, tuple(range(first, first + count)), self))
                case Search():
                    self.search = decision
                case Fail():
                    self.failed = decision
        if self.failed is None:
            self.track.check()

    @property
    def is_done(self) -> bool:
        return self.read == self.rows and self.track.is_finished

    def offer(self) -> None:
        count = min(self.random.randint(1, 6), self.rows - self.read)
        if count and not self.dead:
            self.read += count
            self.notify(Offered(count))

    def do_search(self) -> None:
        if self.search is not None and not self.dead:
            offset, self.search = self.search.offset, None
            self.report(offset)
            self.notify(Searched(self.leader.shown))

    def deliver(self) -> None:
        """The oldest request of some channel reaches the leader."""
        channels = [channel for channel in [self.channel, *self.old_channels] if channel]
        if not channels:
            return
        channel = self.random.choice(channels)
        request = channel.pop(0)
        heard = channel is self.channel and not self.dead
        result = self.leader.append(self.producer, request.sequence, request.rows)
        if not heard:
            return
        if isinstance(result, Batch):
            request.taken = result
            self.waiting.append(request)
        else:
            self.waiting.append(request)
            request.taken = None
        self.answer()

    def answer(self) -> None:
        """Answers come in the order of the requests."""
        while self.waiting and not self.dead:
            request = self.waiting[0]
            if request.taken is None:
                self.waiting.pop(0)
                self.notify(Refused(request.first, len(request.rows), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
            elif request.taken.end <= self.leader.high_watermark:
                self.waiting.pop(0)
                taken = request.taken
                self.notify(Acknowledged(request.first, len(request.rows), taken.base_offset, taken.epoch))
            else:
                return

    def reconnect(self) -> None:
        """The connection broke: what was not answered is sent again, in order, and may reach the leader twice."""
        again = [Request(r.first, r.sequence, r.rows, self) for r in [*self.waiting, *self.channel]]
        self.old_channels.append(self.channel)
        self.channel, self.waiting = again, []


def rows_in(leader: Leader, producer: int = 7) -> list[int]:
    return [row for batch in leader.log if batch.producer == producer for row in batch.rows]


def finish(leader: Leader, process: Process) -> None:
    """From now on all goes well."""
    for _ in range(10_000):
        if process.is_done or process.failed is not None:
            return
        process.offer()
        process.deliver()
        leader.replicate(leader.end)
        leader.show()
        process.answer()
        process.do_search()
    raise AssertionError("it never ends")
