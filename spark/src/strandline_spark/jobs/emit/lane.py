"""Which rows of a lane are sent to one target partition, and which are there already.

A lane is one staged file with a producer id of its own. Its rows for one target partition are a track: they have one
order, the same in every run, and row n has sequence n (modulo 2^31). A leader appends a batch only if its first
sequence is the one behind the producer's last; so whoever sends what, the target partition always holds the track's
first rows, each once, in order. Where batches begin and end does not matter: a batch of an earlier run that comes late
is a duplicate, or out of order, or just the rows that are next.

A leader that knows nothing of the producer takes any sequence for its first. So after a start and after a search one
batch goes alone; others follow it in a pipeline once it is acknowledged.

A search reads the headers of batches from behind the last proven one up to the high watermark. It proves what it
finds, and never that something is not there: a new leader's high watermark may be behind. What it did not find is sent
again, which is harmless, and what was acknowledged and is not found is looked for again before it counts as lost.

Invariants (`check`):
  - the spans are dense: they begin at `written` and end where the file was read to, or nothing is left;
  - at most WINDOW spans are under way, and one at most before the leader has acknowledged one;
  - `written` and `end_offset` never move back.
"""

from enum import Enum

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline_spark.jobs.emit.staged.sequence import SEQUENCES, row_at_or_after, rows_between, sequence_of

WINDOW = 5  # as many batches as a leader remembers of a producer
SEARCH_AGAIN_MS = (0, 50, 100, 200, 400, 800, 1000)
VAIN_MAX = 125  # with the waits above about two minutes: Kafka's delivery.timeout.ms

DOUBTFUL = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Offered(Value, frozen=True):
    """The file's next `count` rows for the partition."""

    count: int


class Acknowledged(Value, frozen=True):
    """All in-sync replicas have rows `first` … `first + count - 1`. `base_offset` is -1 if the leader did not say."""

    first: int
    count: int
    base_offset: int
    leader_epoch: int = -1


class Refused(Value, frozen=True):
    first: int
    count: int
    error: ErrorCode
    message: str = ""


