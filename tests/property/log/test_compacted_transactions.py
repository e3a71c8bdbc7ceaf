"""However often a log with transactions is compacted: a read_committed consumer, which skips what Kafka's clients skip,
finds the last committed value of each key; and a copy of the log knows the same open transactions."""

from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.log.compaction.compacting import begin, compacted, finish, keyed, reopen, roll
from tests.unit.log.logs import NOW, append, content, open_log

from strandline.base.time import Instant
from strandline.log.log import Appended, Log
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches, build
from strandline.wire.control import EndTxnMarker, read_marker
from strandline.wire.record import records

HOUR = 3_600_000
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 2), st.integers(0, 2)),
        st.tuples(st.just("write"), st.integers(1, 2), st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(1, 2), st.integers(0, 1)),
        st.tuples(st.just("end"), st.integers(1, 2), st.integers(0, 1)),
        st.tuples(st.just("plain"), st.just(0), st.integers(0, 2)),
        st.tuples(st.just("compact"), st.integers(1, 4), st.integers(0, 2)),
        st.tuples(st.just("compact"), st.just(4), st.just(2)),
        st.tuples(st.just("forget"), st.integers(1, 2), st.just(0)),
        st.tuples(st.just("forget"), st.integers(1, 2), st.just(0)),
        st.tuples(st.just("crash"), st.integers(1, 400), st.integers(0, 1 << 20)),
    ),
    min_size=8,
    max_size=40,
)
Table = dict[bytes, bytes]


def committed(log: Log) -> Table:
    """What a consumer finds that reads all, and skips as Kafka's clients do."""
    end = log.last_stable_offset(log.log_end_offset)
    aborted = sorted((one.first_offset, one.producer_id) for one in log.aborted(log.log_start_offset, end, NOW))
    table: Table = {}
    skipped: set[int] = set()
    piece = content(log)
    for header in batches(piece):
        if header.base_offset >= end:
            break
        while aborted and aborted[0][0] <= header.last_offset:
            skipped.add(aborted.pop(0)[1])
        if header.is_control:
            marker = read_marker(memoryview(piece)[header.position : header.end])
            if marker is not None and not marker.commits:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            table.update({bytes(r.key or b""): bytes(r.value or b"") for r in records(header, piece)})
    return table


class Play:
    def __init__(self) -> None:
        self.disk = SimDisk()
        self.now = NOW
        self.config = compacted(delete_retention_ms=HOUR)
        self.log = open_log(self.disk, self.config)
        self.count = 0
        self.epochs = {1: 0, 2: 0}
        self.open: dict[int, int] = {}
        self.rows: dict[int, list[tuple[int, bytes, bytes]]] = {}  # of open transactions: what they wrote
        self.written: list[tuple[int, bytes, bytes]] = []
        self.step("plain", 0, 9)  # the first batch of an epoch always stays

    def value(self) -> bytes:
        self.count += 1
        return b"%06d" % self.count

    def step(self, what: str, number: int, other: int) -> None:
        log, key = self.log, f"k{other}"
        match what:
            case "write":
                known = log.producers.known.get(number)
                old = known.batches if known is not None and known.epoch == self.epochs[number] else []
                value = self.value()
                batch = build(
                    [(self.now, key.encode(), value, ())],
                    producer_id=number,
                    producer_epoch=self.epochs[number],
                    base_sequence=old[-1].last_sequence + 1 if old else 0,
                    transactional=True,
                )
                done = log.append_as_leader(bytearray(batch), 0, self.now, may_begin=True)
                assert isinstance(done, Appended), done
                self.open.setdefault(number, done.base_offset)
                self.rows.setdefault(number, []).append((done.base_offset, key.encode(), value))
            case "end":
                self.epochs[number] += 1
                marker = EndTxnMarker(bool(other), 0)
                done = log.append_marker(number, self.epochs[number], marker, 0, self.now, 2)
                assert isinstance(done, Appended), done
                self.open.pop(number, None)
                rows = self.rows.pop(number, [])
                self.written += rows if other else []
            case "plain":
                value = self.value()
                at = append(log, keyed((key, value.decode())), now=self.now).base_offset
                self.written.append((at, key.encode(), value))
            case "compact":
                roll(log, self.disk)
                self.now = Instant(self.now + other * HOUR)
                end = log.last_stable_offset(log.log_end_offset)
                finish(begin(log, now=self.now, high_watermark=end, map_bytes=number * 200), self.disk)
            case "forget":
                if number not in self.open:
                    log.producers.known.pop(number, None)  # as if it had been idle
            case "crash":
                self.crash(number, other)

    def crash(self, work: int, seed: int) -> None:
        """In the middle of a pass, perhaps in the middle of a swap."""
        log = self.log
        roll(log, self.disk)
        run = begin(log, now=self.now, high_watermark=log.last_stable_offset(log.log_end_offset))
        while not run.is_done and not run.is_copied:
            run.go_on(work)
        if run.is_copied:
            self.disk.sync(run.unsynced())
            run.swap()
        recovery_point, cleaned_to = log.recovery_point, log.cleaned_to
        self.disk.crash(Random(seed))
        self.log = reopen(
            self.disk, self.config, clean=False, recovery_point=recovery_point, cleaned_to=cleaned_to or 0
        )

    def check(self) -> None:
        log = self.log
        log.check()
        end = min([log.log_end_offset, *self.open.values()])
        wanted = {key: value for at, key, value in sorted(self.written) if at < end}
        assert log.transactions.open == self.open
        assert committed(log) == wanted
        copy = open_log(SimDisk(), self.config)
        copy.admit_gaps(log.gaps_end)
        copy.append_as_follower(content(log), 1 << 20, self.now)
        assert copy.log_end_offset == log.log_end_offset
        assert copy.transactions.open == self.open, "an end was taken, and something of its transaction was left"
        assert committed(copy) == wanted


ABORTED_THEN_COMMITTED = [("write", 1, 0), ("end", 1, 0), ("write", 1, 1), ("end", 1, 1)]
FORGOTTEN = [("plain", 0, 0), ("compact", 4, 0), ("compact", 4, 2), ("plain", 0, 0), ("compact", 4, 2)]


@settings(max_examples=250, deadline=None)
@given(steps)
@example([*ABORTED_THEN_COMMITTED, *FORGOTTEN])
@example([*ABORTED_THEN_COMMITTED, ("forget", 1, 0), *FORGOTTEN])
@example([("write", 1, 0), ("end", 1, 1), *FORGOTTEN])
@example([("plain", 0, 0), ("write", 1, 0), ("end", 1, 0), *FORGOTTEN[1:]])
@example([("write", 1, 0), ("end", 1, 0), ("forget", 1, 0), ("write", 1, 1), ("end", 1, 1), *FORGOTTEN])
@example([("write", 1, 0), ("end", 1, 0), ("crash", 400, 7), ("write", 1, 1), ("end", 1, 1), *FORGOTTEN])
def test_a_consumer_finds_what_was_committed_and_nothing_stays_open(script: list[tuple[str, int, int]]) -> None:
    play = Play()
    for step in script:
        play.step(*step)
        play.check()
