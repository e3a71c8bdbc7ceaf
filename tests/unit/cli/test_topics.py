"""How `topics describe` shows partitions, and which its filters let through."""

from io import StringIO

import pytest
from rich.console import Console

from strandline.cli.admin.topics import is_shown, line_of, table_of
from strandline.client.admin.partitions import PartitionState, Place, parse_place
from strandline.client.errors import BadOption
from strandline.diagnosis.partitions import as_json

HEALTHY = PartitionState(Place("t", 0), (1, 2, 3), (1, 2, 3), 1, min_isr=2)
AT_MIN = PartitionState(Place("t", 1), (1, 2, 3), (1, 2), 1, min_isr=2, offline=(3,))
UNDER = PartitionState(Place("t", 2), (1, 2, 3), (1,), 1, min_isr=2, elr=(2,), offline=(2, 3))
LEADERLESS = PartitionState(
    Place("t", 3), (1, 2, 3), (), -1, min_isr=2, last_known_elr=(2, 3), last_known_leader=1, offline=(1, 2)
)
UNCLEAN = PartitionState(Place("t", 4), (1, 2, 3), (3,), 3, min_isr=2, is_recovering=True)
# Two replicas, and min.insync.replicas=3 of which two count.
SMALL = PartitionState(Place("u", 0), (1, 2), (1, 2), 2, min_isr=2)
GROWING = PartitionState(Place("u", 1), (1, 2, 3), (1, 2), 2, min_isr=2, adding=(3,))
LED_BY_THE_DEAD = PartitionState(Place("u", 2), (1, 2), (1, 2), 2, min_isr=1, offline=(2,))
ALL = (HEALTHY, AT_MIN, UNDER, LEADERLESS, UNCLEAN, SMALL, GROWING, LED_BY_THE_DEAD)


@pytest.mark.parametrize(
    ("filters", "shown"),
    [
        ((True, False, False, False), (LEADERLESS, LED_BY_THE_DEAD)),
        ((False, True, False, False), (UNDER, LEADERLESS, UNCLEAN)),
        ((False, False, True, False), (AT_MIN, SMALL, GROWING)),
        ((False, False, False, True), (AT_MIN, UNDER, LEADERLESS, UNCLEAN)),
        ((True, False, True, False), (AT_MIN, LEADERLESS, SMALL, GROWING, LED_BY_THE_DEAD)),
    ],
    ids=["unavailable", "under min ISR", "at min ISR", "under-replicated", "unavailable or at min ISR"],
)
def test_t44_filters_have_kafkas_meaning_with_the_min_isr_that_counts(
    filters: tuple[bool, bool, bool, bool], shown: tuple[PartitionState, ...]
) -> None:
    assert tuple(state for state in ALL if is_shown(state, *filters)) == shown


def test_a_described_partition_is_a_line_with_its_whole_name_and_the_replicas_that_may_lead_it() -> None:
    long = PartitionState(Place("t" * 200, 3), (1, 2), (2,), 2, min_isr=2, elr=(1,))
    assert line_of(as_json(long)) == (
        f"Topic: {'t' * 200}\tPartition: 3\tLeader: 2\tReplicas: 1,2\tIsr: 2\tMinIsr: 2\tElr: 1\tLastKnownElr: "
        "\tLastKnownLeader: none\tLeaderRecoveryState: recovered"
    )
    assert line_of(as_json(LEADERLESS)) == (
        "Topic: t\tPartition: 3\tLeader: none\tReplicas: 1,2,3\tIsr: \tMinIsr: 2\tElr: \tLastKnownElr: 2,3"
        "\tLastKnownLeader: 1\tLeaderRecoveryState: recovered"
    )


def test_a_leader_that_was_elected_uncleanly_stands_out_in_the_table() -> None:
    console = Console(width=120, file=StringIO())
    console.print(table_of([as_json(UNCLEAN), as_json(LEADERLESS)]))
    unclean, leaderless = console.file.getvalue().splitlines()[3:5]  # type: ignore[attr-defined]
    assert unclean.split() == ["t", "4", "3", "(recovering)", "1,2,3", "3", "2"]
    assert leaderless.split() == ["t", "3", "none", "1,2,3", "2", "2,3", "1"]


def test_a_place_is_a_topic_or_one_of_its_partitions() -> None:
    assert parse_place("a.b-1") == ("a.b-1", None)
    assert parse_place("a:12") == ("a", 12)
    for wrong in ("a:", "a:b", ":1", "a:1:2", "a:-1"):
        with pytest.raises(BadOption, match="is neither TOPIC nor TOPIC:PARTITION"):
            parse_place(wrong)
