"""Each anomaly fires on the smallest history that has it, and stays silent on its neighbours."""

from tests.unit.history.making import KEY, OTHER, assign, found, names, poll, send

from strandline.history.anomaly import described
from strandline.history.operation import Outcome


def test_a_history_in_which_everything_is_right_has_no_anomaly() -> None:
    history = [
        send("p", "a", "b", at=0),
        send("q", "c", at=2),
        poll("c1", (0, "a"), (1, "b")),
        poll("c1", (2, "c")),
        assign("c1"),
        poll("c1", (0, "a"), (1, "b"), (2, "c")),
        send("q", "d", outcome=Outcome.FAIL),
        send("q", "e", outcome=Outcome.UNKNOWN),
    ]
    assert names(*history) == []


# --- lost-write


def test_an_acknowledged_value_that_readers_passed_without_seeing_it_is_lost() -> None:
    assert names(send("p", "a", at=0), send("p", "b", at=1), poll("c", (1, "b"))) == ["lost-write"]


def test_an_acknowledged_value_that_a_later_reader_no_longer_finds_is_lost() -> None:
    history = [send("p", "a", "b", "c", at=0), poll("c1", (0, "a"), (1, "b"), (2, "c")), poll("c2", (0, "a"), (2, "c"))]
    assert "lost-write" in names(*history)


def test_a_value_that_a_reader_passed_before_it_was_acknowledged_is_not_lost() -> None:
    """The session began before; what it got is judged by poll-skip alone."""
    early = poll("c1", (0, "a"))
    assert names(early, send("p", "a", at=0), poll("c2", (0, "a"))) == []


def test_values_that_were_refused_doubtful_sent_with_acks_0_or_deleted_at_a_wish_are_not_lost() -> None:
    behind = [send("p", "z", at=9), poll("c", (9, "z"))]
    assert names(send("p", "a", at=0, outcome=Outcome.UNKNOWN), *behind) == []
    assert names(send("p", "a", outcome=Outcome.FAIL), *behind) == []
    assert names(send("p", "a", acks=0), *behind) == []
    assert names(send("p", "a", at=0), *behind, trimmed=5) == []
    assert names(send("p", "a", at=0), *behind, trimmed=0) == ["lost-write"]


def test_keys_do_not_speak_for_one_another() -> None:
    assert names(send("p", "a", at=0, key=OTHER), send("p", "b", at=5), poll("c", (5, "b"))) == []


def test_what_vanished_from_the_logs_end_is_missed_by_the_final_reader_alone() -> None:
    history = [send("p", "a", "b", at=0), poll("c", (0, "a"), (1, "b")), poll("last", (0, "a"))]
    assert names(*history) == []
    assert names(*history, final="last") == ["lost-write"]
    assert names(*history, final="c") == []
    assert names(*history, final="last", trimmed=2) == []


def test_what_was_read_must_be_there_at_the_end_even_if_it_was_never_acknowledged() -> None:
    for outcome, acks in ((Outcome.UNKNOWN, -1), (Outcome.OK, 1), (Outcome.OK, 0)):
        [lost] = found(send("p", "a", outcome=outcome, acks=acks), poll("c", (0, "a")), final="last")
        assert (lost.name, lost.was_committed) == ("lost-write", True)
    assert names(send("p", "a", outcome=Outcome.UNKNOWN), final="last") == []


def test_a_final_reader_that_finds_nothing_has_looked_all_the_same() -> None:
    assert names(send("p", "a", at=0), poll("c", (0, "a")), final="last") == ["lost-write"]
    assert names(send("p", "a", at=0), final="last") == ["unseen"]
    assert names(send("p", "a", outcome=Outcome.FAIL), final="last") == []


def test_a_final_reader_is_judged_by_its_last_session() -> None:
    read = [send("p", "a", "b", at=0), poll("last", (0, "a")), assign("last")]
    assert names(*read, poll("last", (0, "a"), (1, "b")), final="last") == []
    assert names(*read, poll("last", (1, "b")), final="last") == ["lost-write"]


def test_what_an_open_transaction_showed_to_read_uncommitted_may_be_gone_at_the_end() -> None:
    doubtful = send("p", "a", outcome=Outcome.UNKNOWN, transaction="tx")
    assert names(doubtful, poll("c", (0, "a")), final="last") == []
    assert names(doubtful, poll("c", (0, "a"), is_committed=True), final="last") == ["lost-write"]


