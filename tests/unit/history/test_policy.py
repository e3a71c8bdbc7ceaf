"""What is tolerated, row by row, and what is not although it is near."""

import pytest
from tests.unit.history.making import KEY, OTHER, found, poll, send

from strandline.base.ids import Uuid
from strandline.history.anomaly import Anomaly
from strandline.history.judge import judge
from strandline.history.operation import Key, Operation, Outcome
from strandline.history.policy import Facts, why_tolerated


def only(*operations: Operation, trimmed: int = 0) -> Anomaly:
    [anomaly] = found(*operations, trimmed=trimmed)
    return anomaly


def lost(**how: object) -> Anomaly:
    return only(send("p", "a", at=0, **how), send("p", "b", at=1), poll("c", (1, "b")))  # type: ignore[arg-type]


def test_a_lost_acknowledged_write_is_a_violation() -> None:
    assert why_tolerated(lost(), Facts()) is None


def test_a_loss_is_excused_where_the_faults_were_too_many_and_only_there() -> None:
    assert why_tolerated(lost(), Facts(exceeded=(KEY,))) is not None
    assert why_tolerated(lost(), Facts(exceeded=(OTHER,))) is None
    namesake = Key(KEY.topic, Uuid(bytes([1]) * 16), KEY.partition)
    assert why_tolerated(lost(), Facts(exceeded=(namesake,))) is None


def test_what_could_not_be_saved_must_be_in_the_loss_ledger() -> None:
    for ranges, is_excused in (
        (((0, 1),), True),
        (((0, -1),), True),
        (((1, -1),), False),
        (((5, 9), (0, 1)), True),
        ((), False),
    ):
        facts = Facts(exceeded=(KEY,), ledger={KEY: ranges})
        assert (why_tolerated(lost(), facts) is not None) is is_excused
    assert why_tolerated(lost(), Facts(exceeded=(KEY,), ledger={OTHER: ((0, -1),)})) is None
    assert why_tolerated(lost(), Facts(ledger={KEY: ((0, -1),)})) is None, "a loss on record is still a loss"


def test_what_was_written_with_acks_1_may_be_lost() -> None:
    assert why_tolerated(lost(acks=1), Facts()) is not None


def test_what_was_written_with_acks_1_may_no_longer_be_lost_once_it_was_read() -> None:
    [unread] = found(send("p", "a", at=0, acks=1), send("p", "b", at=1), poll("c", (1, "b")))
    [read] = found(send("p", "a", at=0, acks=1), poll("c", (0, "a")), final="last")
    assert why_tolerated(unread, Facts()) is not None
    assert why_tolerated(read, Facts()) is None


def test_an_offset_that_changes_after_it_was_read_is_a_violation_whatever_the_acks() -> None:
    write = send("p", "a", at=0, acks=1)
    shown = only(write, poll("c1", (0, "a")), poll("c2", (0, "b")), trimmed=1)
    never_shown = only(write, poll("c2", (0, "b")), trimmed=1)
    assert shown.name == never_shown.name == "inconsistent-offsets"
    assert why_tolerated(shown, Facts()) is None
    assert why_tolerated(never_shown, Facts()) is not None


def test_a_loss_that_was_proved_before_the_faults_were_too_many_is_not_theirs() -> None:
    history = [send("p", "a", "b", "c", at=0), poll("c1", (0, "a"), (1, "b"), (2, "c")), poll("c2", (0, "a"), (2, "c"))]
    proved = history[-1].ended_ms
    anomalies = found(*history)
    assert sorted(anomaly.name for anomaly in anomalies) == ["int-poll-skip", "lost-write"]
    for anomaly in anomalies:
        assert anomaly.proved_ms == proved
        assert why_tolerated(anomaly, Facts(exceeded_ms={KEY: proved})) is not None
        assert why_tolerated(anomaly, Facts(exceeded_ms={KEY: proved + 1})) is None
        assert why_tolerated(anomaly, Facts(exceeded_ms={OTHER: 0})) is None
        assert why_tolerated(anomaly, Facts(exceeded=(KEY,))) is not None


def test_what_is_only_missed_at_the_end_may_have_been_lost_at_any_time() -> None:
    assert why_tolerated(lost(), Facts(exceeded_ms={KEY: 1 << 60})) is not None


def test_a_deleted_topic_may_keep_its_last_records_to_itself() -> None:
    unseen = only(send("p", "a", at=0), send("p", "b", at=1), poll("c", (0, "a")))
    assert why_tolerated(unseen, Facts(gone=(KEY,))) is not None
    assert why_tolerated(unseen, Facts()) is None


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_duplicates_are_a_violation_for_idempotent_producers_alone(is_idempotent: bool) -> None:
    twice = [send("p", "a", at=0, is_idempotent=is_idempotent), poll("c", (0, "a"), (1, "a"))]
    [duplicate] = [anomaly for anomaly in found(*twice) if anomaly.name == "duplicate"]
    assert (why_tolerated(duplicate, Facts()) is None) == is_idempotent


def test_a_duplicate_that_nobody_wrote_is_a_violation() -> None:
    assert why_tolerated(only(poll("c", (0, "a"), (1, "a"))), Facts()) is None


