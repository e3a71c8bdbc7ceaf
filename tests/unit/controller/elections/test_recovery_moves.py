"""Unclean recovery of a partition that is on its way to other replicas."""

from tests.unit.controller.elections.recovered import TIMEOUT, Recovered, elect
from tests.unit.controller.test_reassignments import move, sets

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY
from strandline.wire.messages.topics.elect_leaders import DESIGNATION, LONGEST_LOG_AGGRESSIVE, UNCLEAN

E = ErrorCode


def moving(strategy: str, *, is_managed: bool = True) -> Recovered:
    """From 1 and 2, which have stopped uncleanly and are away, to 3 and 4, which have nothing yet."""
    cluster = Recovered(4, strategy=strategy, is_managed=is_managed)
    move(cluster, (1, 2))
    cluster.lose(1, 2)
    assert move(cluster, (3, 4))[0] is E.NONE
    assert sets(cluster.partition("t")) == ((3, 4, 1, 2), (3, 4), (1, 2))
    return cluster


def test_a_replica_that_is_being_added_is_not_the_one_with_the_most_data() -> None:
    """It has nothing yet, and as soon as it led, the others that may have everything would be taken away."""
    cluster = moving("Aggressive")
    assert cluster.asked() == []
    cluster.pause(2 * TIMEOUT)
    assert cluster.leader == NOBODY
    cluster.beat(2)
    assert cluster.asked() == [2]
    cluster.say(2, (0, 10))
    assert cluster.leader == 2


def test_it_leads_if_somebody_says_so() -> None:
    cluster = moving("None")
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 3) is None
    assert cluster.asked() == []
    assert cluster.ask(elect(DESIGNATION, 3), 3) is None
    cluster.say(3, (-1, 0))
    assert cluster.leader == 3


def test_who_was_named_may_have_been_taken_away_in_the_meantime() -> None:
    cluster = moving("None")
    assert cluster.ask(elect(DESIGNATION, 3), 3) is None
    assert cluster.asked() == [3]
    assert move(cluster, None)[0] is E.NONE
    cluster.say(3, (-1, 0))
    assert cluster.leader == NOBODY


def test_a_replica_that_may_have_the_most_is_not_removed_without_a_leader() -> None:
    """4 was being added, and in sync with 1. Balanced waits for both: to cancel would throw away the log of one."""
    cluster = Recovered(4)
    move(cluster, (1, 2))
    assert move(cluster, (3, 4))[0] is E.NONE
    cluster.alter("t", (1, 4))
    cluster.lose(1, 4)
    assert set(cluster.partition("t").last_known_elr) == {1, 4}
    assert move(cluster, None)[0] is E.INVALID_REPLICA_ASSIGNMENT
    cluster.beat(1)
    assert (cluster.asked(), cluster.leader) == ([], NOBODY)
    cluster.beat(4)
    for node, end in ((1, 10), (2, 5), (4, 20)):
        cluster.say(node, (0, end))
    assert cluster.leader == 4


def test_without_a_manager_others_lead_before_one_that_is_being_added() -> None:
    cluster = moving("None", is_managed=False)
    cluster.beat(1)  # not who led last
    answer = cluster.ask(elect(UNCLEAN), 2)
    assert answer.replica_election_results[0].partition_result[0].error_code == E.NONE
    assert cluster.leader == 1
