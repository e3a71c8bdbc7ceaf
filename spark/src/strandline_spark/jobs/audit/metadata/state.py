"""A metadata log's snapshots, and the `quorum-state` beside it. Read with the node's own decoders.

A running node saves an epoch before records of it, and deletes records only after a snapshot of them is there. So the
log is read first, then the other files, then the log's end again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from strandline.quorum.elections.election_state import SHORT, VOTES_LOST, decode_quorum_state
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.metadata_log import QUORUM_STATE
from strandline.quorum.storage.snapshot_file import why_incomplete
from strandline_spark.jobs.audit.metadata.files import content_of, folder_in, place, segments, snapshots
from strandline_spark.jobs.audit.rows import ERROR, WARNING, Row, plain

RULES = {
    "metadata-snapshot": "a metadata snapshot is damaged, or no snapshot has the records below the log's start",
    "quorum-state": "`quorum-state` is not valid, or does not fit the metadata log beside it",
}


class Bounds(NamedTuple):
    start: int
    end: int  # of what is whole
    epoch: int  # of the last batch; 0 if there is none


def beside_the_log(directory: str, node: int) -> Iterator[Row]:
    """The state of one log directory, which may not have the metadata log."""
    folder, where = folder_in(directory), place(node, directory)
    before = bounds(folder)
    if before is None:
        return
    usable = SnapshotId(0, 0)
    for snapshot, name, content in snapshots(folder):
        why = why_incomplete(content, snapshot)
        if why is None:
            usable = snapshot
        else:
            yield plain("metadata-snapshot", f"{name}: {why}", where, 0, max(snapshot.end_offset, 1))
    if before.start > usable.end_offset:
        what = f"the log starts at {before.start}, and the newest usable snapshot ends at {usable.end_offset}"
        yield plain("metadata-snapshot", what, where, usable.end_offset, before.start)
    said = content_of(f"{folder}/{QUORUM_STATE}")
    after = bounds(folder) or before
    epoch, end = max(before.epoch, usable.epoch), max(after.end, usable.end_offset)
    for severity, what, first, last in quorum_state(said, epoch, end):
        yield plain("quorum-state", what, where, first, max(last, first + 1), severity=severity)


def quorum_state(content: bytes | None, epoch: int, end: int) -> Iterator[tuple[str, str, int, int]]:
    """`epoch`, `end`: of the log and its snapshot."""
    try:
        election, applied = decode_quorum_state(content, QUORUM_STATE)
    except ValueError as error:
        yield ERROR, str(error), 0, end
        return
    if election.epoch < epoch:
        has = "is missing" if content is None else f"is of epoch {election.epoch}"
        yield ERROR, f"{QUORUM_STATE} {has}, and the log has records of epoch {epoch}", 0, end
    if applied in (SHORT, VOTES_LOST):
        yield WARNING, "the voter noted that it lost metadata, and has not copied all of it yet", 0, end
    elif applied > end:
        yield ERROR, f"the log ends at {end}, and was committed and durable up to {applied}", end, applied


def bounds(folder: str) -> Bounds | None:
    """None if there is no log. Its end is that of the last segment that has a batch, or where that one begins."""
    found = segments(folder)
    for one in reversed(found):
        if one.headers:
            return Bounds(found[0].base_offset, one.headers[-1].next_offset, one.headers[-1].partition_leader_epoch)
    return Bounds(found[0].base_offset, found[-1].base_offset, 0) if found else None
