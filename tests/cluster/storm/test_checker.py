"""The judge of storms finds each anomaly, and none where there is none."""

from collections.abc import Callable

import pytest
from tests.cluster.storm.checker import NO_OFFSET, Committed, Evidence, Sent, figures, judge, value_of

SEED = 7
PRODUCER = "p0.1"


def whole() -> Evidence:
    """Four records of one producer, at offsets 0, 2, 3 and 5: the last was not acknowledged, the third without an
    offset."""
    evidence = Evidence(SEED)
    evidence.sent[PRODUCER, 0] = Sent(5, {0: 0, 1: 2, 2: NO_OFFSET})
    evidence.log[0] = [(offset, record(n)) for n, offset in enumerate((0, 2, 3, 5))]
    evidence.show(0, 2, record(1))
    evidence.commits[0] = [commit(1.0, 2.0, 3), commit(1.5, 3.0, 2), commit(2.5, 4.0, 3)]
    evidence.replicas["storm-0"] = {"1": "same", "2": "same"}
    return evidence


def record(sequence: int, producer: str = PRODUCER, partition: int = 0) -> bytes:
    return value_of(SEED, producer, partition, sequence)


def commit(began: float, ended: float, offset: int, *, is_read: bool = False) -> Committed:
    return Committed(began, ended, offset, "someone", is_read)


def put(evidence: Evidence, offset: int, value: bytes) -> None:
    evidence.log[0].append((offset, value))


def exchange(evidence: Evidence) -> None:
    (first, a), (second, b) = evidence.log[0][0], evidence.log[0][3]
    evidence.log[0][0], evidence.log[0][3] = (first, b), (second, a)


def test_a_storm_without_anomaly_has_none() -> None:
    assert judge(whole()).counts == {}


BROKEN: list[tuple[str, Callable[[Evidence], object]]] = [
    ("lost", lambda e: e.log[0].pop(1)),
    ("lost, acknowledged without an offset", lambda e: e.log[0].pop(2)),
    ("twice", lambda e: put(e, 9, record(0))),
    ("twice", lambda e: put(e, 9, record(3))),  # one that was not acknowledged, too
    ("out of order", exchange),
    ("another offset", lambda e: e.sent[PRODUCER, 0].acknowledged.update({0: 1})),
    ("nobody sent it", lambda e: put(e, 9, record(5))),
    ("nobody sent it", lambda e: put(e, 9, record(0, "p9.9"))),
    ("nobody sent it", lambda e: put(e, 9, record(4, partition=1))),
    ("nobody sent it", lambda e: put(e, 9, b"\xff")),
    ("content", lambda e: put(e, 9, record(4)[:-1] + b"y")),
    ("offsets go back", lambda e: put(e, 4, record(4))),
    ("shown and gone", lambda e: e.show(0, 3, record(1))),
    ("shown and gone", lambda e: e.show(0, 7, record(4))),
    ("shown and gone", lambda e: e.show(0, 2, record(2))),  # something else than before
    ("committed offset back", lambda e: e.commits[0].append(commit(4.5, 5.0, 2))),
    ("committed offset back", lambda e: e.commits[0].append(commit(2.5, 3.0, 2, is_read=True))),
    ("committed offset back", lambda e: e.commits[0].append(commit(4.5, 5.0, -1, is_read=True))),
    ("replicas differ", lambda e: e.replicas["storm-0"].update({"3": "another"})),
]


@pytest.mark.parametrize(("kind", "break_it"), BROKEN)
def test_each_anomaly_is_found(kind: str, break_it: Callable[[Evidence], object]) -> None:
    evidence = whole()
    break_it(evidence)
    assert kind in judge(evidence).counts


@pytest.mark.parametrize(("first", "second", "counts"), [(1, 2, {}), (1, 1, {"twice": 1}), (2, 1, {"twice": 1})])
def test_a_client_may_send_once_more_what_it_does_not_know_in_a_later_epoch(
    first: int, second: int, counts: dict[str, int]
) -> None:
    evidence = whole()
    put(evidence, 9, record(3))
    evidence.epochs[0] = {5: first, 9: second}
    assert judge(evidence).counts == counts
    assert evidence.sent_anew == (not counts)


@pytest.mark.parametrize(("sequence", "figure"), [(2, 1), (3, 0)])
def test_a_record_sent_again_whose_acknowledgement_names_no_offset_has_a_figure_of_its_own(
    sequence: int, figure: int
) -> None:
    evidence = whole()
    first = next(offset for offset, value in evidence.log[0] if value == record(sequence))
    put(evidence, 9, record(sequence))
    evidence.epochs[0] = {first: 1, 9: 2}
    assert judge(evidence).counts == {}
    assert figures(evidence)["sent again, and acknowledged without an offset"] == figure


def test_what_was_acknowledged_is_not_sent_once_more_in_any_epoch() -> None:
    evidence = whole()
    put(evidence, 9, record(0))
    evidence.epochs[0] = {0: 1, 9: 2}
    assert judge(evidence).counts == {"another offset": 1}


def test_commits_that_overlap_may_end_in_any_order() -> None:
    evidence = whole()
    evidence.commits[0] = [commit(1.0, 5.0, 9), commit(2.0, 3.0, 4), commit(4.0, 4.5, 4, is_read=True)]
    assert judge(evidence).counts == {}
