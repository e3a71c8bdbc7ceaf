"""The segments of a metadata log, and those of several voters against one another.

Voters copy whole batches, so equal logs have equal batches. They are compared below what both had committed and durable
(`appliedOffset` in `quorum-state`), where nothing is ever cut.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from strandline.quorum.elections.election_state import SHORT, decode_quorum_state
from strandline.quorum.storage.metadata_log import QUORUM_STATE
from strandline.wire.batch import BatchHeader
from strandline_spark.jobs.audit.metadata.files import Segment, content_of, folder_in, place, segments
from strandline_spark.jobs.audit.rows import Key, Row, plain

RULE = "metadata-log"
RULES = {RULE: "a batch of the metadata log is damaged or missing, or differs from another node's log"}


class Held(NamedTuple):
    """One node's metadata log."""

    cluster_id: str
    where: Key
    parts: list[Segment]
    applied: int

    def committed(self) -> dict[int, BatchHeader]:
        headers = (header for part in self.parts for header in part.headers)
        return {header.base_offset: header for header in headers if header.next_offset <= self.applied}


def held_in(directory: str, node: int, cluster_id: str) -> Held | None:
    """`quorum-state` is read first: the log has what that says."""
    folder = folder_in(directory)
    applied = applied_in(folder)
    found = segments(folder)
    return Held(cluster_id, place(node, directory), found, applied) if found else None


def applied_in(folder: str) -> int:
    """0 if it is not known."""
    try:
        applied = decode_quorum_state(content_of(f"{folder}/{QUORUM_STATE}"), QUORUM_STATE)[1]
    except ValueError:
        return 0
    return max(applied, 0) if applied != SHORT else 0


def segment_findings(logs: Sequence[Held]) -> Iterator[Row]:
    for log in logs:
        yield from within(log)
    for first, second in combinations(logs, 2):
        if first.cluster_id == second.cluster_id:
            yield from between(first, second)


def within(log: Held) -> Iterator[Row]:
    """Of closed segments: the end of the last one is for `state`, which knows what must be there."""
    for part, after in pairwise(log.parts):
        end = part.headers[-1].next_offset if part.headers else part.base_offset
        if end != after.base_offset:
            why = part.why or "offsets are missing"
            what = f"segment {part.base_offset}: {why} at {end}, and the next segment begins at {after.base_offset}"
            yield plain(RULE, what, log.where, end, max(after.base_offset, end + 1))


def between(first: Held, second: Held) -> Iterator[Row]:
    ours, theirs = first.committed(), second.committed()
    for base in sorted(ours.keys() & theirs.keys()):
        one, other = ours[base], theirs[base]
        if (one.crc, one.partition_leader_epoch) != (other.crc, other.partition_leader_epoch):
            what = f"nodes {first.where[0]} and {second.where[0]} have different committed records at {base}"
            yield plain(RULE, what, first.where, base, one.next_offset, is_several=True)
