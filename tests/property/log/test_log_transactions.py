"""Whatever is stopped, cut, copied and lost: which transactions are open, which were aborted, and how far a
read_committed consumer may read, is what a scan of all batches would say."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.log.stopped_log import STOPS, StoppedLog
from tests.unit.log.logs import NOW, ROOT, content, open_log, produced, small

from strandline.log.log import Appended, Log
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches, build
from strandline.wire.control import EndTxnMarker, read_marker

steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.just("write"), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.just("end"), st.integers(1, 3), st.integers(0, 1)),
        st.tuples(st.just("end"), st.integers(1, 3), st.integers(0, 1)),
        st.tuples(st.just("plain"), st.just(0), st.just(0)),
        *STOPS,
        st.tuples(st.just("rot"), st.integers(0, 1 << 20), st.just(0)),
    ),
    max_size=40,
)

Spans = list[tuple[int, int, int]]  # of aborted transactions: producer, first offset, offset of the marker


def scanned(piece: bytes) -> tuple[dict[int, int], Spans, Spans]:
    """Naive: the open transactions, the aborted ones, and all that are over, in the order of markers."""
    opened: dict[int, int] = {}
    aborted: Spans = []
    over: Spans = []
    for header in batches(piece):
        if not header.is_transactional:
            continue
        if not header.is_control:
            opened.setdefault(header.producer_id, header.base_offset)
            continue
        marker = read_marker(memoryview(piece)[header.position : header.end])
        first = opened.pop(header.producer_id, None)
        if first is not None and marker is not None:
            span = (header.producer_id, first, header.base_offset)
            over.append(span)
            aborted += [] if marker.commits else [span]
    return opened, aborted, over


class Play(StoppedLog):
    def write(self, producer: int, count: int) -> None:
        known = self.log.producers.known.get(producer)
        if known is not None:
            self.epochs[producer] = max(self.epochs[producer], known.epoch)
        if known is not None and producer in self.log.transactions.open:
            self.epochs[producer] = known.epoch  # a cut took the marker: the coordinator writes it again first
        epoch = self.epochs[producer]
        is_new = known is None or known.epoch != epoch or not known.batches
        sequence = 0 if known is None or is_new else known.batches[-1].last_sequence + 1
        batch = build(
            [(NOW, None, b"v" * 20, ())] * count,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        done = self.log.append_as_leader(bytearray(batch), self.leader_epoch, NOW, may_begin=True)
        assert isinstance(done, Appended), done

    def end(self, producer: int, commits: bool) -> None:
        known = self.log.producers.known.get(producer)
        self.epochs[producer] = 1 + max(self.epochs[producer], -1 if known is None else known.epoch)
        marker = EndTxnMarker(commits, 0)
        done = self.log.append_marker(producer, self.epochs[producer], marker, self.leader_epoch, NOW, 2)
        assert isinstance(done, Appended), done

    def step(self, what: str, number: int, count: int) -> None:
        log = self.log
        match what:
            case "write":
                self.write(number, count)
            case "end":
                self.end(number, bool(count))
            case "plain":
                log.append_as_leader(bytearray(produced(1)), self.leader_epoch, NOW)
            case "rot":
                self.rot(number)
            case _:
                self.stop(what, number)

    def rot(self, number: int) -> None:
        """An index of aborted transactions is cut in the middle of an entry, and read again."""
        names = sorted(name for name in self.disk.list(ROOT) if name.endswith(".txnindex"))
        for segment in self.log.segments:
            if names and segment.aborted.path.endswith(names[number % len(names)]):
                file = self.disk.open(segment.aborted.path)
                file.truncate(file.size() - 1 - number % 33)
                segment.aborted.loaded = None


def shown(log: Log, start: int, end: int) -> Spans:
    return [(one.producer_id, one.first_offset, one.last_offset) for one in log.aborted(start, end, NOW)]


@settings(max_examples=300, deadline=None)
@given(steps, st.integers(0, 1 << 20))
def test_transactions_are_what_a_scan_of_the_log_says(script: list[tuple[str, int, int]], seed: int) -> None:
    play, random = Play(), Random(seed)
    for step in script:
        play.step(*step)
        log = play.log
        log.check()
        opened, aborted, _ = scanned(content(log))
        assert log.transactions.open == opened
        stable_end = min([log.log_end_offset, *opened.values()])
        assert log.last_stable_offset(log.log_end_offset) == stable_end
        assert shown(log, 0, stable_end) == [one for one in aborted if one[1] < stable_end]
        start, end = sorted((random.randint(0, stable_end), random.randint(0, stable_end)))
        assert shown(log, start, end) == [one for one in aborted if one[1] < end and one[2] >= start]


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_follower_knows_what_its_leader_knows(script: list[tuple[str, int, int]]) -> None:
    play = Play()
    copy = open_log(SimDisk(), small())
    for step in script:
        play.step(*step)
        copy.truncate_to(min(copy.log_end_offset, play.log.log_end_offset))
        copy.truncate_fully_and_start_at(0) if content(copy) != content(play.log)[: len(content(copy))] else None
        copy.append_as_follower(content(play.log)[len(content(copy)) :], 1 << 20, NOW)
        copy.check()
        end = play.log.log_end_offset
        assert copy.transactions.open == play.log.transactions.open
        assert shown(copy, 0, end) == shown(play.log, 0, end)


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 1 << 20))
def test_the_last_stable_offset_waits_for_markers_to_be_committed_and_never_moves_back(
    script: list[tuple[str, int, int]], seed: int
) -> None:
    play, random = Play(), Random(seed)
    high_watermark = before = 0
    for step in script:
        if step[0] in ("truncate", "stop", "kill", "power", "rot"):
            continue
        play.step(*step)
        opened, _, over = scanned(content(play.log))
        high_watermark = random.randint(high_watermark, play.log.log_end_offset)
        waits = [first for _, first, marker in over if marker >= high_watermark]
        stable_end = play.log.last_stable_offset(high_watermark)
        assert stable_end == min([high_watermark, *opened.values(), *waits])
        assert stable_end >= before
        before = stable_end


def test_a_log_start_that_passes_an_open_transaction_leaves_nothing_unreadable() -> None:
    play = Play()
    play.write(1, 3)
    play.step("plain", 0, 0)
    play.log.advance_log_start(2)
    assert play.log.last_stable_offset(4) == 2
    assert play.log.last_stable_offset(1) == 1, "the high watermark bounds it all the same"
