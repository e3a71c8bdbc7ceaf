"""One track of a lane, event by event."""

from strandline.base.errors import ErrorCode
from strandline_spark.jobs.emit.lane import (
    VAIN_MAX,
    WINDOW,
    Acknowledged,
    Fail,
    Found,
    Offered,
    Refused,
    Search,
    Searched,
    Send,
    Track,
)

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def new(written: int = 0, end_offset: int = 100, **other: bool) -> Track:
    track = Track(written=written, end_offset=end_offset, leader_epoch=3, **other)
    track.offered = written
    return track


def heard() -> Track:
    """A track whose first row is acknowledged at offset 100."""
    track = new()
    track.step(Offered(1))
    track.step(Acknowledged(0, 1, 100, 3))
    return track


def test_the_first_batch_goes_alone_and_others_follow_once_it_is_acknowledged() -> None:
    track = new()
    assert track.step(Offered(4)) == [Send(0, 4, 0)]
    assert track.step(Offered(2)) == []
    assert track.step(Offered(2)) == []
    assert track.step(Acknowledged(0, 4, 100)) == [Send(4, 2, 4), Send(6, 2, 6)]


def test_no_more_are_under_way_than_a_leader_remembers() -> None:
    track = heard()
    for _ in range(WINDOW):
        assert len(track.step(Offered(1))) == 1
    assert track.step(Offered(1)) == []
    assert track.step(Acknowledged(1, 1, 101)) == [Send(6, 1, 6)]


def test_rows_that_an_earlier_run_wrote_are_passed_over() -> None:
    track = new()
    assert track.step(Found(0, 4, 110, 114, 3)) == []
    assert track.step(Offered(3)) == []
    assert track.step(Offered(3)) == [Send(5, 1, 5)]
    assert track.is_finished is False
    track.step(Acknowledged(5, 1, 130))
    assert track.is_finished


def test_a_doubt_waits_for_all_answers_then_looks_behind_what_is_known() -> None:
    track = heard()
    track.step(Offered(2))
    track.step(Offered(2))
    assert track.step(Refused(1, 2, OUT_OF_ORDER)) == []
    assert track.step(Refused(3, 2, OUT_OF_ORDER)) == [Search(101, 3, 0)]


def test_a_duplicate_is_looked_for_and_what_is_not_there_is_sent() -> None:
    """Another run has written row 1 and row 2; a broker that remembers no more than that calls all four a duplicate."""
    track = heard()
    track.step(Offered(4))
    assert track.step(Refused(1, 4, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)) == [Search(101, 3, 0)]
    track.step(Found(1, 2, 105, 106, 4))
    assert track.step(Searched(107)) == [Send(3, 2, 3)]


def test_after_a_search_the_rest_of_a_batch_is_sent_alone() -> None:
    """Another run has written row 1 and row 2 in a batch of another size."""
    track = heard()
    track.step(Offered(4))
    track.step(Offered(4))
    track.step(Refused(1, 4, OUT_OF_ORDER))
    track.step(Refused(5, 4, OUT_OF_ORDER))
    assert track.step(Found(1, 2, 105, 106, 4)) == []
    assert track.step(Searched(107)) == [Send(3, 2, 3)]
    assert track.step(Acknowledged(3, 2, 107)) == [Send(5, 4, 5)]


def test_another_run_is_far_ahead() -> None:
    track = heard()
    track.step(Offered(2))
    track.step(Refused(1, 2, OUT_OF_ORDER))
    track.step(Found(1, 20, 105, 124, 4))
    assert track.step(Searched(125)) == []
    assert track.step(Offered(10)) == []
    assert track.is_finished
    assert track.step(Offered(10)) == [Send(21, 2, 21)]


def test_a_search_that_finds_nothing_waits_longer_each_time_and_ends() -> None:
    track = heard()
    track.step(Offered(1))
    waits = []
    for _ in range(VAIN_MAX + 1):
        [search] = track.step(Refused(1, 1, OUT_OF_ORDER))
        assert isinstance(search, Search)
        waits.append(search.wait_ms)
        after = track.step(Searched(150))
    assert waits[:4] == [0, 50, 100, 200]
    assert waits[-1] == 1000
    assert isinstance(after[0], Fail)
    assert not after[0].lost
    assert "sequence 1 as out of order" in after[0].problem


