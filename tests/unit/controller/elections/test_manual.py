"""Elections by hand that ask replicas first: what else happens to a partition while somebody waits for its leader."""

from msgspec.structs import replace
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.elections.recovered import TIMEOUT, Recovered, elect

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.topics.elect_leaders import DESIGNATION, LONGEST_LOG_AGGRESSIVE, LONGEST_LOG_BALANCED

E = ErrorCode
LONG_MS = 60_000


def leaderless() -> Recovered:
    """1 and 2 were in sync last; both stopped uncleanly, and only 2 and 3 are there."""
    cluster = Recovered(strategy="None")
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    return cluster


def error_of(cluster: Cluster, sequence: int) -> ErrorCode | None:
    """What is answered for the partition; None: nothing yet."""
    answer = cluster.answer_to(sequence)
    return answer and E(answer.replica_election_results[0].partition_result[0].error_code)


def test_balanced_does_not_elect_a_replica_that_lost_its_tail_while_an_eligible_one_is_away() -> None:
    """By hand too it waits as needed for a better result: whoever is in the ELR has everything."""
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.fence(2)
    cluster.lose(1)
    cluster.beat(1)
    assert (cluster.partition("t").elr, cluster.partition("t").last_known_elr) == ((2,), (1,))
    assert cluster.ask(elect(LONGEST_LOG_BALANCED, timeout_ms=LONG_MS), 3) is None
    sequence = cluster.sequence
    for node in (1, 3):
        cluster.say(node, (0, 30))
    assert (cluster.leader, error_of(cluster, sequence)) == (NOBODY, None)
    cluster.beat(2)
    cluster.wait(0)
    assert (cluster.leader, cluster.partition("t").losses) == (2, ())
    assert error_of(cluster, sequence) is E.NONE, "at once, not when the time is up"


def test_a_waiting_request_learns_at_once_that_the_topic_was_deleted() -> None:
    cluster = leaderless()
    assert cluster.ask(elect(LONGEST_LOG_BALANCED, timeout_ms=LONG_MS), 3) is None
    sequence = cluster.sequence
    cluster.ask(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)), 6)
    cluster.wait(0)
    assert error_of(cluster, sequence) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert not cluster.controller.manual.asked


def test_of_two_requests_for_a_partition_the_later_one_counts() -> None:
    cluster = leaderless()
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE, timeout_ms=LONG_MS), 3) is None
    first = cluster.sequence
    assert cluster.ask(elect(DESIGNATION, 3), 3) is None
    second = cluster.sequence
    assert error_of(cluster, first) is E.ELIGIBLE_LEADERS_NOT_AVAILABLE
    cluster.say(2, (0, 30))
    assert cluster.leader == NOBODY
    cluster.say(3, (0, 20))
    assert (cluster.leader, error_of(cluster, second)) == (3, E.NONE)


def test_the_designated_broker_counts_only_in_a_designation() -> None:
    cluster = leaderless()
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE, 3), 3) is None
    cluster.say(3, (0, 20))
    cluster.say(2, (0, 30))
    assert cluster.leader == 2


def test_no_election_is_held_for_a_client_that_has_gone() -> None:
    cluster = leaderless()
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE, timeout_ms=LONG_MS), 3, connection=77) is None
    cluster.say(2, (0, 30))
    cluster.disconnect(77)
    cluster.say(3, (0, 20))
    cluster.pause(LONG_MS)
    assert (cluster.leader, cluster.controller.recoveries.partitions) == (NOBODY, {})
    assert not cluster.controller.manual.asked


def test_a_recovery_goes_on_by_its_own_time_after_a_vain_election_by_hand() -> None:
    cluster = Recovered(strategy="Aggressive")
    cluster.alter("t", (1, 2))
    cluster.fence(3)
    cluster.lose(1, 2)
    cluster.beat(2)
    cluster.say(2, (0, 5))
    cluster.pause(TIMEOUT - 3000)
    for _ in range(2):
        assert cluster.ask(elect(LONGEST_LOG_BALANCED, timeout_ms=1000), 3) is None
    cluster.pause(2999)
    assert cluster.leader == NOBODY
    cluster.pause(1)
    assert cluster.leader == 2


def test_a_request_without_wait_time_times_out_at_once() -> None:
    """The field of the request may have any number."""
    cluster = leaderless()
    cluster.ask(elect(LONGEST_LOG_BALANCED, timeout_ms=-1), 3)
    assert error_of(cluster, cluster.sequence) is E.REQUEST_TIMED_OUT
    assert not cluster.controller.manual.asked


def test_partitions_that_wait_for_an_election_count_among_all_that_wait() -> None:
    """Their answers wait for a commit like all others, as soon as there are any."""
    cluster = leaderless()
    cluster.controller.config = replace(cluster.controller.config, max_waiting=2)
    cluster.holds_commits = True
    assert cluster.ask(elect(LONGEST_LOG_BALANCED, timeout_ms=1_000), 3) is None
    waiting = cluster.sequence
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in "abc"]
    answers = [cluster.ask(CreateTopicsRequest(topics=(topic,)), 7) for topic in topics]
    assert [answer and E(answer.topics[0].error_code) for answer in answers] == [
        None,
        E.NOT_CONTROLLER,
        E.NOT_CONTROLLER,
    ]
    cluster.wait(1_000)
    cluster.commit()
    assert error_of(cluster, waiting) is E.REQUEST_TIMED_OUT
