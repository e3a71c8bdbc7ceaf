"""A folder of Parquet files takes each batch once, wherever its process dies."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from spark.tests.unit.tables.rows import SCHEMA, TIMED, WIDER, rows, timed, whole, wider, write

from strandline_spark.errors import StrandlineError
from strandline_spark.schemas import rows as columns
from strandline_spark.tables.manifest import FOLDER, NAME, read_state
from strandline_spark.tables.parquet import ParquetTable, places
from strandline_spark.tables.writing import Plan, write_rows


def opened(path: Path, application: str = "app-1", partition_by: tuple[str, ...] = ("region",)) -> ParquetTable:
    return ParquetTable(str(path), application=application, schema=SCHEMA, partition_by=partition_by)


def seen(path: Path) -> list[int]:
    """The offsets that a reader sees who knows nothing of the manifest."""
    return sorted(
        ds.dataset(path, format="parquet", partitioning="hive").to_table(columns=["offset"])["offset"].to_pylist()
    )


def committed(path: Path) -> list[int]:
    """The offsets that the manifest's readers see."""
    state, _ = read_state(str(path / FOLDER / NAME))
    files = [file for of in places(str(path), state).values() for file in of]
    return sorted(offset for file in files for offset in pq.ParquetFile(file).read(["offset"])["offset"].to_pylist())


