"""Histories of a naive log, and damage done to it: what is right is never blamed, what is damaged is always found."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each
from tests.unit.history.making import KEY, OTHER

from strandline.history.judge import Judgement, judge
from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write, by_key
from strandline.history.policy import Facts


class NaiveLog:
    """One partition, right by construction. A value of None is a marker, an aborted record, or compacted away."""

    def __init__(self) -> None:
        self.records: list[bytes | None] = []
        self.start = 0

    def append(self, value: bytes | None) -> int:
        self.records.append(value)
        return len(self.records) - 1

    def read(self, start: int, count: int) -> list[tuple[int, bytes]]:
        first = max(start, self.start)
        found = [(at, value) for at, value in enumerate(self.records[first:], first) if value is not None]
        return found[:count]


class Play:
    """Clients of naive logs. Operations overlap only as far as their instants say."""

    def __init__(self, seed: int, steps: int) -> None:
        self.rng = Random(seed)
        self.logs = {KEY: NaiveLog(), OTHER: NaiveLog()}
        self.history: list[Operation] = []
        self.positions: dict[tuple[str, Key], int] = {}
        self.now = 0
        self.count = 0
        for _ in range(steps):
            self.now += self.rng.randrange(1, 3)
            self.rng.choice((self.send, self.send, self.transact, self.poll, self.poll, self.assign, self.trim))()
        self.finals = {key: f"last-{key}" for key in self.logs}
        self.read_to_the_end()

    def record(self, process: str, kind: Kind, outcome: Outcome = Outcome.OK, **more: object) -> None:
        began = self.now
        self.now += self.rng.randrange(1, 4)
        given = {"process": process, "kind": kind, "began_ms": began, "ended_ms": self.now, "outcome": outcome}
        self.history.append(Operation(**(given | more)))  # type: ignore[arg-type]

    def value(self, process: str) -> bytes:
        self.count += 1
        return f"{process}{self.count}".encode()

    def send(self) -> None:
        """A batch; what has no answer is there or not, and with acks=0 nobody knows where."""
        key, process = self.rng.choice(list(self.logs)), self.rng.choice(("p", "q"))
        outcome = self.rng.choice((Outcome.OK, Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN))
        acks = self.rng.choice((-1, -1, 0, 1))
        is_written = outcome is Outcome.OK or (outcome is Outcome.UNKNOWN and self.rng.randrange(2))
        writes = []
        for _ in range(self.rng.randrange(1, 4)):
            value = self.value(process)
            offset = self.logs[key].append(value) if is_written else -1
            is_acknowledged = outcome is Outcome.OK and acks != 0
            writes.append(Write(key, value, offset if is_acknowledged else -1))
        self.record(process, Kind.SEND, outcome, acks=acks, is_idempotent=acks == -1, writes=tuple(writes))

    def transact(self) -> None:
        """Several partitions at once, then a marker in each. An aborted record cannot be read."""
        outcome = self.rng.choice((Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN))
        is_committed = outcome is Outcome.OK or (outcome is Outcome.UNKNOWN and self.rng.randrange(2))
        writes = []
        for key, log in self.logs.items():
            value = self.value("t")
            offset = log.append(value if is_committed else None)
            log.append(None)
            writes.append(Write(key, value, offset if outcome is Outcome.OK else -1))
        self.record("t", Kind.SEND, outcome, is_idempotent=True, writes=tuple(writes), transactional_id="tx")

    def poll(self) -> None:
        process = self.rng.choice(("c1", "c2", "c3"))
        reads: list[Read] = []
        for key, log in self.logs.items():
            position = self.positions.setdefault((process, key), 0)
            if position < log.start:
                self.positions[process, key] = log.start
            found = log.read(position, self.rng.randrange(1, 6))
            if found:
                self.positions[process, key] = found[-1][0] + 1
                reads += [Read(key, offset, value) for offset, value in found]
        self.record(process, Kind.POLL, reads=tuple(reads), is_read_committed=True)

    def assign(self) -> None:
        process = self.rng.choice(("c1", "c2", "c3"))
        self.record(process, Kind.ASSIGN)
        for key in self.logs:
            self.positions[process, key] = self.rng.randrange(len(self.logs[key].records) + 1)

    def trim(self) -> None:
        log = self.rng.choice(list(self.logs.values()))
        if self.rng.randrange(4) == 0 and log.records:
            log.start = self.rng.randrange(log.start, len(log.records))

    def read_to_the_end(self) -> None:
        for key, log in self.logs.items():
            while found := log.read(self.positions.get((self.finals[key], key), 0), 7):
                reads = tuple(Read(key, offset, value) for offset, value in found)
                self.record(self.finals[key], Kind.POLL, reads=reads, is_read_committed=True)
                self.positions[self.finals[key], key] = found[-1][0] + 1

    @property
    def trimmed(self) -> dict[Key, int]:
        return {key: log.start for key, log in self.logs.items()}

    def judged(self) -> Judgement:
        return judge(self.history, Facts(), self.trimmed, self.finals)


@settings(max_examples=300)
@given(st.integers(0, 1 << 32), st.integers(0, 80))
def test_a_right_log_has_no_violation(seed: int, steps: int) -> None:
    play = Play(seed, steps)
    assert play.judged().report() == ""
    assert judge(play.history, Facts(), play.trimmed).report() == ""


@settings(max_examples=50)
@given(st.integers(0, 1 << 32), st.integers(0, 80))
def test_a_right_log_needs_next_to_no_tolerance(seed: int, steps: int) -> None:
    """Nothing is lost, duplicated or replaced here, so nothing may have to be excused as such."""
    assert Play(seed, steps).judged().excused() == {}


@settings(max_examples=50)
@given(st.integers(0, 1 << 32), st.integers(0, 80))
def test_each_key_judged_alone_gives_what_all_together_give(seed: int, steps: int) -> None:
    play = Play(seed, steps)
    del play.history[play.rng.randrange(len(play.history) + 1) :: 3]  # damage of any kind
    together = judge(play.history, Facts(), play.trimmed, play.finals)
    alone = [judge(own, Facts(), play.trimmed, play.finals) for own in by_key(play.history).values()]
    assert [a.text for judgement in alone for a in judgement.violations] == [a.text for a in together.violations]


# --- damage


def visible(play: Play, key: Key) -> list[tuple[int, bytes]]:
    return play.logs[key].read(0, 1 << 30)


def promised(play: Play, key: Key) -> list[Write]:
    """What was acknowledged by all in-sync replicas, and is not deleted."""
    start = play.logs[key].start
    return [
        write
        for operation in play.history
        if operation.outcome is Outcome.OK and operation.acks == -1
        for write in operation.writes
        if write.key == key and write.offset >= start
    ]


def again(play: Play, records: list[tuple[int, bytes]]) -> Judgement:
    """Another reader reads it all, damaged, and is the last one."""
    play.finals[KEY] = "later"
    for start in range(0, len(records), 5):
        reads = tuple(Read(KEY, offset, value) for offset, value in records[start : start + 5])
        play.record("later", Kind.POLL, reads=reads, is_read_committed=True)
    return play.judged()


def blamed(judgement: Judgement, value: bytes) -> list[str]:
    return [anomaly.name for anomaly in judgement.violations if value in anomaly.values]


SEEDS = range(60)


@each("seed", SEEDS)
def test_an_acknowledged_record_that_vanishes_is_lost(seed: int) -> None:
    play = Play(seed, 60)
    if not promised(play, KEY):
        return
    victim = play.rng.choice(promised(play, KEY))
    judgement = again(play, [(offset, value) for offset, value in visible(play, KEY) if offset != victim.offset])
    assert "lost-write" in blamed(judgement, victim.value)


@each("seed", SEEDS)
def test_a_cut_tail_is_lost_record_by_record(seed: int) -> None:
    play = Play(seed, 60)
    cut = play.rng.randrange(len(play.logs[KEY].records) + 1)
    judgement = again(play, [(offset, value) for offset, value in visible(play, KEY) if offset < cut])
    for offset, value in visible(play, KEY):
        assert ("lost-write" in blamed(judgement, value)) == (offset >= cut), (offset, cut)


@each("seed", SEEDS)
def test_a_record_that_another_replaces_makes_its_offset_inconsistent(seed: int) -> None:
    play = Play(seed, 60)
    if not visible(play, KEY):
        return
    victim, value = play.rng.choice(visible(play, KEY))
    records = [(offset, b"impostor" if offset == victim else other) for offset, other in visible(play, KEY)]
    assert "inconsistent-offsets" in blamed(again(play, records), value)


@each("seed", SEEDS)
def test_a_record_that_is_written_twice_is_a_duplicate(seed: int) -> None:
    play = Play(seed, 60)
    if not promised(play, KEY):
        return
    victim = play.rng.choice(promised(play, KEY))
    twice = [*visible(play, KEY), (len(play.logs[KEY].records), victim.value)]
    assert blamed(again(play, twice), victim.value) == ["duplicate"]


@each("seed", SEEDS)
def test_a_refused_record_that_appears_is_an_aborted_read(seed: int) -> None:
    play = Play(seed, 60)
    refused = [
        write.value
        for operation in play.history
        if operation.outcome is Outcome.FAIL
        for write in operation.writes
        if write.key == KEY
    ]
    if not refused:
        return
    victim = play.rng.choice(refused)
    judgement = again(play, [*visible(play, KEY), (len(play.logs[KEY].records), victim)])
    assert blamed(judgement, victim) == ["G1a"]


@each("seed", SEEDS)
def test_a_batch_that_a_reader_gets_again_went_back(seed: int) -> None:
    play = Play(seed, 60)
    polls = [i for i, operation in enumerate(play.history) if any(read.key == KEY for read in operation.reads)]
    if not polls:
        return
    at = play.rng.choice(polls)
    play.history.insert(at + 1, play.history[at])
    assert "nonmonotonic-poll" in [anomaly.name for anomaly in play.judged().violations]


@each("seed", SEEDS)
def test_a_poll_that_never_arrives_is_a_skip(seed: int) -> None:
    """The client has moved on as if it had seen it. Others have, so that the gap is known to hold something."""
    play = Play(seed, 60)
    polls = [i for i, operation in enumerate(play.history) if operation.process == play.finals[KEY]]
    if len(polls) < 3:
        return
    missed = play.history.pop(play.rng.choice(polls[1:-1]))
    for read in missed.reads:
        play.record(f"witness-{read.offset}", Kind.POLL, reads=(read,), is_read_committed=True)
    assert "poll-skip" in [anomaly.name for anomaly in play.judged().violations]


@each("seed", SEEDS)
def test_acknowledgements_in_the_wrong_order_are_noticed(seed: int) -> None:
    play = Play(seed, 60)
    sends = [i for i, op in enumerate(play.history) if op.process == "p" and op.acks == -1 and op.outcome is Outcome.OK]
    own = [i for i in sends if play.history[i].writes[0].key == KEY]
    if len(own) < 2:
        return
    first, second = play.history[own[0]], play.history[own[-1]]
    moved = tuple(Write(KEY, write.value, first.writes[0].offset) for write in second.writes[:1])
    play.history[own[-1]] = Operation(
        process="p",
        kind=Kind.SEND,
        began_ms=second.began_ms,
        ended_ms=second.ended_ms,
        outcome=Outcome.OK,
        is_idempotent=True,
        writes=moved,
    )
    names = blamed(play.judged(), moved[0].value)
    assert "nonmonotonic-send" in names
    assert "inconsistent-offsets" in names
