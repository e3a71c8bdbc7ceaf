"""Clusters with Eligible Leader Replicas (KIP-966): what they survive, and what the simulator forbids them."""

import re
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.sim.play import SETTINGS, Play

from strandline.base.ids import NOBODY, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.metadata import records as r
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY
from strandline.metadata.features import ELR_FEATURE, METADATA_VERSION
from strandline.metadata.image import RECOVERING, Image, Partition
from strandline.metadata.losses import loss_of
from strandline.sim import loss_ledger
from strandline.sim.laws.partitions.eligible import Eligible
from strandline.sim.runs.plan import draw_plan, has_elr
from strandline.sim.simulation import World
from strandline.sim.world.options import Options
from strandline.sim.world.violation import Violation


def last_standing(play: Play) -> None:
    """The followers stop in order, one after another; then the leader, alone in the ISR, loses its power."""
    leader = play.leader()
    followers = [machine for machine in play.machines if machine is not leader]
    followers.sort(key=lambda machine: machine is play.world.controller())
    for machine in followers:
        machine.shut_down()
        play.until("it has stopped", lambda machine=machine: not machine.is_running)  # type: ignore[misc]
        play.run(300)
    leader.power_cut()
    play.run(200)
    for machine in (leader, *followers):
        machine.start()
        play.run(300)


def test_the_last_replica_standing_loses_its_power_and_nothing_is_lost() -> None:
    play = Play(options=Options(elr=True, settings=SETTINGS))
    last_standing(play)
    play.heal()
    assert play.world.seen["elected: eligible"] > 0
    assert not play.world.damage.exceeded
    play.end()


def test_without_elr_it_leads_again_with_what_is_left() -> None:
    play = Play(options=Options(settings=SETTINGS))
    leader = play.leader()
    last_standing(play)
    play.heal()
    assert play.leader() is leader
    assert play.world.damage.exceeded


def test_all_are_killed_at_once_and_the_last_leader_leads_again() -> None:
    play = Play(options=Options(elr=True, settings=SETTINGS))
    for machine in play.machines:
        machine.kill()
    for machine in play.machines:
        machine.start()
    play.until("somebody leads", lambda: play.world.why_not_led() is None)
    # Who registers first may hand its leadership over to a broker that is not known to be dead yet.
    found = re.findall(r"orders-0: leader (-?\d+), epoch", "\n".join(play.world.story))
    leaderless = max(at for at, leader in enumerate(found) if leader == "-1")
    assert found[leaderless - 1] == found[leaderless + 1]
    assert play.at() in play.world.damage.exceeded, "nobody can know that nothing was lost"
    play.heal()
    play.end()


def all_lose_power(play: Play) -> None:
    for machine in play.machines:
        machine.power_cut()
    for machine in play.machines:
        machine.start()
    play.heal()


def test_all_lose_their_power_and_what_is_gone_is_in_the_loss_ledger() -> None:
    play = Play(2, options=Options(elr=True, settings=SETTINGS))
    all_lose_power(play)
    assert play.at() in play.world.damage.exceeded
    play.end()


def test_a_loss_that_is_not_in_the_ledger_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(2, options=Options(elr=True, settings=SETTINGS))
    all_lose_power(play)
    monkeypatch.setattr(loss_ledger, "ranges", lambda world: {})
    with pytest.raises(Violation, match="lost-write"):
        play.end()


def test_the_feature_is_switched_off_and_on_while_replicas_are_eligible() -> None:
    play = Play(options=Options(elr=True, settings=SETTINGS))
    away = [machine for machine in play.machines if machine is not play.leader()][:1]
    for machine in away:
        machine.shut_down()
    play.admin.wish(lambda: play.admin.configure("orders", MIN_ISR_KEY, "3"))
    play.run(4000)
    for level in (0, 1):
        play.admin.wish(lambda level=level: play.admin.set_feature(ELR_FEATURE, level))  # type: ignore[misc]
        play.run(1000)
        assert play.world.laws.metadata.image.features.get(ELR_FEATURE, 0) == level
    for machine in away:
        machine.start()
    play.heal()
    play.end()


# --- the caution of gentle runs


