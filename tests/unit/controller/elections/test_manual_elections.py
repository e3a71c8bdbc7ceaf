"""Elections by hand that ask replicas first: longest logs, and designated leaders."""

import pytest
from tests.unit.controller.elections.recovered import Recovered, elect

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY
from strandline.wire.messages.topics.elect_leaders import (
    DESIGNATION,
    LONGEST_LOG_AGGRESSIVE,
    LONGEST_LOG_BALANCED,
    ElectLeadersRequest,
    TopicPartitions,
)

E = ErrorCode


def test_by_hand_the_longest_log_leads_of_those_that_are_there() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 3) is None
    cluster.say(3, (0, 20))
    cluster.say(2, (0, 30))
    (topic,) = cluster.answer_to(cluster.sequence).replica_election_results
    assert [(row.partition_id, row.error_code) for row in topic.partition_result] == [(0, E.NONE)]
    assert (cluster.leader, cluster.partition("t").losses[0].start) == (2, 0)
    assert cluster.partition("t").losses[0].cause.startswith("longest_log_aggressive election, asked for by")


def test_a_manual_balanced_election_waits_no_longer_than_its_client() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert cluster.ask(elect(LONGEST_LOG_BALANCED), 3) is None
    sequence = cluster.sequence
    cluster.say(3, (0, 20))
    cluster.say(2, (0, 30))
    cluster.pause(5000)
    (topic,) = cluster.answer_to(sequence).replica_election_results
    assert topic.partition_result[0].error_code == E.REQUEST_TIMED_OUT
    assert (cluster.leader, cluster.controller.recoveries.partitions) == (NOBODY, {})


def test_a_manual_election_chooses_at_its_timeout_among_the_replicas_that_answered() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 3) is None
    sequence = cluster.sequence
    cluster.say(3, (0, 20))
    cluster.pause(4999)
    assert (cluster.leader, cluster.answer_to(sequence)) == (NOBODY, None), "2 is there, and may still answer"
    cluster.pause(1)
    assert cluster.leader == 3
    assert cluster.answer_to(sequence).replica_election_results[0].partition_result[0].error_code == E.NONE


def test_a_manual_balanced_election_chooses_at_its_timeout_if_all_of_last_known_elr_have_answered() -> None:
    cluster = Recovered(4, strategy="None", is_managed=False).outage()
    assert cluster.ask(elect(LONGEST_LOG_BALANCED), 3) is None
    for node, end in ((1, 20), (2, 30), (3, 5)):
        cluster.say(node, (0, end))
    cluster.pause(4999)
    assert cluster.leader == NOBODY
    cluster.pause(1)
    assert cluster.leader == 2


def test_by_hand_a_designated_replica_leads_though_another_has_more() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert cluster.ask(elect(DESIGNATION, 3), 3) is None
    sequence = cluster.sequence
    cluster.say(2, (0, 30))
    assert cluster.leader == NOBODY
    cluster.say(3, (0, 20))
    assert cluster.answer_to(sequence).replica_election_results[0].partition_result[0].error_code == E.NONE
    assert cluster.leader == 3


REFUSED = [
    ("somebody leads", elect(LONGEST_LOG_AGGRESSIVE), (), E.ELECTION_NOT_NEEDED),
    ("nobody is designated", elect(DESIGNATION), (1, 2), E.INVALID_REQUEST),
    ("a stranger is designated", elect(DESIGNATION, 9), (1, 2), E.INVALID_REQUEST),
    ("a fenced replica is designated", elect(DESIGNATION, 1), (1, 2), E.ELIGIBLE_LEADERS_NOT_AVAILABLE),
]


@pytest.mark.parametrize(("why", "request_", "lost", "error"), REFUSED, ids=[row[0] for row in REFUSED])
def test_by_hand_a_mistake_is_refused_at_once(
    why: str, request_: ElectLeadersRequest, lost: tuple[int, ...], error: ErrorCode
) -> None:
    del why
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(*lost)
    answer = cluster.ask(request_, 3)
    assert answer.replica_election_results[0].partition_result[0].error_code == error
    assert cluster.controller.recoveries.partitions == {}


def test_by_hand_no_more_than_a_thousand_at_once() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    row = TopicPartitions(topic="u", partitions=tuple(range(1001)))
    answer = cluster.ask(ElectLeadersRequest(election_type=LONGEST_LOG_AGGRESSIVE, topic_partitions=(row,)), 3)
    errors = [found.error_code for found in answer.replica_election_results[0].partition_result]
    assert errors == [E.UNKNOWN_TOPIC_OR_PARTITION] * 1000 + [E.REQUEST_LIMIT_REACHED]


def test_clients_of_version_two_cannot_ask_for_it() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.lose(1, 2, 3)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 2).error_code == E.INVALID_REQUEST


def test_a_controller_that_is_none_any_more_says_so() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 3) is None
    cluster.take(cluster.controller.deactivate(cluster.now))
    assert cluster.answer_to(cluster.sequence).error_code == E.NOT_CONTROLLER
