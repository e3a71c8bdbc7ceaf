"""KIP-966, section "Eligible Leader Replicas": what keeps a replica eligible, what ends it, who is remembered.

Elections by strategy are in `test_kip_966_election.py`; what a metadata version means in `test_kip_966_api.py`.
"""

from random import Random

import pytest
from tests.kip.scenes import Governed, leading
from tests.kip.traps.test_eligible import ALL_BROKERS, MIN_ISR, TOPIC, replayed, set_config, with_elr
from tests.kip.traps.test_moves import move
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId
from strandline.metadata import records as r
from strandline.metadata.image import RECOVERED

E = ErrorCode
Sets = tuple[int, set[int], set[int], set[int]]


def sets(cluster: Cluster) -> Sets:
    """Leader, ISR, ELR and last known ELR."""
    partition = cluster.partition("t")
    return partition.leader, set(partition.isr), set(partition.elr), set(partition.last_known_elr)


def made(replicas: int = 4, min_isr: int = 3) -> Cluster:
    cluster = with_elr(replicas, **{MIN_ISR: min_isr})
    cluster.create("t", tuple(range(1, replicas + 1)))
    return cluster


# --- invariants


def test_the_isr_can_be_empty_and_a_fenced_broker_leaves_it() -> None:
    cluster = made(2, 2)
    cluster.fence(2)
    assert sets(cluster) == (1, {1}, {2}, set())
    cluster.fence(1)
    assert sets(cluster) == (NOBODY, set(), {1, 2}, set())


def test_a_lagging_follower_leaves_the_isr_as_before_and_stays_eligible_below_min_isr() -> None:
    world = Governed(elr=True)
    world.create(min_insync_replicas="3")
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.kill(NodeId(3))
    world.produce(1, 1, acks=1)
    world.run(90_000)
    assert (world.partition.isr, world.partition.elr) == ((1, 2), (3,))


def test_a_leader_goes_by_the_isr_alone_and_an_eligible_replica_helps_no_write() -> None:
    """Broker behaviors: both the follower and the leader still refer to the ISR for decision making."""
    world = Governed(elr=True)
    world.create(min_insync_replicas="2")
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    for node in (2, 3):
        world.fence(node)
    assert (world.partition.isr, len(world.partition.elr)) == ((1,), 1)
    assert world.produce(1, 1)().error_code == E.NOT_ENOUGH_REPLICAS
    world.produce(1, 1, acks=1)
    world.run(1_000)
    assert leading(world, 1).high_watermark == 2


def test_an_eligible_replica_has_all_up_to_the_high_watermark_when_it_leads_though_it_was_away_meanwhile() -> None:
    """It lagged, or its state is unknown to the controller: what it has is what was committed when it left."""
    world = Governed(elr=True)
    world.create(min_insync_replicas="2")
    world.run(1_000)
    world.produce(1, 5)
    world.run(1_000)
    world.kill(NodeId(3))
    world.fence(3)
    world.kill(NodeId(2))
    world.fence(2)
    assert (world.partition.isr, world.partition.elr) == ((1,), (2,)), "2 left below min ISR, 3 before"
    world.produce(1, 4, acks=1)
    world.run(60_000)
    committed = world.row(1)[2]
    world.kill(NodeId(1))
    world.fence(1)
    world.start(NodeId(2))
    world.beat(2)
    assert (world.partition.leader, world.partition.isr, world.partition.elr) == (2, (2,), (1,))
    assert world.row(2)[3] == committed == 5


def one_event(cluster: Cluster, rng: Random) -> str:
    """Anything but an unclean shutdown, and another min ISR."""
    node = rng.choice((1, 2, 3, 4))
    partition = cluster.partition("t")
    match rng.randrange(4):
        case 0:
            cluster.beat(node, want_fence=True)
            return f"{node} is fenced"
        case 1:
            cluster.beat(node)
            return f"{node} is unfenced"
        case 2:
            cluster.beat(node, want_fence=True)
            cluster.register(node, previous=cluster.epochs[node])
            return f"{node} restarts cleanly"
        case _:
            if partition.leader == NOBODY:
                return "nothing"
            isr = {partition.leader, *rng.sample((1, 2, 3, 4), rng.randrange(4))}
            answer = cluster.alter("t", tuple(sorted(isr)))
            return f"{sorted(isr)} is proposed: {answer.error_code}"


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_but_an_unclean_shutdown_min_isr_replicas_are_electable(seed: int) -> None:
    """Nobody is both in sync and eligible; nobody is eligible beside min ISR members; and both together are so many."""
    rng, cluster = Random(seed), made(4, 3)
    reported, emptied = [], False
    for _ in range(60):
        reported.append(one_event(cluster, rng))
        _, isr, elr, _ = sets(cluster)
        assert not isr & elr, reported
        assert not elr or len(isr) < 3, reported
        assert len(isr | elr) >= 3, reported
        emptied |= not isr
    assert emptied, "else little was tried"


