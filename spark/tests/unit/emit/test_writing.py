"""A lane written to a naive topic: real files, real batches, an outlet that refuses, forgets and is late."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark.tests.unit.emit.broker import Batch, Leader

from strandline.base.errors import ErrorCode
from strandline.client.config import ClientConfig
from strandline.wire.batch import patch_create_time, read_header
from strandline.wire.record import all_records
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit import writing
from strandline_spark.jobs.emit.lane import Acknowledged, Found, Refused, Searched, Track
from strandline_spark.jobs.emit.plan import Lane
from strandline_spark.jobs.emit.staged import rows
from strandline_spark.jobs.emit.staged.encoding import encode
from strandline_spark.jobs.emit.staged.rows import Piece, memory_of, pieces
from strandline_spark.jobs.emit.writing import Writing

LANE = Lane(0, "rows.parquet", 0, producer_id=7, producer_epoch=0)
PARTITIONS = 3
CONFIG = ClientConfig.of({"kafka.bootstrap.servers": "nobody:1"})


class Killed(Exception):
    pass


class Naive:
    """Leaders of all partitions. `kill_after`: so many batches are taken, then the process dies before the answer."""

    def __init__(self, leaders: list[Leader], random: Random, kill_after: int, size_max: int = 1 << 20) -> None:
        self.leaders = leaders
        self.random = random
        self.kill_after = kill_after
        self.size_max = size_max
        self.waiting: list[tuple[int, Acknowledged | Refused]] = []

    def send(self, partition: int, first: int, count: int, sequence: int, batch: Any) -> None:
        if self.kill_after == 0:
            raise Killed
        self.kill_after -= 1
        patch_create_time(batch, read_header(batch))  # signs it, as the producer does
        header = read_header(batch)
        assert (header.record_count, header.base_sequence) == (count, sequence)
        if len(batch) > self.size_max:
            self.waiting.append((partition, Refused(first, count, ErrorCode.MESSAGE_TOO_LARGE)))
            return
        rows = tuple(int(record.value or b"") for record in all_records(batch))
        leader = self.leaders[partition]
        taken = leader.append(header.producer_id, header.base_sequence, rows)
        leader.replicate(leader.end)
        leader.show()
        if isinstance(taken, Batch):
            self.waiting.append((partition, Acknowledged(first, count, taken.base_offset, 0)))
        else:
            self.waiting.append((partition, Refused(first, count, taken)))

    def answers(self) -> Iterable[tuple[int, Acknowledged | Refused]]:
        assert self.waiting, "it waits for nothing"
        count = self.random.randint(1, len(self.waiting))
        now, self.waiting = self.waiting[:count], self.waiting[count:]
        return now

    def search(self, partition: int, offset: int, leader_epoch: int) -> Iterable[Found | Searched]:
        for batch in self.leaders[partition].log:
            if batch.base_offset >= offset and batch.producer == 7:
                last = batch.sequence + len(batch.rows) - 1
                yield Found(batch.sequence, last, batch.base_offset, batch.end - 1, batch.epoch)
        yield Searched(self.leaders[partition].end)


class Away(Naive):
    """The leader of partition 0 answers when nothing else is waited for."""

    def answers(self) -> Iterable[tuple[int, Acknowledged | Refused]]:
        others = [answer for answer in self.waiting if answer[0]]
        if not others:
            return super().answers()
        self.waiting = [answer for answer in self.waiting if not answer[0]]
        return others


def write(path: str, leaders: list[Leader], random: Random, *, kill_after: int = -1, **bounds: int) -> Writing:
    writing = writing_to(Naive(leaders, random, kill_after, bounds.get("size_max", 1 << 20)), random)
    writing.run(pieces(path, 0, PARTITIONS))
    return writing


def writing_to(outlet: Naive, random: Random) -> Writing:
    return Writing(
        LANE,
        {p: Track(written=0, end_offset=0, leader_epoch=0) for p in range(PARTITIONS)},
        outlet,
        lambda rows, sequence: encode(rows, LANE, sequence, CONFIG, 1_000),
        topic="t",
        batch_bytes=random.choice([200, 1000, 5000]),
        sleep=lambda _: None,
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    rows = 2000
    keys = [None if at % 4 else b"%d" % (at % 9) for at in range(rows)]
    values = [b"%d" % at for at in range(rows)]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=300)
    return str(tmp_path / "rows.parquet")


def test_killed_again_and_again_it_ends_with_each_row_once_and_in_order(path: str) -> None:
    for seed in range(6):
        random = Random(seed)
        leaders = [Leader() for _ in range(PARTITIONS)]
        for _ in range(5):
            with pytest.raises(Killed):
                write(path, leaders, random, kill_after=random.randint(0, 4))
        write(path, leaders, random)
        rows = [[row for batch in leader.log for row in batch.rows] for leader in leaders]
        assert all(found == sorted(found) for found in rows)
        assert sorted(row for found in rows for row in found) == list(range(2000))


def test_a_run_over_what_is_all_there_sends_little_and_changes_nothing(path: str) -> None:
    leaders = [Leader() for _ in range(PARTITIONS)]
    write(path, leaders, Random(1))
    before = [leader.end for leader in leaders]
    again = write(path, leaders, Random(2))
    assert [leader.end for leader in leaders] == before
    assert again.held.bytes == 0


def test_batches_that_are_too_large_for_the_topic_become_smaller(path: str) -> None:
    leaders = [Leader() for _ in range(PARTITIONS)]
    write(path, leaders, Random(3), size_max=120)
    assert sum(leader.end for leader in leaders) == 2000


def test_rows_of_a_leader_that_is_away_hold_few_pieces_in_memory(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that waits holds the whole piece that it was read with, most of which is long in other partitions."""
    monkeypatch.setattr(rows, "PIECE_ROWS_MAX", 100)
    one = next(pieces(path, 0, PARTITIONS))[1].rows
    monkeypatch.setattr(writing, "HELD_BYTES_MAX", 3 * memory_of(one))
    leaders = [Leader() for _ in range(PARTITIONS)]
    away = writing_to(Away(leaders, Random(4), kill_after=-1), Random(4))
    held: list[int] = []

    def watched() -> Iterator[Piece]:
        for piece in pieces(path, 0, PARTITIONS):
            yield piece
            held.append(len({id(kept.rows.rows) for partition in away.kept.values() for kept in partition}))

    away.run(watched())
    assert sum(leader.end for leader in leaders) == 2000
    assert max(held) in (3, 4)
    assert away.held.bytes == 0


def test_a_row_that_is_too_large_is_named(path: str) -> None:
    with pytest.raises(StrandlineError, match=r"lane 0, t-\d: row 0 was refused with MESSAGE_TOO_LARGE"):
        write(path, [Leader() for _ in range(PARTITIONS)], Random(3), size_max=60)