class Found(Value, frozen=True):
    """A batch of this lane in the partition, from a search or an earlier run's."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    leader_epoch: int


class Searched(Value, frozen=True):
    """All batches below `end_offset` have been reported."""

    end_offset: int


Event = Offered | Acknowledged | Refused | Found | Searched


class Send(Value, frozen=True):
    first: int
    count: int
    sequence: int


class Search(Value, frozen=True):
    """Read the headers from `offset` to the high watermark, after `wait_ms`; the batch before it has `leader_epoch`."""

    offset: int
    leader_epoch: int
    wait_ms: int


class Fail(Value, frozen=True):
    """Nothing more is sent to this partition in this run. `lost`: acknowledged rows are gone."""

    problem: str
    advice: str
    lost: bool = False


Decision = Send | Search | Fail

LOST_ADVICE = "the partition lost records, as after an unclean election or DeleteRecords: see `strandline losses`"
TWICE_ADVICE = "brokers did not recognise a duplicate, or another program wrote with this lane's producer id"
RUN_AGAIN = "when the cause is gone, run the same command again: it goes on where this run stopped"


UNPROVEN = Acknowledged(first=-1, count=0, base_offset=-1)


class SpanState(Enum):
    WAITING = "to be sent, perhaps again"
    UNDER_WAY = "sent, and not answered yet"
    ACKNOWLEDGED = "acknowledged, while earlier ones are not"


class Span:
    """Rows `first` … `first + count - 1`. All changes of its state are methods here."""

    __slots__ = ("count", "first", "proof", "state")

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.count = count
        self.state = SpanState.WAITING
        self.proof = UNPROVEN

    @property
    def end(self) -> int:
        return self.first + self.count

    def send(self) -> Send:
        assert self.state is SpanState.WAITING, self.state
        self.state = SpanState.UNDER_WAY
        return Send(self.first, self.count, sequence_of(self.first))

    def acknowledge(self, proof: Acknowledged) -> None:
        assert self.state is SpanState.UNDER_WAY, self.state
        self.state, self.proof = SpanState.ACKNOWLEDGED, proof

    def retry(self) -> None:
        """It was refused, and is sent again."""
        assert self.state is SpanState.UNDER_WAY, self.state
        self.state = SpanState.WAITING

    def split(self) -> "Span":
        """It keeps the first half of its rows; returns the other."""
        assert self.state is SpanState.WAITING, self.state
        assert self.count > 1
        rest = Span(self.first + self.count // 2, self.count - self.count // 2)
        self.count //= 2
        return rest

    def skip_to(self, row: int) -> None:
        """The rows before `row` are there."""
        assert self.first < row < self.end
        self.first, self.count = row, self.end - row


class Track:
    """One lane's rows for one target partition. `written` of them are known to be there, all below `end_offset`."""

    def __init__(self, *, written: int, end_offset: int, leader_epoch: int, compacted: bool = False) -> None:
        self.written = written
        self.end_offset = end_offset  # behind the last batch that is known; the first one lies at or behind it
        self.leader_epoch = leader_epoch  # of the last batch that is known
        self.compacted = compacted  # a cleaner may have taken batches: gaps say nothing
        self.offered = 0
        self.spans: list[Span] = []
        self.heard = False  # the leader has acknowledged something since the start or the last search
        self.doubt = False  # a search must find what is there
        self.searching = False
        self.finds = False  # this search has found something
        self.vain = 0  # searches in a row that found nothing
        self.failed: Fail | None = None

    @property
    def is_finished(self) -> bool:
        """Nothing is left to be done with what was offered."""
        return not self.spans and not self.doubt

    @property
    def in_flight(self) -> int:
        return sum(span.state is SpanState.UNDER_WAY for span in self.spans)

    def step(self, event: Event) -> list[Decision]:
        """Take one event; return what must happen because of it."""
        if self.failed is not None:
            return []  # an answer that was still under way
        match event:
            case Offered(count):
                self.offer(count)
            case Acknowledged():
                self.acknowledge(event)
            case Refused():
                self.refuse(event)
            case Found():
                self.find(event)
            case Searched(end_offset):
                self.end_search(end_offset)
        return self.decide()

    def decide(self) -> list[Decision]:
        if self.failed is not None:
            return [self.failed]
        if self.searching:
            return []
        if self.doubt:
            return [] if self.in_flight else [self.search()]
        return self.send()

    def send(self) -> list[Decision]:
        decisions: list[Decision] = []
        room = (WINDOW if self.heard else 1) - self.in_flight
        for span in self.spans:
            if room <= 0:
                break
            if span.state is SpanState.WAITING:
                room -= 1
                decisions.append(span.send())
        return decisions

    def search(self) -> Decision:
        self.searching = True
        wait_ms = SEARCH_AGAIN_MS[min(self.vain, len(SEARCH_AGAIN_MS) - 1)]
        return Search(self.end_offset, self.leader_epoch, wait_ms)

    def offer(self, count: int) -> None:
        assert count > 0
        first = max(self.offered, self.written)
        self.offered += count
        if first < self.offered:
            self.spans.append(Span(first, self.offered - first))

    def acknowledge(self, event: Acknowledged) -> None:
        span = self.under_way(event.first, event.count)
        if 0 <= event.base_offset < self.end_offset:
            self.fail_lost(f"rows from {event.first} on were appended at offset {event.base_offset}")
            return
        span.acknowledge(event)
        self.heard = True
        while self.spans and self.spans[0].state is SpanState.ACKNOWLEDGED:
            self.pass_over(self.spans.pop(0))

    def pass_over(self, span: Span) -> None:
        """The first rows that were not proven are there. Only now a search need not look at their offsets: an
        earlier batch may be one of another run, which this one has not seen yet."""
        self.written, self.vain = span.end, 0
        if span.proof.base_offset >= 0:
            self.move_end(span.proof.base_offset + span.count, span.proof.leader_epoch)

    def refuse(self, event: Refused) -> None:
        span = self.under_way(event.first, event.count)
        span.retry()
        if event.error in DOUBTFUL:
            self.doubt = True
        elif event.error in TOO_LARGE and span.count > 1:
            self.doubt = True  # what follows it was out of order
            self.spans.insert(self.spans.index(span) + 1, span.split())
        else:
            last = event.first + event.count - 1
            rows = f"row {last} was" if event.count == 1 else f"rows {event.first} to {last} were"
            said = f": {event.message}" if event.message else ""
            self.fail(Fail(f"{rows} refused with {event.error.name}{said}", RUN_AGAIN))

    def find(self, event: Found) -> None:
        if event.base_offset < self.end_offset:
            return  # what it says is known
        rows = rows_between(event.base_sequence, event.last_sequence)
        first = row_at_or_after(self.written, event.base_sequence)
        if first != self.written and not self.compacted:
            self.fail_out_of_line(event, first)
            return
        self.written = first + rows
        self.move_end(event.last_offset + 1, event.leader_epoch)
        self.finds = True
        self.forget_written()

    def forget_written(self) -> None:
        while self.spans and self.spans[0].end <= self.written:
            self.spans.pop(0)
        if self.spans and self.spans[0].first < self.written:
            self.spans[0].skip_to(self.written)

    def end_search(self, end_offset: int) -> None:
        assert self.searching
        self.searching = False
        self.vain = 0 if self.finds else self.vain + 1
        self.finds = False
        self.doubt = any(span.state is SpanState.ACKNOWLEDGED for span in self.spans)
        self.heard = False
        if self.vain > VAIN_MAX and self.doubt:
            self.fail_lost(f"row {self.written} is not found below offset {end_offset}, later ones were acknowledged")
        elif self.vain > VAIN_MAX:
            refused = f"the leader refuses sequence {sequence_of(self.written)} as out of order"
            self.fail(Fail(f"{refused}, and has no batch of this lane behind offset {self.end_offset}", RUN_AGAIN))

    def under_way(self, first: int, count: int) -> Span:
        for span in self.spans:
            if (span.first, span.count) == (first, count):
                assert span.state is SpanState.UNDER_WAY, span.state
                return span
        raise AssertionError(f"nothing of {first}+{count} is under way")

    def move_end(self, end_offset: int, leader_epoch: int) -> None:
        if end_offset > self.end_offset:
            self.end_offset = end_offset
            self.leader_epoch = leader_epoch

    def fail(self, why: Fail) -> None:
        self.failed = why

    def fail_lost(self, evidence: str) -> None:
        known = f"{self.written} rows were there below offset {self.end_offset}"
        self.fail(Fail(f"acknowledged rows are missing: {evidence}, though {known}", LOST_ADVICE, lost=True))

    def fail_out_of_line(self, event: Found, first: int) -> None:
        batch = f"the batch at offset {event.base_offset} has sequence {event.base_sequence}"
        behind = sequence_of(self.written)
        if first - self.written < SEQUENCES // 2:
            gap = f"rows {self.written} to {first - 1} are missing"
            self.fail(Fail(f"{gap}: {batch} where {behind} is next", LOST_ADVICE, lost=True))
        else:
            self.fail(Fail(f"{batch} again, where {behind} is next: its rows are there twice", TWICE_ADVICE))

    def check(self) -> None:
        assert self.in_flight <= (WINDOW if self.heard else 1)
        assert not self.searching or not self.in_flight
        at = self.written
        for span in self.spans:
            assert span.first == at
            assert span.count > 0
            at = span.end
        assert not self.spans or at == self.offered