def test_one_value_is_lost_once_however_many_readers_miss_it() -> None:
    history = [send("p", "a", "b", "c", at=0), poll("c1", (0, "a"), (1, "b"), (2, "c"))]
    history += [poll(f"late{i}", (0, "a"), (2, "c")) for i in range(3)]
    assert names(*history).count("lost-write") == 1


# --- unseen


def test_an_acknowledged_value_behind_everything_that_was_read_is_unseen() -> None:
    assert names(send("p", "a", at=0), send("p", "b", at=1), poll("c", (0, "a"))) == ["unseen"]


def test_where_nobody_reads_nothing_is_unseen() -> None:
    assert names(send("p", "a", at=0)) == []
    assert names(send("p", "a", at=0), poll("c", (0, "x"), key=OTHER)) == []


def test_an_acknowledged_value_whose_offset_nobody_knows_is_unseen_unless_it_may_have_been_deleted() -> None:
    assert names(send("p", "a"), poll("c", (9, "z"))) == ["unseen"]
    assert names(send("p", "a"), poll("c", (9, "z")), trimmed=5) == []
    assert names(send("p", "a"), poll("c", (9, "a"))) == []


# --- duplicate, inconsistent-offsets


def test_one_value_at_two_offsets_is_a_duplicate() -> None:
    assert names(poll("c", (0, "a"), (1, "a"))) == ["duplicate"]
    assert names(poll("c1", (0, "a")), poll("c2", (1, "a"))) == ["duplicate"]
    assert names(poll("c1", (0, "a")), poll("c2", (0, "a"))) == []


def test_a_value_that_stands_elsewhere_than_its_acknowledgement_says_is_a_duplicate() -> None:
    assert names(send("p", "a", at=5), poll("c", (7, "a"))) == ["duplicate"]
    assert names(send("p", "a", at=7), poll("c", (7, "a"))) == []
    assert names(send("p", "a", at=5, outcome=Outcome.UNKNOWN), poll("c", (7, "a"))) == []
    assert names(send("p", "a"), poll("c", (7, "a"))) == []


def test_two_acknowledgements_of_one_offset_are_inconsistent() -> None:
    assert names(send("p", "a", at=0), send("q", "b", at=0)) == ["inconsistent-offsets"]
    assert names(send("p", "a", at=0), send("q", "b", at=0, outcome=Outcome.FAIL)) == []


def test_one_offset_with_two_values_is_inconsistent() -> None:
    assert names(poll("c1", (0, "a")), poll("c2", (0, "b"))) == ["inconsistent-offsets"]
    assert "inconsistent-offsets" in names(send("p", "a", at=0), poll("c", (0, "b"), (1, "a")))
    assert names(send("p", "a", at=0, outcome=Outcome.UNKNOWN), poll("c", (0, "b"))) == []
    assert names(poll("c1", (0, "a")), poll("c1", (0, "b"), key=OTHER)) == []


# --- polls


def test_a_reader_that_misses_what_another_finds_between_has_skipped_it() -> None:
    known = poll("c1", (0, "a"), (1, "b"), (2, "c"))
    assert names(known, poll("c2", (0, "a")), poll("c2", (2, "c"))) == ["poll-skip"]
    assert names(known, poll("c2", (0, "a"), (2, "c"))) == ["int-poll-skip"]


def test_a_gap_in_which_nobody_ever_read_anything_is_no_skip() -> None:
    assert names(poll("c1", (0, "a"), (7, "b")), poll("c2", (0, "a")), poll("c2", (7, "b"))) == []


def test_a_reader_may_pass_over_what_was_deleted_at_a_wish() -> None:
    history = [poll("c1", (0, "a"), (1, "b"), (5, "z")), poll("c2", (0, "a")), poll("c2", (5, "z"))]
    assert names(*history, trimmed=5) == []
    assert names(*history, trimmed=2) == []
    assert names(*history, trimmed=1) == ["poll-skip"]


def test_a_read_committed_reader_passes_over_what_was_not_committed() -> None:
    aborted = send("t", "b", outcome=Outcome.UNKNOWN, transaction="tx")
    known = poll("c1", (0, "a"), (1, "b"), (2, "c"))
    passed = poll("c2", (0, "a"), (2, "c"), is_committed=True)
    assert names(aborted, known, passed) == []
    assert names(known, passed) == ["int-poll-skip"]
    assert names(aborted, known, poll("c2", (0, "a"), (2, "c"))) == ["int-poll-skip"]
    committed = poll("c3", (0, "a"), (1, "b"), (2, "c"), is_committed=True)
    assert names(aborted, known, passed, committed) == ["int-poll-skip"]