def test_batches_of_producers_may_interleave() -> None:
    assert why_tolerated(only(send("p", "a", "b", offsets=(5, 7)), send("q", "x", at=6)), Facts()) is not None


def test_what_was_refused_may_be_there_only_if_requests_come_twice() -> None:
    refused = only(send("p", "a", outcome=Outcome.FAIL), poll("c", (0, "a")))
    assert why_tolerated(refused, Facts()) is None
    assert why_tolerated(refused, Facts(is_duplicating=True)) is not None


def test_an_aborted_value_is_excused_for_read_uncommitted_alone() -> None:
    aborted = send("t", "a", outcome=Outcome.FAIL, transaction="tx")
    assert why_tolerated(only(aborted, poll("c", (0, "a"))), Facts()) is not None
    assert why_tolerated(only(aborted, poll("c", (0, "a"), is_committed=True)), Facts()) is None
    both = only(aborted, poll("c1", (0, "a")), poll("c2", (0, "a"), is_committed=True))
    assert why_tolerated(both, Facts()) is None


def test_a_transaction_may_see_its_own_writes_at_read_uncommitted_alone() -> None:
    def own(is_committed: bool) -> Anomaly:
        return only(poll("t", (0, "a"), transaction="tx", wrote="a", is_committed=is_committed))

    assert why_tolerated(own(False), Facts()) is not None
    assert why_tolerated(own(True), Facts()) is None


def test_groups_may_hand_partitions_over() -> None:
    back = only(poll("c", (1, "b")), poll("c", (0, "a")))
    assert why_tolerated(back, Facts(is_subscribed=True)) is not None
    assert why_tolerated(back, Facts()) is None


def test_the_judgement_parts_what_is_tolerated_from_what_is_not() -> None:
    history = [send("p", "a", at=0, acks=1), send("q", "b", at=1), send("q", "c", at=2), poll("c", (2, "c"))]
    judgement = judge(history, Facts())
    assert [(anomaly.name, anomaly.values) for anomaly in judgement.violations] == [("lost-write", (b"b",))]
    assert [anomaly.values for anomaly, _ in judgement.tolerated] == [(b"a",)]
    assert "lost-write in orders-0: b'b'" in judgement.report()
    assert judge([], Facts()).report() == ""


def test_a_report_of_many_anomalies_lists_the_first_and_counts_the_others() -> None:
    values = [str(i) for i in range(100)]
    judgement = judge([send("p", *values, at=0), send("p", "z", at=100), poll("c", (100, "z"))], Facts())
    assert len(judgement.violations) == 100
    assert "and 90 more: lost-write in orders-0" in judgement.report()
    assert len(judgement.report()) < 10_000


def test_what_was_excused_is_counted_by_reason() -> None:
    history = [send("p", "a", "b", at=0, acks=1), send("q", "c", at=2), poll("c", (2, "c"))]
    [((name, why), count)] = judge(history, Facts()).excused().items()
    assert (name, count) == ("lost-write", 2)
    assert why.startswith("acks=0 and acks=1")


# --- what is excused must not hide what is not


def violations(*operations: Operation, final: str = "", facts: Facts | None = None) -> list[str]:
    judgement = judge(operations, facts or Facts(), finals={KEY: final})
    return [anomaly.name for anomaly in judgement.violations]


def test_a_write_of_acks_1_between_does_not_excuse_the_order_of_the_others() -> None:
    strong = [send("p", "a", at=5), send("p", "b", at=9, acks=1), send("p", "c", at=3)]
    assert violations(*strong) == ["nonmonotonic-send"]
    weak = [send("p", "a", at=5, acks=1), send("p", "b", at=9, acks=1), send("p", "c", at=3)]
    assert violations(*weak) == []


def test_a_reader_that_missed_an_unread_write_of_acks_1_does_not_excuse_its_loss_after_it_was_read() -> None:
    write = send("p", "b", at=1, acks=1)
    early = poll("early", (0, "a"), (2, "c"))
    read = poll("c", (0, "a"), (1, "b"), (2, "c"))
    whole = poll("last", (0, "a"), (1, "b"), (2, "c"))
    assert "lost-write" in violations(write, early, read, poll("last", (0, "a"), (2, "c")), final="last")
    assert "lost-write" not in violations(write, early, read, whole, final="last")


def test_a_third_value_of_acks_1_does_not_excuse_two_of_acks_all_at_one_offset() -> None:
    both = [send("p", "a", at=0), send("q", "b", at=0)]
    weak = send("r", "c", at=0, acks=1)
    assert violations(*both, weak) == ["inconsistent-offsets"]
    assert violations(both[0], weak) == []


def test_a_loss_proved_before_the_faults_is_not_excused_by_a_worse_one_after_them() -> None:
    history = [
        send("p", "b", at=1),
        poll("c", (0, "a"), (1, "b"), (2, "c")),
        poll("d", (0, "a"), (2, "c")),
        poll("last", (0, "a"), (2, "c")),
    ]
    proved = [a.proved_ms for a in judge(history, Facts(), finals={KEY: "last"}).violations if a.name == "lost-write"]
    assert proved
    early = Facts(exceeded=(KEY,), exceeded_ms={KEY: min(proved) + 1})
    assert [a.name for a in judge(history, early, finals={KEY: "last"}).violations if a.name == "lost-write"]
