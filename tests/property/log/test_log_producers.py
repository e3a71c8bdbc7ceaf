"""Whatever is stopped, cut and lost: what a log knows of producers is what a scan of all its batches would say."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.log.stopped_log import STOPS, StoppedLog
from tests.unit.log.logs import ROOT, append, content, open_log, produced, small

from strandline.log.log import Appended, Log
from strandline.log.producers.producers import SEQUENCE_MAX
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches

Known = dict[int, tuple[int, list[tuple[int, int, int, int]]]]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 4)),
        st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 4)),
        st.tuples(st.just("send"), st.just(1), st.integers(1, 2)),
        st.tuples(st.just("epoch"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("plain"), st.integers(1, 3), st.just(0)),
        *STOPS,
    ),
    max_size=40,
)


def scanned(piece: bytes) -> Known:
    """Naive: every batch of every producer, in order; the last five of the last epoch count."""
    reported: Known = {}
    for header in batches(piece):
        if header.producer_id < 0:
            continue
        epoch, seen = reported.get(header.producer_id, (-1, []))
        if epoch != header.producer_epoch:
            seen = []
        last = (header.base_sequence + header.last_offset_delta) % (SEQUENCE_MAX + 1)
        seen = [*seen, (header.base_sequence, last, header.base_offset, header.last_offset)][-5:]
        reported[header.producer_id] = header.producer_epoch, seen
    return reported


def known_to(log: Log) -> Known:
    return {
        pid: (one.epoch, [(b.first_sequence, b.last_sequence, b.base_offset, b.last_offset) for b in one.batches])
        for pid, one in log.producers.known.items()
    }


class Play(StoppedLog):
    def step(self, what: str, number: int, count: int) -> None:
        log = self.log
        match what:
            case "send":
                known = known_to(log).get(number)
                epoch = self.epochs[number]
                sequence = (known[1][-1][1] + 1) % (SEQUENCE_MAX + 1) if known and known[0] == epoch else 0
                if known is None:
                    sequence = SEQUENCE_MAX - 3  # who is not known may begin anywhere: let sequences wrap
                append(log, produced(count, producer=(number, epoch, sequence)), self.leader_epoch)
            case "epoch":
                self.epochs[number] += 1
            case "plain":
                append(log, produced(number), self.leader_epoch)
            case _:
                self.stop(what, number)


@settings(max_examples=400, deadline=None)
@given(steps)
def test_what_is_known_of_producers_is_what_a_scan_of_the_log_says(script: list[tuple[str, int, int]]) -> None:
    play = Play()
    for step in script:
        play.step(*step)
        play.log.check()
        assert known_to(play.log) == scanned(content(play.log))
        snapshots = play.log.producer_state.snapshots
        assert snapshots == sorted(int(n[:20]) for n in play.disk.list(ROOT) if n.endswith(".snapshot"))


@settings(max_examples=100, deadline=None)
@given(steps, st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 12)), max_size=8))
def test_a_copy_answers_producers_as_its_leader_does(
    script: list[tuple[str, int, int]], tries: list[tuple[int, int, int]]
) -> None:
    play = Play()
    for step in script:
        play.step(*step)
    leader, disk = play.log, SimDisk()
    follower = open_log(disk, small())
    follower.append_as_follower(content(leader), leader.latest_epoch)
    assert known_to(follower) == known_to(leader)
    disk.sync(follower.write_all())
    follower.close()
    follower = open_log(disk, small())
    for producer, epoch, sequence in tries:
        batch = produced(1, producer=(producer, epoch, sequence))
        mine, his = (log.append_as_leader(bytearray(batch), 99, log.touched) for log in (leader, follower))
        assert mine == his
        assert isinstance(mine, Appended) == isinstance(his, Appended)
