"""What a task makes of logs that no producer of ours can write yet, and of a cluster that falls silent or lies."""

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from strandline.client.cluster import PartitionView, TopicView
from strandline.client.config import ClientConfig
from strandline.client.errors import OffsetOutOfRange, TimedOut, UnknownTopic
from strandline.client.fetching import Fetched, whole_batches
from strandline.wire.batch import build, patch, read_header
from strandline.wire.control import EndTxnMarker, build_end_txn
from strandline_spark.decode import Columns
from strandline_spark.errors import DataLoss, StrandlineError
from strandline_spark.topic import reading
from strandline_spark.topic.planning import TopicRange
from strandline_spark.topic.reading import RangePartition, Reading

COLUMNS = Columns.of(["offset", "value"])
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1"}


def batch(base: int, count: int, producer: int = -1) -> bytes:
    records = [(1, None, b"%d" % offset, ()) for offset in range(base, base + count)]
    if producer < 0:
        return build(records, base_offset=base, leader_epoch=3)
    return build(
        records,
        base_offset=base,
        leader_epoch=3,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def marker(base: int, producer: int, *, commits: bool) -> bytes:
    end = EndTxnMarker(commits=commits, coordinator_epoch=1)
    out = bytearray(build_end_txn(end, timestamp=1, producer_id=producer, producer_epoch=0))
    patch(out, read_header(out), base, 3)
    return bytes(out)


TRANSACTIONS = b"".join(
    [batch(0, 2, 1), batch(2, 2, 2), batch(4, 2), marker(6, 1, commits=False), marker(7, 2, commits=True)]
)


class Script:
    """A cluster whose answers are written down; an exception among them is raised."""

    def __init__(
        self, *answers: Any, aborted: tuple[tuple[int, int], ...] = (), epoch: tuple[int, int] | Exception = (3, 8)
    ) -> None:
        self.answers = list(answers)
        self.aborted = aborted
        self.epoch = epoch
        self.began: list[int] = []
        self.is_closed = False
        self.looked = 0

    def read(self, topic: str, partition: int, start: int, end: int, **how: Any) -> Iterator[Fetched]:
        self.began.append(start)
        while self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            records = memoryview(answer)
            next_offset = max(start, whole_batches(records)[1])
            yield Fetched(records, next_offset, 8, 8, 0, self.aborted, 3, 1)
            if next_offset >= end:
                return

    def topics(self, names: list[str]) -> dict[str, TopicView]:
        self.looked += 1
        return {name: TopicView(name, "id", {0: PartitionView(1, 3, (1,), (1,))}) for name in names}

    def epoch_end(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        if isinstance(self.epoch, Exception):
            raise self.epoch
        return self.epoch

    def close(self) -> None:
        self.is_closed = True


def read(script: Script, *, end: int = 8, **options: str) -> list[int]:
    """The offsets of a task from 0 to `end`, over this cluster."""
    config = ClientConfig.of({**OPTIONS, **options})
    reading.kept[os.getpid(), config] = script  # type: ignore[assignment]
    task = Reading(config, COLUMNS, 1000, options.get("failOnDataLoss") != "false")
    work = RangePartition(TopicRange("t", "id", 0, 0, end, end_epoch=3))
    batches: list[pa.RecordBatch] = list(task.read(work))
    assert all(each.schema == COLUMNS.schema for each in batches)
    return [offset for each in batches for offset in each.column("offset").to_pylist()]


def test_read_uncommitted_gives_aborted_records_and_no_marker() -> None:
    assert read(Script(TRANSACTIONS)) == [0, 1, 2, 3, 4, 5]


def test_read_committed_gives_no_aborted_record_and_a_range_that_ends_with_markers_ends() -> None:
    options = {"kafka.isolation.level": "read_committed"}
    assert read(Script(TRANSACTIONS, aborted=((1, 0),)), **options) == [2, 3, 4, 5]


def test_markers_alone_are_no_rows() -> None:
    assert read(Script(TRANSACTIONS[: -len(marker(7, 2, commits=True))], marker(7, 2, commits=True))) == list(range(6))


def test_a_log_that_begins_later_is_loss_or_is_gone_on_with() -> None:
    gone = OffsetOutOfRange("t", 0, 0, 4, 8)
    with pytest.raises(DataLoss) as lost:
        read(Script(gone))
    assert "records 0 to 3 were deleted" in lost.value.problem
    script = Script(gone, batch(4, 4))
    assert read(script, failOnDataLoss="false") == [4, 5, 6, 7]
    assert script.began == [0, 4]


def test_a_log_that_ends_earlier_is_loss_or_the_end() -> None:
    cut = OffsetOutOfRange("t", 0, 4, 0, 4)
    with pytest.raises(DataLoss) as lost:
        read(Script(batch(0, 4), cut))
    assert "t-0 now ends at offset 4: records 4 to 7 are gone" in lost.value.problem
    assert read(Script(batch(0, 4), cut), failOnDataLoss="false") == [0, 1, 2, 3]


def test_a_log_without_the_epoch_that_was_planned_with_is_loss_even_where_all_offsets_were_there() -> None:
    with pytest.raises(DataLoss) as lost:
        read(Script(batch(0, 8), epoch=(2, 5)))
    assert "leader epoch 3 reached offset 8, and now epoch 2 ends at 5" in lost.value.problem


def test_a_topic_deleted_in_mid_read_is_loss() -> None:
    with pytest.raises(DataLoss):
        read(Script(batch(0, 4), UnknownTopic("t")))


def test_a_topic_deleted_after_all_was_read_is_none() -> None:
    assert read(Script(batch(0, 8), epoch=UnknownTopic("t"))) == list(range(8))


def test_a_task_that_finds_what_was_planned_asks_for_no_metadata_at_its_end() -> None:
    """Of thousands of partitions, for each of thousands of tasks."""
    script = Script(batch(0, 8))
    assert read(script) == list(range(8))
    assert script.looked == 0


def test_a_cluster_that_answers_nothing_more_is_reported_by_what_was_to_be_read() -> None:
    with pytest.raises(StrandlineError, match="Cannot fetch records of t-0 from offset 4 on"):
        read(Script(batch(0, 4), TimedOut("nobody leads"), epoch=TimedOut("silence")))


def test_a_cluster_that_falls_silent_is_an_error_that_says_how_long_it_was_waited_for() -> None:
    with pytest.raises(StrandlineError) as failed:
        read(Script(batch(0, 4), TimedOut("nobody leads")))
    assert "Cannot fetch records of t-0 from offset 4 on in 1000 milliseconds: nobody leads" in failed.value.problem
    assert not isinstance(failed.value, DataLoss)


def test_a_silent_cluster_whose_log_was_cut_has_lost_records() -> None:
    with pytest.raises(DataLoss):
        read(Script(batch(0, 4), TimedOut("the end does not come"), epoch=(2, 4)))


def test_damage_is_reported_with_its_place() -> None:
    rotten = bytearray(batch(0, 8))
    rotten[-1] ^= 1
    with pytest.raises(StrandlineError) as failed:
        read(Script(bytes(rotten)))
    assert "t-0: the batch at offset 0" in failed.value.problem
    assert "audit" in failed.value.advice


def test_a_worker_keeps_its_connections_for_the_next_task_and_drops_the_eldest_of_many() -> None:
    scripts = []
    for number in range(reading.KEPT_MAX + 1):
        config = ClientConfig.of({**OPTIONS, "kafka.client.id": str(number)})
        scripts.append(Script())
        reading.kept[os.getpid(), config] = scripts[-1]  # type: ignore[assignment]
        Reading(config, COLUMNS, 1000, True).connected()
    assert [script.is_closed for script in scripts] == [True, *[False] * reading.KEPT_MAX]
