"""The cluster's health in a sentence, and its nodes, made of facts alone."""

from strandline.client.admin.loss_ledger import Ledger
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.quorum import Quorum, QuorumMember
from strandline.console.facts import Facts
from strandline.console.views.cluster import node_rows, summary_rows
from strandline.metadata.losses import NO_END
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from strandline.wire.messages.own.describe_losses import Loss

BROKERS = tuple(DescribeClusterBroker(broker_id=node, host="h", port=node, rack=f"r{node % 2}") for node in (1, 2, 3))
MEMBERS = tuple(QuorumMember(node, True, 10 - node, 0, 0) for node in (1, 2, 3))
FENCED = (*BROKERS[:2], DescribeClusterBroker(broker_id=3, host="h", port=3, is_fenced=True))


def state(partition: int = 0, **known: object) -> PartitionState:
    given = {"at": Place("t", partition), "replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, "min_isr": 2, **known}
    return PartitionState(**given)  # type: ignore[arg-type]  # by name


def facts(*states: PartitionState, brokers: tuple[DescribeClusterBroker, ...] = BROKERS, **known: object) -> Facts:
    answer = DescribeClusterResponse(cluster_id="id", brokers=brokers)
    given = {
        "cluster": answer,
        "quorum": Quorum(1, 4, 9, MEMBERS),
        "partitions": states,
        "ledger": Ledger((), {}),
        **known,
    }
    return Facts(**given)  # type: ignore[arg-type]  # by name


def health(found: Facts) -> tuple[str, str, list[str]]:
    row = summary_rows(found)["health"]
    return row["level"], row["sentence"], [f"{one['level']}: {one['what']}" for one in row["troubles"]]


def test_a_cluster_with_nothing_wrong_is_healthy() -> None:
    healthy = "Healthy: all 3 brokers run, and all 2 partitions have all their replicas in sync."
    assert health(facts(state(), state(1))) == ("good", healthy, [])
    one = "Healthy: the broker runs, and all 0 partitions have all their replicas in sync."
    assert health(facts(brokers=BROKERS[:1])) == ("good", one, [])


def test_before_the_first_answer_nothing_is_called_healthy() -> None:
    assert health(Facts()) == ("", "The console has not reached the cluster yet.", [])


def test_what_is_wrong_is_listed_the_worst_first_and_the_sentence_is_the_worst() -> None:
    lost = Loss(time_ms=1, topic="t", partition=0, start=0, end=NO_END, where="metadata", cause="designation")
    found = facts(
        state(0, isr=(1, 2)),
        state(1, leader=-1),
        state(2, isr=(1,)),
        state(3, is_recovering=True),
        brokers=FENCED,
        ledger=Ledger((lost,), {2: "does not run"}),
    )
    level, sentence, listed = health(found)
    assert level == "bad"
    assert listed == [
        "bad: Broker 3 is fenced: the controller does not hear from it.",
        "bad: Broker 2 does not run.",
        "bad: 1 partition has no leader (t-1).",
        "bad: 1 partition has fewer replicas in sync than min.insync.replicas (t-2).",
        "warning: 1 partition has replicas out of sync (t-0).",
        "warning: 1 partition has a leader that was elected uncleanly (t-3).",
        "warning: The loss ledger has 1 entry that nobody has acknowledged.",
    ]
    assert sentence == "Broker 3 is fenced: the controller does not hear from it. 6 more things need attention."


def test_many_partitions_are_counted_and_the_first_are_named() -> None:
    (only,) = health(facts(*(state(index, leader=-1) for index in range(7))))[2]
    assert only == "bad: 7 partitions have no leader (t-0, t-1, t-2, t-3, t-4, …)."


def test_a_quorum_without_a_leader_comes_first() -> None:
    assert health(facts(quorum=Quorum(-1, 4, 9, MEMBERS)))[1].startswith("The metadata quorum has no leader")


def test_a_node_has_its_roles_its_rack_and_what_it_leads() -> None:
    found = facts(state(), state(1, leader=2, isr=(1, 2)), brokers=FENCED, ledger=Ledger((), {2: "hangs"}))
    rows = node_rows(found)
    assert [row["node"] for row in rows.values()] == [1, 2, 3]
    first = rows["1"]
    assert (first["roles"], first["is_leader"], first["rack"]) == (["broker", "controller"], True, "r1")
    assert (first["leads"], first["hosts"], first["in_sync"]) == (1, 2, 2)
    assert [row["state"] for row in rows.values()] == ["running", "no answer", "fenced"]
    assert [(row["metadata_offset"], row["metadata_behind"]) for row in rows.values()] == [(9, 0), (8, 1), (7, 2)]


def test_a_controller_that_is_no_broker_is_a_node_and_an_observer_that_is_unknown_is_not() -> None:
    members = (QuorumMember(9, True, 5, 0, 0), QuorumMember(8, False, 5, 0, 0))
    rows = node_rows(facts(quorum=Quorum(9, 1, 5, members)))
    assert list(rows) == ["1", "2", "3", "9"]
    assert (rows["9"]["roles"], rows["9"]["address"], rows["9"]["state"]) == (["controller"], "", "")
    assert rows["1"]["roles"] == ["broker"]
