"""What the active controller counts: elections of each kind, and heartbeats that did not come."""

from tests.unit.controller.cluster import Cluster
from tests.unit.controller.test_brokers import with_elr

from strandline.controller.counts import Counts
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest, TopicPartitions

UNCLEAN = 1


def counts(made: Cluster) -> tuple[int, int, int]:
    found = made.controller.counts
    return found.elections, found.unclean_elections, found.eligible_elections


def test_a_new_partition_is_no_election_and_a_change_of_its_isr_is_none() -> None:
    made = Cluster(brokers=3)
    made.create("t", (1, 2, 3), (2, 3, 1))
    made.alter("t", (1, 2))
    assert counts(made) == (0, 0, 0)


def test_a_dead_leader_costs_an_election_for_each_partition_that_it_led() -> None:
    made = Cluster(brokers=3)
    made.create("t", (1, 2, 3), (1, 3, 2), (2, 3, 1))
    made.fence(1)
    assert counts(made) == (2, 0, 0)


def test_a_partition_that_loses_its_leader_has_elected_nobody_until_one_is_back() -> None:
    made = Cluster(brokers=2, elr=False)
    made.create("t", (1,))
    made.fence(1)
    assert counts(made) == (0, 0, 0)
    made.join(1)
    assert counts(made) == (1, 0, 0)


def test_an_unclean_election_is_counted_as_one() -> None:
    made = Cluster(brokers=3)
    made.create("t", (1, 2))
    made.alter("t", (1,))
    made.fence(1)
    row = TopicPartitions(topic="t", partitions=(0,))
    made.ask(ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=(row,)), version=2)
    assert made.partition("t").leader == 2
    assert counts(made) == (1, 1, 0)


def test_an_eligible_replica_that_leads_is_counted_apart() -> None:
    made = with_elr()
    made.register(2, previous=made.epochs[2])
    made.fence(1)
    made.beat(2)
    assert made.partition("t").leader == 2
    assert counts(made) == (1, 0, 1)


def test_a_broker_whose_heartbeats_end_is_counted_once() -> None:
    made = Cluster(brokers=2)
    made.create("t", (1, 2))
    for _ in range(8):
        made.wait(2_000)
        made.beat(2)
    assert made.image.brokers[1].fenced
    assert made.controller.counts.timed_out_heartbeats == 1


def test_counts_begin_at_nothing() -> None:
    assert vars(Counts()) == dict.fromkeys(
        ("elections", "unclean_elections", "eligible_elections", "timed_out_heartbeats"), 0
    )
