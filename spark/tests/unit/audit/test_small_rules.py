"""What an audit concludes from a log's small files, and what it says in the end: no Spark is needed for that."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.printed import hold

pytest.importorskip("pyspark")

from strandline.base.ids import TopicPartition
from strandline.log.checkpoints import format_epochs, format_offsets
from strandline.log.epochs import EpochStart
from strandline_spark.jobs.audit.files import readable_directories
from strandline_spark.jobs.audit.job import narrowed
from strandline_spark.jobs.audit.ledger import losses_in
from strandline_spark.jobs.audit.page import audit_page
from strandline_spark.jobs.audit.replicas import Known, Measured, replicas, replicas_over_the_wire
from strandline_spark.jobs.audit.report import CLEAN, FINDINGS, INCOMPLETE, AuditReport
from strandline_spark.jobs.audit.rows import Key, Row
from strandline_spark.jobs.audit.subjects.acknowledged import leading
from strandline_spark.jobs.audit.subjects.epochs import across_replicas
from strandline_spark.jobs.audit.subjects.watermarks import high_watermarks

NAMES = ("broker", "directory", "topic", "topic_id", "partition")


def key(broker: int, partition: int = 0) -> Key:
    return (broker, f"/{broker}", "t", "id", partition)


def row(broker: int, **others: Any) -> Row:
    return {**dict(zip(NAMES, key(broker), strict=True)), **others}


def known(broker: int = 1, **others: Any) -> Known:
    one = Known(key(broker), 0, 10, 10, None, True, False, 3, 100, 2, 10)
    return msgspec.structs.replace(one, **others)


def checkpoint(broker: int, **others: Any) -> Row:
    saved = {"high_watermark": 8, "log_start_offset": 0, "clean_shutdown": True, "cleaned_to": None}
    return row(broker, **{**saved, **others})


def read(broker: int, **others: Any) -> Measured:
    counted = {
        "read_start": 0,
        "read_end": 10,
        "latest": 1,
        "records": 10,
        "bytes": 5,
        "batches": 2,
        "unread": None,
        "why_unread": None,
        "broken": 0,
    }
    return {key(broker): {**counted, **others}}


# --- replicas


def test_a_log_starts_where_retention_left_it_even_if_the_checkpoint_is_older() -> None:
    segments = [row(1, segment=4), row(1, segment=7)]
    (one,) = replicas(read(1), [checkpoint(1, log_start_offset=2)], segments, [row(1, leader_epoch=5, start_offset=4)])
    assert (one.start, one.high_watermark, one.end, one.latest) == (4, 8, 10, 5)
    (one,) = replicas(read(1), [checkpoint(1, log_start_offset=6)], segments, [])
    assert (one.start, one.latest) == (6, 1)


def test_an_empty_log_ends_where_its_segment_begins_and_a_missing_checkpoint_says_nothing() -> None:
    (one,) = replicas({}, [], [row(1, segment=40)], [])
    assert (one.start, one.end, one.high_watermark, one.is_stopped) == (40, 40, 0, False)


def test_one_cleaned_replica_makes_its_partition_compacted() -> None:
    rows = [checkpoint(1), checkpoint(2, cleaned_to=0)]
    found = replicas({**read(1), **read(2)}, rows, [row(1, segment=0), row(2, segment=0)], [])
    assert [one.is_compacted for one in found] == [True, True]
    assert [one.cleaned_to for one in found] == [None, 0]


def test_over_the_wire_what_was_read_is_what_the_broker_knows_to_be_committed() -> None:
    (one,) = replicas_over_the_wire(read(1, read_start=3), ["t"])
    assert (one.start, one.high_watermark, one.end, one.cleaned_to) == (3, 10, 10, 10)


# --- rules


def test_a_high_watermark_above_the_logs_end_is_found_and_one_at_it_is_not() -> None:
    assert list(high_watermarks([known(high_watermark=10)])) == []
    (found,) = high_watermarks([known(high_watermark=12)])
    assert (found["rule"], found["offset"], found["end"], found["broker"]) == ("high-watermark", 10, 12, 1)


def entries(broker: int, *starts: int) -> list[Row]:
    return [row(broker, leader_epoch=epoch, start_offset=start) for epoch, start in enumerate(starts)]


@pytest.mark.parametrize(
    ("one", "other", "replica", "is_found"),
    [
        ((0, 4), (0, 5), {}, True),
        ((0, 4), (0, 4), {}, False),
        ((2, 4), (1, 4), {}, False),  # the first entry is where retention left it
        ((0, 4), (0, 11), {}, False),  # above the high watermark
        ((0, 4), (0, 5), {"start": 5}, False),  # below the log's start
    ],
)
def test_an_epoch_begins_at_one_offset_where_that_can_be_said(
    one: tuple[int, ...], other: tuple[int, ...], replica: dict[str, int], is_found: bool
) -> None:
    found = list(across_replicas(entries(1, *one) + entries(2, *other), [known(1), known(2, **replica)]))
    assert bool(found) == is_found


def test_the_replica_with_the_latest_epoch_leads_and_among_several_the_longest_log() -> None:
    (lead,) = leading([known(1, end=20), known(2, latest=4, end=11), known(3, latest=4, end=12)])
    assert lead["lead_broker"] == 3


def test_what_any_cleaner_may_have_taken_is_not_sought_in_who_leads() -> None:
    """A log may be a copy of what another cleaner was at; and a pass that is under way, or was stopped, has taken
    records of every segment but the newest, before it writes down how far it was."""
    ones = [known(1, cleaned_to=0, is_compacted=True, latest=4), known(2, cleaned_to=30, is_compacted=True)]
    assert leading(ones)[0]["cleaned_to"] == 30
    assert leading(ones, [row(1, segment=0), row(1, segment=40), row(2, segment=20)])[0]["cleaned_to"] == 40
    assert leading([known(1)], [row(1, segment=0), row(1, segment=40)])[0]["cleaned_to"] is None


# --- what is read, and what is not


def test_a_further_look_names_the_partitions_concerned_unless_one_is_unknown_or_they_are_too_many() -> None:
    options = {"path": "/d", "subscribe": "t,u"}
    there: dict[tuple[str, int], None] = {("t", 0): None, ("t", 1): None, ("u", 0): None}
    assert narrowed(options, {("t", 1): None, ("t", 0): None}, there) == {"path": "/d", "assign": '{"t": [0, 1]}'}
    assert narrowed(options, {("v", 1): None}, there) == options
    many: dict[tuple[str, int], None] = {("t", at): None for at in range(2000)}
    assert narrowed(options, many, many) == options


def test_directories_that_cannot_be_read_are_named_with_the_reason(tmp_path: Path) -> None:
    good = log_directory(tmp_path / "good", "t-0")
    (tmp_path / "bare").mkdir()
    (tmp_path / "file").write_text("")
    names = ["good", "good", "bare", "file", "absent", "none*"]
    found = readable_directories([str(tmp_path / name) for name in names])
    assert found.paths == (str(good),)
    assert [one.removeprefix(f"{tmp_path}/") for one in found.unread] == [
        "bare: it has no meta.properties, so it is not a log directory",
        "file: Not a directory",
        "absent: there is no such directory",
        "none*: nothing matches",
    ]


def test_small_files_that_are_invalid_are_named_and_the_directory_is_read_nevertheless(tmp_path: Path) -> None:
    path = log_directory(tmp_path / "d", "t-0", "u-0")
    (path / "replication-offset-checkpoint").write_bytes(format_offsets({TopicPartition("t", 0): 7}))
    (path / "t-0" / "leader-epoch-checkpoint").write_bytes(format_epochs([EpochStart(3, 0)]))
    assert readable_directories([str(path)]) == ((str(path),), ())
    (path / "replication-offset-checkpoint").write_text("0\n2\nt 0 7\n")
    (path / "u-0" / "leader-epoch-checkpoint").write_text("rot")
    (path / "u-0" / "partition.metadata").write_text("version: 0\ntopic_id: ?\n")
    found = readable_directories([str(path), str(path)])
    assert found.paths == (str(path),)
    assert [one.removeprefix(f"{path}/").partition(" is ")[0] for one in found.unread] == [
        "replication-offset-checkpoint",
        "u-0/leader-epoch-checkpoint",
        "u-0/partition.metadata",
    ]


def log_directory(path: Path, *logs: str) -> Path:
    for log in logs:
        (path / log).mkdir(parents=True)
        (path / log / f"{0:020d}.log").write_bytes(b"")
    meta = "version=1\ncluster.id=c\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    (path / "meta.properties").write_text(meta)
    return path


def test_a_file_or_a_log_that_is_gone_once_it_was_listed_is_no_reason_not_to_read_the_directory(tmp_path: Path) -> None:
    path = log_directory(tmp_path / "d", "t-0")
    (path / "t-0" / "leader-epoch-checkpoint.tmp").symlink_to("gone")  # listed, and cannot be opened: as if renamed
    (path / "u-0").symlink_to("gone")
    assert readable_directories([str(path)]) == ((str(path),), ())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_closed_file_behind_a_log_that_is_gone_is_seen(tmp_path: Path) -> None:
    path = log_directory(tmp_path / "d", "t-0")
    (path / "a-0").symlink_to("gone")
    closed = path / "t-0" / f"{0:020d}.log"
    closed.chmod(0)
    assert readable_directories([str(path)]) == ((), (f"{path}: t-0/{closed.name} cannot be read",))


def test_ledgers_of_directories_are_read_and_lines_that_are_invalid_are_reported(tmp_path: Path) -> None:
    event = {
        "start": 5,
        "end": 9,
        "certainty": 2,
        "replica": 1,
        "oldEpoch": 1,
        "newEpoch": 2,
        "timeMs": 1,
        "cause": "c",
    }
    line = {"topic": "t", "topicId": "aWQgb2YgdG9waWMgdCAgLg", "partition": 3, **event}
    head = {"version": 0, "earlierEvents": 0, "earlierRecords": 0}
    (tmp_path / "loss-ledger.json").write_text(f"{json.dumps(head)}\n{json.dumps(line)}\nnonsense\n")
    found = losses_in([str(tmp_path), str(tmp_path / "absent")])
    assert found.rows == (("t", 3, 5, 9, 2, "c"),)
    assert found.unread == (f"{tmp_path}/loss-ledger.json: 1 lines are not valid",)


# --- what is told


def finding(**others: Any) -> Row:
    names = ("rule", "severity", "topic", "partition", "broker", "offset", "end", "what")
    return {**dict(zip(names, ("torn", "warning", "<t>", 0, 1, 5, 6, "it <b>tore"), strict=True)), **others}


def report_with(findings: tuple[Row, ...] = (), unread: tuple[str, ...] = ()) -> AuditReport:
    counts = {one["rule"]: 7 for one in findings}
    totals = {"replicas": 1, "partitions": 1, "brokers": 1, "bytes": 100, "batches": 2, "records": 10}
    return AuditReport(findings, counts, (known().row,), totals, unread, (("t", 0, 3, -1, 1, "elected"),), 40)


def test_what_could_not_be_read_weighs_more_than_what_was_found() -> None:
    assert [
        one.status
        for one in (
            report_with(),
            report_with((finding(),)),
            report_with((finding(),), ("x",)),
            report_with((), ("x",)),
        )
    ] == [
        CLEAN,
        FINDINGS,
        INCOMPLETE,
        INCOMPLETE,
    ]
    assert report_with().verdict == "no findings"
    assert report_with((finding(),), ("x",)).verdict == "7 findings; incomplete: 1 could not be read"


def test_the_page_says_the_verdict_and_escapes_what_stands_in_names() -> None:
    pytest.importorskip("matplotlib")
    html = audit_page(
        report_with((finding(), finding(rule="crc", severity="error", broker=None)), ("disk <x>",)), "<here>"
    )
    assert "14 findings; incomplete: 1 could not be read" in html
    assert "it <b>tore" not in html
    assert "it &lt;b&gt;tore" in html
    assert "several" in html
    assert html.count('role="img"') >= 3
    assert "All that was checked holds" in audit_page(report_with(), "here")
    assert "exactly" not in audit_page(report_with(), "here")
    assert "at most" in audit_page(report_with(), "here")


def test_json_is_complete() -> None:
    report = report_with((finding(),)).as_json()
    hold(["pipeline", "audit", "--json"], json.dumps(report))
    assert report["status"] == "findings"
