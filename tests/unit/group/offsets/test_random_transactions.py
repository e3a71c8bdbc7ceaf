"""Commits with and without transactions, ends, deletions, failures and new coordinators in any order: what counts, and
what is pending, is what a scan of the whole log says."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.group.coordination import Coordination, commit_request, pending_request

from strandline.base.errors import ErrorCode as E
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest

PRODUCERS = (7, 8)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                *("plain", "pend", "pend", "pend", "commit", "commit", "abort", "written", "written", "failed"),
                *("load", "delete"),
            )
        ),
        st.sampled_from(PRODUCERS),
        st.integers(0, 1),
    ),
    max_size=40,
)
Row = tuple[int, int, int]  # partition, offset (−1: a tombstone), producer (−1: none)


class Scan:
    """The log as rows, and the ends of transactions among them; each question reads all of it."""

    def __init__(self) -> None:
        self.log: list[Row | tuple[int, bool]] = []
        self.queue: list[list[Row]] = []

    def written(self) -> None:
        for rows in self.queue:
            self.log += rows
        self.queue = []

    def decided(self) -> list[tuple[Row, bool | None]]:
        """Each row, and whether it counts; None: its transaction is open."""
        found: list[tuple[Row, bool | None]] = []
        for at, row in enumerate(self.log):
            if len(row) == 3:
                ends = [end[1] for end in self.log[at:] if len(end) == 2 and end[0] == row[2]]
                found.append((row, True if row[2] < 0 else ends[0] if ends else None))
        return found

    def counts(self) -> dict[int, int]:
        last = {row[0]: row[1] for row, counts in self.decided() if counts}
        return {partition: offset for partition, offset in last.items() if offset >= 0}

    def pending(self) -> set[int]:
        rows = self.decided()
        return {
            row[0]
            for at, (row, counts) in enumerate(rows)
            if counts is None and not any(later[0] == row[0] and later[1] < 0 for later, _ in rows[at:])
        }


def play(c: Coordination, scan: Scan, step: str, producer: int, partition: int, offset: int) -> None:
    match step:
        case "plain":
            c.send(commit_request(offset, partition=partition), 9)
            scan.queue.append([(partition, offset, -1)])
        case "pend":
            c.send(pending_request(offset, producer_id=producer, partition=partition))
            scan.queue.append([(partition, offset, producer)])
        case "commit" | "abort":
            c.end_transaction(producer, commits=step == "commit")
            scan.written()
            scan.log.append((producer, step == "commit"))
        case "written":
            c.commit()
            scan.written()
        case "failed" if c.log.under_way:
            c.fail(E.NOT_ENOUGH_REPLICAS)
            scan.queue.pop(0)
        case "load":
            c.commit()
            scan.written()
            c.groups.shards.loaded[0] = c.reload()
        case "delete":
            known = sorted({*scan.counts(), *scan.pending()})
            c.send(DeleteGroupsRequest(groups_names=("g",)))
            scan.queue += [[(one, -1, -1) for one in known]] if known else []


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_what_counts_and_what_is_pending_is_what_a_scan_of_the_log_says(steps: list[tuple[str, int, int]]) -> None:
    c, scan = Coordination(), Scan()
    for offset, (step, producer, partition) in enumerate(steps):
        play(c, scan, step, producer, partition, offset)
        c.groups.check()
        for shard in (c.shard, c.reload()):
            found = {p: committed.offset for (_, p), committed in shard.offsets.get("g", {}).items()}
            assert found == scan.counts()
            assert {p for _, _, p in shard.pending.holders} == scan.pending()
            assert shard.offsets == c.shard.offsets
            assert shard.pending.by_producer == c.shard.pending.by_producer
        unstable = {p for p in (0, 1) if c.shard.pending.is_unstable(("g", "t", p))}
        assert unstable == scan.pending() | {row[0] for rows in scan.queue for row in rows if row[2] >= 0}
