"""The epoch of a log's last record."""

import pytest

from strandline.log.epochs import Epochs, EpochStart


@pytest.mark.parametrize(
    ("entries", "end", "last"),
    [
        ([], 0, -1),
        ([(4, 0)], 100, 4),
        ([(4, 0), (5, 50)], 100, 5),
        ([(4, 0), (5, 100)], 100, 4),  # a leader began epoch 5, and wrote nothing
        ([(4, 0), (5, 99)], 100, 5),
        ([(5, 0)], 0, -1),  # nor had anybody before it
        ([(4, 100)], 100, 4),  # retention took every record
    ],
)
def test_the_last_written_epoch_is_that_of_the_last_record(entries: list[tuple[int, int]], end: int, last: int) -> None:
    assert Epochs([EpochStart(*entry) for entry in entries]).last_written(end) == last
