"""What a checkpoint keeps, and what it is refused for."""

import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit.checkpoint import Checkpoint
from strandline_spark.jobs.emit.plan import (
    Finished,
    Lane,
    Plan,
    Target,
    TopicNow,
    Written,
    decode_plan,
    encode,
    why_not_same_topic,
    why_not_searchable,
    why_not_this_run,
)
from strandline_spark.jobs.emit.recovery import why_missing

PLAN = Plan(
    source="table /data/orders",
    topic="orders",
    topic_id="AAAAAAAAAAAAAAAAAAAAAA",
    targets=(Target(0, 100, 4), Target(1, 0, 4)),
    lanes=(Lane(0, "part-0.parquet", 10, 1000, 0), Lane(1, "part-1.parquet", 5, 1001, 0)),
    made_ms=1,
)

SLEEPER = """
import os, sys
from strandline_spark.jobs.emit.checkpoint import Checkpoint
from strandline_spark.jobs.emit.plan import Written
replace = os.replace
def late(*names):
    print(end=".", flush=True)
    sys.stdin.read()
    replace(*names)
os.replace = late
Checkpoint(sys.argv[1]).keep_lane(0, [Written(0, 1, 10, 10, 4)])
"""


def now(**other: object) -> TopicNow:
    same = {"topic_id": PLAN.topic_id, "log_start_offsets": {0: 0, 1: 0}, "end_offsets": {0: 130, 1: 7}}
    return TopicNow(**{**same, **other})  # type: ignore[arg-type]


def why(seen: TopicNow | None) -> str:
    refusal = why_not_same_topic(PLAN, seen)
    return str(refusal or (seen and why_not_searchable(PLAN, seen)))


def test_the_same_topic_with_more_in_it_is_gone_on_with() -> None:
    assert why(now()) == "None"
    assert why(now(log_start_offsets={0: 100, 1: 0}, end_offsets={0: 100, 1: 0})) == "None"


def test_what_a_search_could_not_find_is_rejected() -> None:
    assert "'orders' does not exist any more" in why(None)
    assert "deleted and created anew" in why(now(topic_id="BAAAAAAAAAAAAAAAAAAAAA"))
    assert "had 2 partitions when the run began, and has 3" in why(now(end_offsets={0: 130, 1: 7, 2: 0}))
    assert "orders-0 begins at offset 101 now, and rows of this run may lie from 100 on" in why(
        now(log_start_offsets={0: 101, 1: 0})
    )
    assert "orders-0 has lost its end: it ended at offset 100 when the run began, and at 99 now" in why(
        now(end_offsets={0: 99, 1: 7})
    )


def test_what_retention_took_does_not_make_it_another_topic() -> None:
    assert why_not_same_topic(PLAN, now(log_start_offsets={0: 120, 1: 7})) is None


def test_the_proof_wants_each_lanes_rows_no_more_and_no_less() -> None:
    promised = {(0, 0): Written(0, 0, 6, 110, 4), (1, 0): Written(1, 0, 5, 115, 4)}
    assert why_missing(PLAN, PLAN.targets[0], promised, promised) is None
    assert why_missing(PLAN, PLAN.targets[1], promised, {}) is None
    less = {**promised, (1, 0): Written(1, 0, 3, 113, 4)}
    assert "orders-0 has 3 rows of lane 1 where 5 were acknowledged" in str(
        why_missing(PLAN, PLAN.targets[0], promised, less)
    )
    assert "orders-1 has 2 rows of lane 0 where 0" in str(
        why_missing(PLAN, PLAN.targets[1], promised, {(0, 1): Written(0, 1, 2, 2, 4)})
    )


def test_another_source_or_topic_is_refused_and_named() -> None:
    assert why_not_this_run(PLAN, "table /data/orders", "orders") is None
    other = why_not_this_run(PLAN, "table /data/customers", "orders")
    assert other is not None
    assert "/data/orders" in other.problem
    assert "/data/customers" in other.problem
    assert "'orders', not 'payments'" in str(why_not_this_run(PLAN, "table /data/orders", "payments"))


def test_a_plan_comes_back_as_it_was_and_a_damaged_one_is_named() -> None:
    content = encode(PLAN)
    assert decode_plan(content, "p") == PLAN
    with pytest.raises(StrandlineError, match=r"/c/plan\.json is damaged"):
        decode_plan(content[:-20], "/c/plan.json")
    with pytest.raises(StrandlineError, match="is not a plan of an emit run"):
        decode_plan(b"{}", "p")
    with pytest.raises(StrandlineError, match="of version 2, this program knows 1"):
        decode_plan(content.replace(b'"version": 1', b'"version": 2'), "p")


def test_a_checkpoint_keeps_what_it_is_given(tmp_path: Path) -> None:
    checkpoint = Checkpoint((tmp_path / "c").as_uri())
    with checkpoint.held():
        assert (checkpoint.plan(), checkpoint.finished(), checkpoint.lane_written(0)) == (None, None, None)
        checkpoint.rows.mkdir()
        for lane in PLAN.lanes:
            (checkpoint.rows / lane.file).write_bytes(b"")
        checkpoint.keep_plan(PLAN)
        written = (Written(0, 1, 10, 10, 4),)
        checkpoint.keep_lane(0, written)
        again = Checkpoint(str(tmp_path / "c"))
        assert (again.plan(), again.lane_written(0), again.lane_written(1)) == (PLAN, written, None)
        checkpoint.keep_finished(Finished(10, 2, written))
        assert again.finished() == Finished(10, 2, written)
        assert not checkpoint.rows.exists()


def test_a_damaged_file_of_a_lane_or_of_the_end_is_named_and_may_be_removed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path / "c"))
    checkpoint.lanes.mkdir(parents=True)
    checkpoint.lane_path(3).write_bytes(b"[]}]")
    (checkpoint.folder / "finished.json").write_bytes(b'{"rows": 1')
    with pytest.raises(StrandlineError, match=r"00003\.json is damaged: .*\n  remove this file and run"):
        checkpoint.lane_written(3)
    with pytest.raises(StrandlineError, match=r"finished\.json is damaged: .*\n  remove this file and run"):
        checkpoint.finished()


def test_two_workers_keep_the_same_lane_at_once(tmp_path: Path) -> None:
    """One writes its file and sleeps before it has its name; the other does all of it; the first wakes up."""
    folder = str(tmp_path / "c")
    checkpoint = Checkpoint(folder)
    checkpoint.lanes.mkdir(parents=True)
    with Popen([sys.executable, "-c", SLEEPER, folder], stdin=PIPE, stdout=PIPE) as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.read(1) == b"."
        checkpoint.keep_lane(0, [Written(0, 1, 10, 10, 4)])
        sleeper.communicate(b"wake up")
    assert sleeper.returncode == 0
    assert checkpoint.lane_written(0) == (Written(0, 1, 10, 10, 4),)


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with (
        Checkpoint(str(tmp_path / "c")).held(),
        pytest.raises(StrandlineError, match="another run uses"),
        Checkpoint(str(tmp_path / "c")).held(),
    ):
        pass
    with Checkpoint(str(tmp_path / "c")).held():
        pass


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with (
        pytest.raises(StrandlineError, match="not a checkpoint of an emit run: it holds offsets"),
        Checkpoint(str(tmp_path)).held(),
    ):
        pass
    with pytest.raises(StrandlineError, match="scheme s3"):
        Checkpoint("s3://bucket/c")
