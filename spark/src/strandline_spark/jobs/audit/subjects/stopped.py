"""Is a log directory what the marker of its broker's last stop says that it was?

The marker has each log's segments, with checksums of their ends, and one of all files beside them; and what the
checkpoints said (`log/evidence/inventory.py`). So it shows what batches cannot: a whole log that is gone, or out of a
backup. What the next start repairs, and what was only written after the stop, is a warning."""

import os
from collections.abc import Iterator
from itertools import pairwise

from strandline.base.ids import METADATA_TOPIC, uuid_text
from strandline.base.ports import DiskError
from strandline.log.checkpoints import Unreadable, parse_offsets
from strandline.log.directory import DamagedMetadata, directory_name, parse_directory_name, read_topic_id
from strandline.log.evidence.inventory import Left, SegmentRow, finders_in, segments_in
from strandline.replica.hosting.rows import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, Offsets
from strandline_spark.jobs.audit.rows import ERROR, WARNING, Key, Row, plain
from strandline_spark.replica.left import ReadDisk, Stopped
from strandline_spark.replica.options import Wanted

RULE = "changed-since-stop"
RULES = {RULE: "after a stop in order, files of a log were changed, deleted or replaced"}
Change = tuple[str, int, int, str]  # severity, offset, end, a sentence
DISK = ReadDisk()


def changes_since_stop(stopped: Stopped, wanted: Wanted) -> list[Row]:
    """One error and one warning at most for each log. None if the broker started meanwhile."""
    saved = {file: saved_in(f"{stopped.directory}/{file}") for file in (*CHECKED, CLEANED)}
    found: list[Row] = []
    for row in stopped.marker.logs:
        if row.is_in_doubt or not wanted.has(row.topic, row.partition):
            continue
        key = (stopped.meta.node_id, stopped.directory, row.topic, row.topic_id, row.partition)
        try:
            changes = list(changes_of(f"{stopped.directory}/{directory_name(row.name)}", row))
        except DiskError:
            continue  # the audit names what it cannot read
        found += as_findings(key, [*changes, *other_offsets(row, saved)])
    found += [plain(RULE, what, key, 0, 1, severity=WARNING) for key, what in unlisted(stopped, wanted)]
    return found if stopped.is_still() else []


def as_findings(key: Key, changes: list[Change]) -> Iterator[Row]:
    for severity in (ERROR, WARNING):
        alike = [change for change in changes if change[0] == severity]
        if alike:
            start, end = min(offset for _, offset, _, _ in alike), max(end for _, _, end, _ in alike)
            what = "; ".join(dict.fromkeys(each for *_, each in alike))
            yield plain(RULE, f"since the last stop {what}", key, start, max(end, start + 1), severity=severity)


# --- a log's own files


def changes_of(path: str, row: Left) -> Iterator[Change]:
    """Raises DiskError."""
    if not os.path.isdir(path):
        yield ERROR, row.start, row.end, f"the whole log is gone, which had the offsets {row.start} to {row.end - 1}"
        return
    found = topic_id_at(path)
    if found != row.topic_id:
        yield WARNING, row.start, row.end, f"its topic id {row.topic_id} became {found or 'missing or unreadable'}"
    now = tuple(segments_in(DISK, path))
    if now != row.segments:
        yield from other_segments(now, row)
    elif finders_in(DISK, path) != row.finders:
        yield WARNING, row.start, row.end, "its indexes, epochs or producer snapshots were changed"


def topic_id_at(path: str) -> str | None:
    try:
        found = read_topic_id(DISK, path)
    except DamagedMetadata:
        return None
    return None if found is None else uuid_text(found)


def other_segments(now: tuple[SegmentRow, ...], row: Left) -> Iterator[Change]:
    there = {segment.base_offset: segment for segment in now}
    ends = [after.base_offset for _, after in pairwise(row.segments)] + [row.end]
    for was, end in zip(row.segments, ends, strict=True):
        found, base = there.pop(was.base_offset, None), was.base_offset
        if found is None:
            yield ERROR, base, end, f"segment {base} is gone"
        elif found.size < was.size:
            yield ERROR, base, end, f"segment {base} was cut from {was.size} to {found.size} bytes"
        elif found.size > was.size and (not was.size or found.first_bytes == was.first_bytes) and end == row.end:
            yield WARNING, end, end + 1, f"segment {base} grew from {was.size} to {found.size} bytes"
        elif found != was:
            yield ERROR, base, end, f"segment {base} has other bytes"
    for base in sorted(there):
        severity = WARNING if base >= row.end else ERROR
        yield severity, base, base + 1, f"segment {base} appeared"


def unlisted(stopped: Stopped, wanted: Wanted) -> Iterator[tuple[Key, str]]:
    """Logs that the stop did not leave there, without topics that it marked as in doubt."""
    names = {row.name for row in stopped.marker.logs}
    doubted = {(row.topic_id, row.partition) for row in stopped.marker.logs if row.is_in_doubt}
    for entry in sorted(os.listdir(stopped.directory)):
        name, path = parse_directory_name(entry), f"{stopped.directory}/{entry}"
        if name is None or name in names or name.topic == METADATA_TOPIC or not os.path.isdir(path):
            continue
        topic_id = topic_id_at(path)
        if wanted.has(name.topic, name.partition) and (topic_id, name.partition) not in doubted:
            key = (stopped.meta.node_id, stopped.directory, name.topic, topic_id or "", name.partition)
            yield key, "the log was not there at the last stop"


# --- what the checkpoints of its directory say


CHECKED = (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS)


def saved_in(path: str) -> Offsets | None:
    """None if it makes no sense: the audit says so by itself."""
    try:
        content = DISK.read_file(path)
        return {} if content is None else parse_offsets(content)
    except (Unreadable, DiskError):
        return None


def other_offsets(row: Left, saved: dict[str, Offsets | None]) -> Iterator[Change]:
    expected = {
        HIGH_WATERMARKS: row.high_watermark,
        RECOVERY_POINTS: row.end,
        LOG_STARTS: row.start or None,  # 0 is not written down
        CLEANED: row.cleaned_to,
    }
    for file, offset in expected.items():
        rows = saved[file]
        now = None if rows is None else rows.get(row.name)
        if rows is not None and now != offset:
            texts = ["nothing" if one is None else str(one) for one in (offset, now)]
            yield WARNING, row.start, row.end, f"{file} says {texts[1]}, and said {texts[0]}"