def test_a_skip_behind_an_aborted_record_is_still_found() -> None:
    aborted = send("t", "b", outcome=Outcome.UNKNOWN, transaction="tx")
    known = poll("c1", (0, "a"), (1, "b"), (2, "c"), (3, "d"))
    [skip] = found(aborted, known, poll("c2", (0, "a"), (3, "d"), is_committed=True))
    assert (skip.name, skip.offsets) == ("int-poll-skip", (0, 2, 3))


def test_a_reader_that_was_sent_elsewhere_has_not_skipped() -> None:
    known = poll("c1", (0, "a"), (1, "b"), (2, "c"))
    assert names(known, poll("c2", (0, "a")), assign("c2"), poll("c2", (2, "c"))) == []


def test_a_reader_that_gets_an_offset_again_went_back() -> None:
    assert names(poll("c", (0, "a"), (1, "b")), poll("c", (1, "b"))) == ["nonmonotonic-poll"]
    assert names(poll("c", (1, "b"), (0, "a"))) == ["int-nonmonotonic-poll"]
    assert names(poll("c", (0, "a"), (1, "b")), assign("c"), poll("c", (0, "a"))) == []
    assert names(poll("c1", (0, "a"), (1, "b")), poll("c2", (0, "a"))) == []


# --- sends


def test_a_later_write_of_a_process_that_stands_before_its_earlier_one_went_back() -> None:
    assert names(send("p", "a", at=5), send("p", "b", at=4)) == ["nonmonotonic-send"]
    assert names(send("p", "a", "b", offsets=(5, 4))) == ["int-nonmonotonic-send"]
    assert names(send("p", "a", at=5), send("q", "b", at=4)) == []
    assert names(send("p", "a", at=5), send("p", "b", at=4, outcome=Outcome.UNKNOWN)) == []


def test_of_writes_that_overlap_no_order_is_asked() -> None:
    first = send("p", "a", at=5)
    assert names(first, send("p", "b", at=4, began=first.began_ms - 1)) == []


def test_a_write_is_compared_with_all_that_ended_before_it_whatever_overlapped() -> None:
    first = send("p", "a", at=5)
    overlapping = send("p", "b", at=9, began=first.began_ms - 1)
    assert names(first, overlapping, send("p", "c", at=3, began=first.ended_ms)) == ["nonmonotonic-send"]
    assert names(first, overlapping, send("p", "c", at=7, began=first.ended_ms)) == []


def test_writes_of_one_operation_with_another_between_have_skipped() -> None:
    assert names(send("p", "a", "b", offsets=(5, 7)), send("q", "x", at=6)) == ["int-send-skip"]
    assert names(send("p", "a", "b", offsets=(5, 7)), poll("c", (5, "a"), (6, "x"), (7, "b"))) == ["int-send-skip"]
    assert names(send("p", "a", "b", offsets=(5, 7))) == []  # perhaps a marker, which is nobody's
    assert names(send("p", "a", "b", offsets=(5, 7)), send("q", "x", at=8)) == []
    assert names(send("p", "a", at=5), send("p", "b", at=7)) == []


# --- reads of what must not be there


def test_a_value_that_was_certainly_refused_must_not_be_read() -> None:
    assert names(send("p", "a", outcome=Outcome.FAIL), poll("c", (0, "a"))) == ["G1a"]
    assert names(send("p", "a", outcome=Outcome.UNKNOWN), poll("c", (0, "a"))) == []


def test_a_value_that_was_refused_and_written_again_may_be_read() -> None:
    refused = send("p", "a", outcome=Outcome.FAIL)
    assert names(refused, send("p", "a", at=0), poll("c", (0, "a"))) == []
    assert names(refused, send("p", "a", outcome=Outcome.UNKNOWN), poll("c", (0, "a"))) == []


def test_a_transaction_must_not_read_what_it_wrote_itself() -> None:
    assert names(poll("t", (0, "a"), transaction="tx", wrote="a")) == ["precommitted-read"]
    assert "precommitted-read" not in names(poll("t", (0, "b"), transaction="tx", wrote="a"))
    assert names(poll("t", (0, "a"), wrote="a")) == []


# --- evidence


def test_the_report_names_key_offsets_values_and_operations() -> None:
    [lost] = found(send("p", "a", at=0), send("q", "b", at=1), poll("c", (1, "b")))
    assert lost.key == KEY
    assert lost.offsets == (0,)
    assert lost.values == (b"a",)
    text = described(lost)
    for part in ("lost-write in orders-0", "b'a'", "offset 0", "written by p", "acks=-1"):
        assert part in text