def test_only_an_unclean_shutdown_brings_isr_and_elr_below_min_isr() -> None:
    cluster = made(3, 3)
    cluster.fence(3)
    assert sets(cluster) == (1, {1, 2}, {3}, set())
    assert cluster.register(3, previous=cluster.epochs[3]).error_code == E.NONE
    assert sets(cluster) == (1, {1, 2}, {3}, set()), "a clean one does not"
    cluster.register(3)
    assert sets(cluster) == (1, {1, 2}, set(), {3})


# --- the four ways in


def test_a_proposed_isr_updates_the_elr_though_no_broker_speaks_of_it() -> None:
    cluster = made(4, 3)
    assert cluster.alter("t", (1, 2)).error_code == E.NONE
    assert sets(cluster) == (1, {1, 2}, {3, 4}, set())


def test_fencing_updates_the_elr_with_the_isr_that_is_left() -> None:
    cluster = made(3, 3)
    cluster.fence(2)
    assert sets(cluster) == (1, {1, 3}, {2}, set())


def test_an_eligible_replica_that_is_unfenced_leads_if_the_isr_is_empty() -> None:
    """It is added to the ISR, and removed from the ELR. It was elected cleanly."""
    cluster = made(3, 3)
    for node in (3, 2, 1):
        cluster.fence(node)
    assert sets(cluster) == (NOBODY, set(), {1, 2, 3}, set())
    cluster.beat(3)
    assert sets(cluster) == (3, {3}, {1, 2}, set())
    assert cluster.partition("t").leader_recovery_state == RECOVERED
    cluster.beat(1)
    assert sets(cluster) == (3, {3}, {1, 2}, set()), "the ISR is not empty any more"


@pytest.mark.parametrize("is_in_sync", [True, False], ids=["in the ISR", "in the ELR"])
def test_an_unclean_shutdown_takes_a_broker_from_isr_and_elr_before_its_registration_is_written(
    is_in_sync: bool,
) -> None:
    cluster = made(3, 3)
    if not is_in_sync:
        cluster.alter("t", (1, 3))
    cluster.disconnect(cluster.connection(2))
    before = len(cluster.log.batches)
    assert cluster.register(2).error_code == E.NONE
    (batch,) = cluster.log.batches[before:]
    assert [type(record) for record in batch] == [r.PartitionChangeRecord, r.RegisterBrokerRecord]
    assert sets(cluster) == (1, {1, 3}, set(), {2})


# --- the update


def test_a_proposed_isr_that_is_large_enough_empties_the_elr() -> None:
    cluster = made(4, 3)
    cluster.alter("t", (1, 2))
    assert cluster.alter("t", (1, 2, 4)).error_code == E.NONE
    assert sets(cluster) == (1, {1, 2, 4}, set(), set()), "3 too: it has nothing of what is committed from now on"


def test_below_min_isr_the_elr_stays_and_gets_replicas_that_leave_the_isr_but_none_in_sync() -> None:
    cluster = made(4, 3)
    cluster.alter("t", (1, 2))
    assert sets(cluster) == (1, {1, 2}, {3, 4}, set())
    cluster.alter("t", (1,))
    assert sets(cluster) == (1, {1}, {2, 3, 4}, set())
    cluster.alter("t", (1, 3))
    assert sets(cluster) == (1, {1, 3}, {2, 4}, set())


def test_only_members_of_the_last_isr_before_it_is_below_min_isr_can_join_the_elr() -> None:
    cluster = made(4, 3)
    cluster.alter("t", (1, 2, 3))
    cluster.alter("t", (1, 2))
    assert sets(cluster) == (1, {1, 2}, {3}, set()), "4 left while the high watermark moved"


def test_the_example_4_brokers_with_min_isr_3() -> None:
    cluster, seen = made(4, 3), []
    for what, node in (
        ("fence", 4),
        ("fence", 3),
        ("fence", 2),
        ("fence", 1),
        ("crash", 2),  # it had an unclean shutdown, and registers
        ("beat", 4),  # it is back, and was not eligible
        ("beat", 2),
        ("beat", 3),  # who is eligible leads
        ("join ISR", 4),
        ("join ISR", 2),
    ):
        match what:
            case "fence":
                cluster.fence(node)
            case "crash":
                cluster.register(node)
            case "beat":
                cluster.beat(node)
            case _:
                cluster.alter("t", (*cluster.partition("t").isr, node))
        seen.append((what, node, *sets(cluster)))
    assert seen == [
        ("fence", 4, 1, {1, 2, 3}, set(), set()),
        ("fence", 3, 1, {1, 2}, {3}, set()),
        ("fence", 2, 1, {1}, {2, 3}, set()),
        ("fence", 1, NOBODY, set(), {1, 2, 3}, set()),
        ("crash", 2, NOBODY, set(), {1, 3}, {2}),
        ("beat", 4, NOBODY, set(), {1, 3}, {2}),
        ("beat", 2, NOBODY, set(), {1, 3}, {2}),
        ("beat", 3, 3, {3}, {1}, {2}),
        ("join ISR", 4, 3, {3, 4}, {1}, {2}),
        ("join ISR", 2, 3, {2, 3, 4}, set(), set()),
    ]


# --- other behaviors


