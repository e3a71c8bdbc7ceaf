"""What a law says of last stable offsets after a start, and of replicas of compacted logs."""

from types import SimpleNamespace
from typing import Any

from strandline.sim.laws.partitions.transactions import TransactionHistory, others


def history(*over: tuple[int, int, int], **still_open: int) -> TransactionHistory:
    """First offset, marker and producer id of each."""
    found = TransactionHistory()
    found.over = list(over)
    found.open = {int(name.removeprefix("p")): first for name, first in still_open.items()}
    return found


def log(*batches: tuple[int, int], markers: tuple[tuple[int, int], ...] = (), has_gaps: bool = False) -> Any:
    """Offset and producer id of each."""
    headers = [SimpleNamespace(base_offset=at, producer_id=who, is_control=False) for at, who in batches]
    marked = [(SimpleNamespace(base_offset=at, producer_id=who), "marker") for at, who in markers]
    return SimpleNamespace(
        has_gaps=has_gaps,
        headers=lambda start: [one for one in headers if one.base_offset >= start],
        segments=SimpleNamespace(marked_headers=lambda start: marked),
    )


def test_of_markers_that_were_there_at_the_start_the_first_ones_count_as_a_snapshot_knows_them() -> None:
    known = history((4, 15, 1), (12, 16, 2))
    files = log(markers=((15, 1), (16, 2)))
    assert others(files, known, 14, 17) == {4, 12, 14}
    assert others(files, known, 14, 16) == {4, 12}, "the second came later"
    assert others(files, known, 14, 0) == {4}


def test_a_transaction_whose_batches_a_cleaner_has_taken_is_not_waited_for() -> None:
    known = history((9, 13, 5), (10, 15, 1), (20, 23, 1))
    assert others(log((8, 5), (10, 1), has_gaps=True), known, 13, 0) == {10}
    assert others(log((9, 5), (10, 1), has_gaps=True), known, 13, 0) == {9}
    assert others(log((10, 1)), known, 13, 0) == {9}, "no cleaner was there"
    assert others(log(has_gaps=True), history(p7=3), 13, 0) == {13}
    assert others(log((3, 7), has_gaps=True), history(p7=3), 13, 0) == {3}
