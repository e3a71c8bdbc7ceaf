"""KIP-966, sections "Leader election", "Unclean recovery" and "Delivery plan": who leads, and what is waited for.

Every row of both lists is played with a controller. What a recovery does then is in `test_kip_966_recovery.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from tests.kip.traps.test_eligible import ALL_BROKERS, MIN_ISR, TOPIC, set_config
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY
from strandline.controller.partitions.standing import Standing, standings
from strandline.metadata.image import RECOVERED, RECOVERING
from strandline.metadata.records import FeatureLevelRecord
from strandline.metadata.strategy import Strategy

E = ErrorCode
ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
STRATEGY, UNCLEAN = "unclean.recovery.strategy", "unclean.leader.election.enable"
NONE, BALANCED, AGGRESSIVE = Strategy


def made(strategy: Strategy | None = None, is_managed: bool = False, **static: object) -> Cluster:
    """t has the replicas 1, 2 and 3, and min ISR is 2."""
    given = {} if strategy is None else {STRATEGY: strategy.value}
    known = {key.replace("_", "."): value for key, value in static.items()}
    cluster = Cluster(brokers=3, static={MIN_ISR: 2, **given, **known}, is_recovery_managed=is_managed)
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2, 3))
    return cluster


# --- what may have happened to the members of ISR and ELR; 1 led last


def other_members(cluster: Cluster) -> None:
    """1 goes; 2 and 3 are in sync."""
    cluster.fence(1)


def unfenced_eligible(cluster: Cluster) -> None:
    """1 goes, the last one in sync; 2 is eligible and there, 3 is not eligible."""
    cluster.alter("t", (1, 2))
    cluster.alter("t", (1,))
    cluster.fence(1)


def fenced_eligible(cluster: Cluster) -> None:
    """1 and 2 are eligible and gone; 3 is there."""
    cluster.alter("t", (1, 2))
    cluster.fence(2)
    cluster.fence(1)


def fenced_eligible_beside_who_led_last(cluster: Cluster) -> None:
    """2 is eligible and gone; 1 led last, had an unclean shutdown, and is back."""
    cluster.alter("t", (1, 2))
    cluster.fence(2)
    cluster.fence(1)
    cluster.register(1)
    cluster.beat(1)


def nobody_eligible(cluster: Cluster) -> None:
    """1 and 2 were eligible, and have had unclean shutdowns; 3 is there."""
    cluster.alter("t", (1, 2))
    for node in (2, 1):
        cluster.fence(node)
    for node in (2, 1):
        cluster.register(node)


def last_eligible_are_back(cluster: Cluster) -> None:
    nobody_eligible(cluster)
    cluster.beat(2)
    cluster.beat(1)


def some_of_them_are_back(cluster: Cluster) -> None:
    """Not who led last."""
    nobody_eligible(cluster)
    cluster.beat(2)


ISR_MEMBER, ELR_MEMBER, UNCLEANLY = "an ISR member leads", "an ELR member leads", "a replica leads, uncleanly"
RECOVERY = Standing.RECOVERY


def outcome(cluster: Cluster) -> str | Standing:
    partition = cluster.partition("t")
    if partition.leader == NOBODY:
        config = cluster.controller.config
        ((at, standing),) = standings(cluster.image, cluster.controller.static, config.is_recovery_managed)
        cluster.wait(0)
        assert (at in cluster.controller.recoveries.partitions) == (standing is RECOVERY), "what is said is done"
        return standing
    if partition.leader_recovery_state == RECOVERING:
        assert partition.isr == (partition.leader,)
        return UNCLEANLY
    return ISR_MEMBER if cluster.controller.counts.eligible_elections == 0 else ELR_MEMBER


class Row(NamedTuple):
    text: str
    situation: Callable[[Cluster], None]
    none: str | Standing
    balanced: str | Standing
    aggressive: str | Standing


DECISIONS = [  # of KIP-966 where the Unclean Recovery Manager is on, in its order
    Row("1. other ISR members: one of them", other_members, ISR_MEMBER, ISR_MEMBER, ISR_MEMBER),
    Row("2. unfenced ELR members: one of them", unfenced_eligible, ELR_MEMBER, ELR_MEMBER, ELR_MEMBER),
    Row("3. fenced ELR members", fenced_eligible, Standing.ELIGIBLE, Standing.ELIGIBLE, RECOVERY),
    Row("3. … and who led last", fenced_eligible_beside_who_led_last, Standing.ELIGIBLE, Standing.ELIGIBLE, RECOVERY),
    Row("4. no ELR members", nobody_eligible, Standing.OPERATOR, Standing.LAST_ELIGIBLE, RECOVERY),
    Row("4. … LastKnownELR in part", some_of_them_are_back, Standing.OPERATOR, Standing.LAST_ELIGIBLE, RECOVERY),
    Row("4. … all LastKnownELR unfenced", last_eligible_are_back, Standing.OPERATOR, RECOVERY, RECOVERY),
]
DELIVERY_PLAN = [  # the first phase: Balanced is what unclean.leader.election.enable=false means, Aggressive true
    Row("other ISR members: one of them", other_members, ISR_MEMBER, ISR_MEMBER, ISR_MEMBER),
    Row("other unfenced ELR members: one of them", unfenced_eligible, ELR_MEMBER, ELR_MEMBER, ELR_MEMBER),
    Row("fenced ELR members", fenced_eligible, Standing.ELIGIBLE, Standing.ELIGIBLE, UNCLEANLY),
    Row(
        "fenced ELR members, and who led last is back",
        fenced_eligible_beside_who_led_last,
        Standing.ELIGIBLE,
        Standing.ELIGIBLE,
        UNCLEANLY,
    ),
    Row("no ELR members", nobody_eligible, Standing.OPERATOR, Standing.LAST_LEADER, UNCLEANLY),
    Row(
        "no ELR members, who led last is away",
        some_of_them_are_back,
        Standing.OPERATOR,
        Standing.LAST_LEADER,
        UNCLEANLY,
    ),
    Row("no ELR members, who led last is back", last_eligible_are_back, Standing.OPERATOR, UNCLEANLY, UNCLEANLY),
]


def decided(row: Row, strategy: Strategy, is_managed: bool) -> str | Standing:
    cluster = made(strategy, is_managed)
    row.situation(cluster)
    return outcome(cluster)


@pytest.mark.parametrize("row", DECISIONS, ids=lambda row: row.text)
def test_the_decision_is_made_in_the_order_of_the_kip(row: Row) -> None:
    found = [decided(row, strategy, is_managed=True) for strategy in (NONE, BALANCED, AGGRESSIVE)]
    assert found == [row.none, row.balanced, row.aggressive]


@pytest.mark.parametrize("row", DELIVERY_PLAN, ids=lambda row: row.text)
def test_while_no_recovery_is_managed_the_delivery_plan_decides(row: Row) -> None:
    found = [decided(row, strategy, is_managed=False) for strategy in (NONE, BALANCED, AGGRESSIVE)]
    assert found == [row.none, row.balanced, row.aggressive]


@pytest.mark.parametrize("is_managed", [True, False], ids=["managed", "not managed"])
@pytest.mark.parametrize("strategy", [NONE, BALANCED])
def test_the_first_eligible_replica_to_be_unfenced_leads(strategy: Strategy, is_managed: bool) -> None:
    for first in (1, 2):
        cluster = made(strategy, is_managed)
        fenced_eligible(cluster)
        cluster.beat(first)
        partition = cluster.partition("t")
        assert (partition.leader, partition.leader_recovery_state) == (first, RECOVERED)
        assert partition.losses == ()


def test_the_last_leader_leads_once_it_is_unfenced_though_it_lost_its_tail_and_that_is_on_record() -> None:
    """Delivery plan: no ELR members, unclean.leader.election.enable false."""
    cluster = made(unclean_leader_election_enable=False)
    some_of_them_are_back(cluster)
    assert outcome(cluster) is Standing.LAST_LEADER
    cluster.beat(1)
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), RECOVERING)
    assert len(partition.losses) == 1


def test_an_unclean_leader_stands_alone_and_nobody_is_eligible_by_the_log_of_before() -> None:
    cluster = made(AGGRESSIVE)
    fenced_eligible(cluster)
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (3, (3,), (), ())
    assert partition.last_known_leader == NOBODY


# --- the strategy


def test_balanced_is_the_default() -> None:
    assert made().controller.basis(made().now).strategy(made().image.topics[made().at("t").topic_id]) is BALANCED
    cluster = made(is_managed=True)
    nobody_eligible(cluster)
    assert outcome(cluster) is Standing.LAST_ELIGIBLE


@pytest.mark.parametrize(("enabled", "means"), [("true", AGGRESSIVE), ("false", BALANCED)])
@pytest.mark.parametrize("where", [TOPIC, ALL_BROKERS], ids=["of a topic", "of all brokers"])
def test_the_deprecated_key_is_mapped(enabled: str, means: Strategy, where: tuple[int, str]) -> None:
    """True means Aggressive, false Balanced; here against a file that says None."""
    cluster = made(NONE, is_managed=True)
    nobody_eligible(cluster)
    assert outcome(cluster) is Standing.OPERATOR
    assert set_config(cluster, where, enabled, key=UNCLEAN).error_code == E.NONE
    assert outcome(cluster) is (RECOVERY if means is AGGRESSIVE else Standing.LAST_ELIGIBLE)


LEVELS = [
    ({}, {}, BALANCED),
    ({STRATEGY: "None"}, {}, NONE),
    ({STRATEGY: "None"}, {UNCLEAN: "true"}, AGGRESSIVE),
    ({UNCLEAN: "true"}, {STRATEGY: "None"}, NONE),
    ({UNCLEAN: "true"}, {UNCLEAN: "false"}, BALANCED),
    ({UNCLEAN: "true", STRATEGY: "None"}, {}, NONE),
    ({}, {UNCLEAN: "true", STRATEGY: "Balanced"}, BALANCED),
]


@pytest.mark.parametrize(("of_all", "of_topic", "means"), LEVELS, ids=str)
def test_the_nearest_level_decides_and_on_one_level_the_strategy(
    of_all: dict[str, str], of_topic: dict[str, str], means: Strategy
) -> None:
    cluster = made()
    for where, keys in ((ALL_BROKERS, of_all), (TOPIC, of_topic)):
        for key, value in keys.items():
            assert set_config(cluster, where, value, key=key).error_code == E.NONE
    topic = cluster.image.topics[cluster.at("t").topic_id]
    assert cluster.controller.basis(cluster.now).strategy(topic) is means


@pytest.mark.parametrize("value", ["Sometimes", "", "balanced "])
def test_there_are_three_strategies(value: str) -> None:
    assert set_config(made(), TOPIC, value, key=STRATEGY).error_code == E.INVALID_CONFIG
