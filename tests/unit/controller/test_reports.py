"""What the operator reads."""

from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Report
from strandline.metadata.image import RECOVERING

CAUSE = "any replica leads: the topic allows the loss"


def lines(cluster: Cluster, level: str) -> list[str]:
    found = [e.text for e in cluster.effects if isinstance(e, Report) and e.level == level]
    cluster.effects = []
    return found


def test_an_unclean_election_is_a_warning_that_names_replicas_that_knew_more() -> None:
    cluster = Cluster(brokers=2, static={"unclean.recovery.strategy": "Aggressive"})
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    assert lines(cluster, "warning") == []
    cluster.fence(1)
    assert lines(cluster, "warning") == [f"unclean election ({CAUSE}): t-0 is led by 2; what only [1] had may be lost"]


def test_an_unclean_election_after_another_is_a_warning_too() -> None:
    """The partition is RECOVERING already, so the record does not say it; the epochs begin all the same."""
    cluster = Cluster(brokers=3, static={"unclean.recovery.strategy": "Aggressive"})
    cluster.create("t", (1, 2, 3))
    cluster.alter("t", (1,))
    cluster.fence(1)
    before = cluster.partition("t")
    assert (before.leader, before.leader_recovery_state) == (2, RECOVERING)
    cluster.effects = []
    cluster.fence(2)
    after = cluster.partition("t")
    assert (after.leader, after.isr, after.leader_recovery_state) == (3, (3,), RECOVERING)
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)
    assert lines(cluster, "warning") == [f"unclean election ({CAUSE}): t-0 is led by 3; what only [2] had may be lost"]


def test_a_recovering_leader_that_is_back_was_not_elected_uncleanly() -> None:
    cluster = Cluster(brokers=2, static={"unclean.recovery.strategy": "Aggressive"}, elr=False)
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    cluster.fence(1)
    cluster.fence(2)
    assert cluster.partition("t").leader == -1
    cluster.effects = []
    cluster.join(2)
    assert (cluster.partition("t").leader, cluster.partition("t").leader_recovery_state) == (2, RECOVERING)
    assert lines(cluster, "warning") == []


def test_a_leaderless_partition_names_the_missing_brokers() -> None:
    cluster = Cluster(brokers=1)
    cluster.create("t", (1,))
    cluster.effects = []
    cluster.wait(9_000)
    assert lines(cluster, "warning") == [
        "broker 1 is fenced: no heartbeat for 9000 ms",
        "t-0 has no leader: none of its in-sync replicas [1] is alive",
    ]


def test_many_lines_are_counted() -> None:
    cluster = Cluster(brokers=1)
    cluster.create("t", *((1,) for _ in range(25)))
    cluster.effects = []
    cluster.fence(1)
    found = lines(cluster, "warning")
    assert len(found) == 11 and found[-1] == "and 15 more of this batch"
