"""A broker leaves many ISRs: two partitions in each step here, and its fencing comes with the last of them."""

from collections.abc import Callable

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Effect, Failure
from strandline.base.errors import ErrorCode
from strandline.metadata.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest

STEP = 2
PARTITIONS = 5


def many(brokers: int = 3, min_isr: int = 1) -> Cluster:
    """Broker 1 leads all partitions."""
    cluster = Cluster(brokers, {"min.insync.replicas": min_isr}, changes_per_step=STEP)
    cluster.create("t", *[tuple(range(1, brokers + 1))] * PARTITIONS)
    cluster.log.batches.clear()
    return cluster


def die(cluster: Cluster) -> None:
    """Two refused connections prove it; the first step follows at once."""
    cluster.disconnect(cluster.connection(1))
    cluster.probed(cluster.probes()[0], Failure.REFUSED)
    cluster.wait(50)
    cluster.probed(cluster.probes()[0], Failure.REFUSED)


def kinds(cluster: Cluster) -> list[list[str]]:
    names = {PartitionChangeRecord: "change", BrokerRegistrationChangeRecord: "broker"}
    return [[names[type(record)] for record in batch] for batch in cluster.log.batches]


def isrs(cluster: Cluster) -> list[tuple[int, ...]]:
    return [cluster.partition("t", index).isr for index in range(PARTITIONS)]


def test_a_dead_broker_leaves_in_steps_and_is_fenced_with_the_last_of_them() -> None:
    cluster = many()
    die(cluster)
    assert kinds(cluster) == [["change"] * 2]
    assert not cluster.image.brokers[1].fenced, "it is in sync in other partitions yet"
    assert isrs(cluster) == [(2, 3)] * 2 + [(1, 2, 3)] * 3
    cluster.wait(10)
    assert kinds(cluster) == [["change"] * 2, ["change"] * 2, ["change", "broker"]]
    assert cluster.image.brokers[1].fenced
    assert isrs(cluster) == [(2, 3)] * PARTITIONS
    assert {cluster.partition("t", index).leader for index in range(PARTITIONS)} == {2}


def test_a_broker_that_leaves_few_isrs_is_fenced_in_one_batch() -> None:
    cluster = Cluster(3, changes_per_step=STEP)
    cluster.create("t", (1, 2, 3), (1, 2, 3))
    cluster.log.batches.clear()
    die(cluster)
    assert kinds(cluster) == [["change", "change", "broker"]]


def test_a_controlled_shutdown_waits_for_all_steps() -> None:
    cluster = many()
    answer = cluster.beat(1, want_shut_down=True)
    assert (answer.is_fenced, answer.should_shut_down) == (False, False)
    again = cluster.beat(1, want_shut_down=True)
    assert (again.is_fenced, again.should_shut_down) == (False, False)
    assert kinds(cluster) == [["change"] * 2], "the second wish changes nothing"
    assert not cluster.image.brokers[1].in_controlled_shutdown
    cluster.wait(10)
    assert kinds(cluster) == [["change"] * 2, ["change"] * 2, ["change", "broker"]]
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert cluster.beat(1, want_shut_down=True).should_shut_down


def test_a_follower_that_shuts_down_may_stop_when_it_has_left_everywhere() -> None:
    cluster = many()
    assert not cluster.beat(3, want_shut_down=True).should_shut_down
    assert not cluster.image.brokers[3].fenced
    cluster.wait(10)
    assert isrs(cluster) == [(1, 2)] * PARTITIONS
    assert cluster.image.brokers[3].fenced
    assert cluster.beat(3, want_shut_down=True).should_shut_down


def test_a_broker_that_dies_while_it_shuts_down_is_fenced() -> None:
    cluster = many()
    cluster.beat(1, want_shut_down=True)
    die(cluster)
    cluster.wait(60)
    assert cluster.image.brokers[1].fenced
    assert isrs(cluster) == [(2, 3)] * PARTITIONS


def again_in_sync(cluster: Cluster) -> None:
    refused = cluster.alter("t", (1, 2, 3), index=0)
    assert refused.error_code == ErrorCode.INELIGIBLE_REPLICA


def created(cluster: Cluster) -> None:
    cluster.create("new", (1, 2, 3), (2, 1, 3), (3, 2, 1))


def deleted(cluster: Cluster) -> None:
    cluster.image.remove_topic(cluster.image.topic_ids["t"])


@pytest.mark.parametrize("meanwhile", [again_in_sync, created, deleted])
def test_nothing_brings_it_back_between_two_steps(meanwhile: Callable[[Cluster], None]) -> None:
    cluster = many()
    die(cluster)
    meanwhile(cluster)
    cluster.wait(20)
    assert cluster.image.brokers[1].fenced
    for topic in cluster.image.topics.values():
        assert all(1 not in partition.isr for partition in topic.partitions.values())


def test_it_is_not_elected_between_two_steps() -> None:
    cluster = many(2, min_isr=2)
    die(cluster)
    assert (cluster.partition("t", 0).leader, cluster.partition("t", 0).elr) == (2, (1,))
    cluster.beat(2, want_fence=True)
    assert cluster.partition("t", 0).leader == -1, "the image still has broker 1 as active"
    cluster.wait(20)
    assert cluster.image.brokers[1].fenced


def test_another_incarnation_is_not_fenced_for_the_one_before() -> None:
    cluster = many()
    die(cluster)
    assert cluster.register(1, previous=cluster.epochs[1]).error_code == 0
    assert not cluster.beat(1).is_fenced
    cluster.wait(20)
    assert not cluster.image.brokers[1].fenced


def test_a_new_controller_begins_without_it() -> None:
    cluster = many()
    die(cluster)
    effects: list[Effect] = cluster.controller.deactivate(cluster.now)
    assert effects
    assert cluster.controller.deadline() > cluster.now + 1_000
    cluster.controller.check()


def test_changes_of_many_partitions_are_several_batches() -> None:
    cluster = many()
    cluster.beat(1, want_fence=True)
    cluster.wait(10)
    cluster.beat(1)
    for index in range(PARTITIONS):
        cluster.alter("t", (1, 2, 3), index=index)
    cluster.log.batches.clear()
    cluster.ask(ElectLeadersRequest(election_type=0, topic_partitions=None), version=2)
    assert kinds(cluster) == [["change"] * 2, ["change"] * 2, ["change"]]
    assert {cluster.partition("t", index).leader for index in range(PARTITIONS)} == {1}


def test_a_batch_that_says_more_than_changes_of_partitions_stays_one_however_large_it_is() -> None:
    """A new incarnation leaves all ISRs of the one before in the batch that registers it."""
    cluster = many()
    cluster.disconnect(cluster.connection(1))
    assert cluster.register(1, previous=cluster.epochs[1]).error_code == 0
    (batch,) = cluster.log.batches
    assert len(batch) == PARTITIONS + 1