def test_a_search_that_finds_something_begins_to_wait_anew() -> None:
    track = heard()
    track.step(Offered(2))
    for _ in range(3):
        track.step(Refused(1, 2, OUT_OF_ORDER))
        track.step(Searched(150))
    track.step(Refused(1, 2, OUT_OF_ORDER))
    track.step(Found(1, 1, 150, 150, 3))
    track.step(Searched(151))
    assert track.step(Refused(2, 1, OUT_OF_ORDER)) == [Search(151, 3, 0)]


def test_a_batch_that_is_too_large_is_halved() -> None:
    track = heard()
    assert track.step(Offered(5)) == [Send(1, 5, 1)]
    assert track.step(Refused(1, 5, ErrorCode.MESSAGE_TOO_LARGE)) == [Search(101, 3, 0)]
    assert track.step(Searched(101)) == [Send(1, 2, 1)]
    assert track.step(Acknowledged(1, 2, 101)) == [Send(3, 3, 3)]


def test_one_row_that_is_too_large_is_an_error() -> None:
    track = heard()
    track.step(Offered(1))
    [fail] = track.step(Refused(1, 1, ErrorCode.MESSAGE_TOO_LARGE, "1048589 bytes"))
    assert isinstance(fail, Fail)
    assert fail.problem == "row 1 was refused with MESSAGE_TOO_LARGE: 1048589 bytes"


def test_another_refusal_ends_the_track_and_later_answers_change_nothing() -> None:
    track = heard()
    track.step(Offered(2))
    track.step(Offered(2))
    [fail] = track.step(Refused(1, 2, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert isinstance(fail, Fail)
    assert "rows 1 to 2 were refused with TOPIC_AUTHORIZATION_FAILED" in fail.problem
    assert track.step(Acknowledged(3, 2, 103)) == []


def test_an_acknowledgement_at_an_offset_that_was_taken_shows_a_loss() -> None:
    """An unclean election: the log is shorter, and rows land where acknowledged ones were."""
    track = heard()
    track.step(Offered(3))
    track.step(Acknowledged(1, 3, 101))
    track.step(Offered(1))
    [fail] = track.step(Acknowledged(4, 1, 60))
    assert isinstance(fail, Fail)
    assert fail.lost


def test_a_duplicate_without_an_offset_is_an_acknowledgement_like_others() -> None:
    track = heard()
    track.step(Offered(3))
    assert track.step(Acknowledged(1, 3, -1)) == []
    assert track.is_finished


def test_answers_out_of_turn_show_no_loss() -> None:
    track = heard()
    track.step(Offered(2))
    track.step(Offered(2))
    assert track.step(Acknowledged(3, 2, 103)) == []
    assert track.step(Acknowledged(1, 2, 101)) == []
    assert (track.is_finished, track.written) == (True, 5)


def test_what_was_acknowledged_is_looked_for_again_before_it_counts_as_lost() -> None:
    """A new leader's high watermark is behind for a moment."""
    track = heard()
    track.step(Offered(2))
    track.step(Offered(2))
    track.step(Refused(1, 2, OUT_OF_ORDER))
    assert track.step(Acknowledged(3, 2, 110)) == [Search(112, 3, 0)] or track.doubt
    decisions = track.step(Searched(112))
    while decisions != [] and isinstance(decisions[0], Search):
        decisions = track.step(Searched(112))
    assert isinstance(decisions[0], Fail)
    assert decisions[0].lost


def test_a_gap_is_a_loss() -> None:
    track = new()
    [fail] = track.step(Found(5, 9, 110, 114, 3))
    assert isinstance(fail, Fail)
    assert fail.lost
    assert "rows 0 to 4 are missing" in fail.problem


def test_a_gap_that_a_cleaner_may_have_made_is_none() -> None:
    track = new(compacted=True)
    assert track.step(Found(5, 9, 110, 114, 3)) == []
    assert track.written == 10


def test_rows_that_are_there_twice_are_reported() -> None:
    track = new()
    track.step(Found(0, 9, 110, 119, 3))
    [fail] = track.step(Found(4, 5, 120, 121, 3))
    assert isinstance(fail, Fail)
    assert "twice" in fail.problem


def test_what_is_known_already_is_not_counted_again() -> None:
    track = new(written=10, end_offset=120)
    assert track.step(Found(4, 9, 114, 119, 3)) == []
    assert track.written == 10