def test_a_change_of_the_elr_alone_begins_no_leader_epoch() -> None:
    """The only case: an eligible replica registers after an unclean shutdown."""
    cluster = made(3, 3)
    cluster.fence(3)
    before = cluster.partition("t")
    cluster.register(3)
    after = cluster.partition("t")
    assert (after.elr, before.elr) == ((), (3,))
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)


@pytest.mark.parametrize("min_isr", [1, 2])
def test_a_min_isr_that_the_isr_has_ends_the_elr(min_isr: int) -> None:
    cluster = made(4, 3)
    cluster.alter("t", (1, 2))
    assert set_config(cluster, TOPIC, str(min_isr)).error_code == E.NONE
    assert sets(cluster) == (1, {1, 2}, set(), set())


@pytest.mark.parametrize(("was", "becomes"), [(3, 4), (4, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("where", [TOPIC, ALL_BROKERS], ids=["of the topic", "of the cluster"])
def test_a_min_isr_that_the_isr_lacks_keeps_elr_and_last_known_elr(
    where: tuple[int, str], was: int, becomes: int
) -> None:
    """By neither number can the leader commit without them. So they lead without loss, raised or lowered."""
    cluster = made(4, was)
    for node in (3, 4):
        cluster.fence(node)
    cluster.fence(2)
    cluster.register(4)  # after an unclean stop
    before = sets(cluster)
    epoch = cluster.partition("t").partition_epoch
    assert set_config(cluster, where, str(becomes)).error_code == E.NONE
    assert sets(cluster) == before
    assert before[2]
    assert cluster.partition("t").partition_epoch == epoch + 1, "leaders that have not heard of it propose nothing"
    cluster.fence(1)
    cluster.beat(2)
    assert cluster.partition("t").leader == 2
    assert cluster.partition("t").leader_recovery_state == RECOVERED


def test_a_reassignment_ends_with_min_isr_in_sync_and_only_replicas_eligible() -> None:
    cluster = made(5, 3)
    assert move(cluster, 1, 2, 3) is E.NONE
    assert cluster.partition("t").replicas == (1, 2, 3)
    cluster.alter("t", (1, 3))
    assert sets(cluster) == (1, {1, 3}, {2}, set())
    assert move(cluster, 1, 3, 4) is E.NONE
    assert sets(cluster) == (1, {1, 3}, {2}, set()), "it waits for 4"
    cluster.alter("t", (1, 4))
    assert cluster.partition("t").replicas == (1, 3, 4, 2), "4 is there, but of those that stay 2 of 3 are in sync"
    assert sets(cluster) == (1, {1, 4}, {2, 3}, set()), "2 is to go, and stays eligible until then"
    assert move(cluster) is E.INVALID_REPLICA_ASSIGNMENT, "a cancel would leave 1 alone in sync"
    cluster.alter("t", (1, 3))
    assert sets(cluster) == (1, {1, 3}, {2, 4}, set())
    assert move(cluster) is E.NONE
    assert set(cluster.partition("t").replicas) == {1, 2, 3}
    assert sets(cluster) == (1, {1, 3}, {2}, set()), "4 is no replica any more"
    assert move(cluster, 1, 3, 4) is E.NONE
    cluster.alter("t", (1, 3, 4))
    assert (cluster.partition("t").replicas, *sets(cluster)) == ((1, 3, 4), 1, {1, 3, 4}, set(), set())


def test_an_eligible_replica_that_lost_its_tail_is_in_last_known_elr_until_the_isr_has_min_isr_members() -> None:
    cluster = made(3, 3)
    cluster.fence(3)
    cluster.register(3)
    assert sets(cluster)[3] == {3}
    cluster.fence(2)
    cluster.register(2)
    assert sets(cluster) == (1, {1}, set(), {2, 3})
    cluster.beat(2)
    cluster.alter("t", (1, 2))
    assert sets(cluster) == (1, {1, 2}, set(), {3}), "not yet: 2 of 3"
    cluster.beat(3)
    cluster.alter("t", (1, 2, 3))
    assert sets(cluster) == (1, {1, 2, 3}, set(), set())


def test_last_known_elr_and_the_last_leader_are_in_the_metadata_log_and_in_its_snapshots() -> None:
    cluster = made(2, 2)
    cluster.fence(2)
    cluster.register(2)
    cluster.fence(1)
    assert sets(cluster) == (NOBODY, set(), {1}, {2})
    assert cluster.partition("t").last_known_leader == 1
    for image in (replayed(cluster.log.records), replayed(list(replayed(cluster.log.records).records()))):
        assert image.partition(cluster.at("t")) == cluster.partition("t")


def test_the_leader_that_is_fenced_is_remembered_until_another_one_is_elected() -> None:
    cluster = made(3, 3)
    for node in (3, 1, 2):
        assert cluster.partition("t").last_known_leader == NOBODY, "somebody leads"
        cluster.fence(node)
    assert (cluster.partition("t").leader, cluster.partition("t").last_known_leader) == (NOBODY, 2)
    cluster.register(2)
    assert cluster.partition("t").last_known_leader == 2, "though it lost its tail"
    cluster.beat(3)
    assert (cluster.partition("t").leader, cluster.partition("t").last_known_leader) == (3, NOBODY)