def test_a_plan_with_elr_is_the_plan_without_and_more() -> None:
    seeds = [seed for seed in range(101, 160) if has_elr(seed)]
    assert 20 < len(seeds) < 50
    for seed in seeds:
        plan = draw_plan(seed)
        assert plan.options.elr
        assert draw_plan(seed) == plan
    assert not any(draw_plan(seed).options.elr for seed in range(1, 101)), "planted bugs are recorded with these"


# --- the laws

AT = TopicIdPartition(Uuid(b"t" * 16), 0)
DIRECTORY = Uuid(b"d" * 16)


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def partition(isr: Sequence[int], elr: Sequence[int] = (), known: Sequence[int] = (), leader: int = 1) -> Partition:
    return Partition(
        replicas=nodes(1, 2, 3),
        directories=(DIRECTORY,) * 3,
        isr=nodes(*isr),
        leader=NodeId(leader),
        leader_epoch=LeaderEpoch(4),
        partition_epoch=PartitionEpoch(7),
        elr=nodes(*elr),
        last_known_elr=nodes(*known),
        last_known_leader=NodeId(1) if leader == NOBODY else NOBODY,
    )


def image(*reborn: int) -> Image:
    """Brokers 1 to 3, min ISR 2. `reborn`: who has registered anew since."""
    made = Image()
    made.apply_all(
        [
            r.FeatureLevelRecord(name=METADATA_VERSION, feature_level=30),
            r.FeatureLevelRecord(name=ELR_FEATURE, feature_level=1),
            r.ConfigRecord(resource_type=4, resource_name="", name=MIN_ISR_KEY, value="2"),
            r.TopicRecord(name="t", topic_id=AT.topic_id),
        ]
    )
    for node in (1, 2, 3):
        made.apply(r.RegisterBrokerRecord(broker_id=node, broker_epoch=node + (100 if node in reborn else 0)))
    return made


LEADERLESS = partition((), elr=(2,), leader=-1)
CHANGES = [
    ("one leaves and stays eligible", partition((1, 2)), partition((1,), elr=(2,)), (), ""),
    ("one leaves for nothing", partition((1, 2)), partition((1,)), (), "for no reason"),
    ("one leaves with a new registration", partition((1, 2)), partition((1,), known=(2,)), (2,), ""),
    ("one leaves so and is forgotten", partition((1, 2)), partition((1,)), (2,), "not remembered"),
    ("an ISR that suffices has an ELR", partition((1,), elr=(2,)), partition((1, 3), elr=(2,)), (), "are eligible"),
    ("who led last is known", partition((1,), elr=(2,)), replace(LEADERLESS, elr=nodes(1, 2)), (), ""),
    (
        "who led last is forgotten",
        replace(LEADERLESS, elr=nodes(1, 2)),
        replace(LEADERLESS, elr=nodes(1, 2), last_known_leader=NOBODY),
        (),
        "1 led last",
    ),
    (
        "an election loses records and says nothing",
        replace(LEADERLESS, elr=(), last_known_elr=nodes(1, 2)),
        replace(partition((3,), leader=3), leader_recovery_state=RECOVERING),
        (),
        "the loss ledger does not say so",
    ),
    (
        "an election loses records and says so",
        replace(LEADERLESS, elr=(), last_known_elr=nodes(1, 2)),
        replace(
            partition((3,), leader=3),
            leader_recovery_state=RECOVERING,
            losses=(loss_of(NodeId(3), 3, 4, None, 0, "because"),),
        ),
        (),
        "",
    ),
]


@pytest.mark.parametrize(("title", "last", "new", "reborn", "why"), CHANGES, ids=[row[0] for row in CHANGES])
def test_what_a_change_of_isr_and_elr_may_be(
    title: str, last: Partition, new: Partition, reborn: tuple[int, ...], why: str
) -> None:
    world = World(1, Options())
    law = Eligible(world, world.laws.standing)
    law.looked(image())
    now = replace(new, partition_epoch=PartitionEpoch(last.partition_epoch + 1))
    if why:
        with pytest.raises(AssertionError, match=why):
            law.look("t-0", AT, image(*reborn), last, now)
    else:
        law.look("t-0", AT, image(*reborn), last, now)
