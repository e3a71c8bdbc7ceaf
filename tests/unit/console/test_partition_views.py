"""Partitions as the console shows them, made of facts alone."""

import pytest

from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import ReplicaLog, Unasked
from strandline.client.errors import BadOption
from strandline.console.chronicle import KEPT_MAX, Chronicle, Moment
from strandline.console.facts import Facts
from strandline.console.views.partitions import condition, log_rows, partition_rows, place_in, spans

T0 = Place("t", 0)


def state(**known: object) -> PartitionState:
    given = {"at": T0, "replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, "min_isr": 2, **known}
    return PartitionState(**given)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, ""),
        ({"leader": -1, "isr": (1,)}, "leaderless"),
        ({"offline": (1,)}, "leaderless"),
        ({"isr": (1,)}, "under-min-isr"),
        ({"isr": (1, 2)}, "out-of-sync"),
        ({"isr": (1, 2), "adding": (3,)}, "moving"),
        ({"is_recovering": True}, "recovering"),
    ],
)
def test_a_partition_has_the_worst_condition_that_is_true_of_it(known: dict[str, object], expected: str) -> None:
    assert condition(state(**known)) == expected
    row = partition_rows(Facts(partitions=(state(**known),)))["t:0"]
    assert (row["condition"], row["topic"], row["partition"]) == (expected, "t", 0)


def test_logs_have_the_highest_high_watermark_and_the_lowest_start() -> None:
    reports = (
        ReplicaLog(1, 0, 9, 8, log_start_offset=2),
        ReplicaLog(2, 0, 7, 5, log_start_offset=1),
        Unasked(3, "is down"),
    )
    row = log_rows(Facts(logs={T0: reports}))["t:0"]
    assert (row["high_watermark"], row["log_start_offset"]) == (8, 1)
    assert row["replicas"][2] == {"replica": 3, "error": "is down"}
    nobody = log_rows(Facts(logs={T0: (Unasked(1, "is down"),)}))["t:0"]
    assert (nobody["high_watermark"], nobody["log_start_offset"]) == (-1, -1)


def test_the_epochs_of_a_log_begin_where_those_before_them_ended() -> None:
    found = [(5, 30), (3, 20), (0, 10)]
    assert spans(found, is_whole=True) == [
        {"epoch": 5, "start": 20, "end": 30},
        {"epoch": 3, "start": 10, "end": 20},
        {"epoch": 0, "start": 0, "end": 10},
    ]
    assert spans(found, is_whole=False)[-1] == {"epoch": 0, "start": -1, "end": 10}
    assert spans([], is_whole=True) == []


@pytest.mark.parametrize(
    "query", [{}, {"topic": "t"}, {"topic": "", "partition": "0"}, {"topic": "t", "partition": "-1"}]
)
def test_what_is_no_partition_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadOption):
        place_in(query)


# --- the chronicle


def test_the_chronicle_has_each_change_once_and_says_what_it_saw_first() -> None:
    chronicle = Chronicle()
    chronicle.note(1, [state()])
    chronicle.note(2, [state()])
    chronicle.note(3, [state(leader=-1, leader_epoch=1, isr=(1,))])
    chronicle.note(4, [state(leader=2, leader_epoch=2, isr=(2,), elr=(1,))])
    assert chronicle.of(T0) == [
        Moment(1, 1, 0, (1, 2, 3), (), is_first=True),
        Moment(3, -1, 1, (1,), ()),
        Moment(4, 2, 2, (2,), (1,)),
    ]


def test_a_node_that_answers_from_old_metadata_changes_nothing() -> None:
    chronicle = Chronicle()
    chronicle.note(1, [state(leader=2, leader_epoch=2)])
    chronicle.note(2, [state(leader=1, leader_epoch=1)])
    assert [moment.leader for moment in chronicle.of(T0)] == [2]


def test_the_chronicle_forgets_what_is_old_and_partitions_that_are_gone() -> None:
    chronicle = Chronicle()
    for epoch in range(KEPT_MAX + 5):
        chronicle.note(epoch, [state(leader_epoch=epoch)])
    assert [moment.leader_epoch for moment in chronicle.of(T0)] == list(range(5, KEPT_MAX + 5))
    chronicle.note(99, [])
    assert chronicle.of(T0) == []