def test_a_batch_is_there_once_though_it_is_written_twice(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    assert not write(table, 0, [rows(0, 10)], [rows(0, 5, partition=1)]).was_there
    assert write(table, 0, [rows(0, 10)]).was_there
    write(table, 1, [rows(10, 12)])
    assert table.last_batch() == 1
    assert whole(table.account()) == (17, True, {"orders": {0: 12, 1: 5}})
    table.close()
    assert seen(tmp_path / "t") == committed(tmp_path / "t") == sorted([*range(12), *range(5)])


def test_a_reader_finds_partition_values_in_the_paths_and_nothing_staged(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    odd = "a=b/c d%é"
    write(table, 0, [rows(0, 4, regions=(odd, None))])
    table.begin(1)
    found = ds.dataset(tmp_path / "t", format="parquet", partitioning="hive").to_table().to_pylist()
    assert sorted({str(row["region"]) for row in found}) == sorted({odd, "None"})
    shown = sorted(str(path.relative_to(tmp_path / "t")).split("/")[0] for path in (tmp_path / "t").rglob("*.parquet"))
    assert shown == ["region=__HIVE_DEFAULT_PARTITION__", "region=a%3Db%2Fc d%25é"]


def test_an_empty_batch_counts(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    write(table, 0, [])
    assert table.has(0)
    assert not table.has(1)


def test_two_applications_count_for_themselves(tmp_path: Path) -> None:
    one = opened(tmp_path / "t", "app-1")
    write(one, 4, [rows(0, 3)])
    one.close()
    two = opened(tmp_path / "t", "app-2")
    assert two.last_batch() is None
    assert list(two.accounts()) == ["app-1"]
    write(two, 0, [rows(3, 5)])
    assert two.account().rows == 2


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    first = opened(tmp_path / "t")
    with pytest.raises(StrandlineError, match=f"written by another process .pid {os.getpid()}"):
        opened(tmp_path / "t")
    first.close()
    opened(tmp_path / "t").close()


def test_other_columns_and_another_partitioning_are_refused(tmp_path: Path) -> None:
    opened(tmp_path / "t").close()
    other = columns("topic string", "partition int", "offset long", "region string", "amount string", "more int")
    with pytest.raises(StrandlineError, match="more int is not in the table; amount is bigint there, not string"):
        ParquetTable(str(tmp_path / "t"), application="a", schema=other, partition_by=("region",))
    with pytest.raises(StrandlineError, match="note string is only in the table"):
        ParquetTable(str(tmp_path / "t2"), application="a", schema=WIDER, partition_by=("region",)).close()
        opened(tmp_path / "t2")
    with pytest.raises(StrandlineError, match="is partitioned by region, not by nothing"):
        opened(tmp_path / "t", partition_by=())
    opened(tmp_path / "t").close()  # the lock was given back


def handles() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_a_table_that_refuses_to_open_holds_no_files(tmp_path: Path) -> None:
    opened(tmp_path / "t").close()
    before = handles()
    for _ in range(3):
        with pytest.raises(StrandlineError):
            opened(tmp_path / "t", partition_by=())
    assert handles() == before


def test_a_table_that_is_closed_twice_closes_nobody_elses_files(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    before = handles()
    table.close()
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]  # they get the numbers that have become free
    table.close()
    assert set(before) <= set(handles())
    for file in others:
        os.close(file)


def test_a_column_may_come_later(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", partition_by=())
    write(table, 0, [rows(0, 2)])
    table.close()
    for _ in range(2):
        table = ParquetTable(str(tmp_path / "t"), application="app-1", schema=WIDER)
        table.close()
    table = ParquetTable(str(tmp_path / "t"), application="app-1", schema=WIDER)
    write(table, 1, [wider(2, 4)])
    assert table.state.lines == 6
    table.compact(None)
    table.close()
    (file,) = (tmp_path / "t").glob("*.parquet")
    assert pq.ParquetFile(file).read()["note"].to_pylist() == [None, None, "n2", "n3"]
    state, _ = read_state(str(tmp_path / "t" / FOLDER / NAME))
    assert state.created is not None
    assert '"note"' in state.created.columns


def test_sessions_of_several_time_zones_write_one_table(tmp_path: Path) -> None:
    table = ParquetTable(str(tmp_path / "t"), application="app-1", schema=TIMED)
    write(table, 0, [timed(0, "UTC")])
    write(table, 1, [timed(1, "Europe/Berlin")])
    assert table.compact(None).files_after == 1
    (file,) = (tmp_path / "t").glob("*.parquet")
    assert pq.ParquetFile(file).read()["deep"].to_pylist() == [timed(0, "UTC")["deep"][0].as_py()] * 2


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report.csv").write_text("1")
    with pytest.raises(StrandlineError, match="has files, but no _strandline"):
        opened(tmp_path)
    (tmp_path / FOLDER / "checkpoint").mkdir(parents=True)  # Spark makes it before the table is opened
    with pytest.raises(StrandlineError, match="has files, but no _strandline"):
        opened(tmp_path)
    with pytest.raises(StrandlineError, match=r"a parquet table cannot be at s3://bucket/t"):
        ParquetTable("s3://bucket/t", application="a", schema=SCHEMA)


@pytest.mark.parametrize(
    ("partition_by", "why"),
    [
        (("when",), "cannot be partitioned by when: it has no such column"),
        (("topic", "partition", "offset", "region", "amount"), "cannot be partitioned by topic"),
        (("region", "region"), "cannot be partitioned by region, region"),
    ],
)
def test_a_partitioning_that_cannot_be_is_refused(tmp_path: Path, partition_by: tuple[str, ...], why: str) -> None:
    with pytest.raises(StrandlineError, match=why):
        opened(tmp_path / "t", partition_by=partition_by)


def test_a_torn_last_line_is_no_line_and_damage_before_it_is_an_error(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    write(table, 0, [rows(0, 3)])
    table.close()
    manifest = tmp_path / "t" / FOLDER / NAME
    good = manifest.read_bytes()
    for cut in (1, 20, len(good.splitlines()[-1])):  # in the line of the commit
        manifest.write_bytes(good[:-cut])
        state, _ = read_state(str(manifest))
        assert state.files == {}
        assert state.begun is not None
    manifest.write_bytes(good.replace(b'"begun"', b'"bogus"'))
    with pytest.raises(StrandlineError, match=r"manifest.jsonl is damaged at byte \d+"):
        opened(tmp_path / "t")


def test_a_folded_manifest_says_the_same(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for batch in range(5):
        write(table, batch, [rows(batch * 3, batch * 3 + 3)])
    table.manifest.fold()
    write(table, 5, [rows(15, 18)])
    table.close()
    assert len((tmp_path / "t" / FOLDER / NAME).read_bytes().splitlines()) == 4
    again = opened(tmp_path / "t")
    assert again.last_batch() == 5
    assert whole(again.account()) == (18, True, {"orders": {0: 18}})
    assert committed(tmp_path / "t") == list(range(18))


def test_a_batch_that_is_taken_back_can_be_written_otherwise(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    write(table, 0, [rows(0, 3)])
    write(table, 1, [rows(3, 6)])
    table.take_back(1)
    assert table.last_batch() == 0
    assert seen(tmp_path / "t") == committed(tmp_path / "t") == [0, 1, 2]
    write(table, 1, [rows(3, 5)])
    assert table.account().rows == 5
    assert seen(tmp_path / "t") == [0, 1, 2, 3, 4]


def test_small_files_become_few_with_the_same_rows(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for batch in range(6):
        write(table, batch, [rows(batch * 6, batch * 6 + 6)])
    result = table.compact(None)
    assert (result.files_before, result.files_after) == (18, 3)
    assert seen(tmp_path / "t") == committed(tmp_path / "t") == list(range(36))
    assert table.compact(None).files_before == 0
    write(table, 6, [rows(36, 40)])
    table.close()
    assert opened(tmp_path / "t").last_batch() == 6
    assert seen(tmp_path / "t") == list(range(40))


def test_a_compaction_of_files_that_somebody_changed_leaves_the_table_as_it_is(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", partition_by=())
    write(table, 0, [rows(0, 3)])
    write(table, 1, [rows(3, 6)])
    victim = next(iter((tmp_path / "t").glob("*.parquet")))
    pq.write_table(pq.read_table(victim).slice(0, 1), victim)
    with pytest.raises(StrandlineError, match="have 4 rows, and 6 were committed"):
        table.compact(None)
    assert len(committed(tmp_path / "t")) == 4


def test_a_disk_that_is_full_in_mid_commit_leaves_nothing_that_a_later_try_trips_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t")
    write(table, 0, [rows(0, 3)])
    real = os.write

    def half(file: int, data: bytes) -> int:
        if b'"committed"' in data:
            real(file, data[:20])
            raise OSError(28, "No space left on device")
        return real(file, data)

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        write(table, 1, [rows(3, 6)])
    monkeypatch.undo()
    assert not table.has(1)
    write(table, 1, [rows(3, 6)])
    write(table, 2, [rows(6, 7)])
    table.close()
    opened(tmp_path / "t").close()
    assert seen(tmp_path / "t") == committed(tmp_path / "t") == list(range(7))


def test_files_that_a_machine_without_the_folder_wrote_are_missed_and_not_committed(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    layout = table.begin(0)
    result = write_rows([rows(0, 3)], Plan(layout), 0)
    shutil.rmtree(layout.folder)  # it was on that machine's own disk
    with pytest.raises(StrandlineError, match=r"a task wrote .* and it is not there"):
        table.commit(0, layout, result.table, result.account)
    table.close()
    again = opened(tmp_path / "t")
    assert not again.has(0)
    again.close()


class Died(BaseException):
    """The process ends here: nothing after it happens, nothing is cleaned up."""


def test_what_is_committed_is_durable_up_to_the_folder_that_the_table_is_made_in(
    tmp_path: Path, synced: Callable[[], set[str]]
) -> None:
    table = opened(tmp_path / "new" / "t", partition_by=("partition", "region"))
    assert {str(tmp_path), str(tmp_path / "new"), table.path, table.own} <= synced()
    for batch in range(2):
        write(table, batch, [rows(batch * 2, batch * 2 + 2)])
        folders = {os.path.dirname(path) for path in table.state.files if f"batch-{batch:010d}" in path}
        assert len(folders) == 2
        assert {os.path.join(table.path, path) for path in (*folders, "partition=0")} | {table.path} <= synced()
    table.compact(None)
    (merged,) = {path for path in table.state.files if "compacted-" in path}
    done = synced()
    assert {os.path.join(table.path, os.path.dirname(merged)), table.path} <= done
    assert any(re.search(f"/staging/compaction-[0-9a-f]+/{os.path.dirname(merged)}$", path) for path in done)


STEPS = ("rename", "write", "unlink", "fsync", "replace", "ftruncate")


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int | None], list[str]]]:
    """Call with n: the n-th change to the disk from now on does not happen any more."""
    steps: list[str] = []
    limit: list[int | None] = [None]

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            if limit[0] is not None:
                if len(steps) >= limit[0]:
                    raise Died
                steps.append(name)
            return real(*args, **kwargs)

        return step

    for name in STEPS:
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))

    def at(number: int | None) -> list[str]:
        done = list(steps)
        steps.clear()
        limit[0] = number
        return done

    yield at


def left_by_the_dead(table: ParquetTable) -> None:
    """Locks and files end with a process."""
    table.lock.release()


WORK: dict[str, tuple[Callable[[ParquetTable], object], list[int]]] = {
    "a batch": (lambda table: write(table, 2, [rows(6, 12)]), list(range(12))),
    "a compaction": (lambda table: table.compact(None), list(range(6))),
    "taking back": (lambda table: table.take_back(1), list(range(3))),
}


@pytest.mark.parametrize("name", WORK)
def test_a_death_at_any_step_leaves_all_or_nothing(
    name: str, tmp_path: Path, dies: Callable[[int | None], list[str]]
) -> None:
    work, after = WORK[name]
    for number in range(200):
        path = tmp_path / str(number)
        table = opened(path)
        write(table, 0, [rows(0, 3)])
        write(table, 1, [rows(3, 6)])
        dies(number)
        try:
            work(table)
            return_after = True
        except Died:
            return_after = False
        dies(None)
        left_by_the_dead(table)
        assert committed(path) in (list(range(6)), after), f"died at step {number}"
        again = opened(path)
        assert seen(path) == committed(path), f"died at step {number}"
        assert committed(path) in (list(range(6)), after)
        assert not (path / FOLDER / "staging").exists() or not list((path / FOLDER / "staging").iterdir())
        if name == "a batch":
            write(again, 2, [rows(6, 12)])
            assert seen(path) == after
            assert whole(again.account()) == (12, True, {"orders": {0: 12}})
        again.close()
        if return_after:
            assert number > 5, "the steps were not counted"
            return
    raise AssertionError("it never ended")
