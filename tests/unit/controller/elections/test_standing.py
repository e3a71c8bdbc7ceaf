"""What a partition without a leader waits for: each case of KIP-966's leader election, and who is counted as what."""

import pytest
from msgspec.structs import replace
from tests.kip.traps.scene import nodes, partition
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.test_brokers import with_elr

from strandline.base.ids import NOBODY, NodeId
from strandline.controller.partitions.standing import Standing, standing_of, standings
from strandline.metadata.strategy import Strategy
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest

NONE, BALANCED, AGGRESSIVE = Strategy
MANAGED, NOT_MANAGED = True, False


def standing(
    strategy: Strategy,
    is_managed: bool,
    *,
    isr: tuple[int, ...] = (),
    elr: tuple[int, ...] = (),
    last_known_elr: tuple[int, ...] = (),
    last_known_leader: int = NOBODY,
    alive: tuple[int, ...] = (),
    registered: tuple[int, ...] = (1, 2, 3),
    leader: int = NOBODY,
) -> Standing:
    known = replace(
        partition(isr, leader),
        elr=nodes(*elr),
        last_known_elr=nodes(*last_known_elr),
        last_known_leader=NodeId(last_known_leader),
    )
    return standing_of(known, strategy, is_managed, alive.__contains__, registered.__contains__)


EVERY_WAY = pytest.mark.parametrize("is_managed", [MANAGED, NOT_MANAGED], ids=["managed", "not managed"])


@EVERY_WAY
@pytest.mark.parametrize("strategy", Strategy)
def test_somebody_leads(strategy: Strategy, is_managed: bool) -> None:
    assert standing(strategy, is_managed, isr=(1, 2), leader=1) is Standing.LED


@EVERY_WAY
@pytest.mark.parametrize("strategy", [NONE, BALANCED])
def test_the_last_member_of_the_isr_is_waited_for(strategy: Strategy, is_managed: bool) -> None:
    assert standing(strategy, is_managed, isr=(2,)) is Standing.MEMBER


@EVERY_WAY
@pytest.mark.parametrize("strategy", [NONE, BALANCED])
def test_an_eligible_replica_is_waited_for_though_others_are_known(strategy: Strategy, is_managed: bool) -> None:
    found = standing(strategy, is_managed, elr=(2,), last_known_elr=(1,), last_known_leader=1, alive=(1, 3))
    assert found is Standing.ELIGIBLE


def test_aggressive_waits_for_nobody_in_particular() -> None:
    for elr in ((), (2,)):
        assert standing(AGGRESSIVE, MANAGED, elr=elr, alive=(3,)) is Standing.RECOVERY
        assert standing(AGGRESSIVE, NOT_MANAGED, elr=elr) is Standing.ANYBODY


@EVERY_WAY
def test_with_none_a_partition_without_eligible_replicas_waits_for_an_operator(is_managed: bool) -> None:
    found = standing(NONE, is_managed, last_known_elr=(1, 2), last_known_leader=1, alive=(1, 2, 3))
    assert found is Standing.OPERATOR


def test_a_balanced_recovery_waits_for_all_replicas_that_were_eligible_last() -> None:
    for alive, expected in (((1, 3), Standing.LAST_ELIGIBLE), ((1, 2), Standing.RECOVERY)):
        found = standing(BALANCED, MANAGED, last_known_elr=(1, 2), last_known_leader=1, alive=alive)
        assert found is expected
        assert found.is_recovery


def test_a_balanced_recovery_never_begins_if_last_known_elr_is_unknown() -> None:
    found = standing(BALANCED, MANAGED, last_known_leader=1, alive=(1, 2, 3))
    assert found is Standing.OPERATOR
    assert not found.is_recovery


def test_without_a_manager_balanced_waits_for_the_last_leader() -> None:
    found = standing(BALANCED, NOT_MANAGED, last_known_elr=(1, 2), last_known_leader=1)
    assert found is Standing.LAST_LEADER
    assert not found.is_recovery
    assert standing(BALANCED, NOT_MANAGED, last_known_elr=(1, 2)) is Standing.OPERATOR, "who led last is not known"


def test_brokers_that_are_no_longer_registered_are_not_waited_for() -> None:
    for state in (
        standing(NONE, NOT_MANAGED, isr=(2,), registered=(1, 3)),
        standing(NONE, NOT_MANAGED, elr=(2,), registered=(1, 3)),
        standing(BALANCED, MANAGED, last_known_elr=(1, 2), registered=(1, 3)),
        standing(BALANCED, NOT_MANAGED, last_known_leader=2, registered=(1, 3)),
    ):
        assert state is Standing.OPERATOR


def found_in(cluster: Cluster, is_managed: bool) -> list[Standing]:
    return [standing for _, standing in standings(cluster.image, cluster.controller.static, is_managed)]


def test_the_partitions_of_a_cluster_are_judged_by_its_image() -> None:
    """Of one partition that is led, and one that nobody leads, only the other one is told."""
    cluster = with_elr()
    cluster.join(3)
    cluster.create("led", (3,))
    assert found_in(cluster, NOT_MANAGED) == []
    cluster.fence(2)
    cluster.fence(1)
    assert found_in(cluster, NOT_MANAGED) == [Standing.ELIGIBLE]
    cluster.register(2)
    cluster.register(1)
    assert found_in(cluster, NOT_MANAGED) == [Standing.LAST_LEADER]
    assert found_in(cluster, MANAGED) == [Standing.LAST_ELIGIBLE]
    assert {at.topic_id for at, _ in standings(cluster.image, {}, MANAGED)} == {cluster.image.topic_ids["t"]}
    assert [s for _, s in standings(cluster.image, {"unclean.recovery.strategy": "None"}, MANAGED)] == [
        Standing.OPERATOR
    ]
    cluster.ask(UnregisterBrokerRequest(broker_id=1))
    assert found_in(cluster, MANAGED) == [Standing.OPERATOR]
