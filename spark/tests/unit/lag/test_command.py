"""What the command makes of its flags."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from strandline.client.errors import TimedOut
from strandline_spark.cli.lag import Watched, judge, named_queries, require_whole, run, sampling
from strandline_spark.jobs.lag.samples import Ends, Sample, read, sampled
from strandline_spark.jobs.lag.watching import Kept


def test_checkpoints_are_called_by_their_folders_and_by_whole_paths_where_those_are_the_same() -> None:
    one, other = "/data/a/_strandline/checkpoint", "/data/b/_strandline/checkpoint"
    assert named_queries([one, other, "/etl"]) == {one: one, other: other, "etl": "/etl"}
    assert named_queries([one, f"b={other}"]) == {"checkpoint": one, "b": other}


def test_a_folder_may_have_an_equals_sign() -> None:
    assert named_queries(["/data/day=1/etl", "x=/data/day=2/etl"]) == {"etl": "/data/day=1/etl", "x": "/data/day=2/etl"}


def test_one_name_for_two_checkpoints_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        named_queries(["a=/one", "a=/two"])
    assert "two checkpoints have the name a" in capsys.readouterr().err


def rows(*positions: int | None, kind: str = "group", end: int = 1_000_000) -> list[dict[str, Any]]:
    """Of one reader in the partitions of a topic with so many records each."""
    made = [sampled(0, kind, "g", "t", number, Ends(0, end), at) for number, at in enumerate(positions)]
    return [to_builtins(sample) for sample in made]


def status(rows: Sequence[dict[str, Any]], max_lag: int | None) -> object:
    try:
        judge(rows, max_lag)
    except SystemExit as ended:
        return ended.code
    return 0


def test_a_partition_that_a_group_has_committed_nothing_for_is_not_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(rows(1_000_000, None), 5) == 1
    assert "group g has not committed an offset for t-1, which has records" in capsys.readouterr().err
    assert status(rows(1_000_000, None), None) == 0
    assert status(rows(3, None), 5) == 2, "that one is too far behind is known"
    assert status(rows(0, None, end=0), 5) == 0, "there is nothing to be read"
    assert status(rows(None, kind="topic"), 5) == 0, "a topic reads nothing"
    assert status(rows(999_997, 999_998), 5) == 0


def test_what_the_end_of_a_watch_lacks_is_not_fine(capsys: pytest.CaptureFixture[str]) -> None:
    require_whole([])
    with pytest.raises(SystemExit):
        require_whole(["no sample of b-0: no leader now"])
    assert "no sample of b-0" in capsys.readouterr().err


class Scripted:
    """A sampler whose samples are written down; those of an outage are exceptions. Then somebody
    presses Ctrl-C."""

    def __init__(self, *times: list[Sample] | TimedOut) -> None:
        self.times = list(times)
        self.lacking: dict[str, str] = {}

    def sample(self) -> list[Sample]:
        if not self.times:
            raise KeyboardInterrupt
        found = self.times.pop(0)
        if isinstance(found, TimedOut):
            raise found
        return found


def run_with(sampler: Any, file: Path | None = None) -> Watched:
    watched = Watched(Kept(0))
    run(sampler, watched, 0.01, None, file, json_output=False)
    return watched


def test_a_watch_that_ends_in_an_outage_has_not_seen_the_end() -> None:
    here = [sampled(0, "group", "g", "t", 0, Ends(0, 10), 10)]
    assert run_with(Scripted(here, TimedOut("no broker"))).lacking == ["no sample: no broker"]
    assert run_with(Scripted(here, TimedOut("no broker"), here)).lacking == []


def test_a_disk_that_is_full_later_ends_no_watch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lag.jsonl"
    here = [sampled(0, "group", "g", "t", 0, Ends(0, 10), 10)]

    class Filling(Scripted):
        def sample(self) -> list[Sample]:
            if len(self.times) == 2:  # as a full disk does, a folder in the file's place refuses what is written
                file.rename(tmp_path / "kept")
                file.mkdir()
            if len(self.times) == 1:
                file.rmdir()
                (tmp_path / "kept").rename(file)
            return super().sample()

    run_with(Filling(here, here, here), file)
    assert "samples are not written: " in capsys.readouterr().err
    assert len(list(read(file))) == 2
    with pytest.raises(OSError, match="No such file"):
        run_with(Scripted(here), tmp_path / "nowhere" / "lag.jsonl")


def test_a_broker_that_hangs_is_not_waited_for_long_unless_that_is_asked_for() -> None:
    servers = {"kafka.bootstrap.servers": "localhost:1"}
    for given, waited in (({}, 5000), ({"kafka.request.timeout.ms": "70000"}, 70_000)):
        with sampling({**servers, **given}, (), (), (), False, None) as sampler:
            assert sampler.cluster.config.request_timeout_ms == waited
