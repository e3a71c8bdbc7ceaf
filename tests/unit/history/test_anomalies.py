"""Each anomaly fires on the smallest history that has it, and stays silent on its neighbours."""

from tests.unit.history.making import KEY, OTHER, assign, found, names, poll, send

from strandline.history.anomaly import told
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


# --- unseen


def test_an_acknowledged_value_behind_everything_that_was_read_is_unseen() -> None:
    assert names(send("p", "a", at=0), send("p", "b", at=1), poll("c", (0, "a"))) == ["unseen"]


def test_where_nobody_reads_nothing_is_unseen() -> None:
    assert names(send("p", "a", at=0)) == []
    assert names(send("p", "a", at=0), poll("c", (0, "x"), key=OTHER)) == []


# --- duplicate, inconsistent-offsets


def test_one_value_at_two_offsets_is_a_duplicate() -> None:
    assert names(poll("c", (0, "a"), (1, "a"))) == ["duplicate"]
    assert names(poll("c1", (0, "a")), poll("c2", (1, "a"))) == ["duplicate"]
    assert names(poll("c1", (0, "a")), poll("c2", (0, "a"))) == []


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


def test_writes_of_one_operation_with_another_between_have_skipped() -> None:
    assert names(send("p", "a", "b", offsets=(5, 7))) == ["int-send-skip"]
    assert names(send("p", "a", at=5), send("p", "b", at=7)) == []


# --- reads of what must not be there


def test_a_value_that_was_certainly_refused_must_not_be_read() -> None:
    assert names(send("p", "a", outcome=Outcome.FAIL), poll("c", (0, "a"))) == ["G1a"]
    assert names(send("p", "a", outcome=Outcome.UNKNOWN), poll("c", (0, "a"))) == []


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
    text = told(lost)
    for part in ("lost-write in orders-0", "b'a'", "offset 0", "written by p", "acks=-1"):
        assert part in text
