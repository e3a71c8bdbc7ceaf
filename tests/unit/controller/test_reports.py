"""What the operator reads."""

from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Report


def lines(cluster: Cluster, level: str) -> list[str]:
    found = [e.text for e in cluster.effects if isinstance(e, Report) and e.level == level]
    cluster.effects = []
    return found


def test_an_unclean_election_is_a_warning_that_names_who_knew_more() -> None:
    cluster = Cluster(brokers=2, static={"unclean.leader.election.enable": True})
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    assert lines(cluster, "warning") == []
    cluster.fence(1)
    assert lines(cluster, "warning") == ["unclean election: t-0 is led by 2; what only [1] had may be lost"]


def test_a_leaderless_partition_says_who_is_missing() -> None:
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
