"""What is tolerated, row by row, and what is not although it is near."""

import pytest
from tests.unit.history.making import KEY, OTHER, found, poll, send

from strandline.base.ids import Uuid
from strandline.history.anomaly import Anomaly
from strandline.history.judge import judge
from strandline.history.operation import Key, Operation, Outcome
from strandline.history.policy import Facts, why_tolerated


def only(*operations: Operation) -> Anomaly:
    [anomaly] = found(*operations)
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


def test_what_was_written_with_acks_1_may_be_lost() -> None:
    assert why_tolerated(lost(acks=1), Facts()) is not None


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
    assert why_tolerated(only(send("p", "a", "b", offsets=(5, 7))), Facts()) is not None


def test_what_was_refused_may_be_there_only_if_requests_come_twice() -> None:
    refused = only(send("p", "a", outcome=Outcome.FAIL), poll("c", (0, "a")))
    assert why_tolerated(refused, Facts()) is None
    assert why_tolerated(refused, Facts(is_duplicating=True)) is not None


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
