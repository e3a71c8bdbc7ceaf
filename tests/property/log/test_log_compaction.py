"""Whatever a compaction and a power cut take: of each key the last record stays, and what stays is what was written.

The oracle reads records one by one and knows nothing of segments.
"""

from contextlib import suppress
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.compaction.compacting import (
    all_of,
    begin,
    compact,
    compacted,
    finish,
    headers,
    keyed,
    reopen,
    roll,
    sync,
)
from tests.unit.log.logs import NOW, append, open_log

from strandline.log.log import Log
from strandline.sim.world.disk import PowerLost, SimDisk
from strandline.wire.batch import read_header
from strandline.wire.compress import Codec
from strandline.wire.record import Record, records

RETENTION = 1000
pair = st.tuples(st.sampled_from("abcdefgh"), st.one_of(st.none(), st.sampled_from(["", "1", "2" * 40])))
batch = st.tuples(
    st.just("append"), st.lists(pair, min_size=1, max_size=4), st.sampled_from([Codec.NONE, Codec.GZIP, Codec.ZSTD])
)
steps = st.lists(
    st.one_of(
        batch,
        batch,
        st.tuples(st.just("roll"), st.just(None), st.just(None)),
        st.tuples(st.just("epoch"), st.just(None), st.just(None)),
        st.tuples(st.just("compact"), st.integers(1, 6), st.integers(0, 2 * RETENTION)),
    ),
    min_size=3,
    max_size=25,
)


class Play:
    def __init__(self) -> None:
        self.disk = SimDisk()
        self.config = compacted(delete_retention_ms=RETENTION)
        self.log = open_log(self.disk, self.config)
        self.written: dict[int, Record] = {}
        self.now = int(NOW)
        self.synced = 0
        self.sequence = 0

    def run(self, script: list) -> None:
        epoch = 0
        for what, one, two in script:
            if what == "append":
                self.append(one, two, epoch)
            elif what == "epoch":
                epoch += 1
                self.log.assign_epoch(epoch, self.log.log_end_offset)
            elif what == "roll" and self.log.active.size:
                roll(self.log, self.disk)
                self.synced = self.log.log_end_offset
            elif what == "compact":
                self.now += two
                compact(self.log, self.disk, now=self.now, map_bytes=one * 200)

    def append(self, pairs: list, codec: Codec, epoch: int) -> None:
        sent = keyed(*pairs, codec=codec, timestamp=self.now, producer=(7, 0, self.sequence))
        self.sequence += len(pairs)
        base = append(self.log, sent, epoch).base_offset
        for record in records(read_header(sent), sent):
            self.written[base + record.offset] = record._replace(offset=base + record.offset)


def judge(log: Log, play: Play, *, synced: int) -> None:
    found = {record.offset: record for record in all_of(log)}
    assert list(found) == sorted(found)
    assert log.log_end_offset >= synced
    for offset, record in found.items():
        assert record == play.written[offset], offset
    last: dict[bytes | None, int] = {r.key: offset for offset, r in play.written.items() if offset < log.log_end_offset}
    for offset in last.values():
        assert offset in found or play.written[offset].value is None, f"the last of its key at {offset} is gone"
    # Where a tombstone is gone, nothing that it deleted is back.
    alive = {r.key for r in found.values()}
    for key, offset in last.items():
        if offset not in found:
            assert key not in alive


@settings(max_examples=200, deadline=None)
@given(steps)
def test_of_each_key_the_last_record_stays_and_nothing_else_changes(script: list) -> None:
    play = Play()
    play.run(script)
    roll(play.log, play.disk)
    end = play.log.log_end_offset
    while play.log.cleaned_to < end:
        compact(play.log, play.disk, now=play.now, map_bytes=600)
    judge(play.log, play, synced=end)
    keys = [record.key for record in all_of(play.log)]
    assert len(keys) == len(set(keys))
    assert play.log.log_end_offset == end
    before = headers(play.log)
    for clean in (True, False):
        if clean:
            play.disk.sync(play.log.write_all())
            play.log.close()
        again = reopen(play.disk, play.config, clean=clean)
        assert headers(again) == before
        assert again.log_end_offset == end
        assert {p: s.batches[-1].last_sequence for p, s in again.producers.known.items()} == {
            p: s.batches[-1].last_sequence for p, s in play.log.producers.known.items()
        }


@settings(max_examples=400, deadline=None)
@given(steps, st.integers(0, 60), st.integers(0, 1 << 32), st.booleans(), st.integers(1, 8))
def test_a_power_cut_in_the_middle_of_a_compaction_takes_nothing_that_the_policy_keeps(
    script: list, fuse: int, seed: int, power: bool, keys: int
) -> None:
    play = Play()
    play.run(script)
    roll(play.log, play.disk)
    play.append([("a", "x")], Codec.NONE, play.log.latest_epoch)
    synced = play.log.recovery_point
    play.now += RETENTION
    play.disk.fuse = fuse
    with suppress(PowerLost):
        finish(begin(play.log, now=play.now, map_bytes=keys * 200), play.disk)
    play.disk.fuse = -1
    cleaned_to = play.log.cleaned_to
    if power:
        play.disk.crash(Random(seed))
    else:
        play.disk.abandon()
    for again in range(2):
        log = reopen(play.disk, play.config, clean=False, recovery_point=synced, cleaned_to=cleaned_to)
        judge(log, play, synced=synced)
        assert not [name for name in play.disk.list("/d/t-0") if name.endswith((".cleaned", ".swap", ".deleted"))]
        if again == 0:
            compact(log, play.disk, now=play.now)
            judge(log, play, synced=synced)
            sync(log, play.disk)
            play.disk.crash(Random(seed + 1))
