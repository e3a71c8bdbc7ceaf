"""ElectLeaders: leaders are elected because somebody wants it (KIP-460)."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.metadata.image import RECOVERING
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest, TopicPartitions

E = ErrorCode
PREFERRED, UNCLEAN = 0, 1


def cluster() -> Cluster:
    """Partition 0 is not led by its first replica, 1 is led by nobody, 2 is as it should be."""
    made = Cluster(brokers=4)
    made.create("t", (1, 2, 3), (4, 2, 3), (2, 3, 4))
    made.alter("t", (4,), index=1)
    made.fence(1)
    made.join(1)
    made.alter("t", (1, 2, 3))
    made.fence(4)
    return made


def elect(made: Cluster, kind: int, *indexes: int, topic: str = "t") -> dict[int, ErrorCode]:
    rows = (TopicPartitions(topic=topic, partitions=indexes),) if indexes else None
    answer = made.ask(ElectLeadersRequest(election_type=kind, topic_partitions=rows), version=2)
    assert answer.error_code == E.NONE
    results = answer.replica_election_results
    return {row.partition_id: E(row.error_code) for result in results for row in result.partition_result}


def test_the_preferred_leader_leads_at_once() -> None:
    made = cluster()
    assert elect(made, PREFERRED, 0, 2) == {0: E.NONE, 2: E.ELECTION_NOT_NEEDED}
    assert (made.partition("t").leader, made.partition("t").leader_epoch) == (1, 2)


def test_a_preferred_leader_that_is_dead_cannot_be_elected() -> None:
    made = cluster()
    assert elect(made, PREFERRED, 1) == {1: E.PREFERRED_LEADER_NOT_AVAILABLE}


def test_all_partitions_at_once_name_only_those_that_need_it() -> None:
    made = cluster()
    assert elect(made, PREFERRED) == {0: E.NONE, 1: E.PREFERRED_LEADER_NOT_AVAILABLE}


def test_an_unclean_election_needs_no_permission_but_a_living_replica() -> None:
    made = cluster()
    made.create("v", (1,))
    made.fence(1)
    assert elect(made, UNCLEAN, 0, topic="v") == {0: E.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert elect(made, UNCLEAN, 1) == {1: E.NONE}
    new: Any = made.partition("t", 1)
    assert (new.leader, new.isr, new.leader_recovery_state) == (2, (2,), RECOVERING)


def test_an_unclean_election_where_somebody_leads_is_not_needed() -> None:
    assert elect(cluster(), UNCLEAN, 0) == {0: E.ELECTION_NOT_NEEDED}


def test_unknown_partitions_and_kinds() -> None:
    made = cluster()
    before = len(made.log.records)
    assert elect(made, PREFERRED, 9) == {9: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert elect(made, PREFERRED, 0, topic="x") == {0: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert made.ask(ElectLeadersRequest(election_type=7), version=2).error_code == E.INVALID_REQUEST
    assert len(made.log.records) == before


@pytest.mark.parametrize("are_named", [False, True])
def test_a_request_that_would_change_too_many_partitions_changes_none(are_named: bool) -> None:
    """Kafka's bound on the records of one request. Partitions that need no change do not count."""
    made = Cluster(brokers=2, max_partitions_per_request=3)
    made.create("t", *((1, 2) for _ in range(5)))
    made.fence(1)
    made.join(1)
    for index in range(4):
        made.alter("t", (2, 1), index=index)
    rows = (TopicPartitions(topic="t", partitions=tuple(range(5))),) if are_named else None
    end = made.log.next_offset
    answer = made.ask(ElectLeadersRequest(election_type=PREFERRED, topic_partitions=rows), version=2)
    assert (answer.error_code, answer.replica_election_results) == (E.POLICY_VIOLATION, ())
    assert made.log.next_offset == end
    assert elect(made, PREFERRED, 0, 1, 2) == {0: E.NONE, 1: E.NONE, 2: E.NONE}
    assert elect(made, PREFERRED, *range(5))[3] == E.NONE
