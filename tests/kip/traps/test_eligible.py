"""Traps T2–T13 (but T4): who may lead, what makes a replica eligible, and what ends it. Each test is named by its trap.

The numbers are those of `docs/protocol.md`, which says what went wrong where.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sim.play import Play
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Report
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.controller.partition import Assignment, Election, LastResort, Rules, Wish, plan_change
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, RECOVERED, RECOVERING, TOPIC_RESOURCE, Image, Partition, merged
from strandline.metadata.losses import UNKNOWN
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

E = ErrorCode
ELR_ON = r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
MIN_ISR = "min.insync.replicas"
TOPIC, ALL_BROKERS, ONE_BROKER = (TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, ""), (BROKER_RESOURCE, "1")


def with_elr(brokers: int = 3, **static: Any) -> Cluster:
    cluster = Cluster(brokers=brokers, static={MIN_ISR: 2, **static})
    cluster.controller.write([ELR_ON], cluster.now)
    return cluster


def set_config(
    cluster: Cluster, where: tuple[int, str], value: str, validate_only: bool = False, key: str = MIN_ISR
) -> Any:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=where[0], resource_name=where[1], configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (answer,) = cluster.ask(request, 1).responses
    return answer


def replayed(records: list[Any]) -> Image:
    """What a broker has that has followed the metadata log."""
    image = Image()
    image.apply_all(records)
    return image


# --- min ISR and eligibility


@pytest.mark.parametrize("where", [TOPIC, ALL_BROKERS], ids=["of the topic", "of the cluster"])
def test_t2_a_new_min_isr_ends_eligibility_in_the_very_batch_that_changes_it(where: tuple[int, str]) -> None:
    cluster = with_elr(2)
    cluster.create("t", (1, 2))
    cluster.fence(2)
    assert cluster.partition("t").elr == (2,)
    before = len(cluster.log.batches)
    assert set_config(cluster, where, "1").error_code == E.NONE
    (batch,) = cluster.log.batches[before:]
    assert [type(record) for record in batch[:2]] == [r.ConfigRecord, r.PartitionChangeRecord]
    assert cluster.partition("t").elr == ()
    cluster.fence(1)
    assert cluster.partition("t").leader == NOBODY, "1 may have committed alone: 2 must not be believed"


@pytest.mark.parametrize("where", [TOPIC, ALL_BROKERS], ids=["of the topic", "of the cluster"])
def test_t2_a_leader_that_has_not_heard_of_the_new_min_isr_changes_no_isr(where: tuple[int, str]) -> None:
    """Its answer would overtake the log, and it would commit by the old number past who is eligible by the new one."""
    cluster = Cluster(brokers=2, static={MIN_ISR: 1})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2))
    late = cluster.proposal("t", (1,))
    assert set_config(cluster, where, "2").error_code == E.NONE
    (row,) = cluster.ask(late, 3).topics[0].partitions
    assert row.error_code == E.INVALID_UPDATE_VERSION
    assert cluster.partition("t").isr == (1, 2)


def test_t3_brokers_clear_an_elr_as_the_controller_does_and_touch_only_what_had_one() -> None:
    cluster = with_elr()
    cluster.create("t", (1, 2), (1, 3))
    cluster.fence(2)
    assert (cluster.partition("t", 0).elr, cluster.partition("t", 1).elr) == ((2,), ())
    before = cluster.partition("t", 0), cluster.partition("t", 1)
    cluster.controller.write([r.ClearElrRecord(topic_name="t")], cluster.now)  # as a log that Kafka began may have
    assert cluster.partition("t", 0).elr == ()
    assert cluster.partition("t", 0).partition_epoch == before[0].partition_epoch + 1
    assert cluster.partition("t", 1) is before[1]
    broker = replayed(cluster.log.records)
    assert broker.topics == cluster.image.topics
    assert replayed(broker.records()).topics == cluster.image.topics, "what a snapshot says"


def test_t5_a_machine_that_lost_its_tail_in_a_power_cut_is_neither_in_sync_nor_eligible() -> None:
    """End to end, over the marker on the disk, the registration and the election: broker 1 loses what it had not made
    durable, and is the only one that is alive when the leader is asked for."""
    play = Play(min_insync_replicas="3")
    controller = play.world.controller()
    assert controller is not None and controller.node is not None
    active = controller.node.controller
    assert active is not None
    controller.run("elr is switched on", lambda node, now: active.write([ELR_ON], now))
    play.run(500)
    victim = next(machine for machine in play.machines if machine not in (play.leader(), controller))
    other = next(machine for machine in play.machines if machine not in (victim, controller))
    me = victim.node_id

    def partition() -> Partition:
        found = play.world.laws.metadata.image.partition(play.at())
        assert found is not None
        return found

    victim.kill()
    play.until("it is eligible, for so far nothing says that its log lost anything", lambda: me in partition().elr)
    victim.power_cut()
    victim.start()
    play.until("it registers anew", lambda: me not in partition().elr)
    assert me not in partition().isr
    assert me in partition().last_known_elr
    assert partition().leader in (controller.node_id, other.node_id)
    play.until("it catches up and is in sync again", lambda: me in partition().isr)
    play.end()


@pytest.mark.parametrize("is_clean", [False, True])
def test_t6_what_a_registration_takes_away_goes_through_the_builder_and_opens_epochs(is_clean: bool) -> None:
    cluster = with_elr()
    cluster.create("led", (1, 2, 3))
    cluster.create("followed", (2, 1, 3))
    led, followed = cluster.partition("led"), cluster.partition("followed")
    cluster.disconnect(cluster.connection(1))
    previous = cluster.epochs[1] if is_clean else -1
    assert cluster.register(1, previous=previous).error_code == E.NONE  # within its session: nobody had fenced it
    new = cluster.partition("led")
    assert (new.isr, new.leader) == ((2, 3), 2)
    assert (new.leader_epoch, new.partition_epoch) == (led.leader_epoch + 1, led.partition_epoch + 1)
    new = cluster.partition("followed")
    assert (new.isr, new.leader) == ((2, 3), 2)
    assert (new.leader_epoch, new.partition_epoch) == (followed.leader_epoch, followed.partition_epoch + 1)


# --- elections


def warnings(cluster: Cluster) -> list[str]:
    found = [effect.text for effect in cluster.effects if isinstance(effect, Report) and "unclean" in effect.text]
    cluster.effects = []
    return found


def test_t7_a_leader_from_the_elr_or_from_the_end_of_a_reassignment_was_elected_cleanly() -> None:
    cluster = with_elr(4, **{"unclean.recovery.strategy": "Aggressive"})
    cluster.create("t", (1, 2))
    for node in (2, 1):
        cluster.fence(node)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (NOBODY, ())
    cluster.beat(2)
    new = cluster.partition("t")
    assert (new.leader, new.isr, new.leader_recovery_state) == (2, (2,), RECOVERED)
    cluster.create("moved", (3, 4))
    at = cluster.at("moved")
    change = r.PartitionChangeRecord(
        partition_id=0, topic_id=at.topic_id, replicas=(2, 3, 4), adding_replicas=(2,), removing_replicas=(3, 4)
    )
    cluster.controller.write([change], cluster.now)
    set_config(cluster, (TOPIC_RESOURCE, "moved"), "1")
    cluster.alter("moved", (2, 3, 4))
    new = cluster.partition("moved")
    assert (new.leader, new.isr, new.leader_recovery_state) == (2, (2,), RECOVERED)
    assert warnings(cluster) == []


def test_t7_an_unclean_election_says_so_itself() -> None:
    cluster = Cluster(brokers=2, static={"unclean.recovery.strategy": "Aggressive"})
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    cluster.fence(1)
    assert cluster.partition("t").leader_recovery_state == RECOVERING
    assert len(warnings(cluster)) == 1


def a_partition(isr: tuple[int, ...], elr: tuple[int, ...], known: tuple[int, ...], leader: int) -> Partition:
    def nodes(ids: tuple[int, ...]) -> tuple[NodeId, ...]:
        return tuple(map(NodeId, ids))

    return Partition(
        replicas=nodes((1, 2, 3)),
        directories=(Uuid(bytes(16)),) * 3,
        isr=nodes(isr),
        leader=NodeId(leader),
        leader_epoch=LeaderEpoch(5),
        partition_epoch=PartitionEpoch(9),
        elr=nodes(elr),
        last_known_elr=nodes(known),
    )


AT = TopicIdPartition(Uuid(b"t" * 16), 0)


@pytest.mark.parametrize("alive", [(), (3,), (2, 3)], ids=str)
def test_t8_no_path_elects_a_broker_that_is_not_alive(alive: tuple[int, ...]) -> None:
    """Every state, every kind of election, with and without ELR, unclean allowed or not."""
    sets = [((1,), ()), ((1,), (2,)), ((), (1,)), ((), (1, 2)), ((), ()), ((1, 2, 3), ())]
    elected = 0
    for (isr, elr), known, election, resort, on in product(sets, ((), (3,)), Election, LastResort, (False, True)):
        if set(known) & {*isr, *elr}:
            continue
        old = a_partition(isr, elr, known, NOBODY)
        for wish in (Wish(election=election), Wish(isr=(), election=election)):
            change = plan_change(AT, old, wish, Rules(lambda node, _: node in alive, resort, 2, on, 0))
            if change is not None and change.leader >= 0:
                elected += 1
                assert change.leader in alive
    assert bool(elected) == bool(alive), "and the living are elected where they may be"


@pytest.mark.parametrize("how", ["out of the ISR", "out of the ELR", "as the last resort"])
def test_t8_a_broker_that_shuts_down_is_not_elected_either(how: str) -> None:
    """It is there, for it still leads another partition; and it is the only one that could lead this one."""
    unclean = {"unclean.leader.election.enable": how == "as the last resort"}
    cluster = with_elr(2, **unclean) if how == "out of the ELR" else Cluster(brokers=2, static=unclean)
    cluster.create("other", (2,))
    cluster.create("t", (1, 2))
    if how == "as the last resort":
        cluster.alter("t", (1,))
    if how == "out of the ISR":
        cluster.fence(1)
    cluster.beat(2, want_shut_down=True)
    cluster.fence(1)
    assert not cluster.image.brokers[NodeId(2)].fenced
    assert cluster.image.brokers[NodeId(2)].in_controlled_shutdown
    assert cluster.partition("t").leader == NOBODY


# --- feature, no default, no needless record


def test_t9_rules_cannot_be_made_without_saying_whether_elr_is_on() -> None:
    fields: dict[str, Any] = {
        "is_acceptable": bool,
        "last_resort": LastResort.NOBODY,
        "min_isr": 1,
        "is_elr_enabled": False,
        "now": 0,
    }
    Rules(**fields)
    for name in fields:
        with pytest.raises(TypeError):
            Rules(**{key: value for key, value in fields.items() if key != name})


def change_isr(cluster: Cluster) -> None:
    cluster.alter("t", (1, 2, 4))


def fence_and_return(cluster: Cluster) -> None:
    cluster.fence(4)
    cluster.join(4)


def register_again(cluster: Cluster) -> None:
    assert cluster.ask(cluster.registration(4, life=1, rack="moved"), version=4).error_code == E.NONE


def lead_by_preference(cluster: Cluster) -> None:
    for _ in range(70):
        cluster.wait(5_000)
        for node in (1, 2, 3, 4):
            cluster.beat(node)


def allow_unclean(cluster: Cluster) -> None:
    config = AlterableConfig(name="unclean.leader.election.enable", config_operation=0, value="true")
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="t", configs=(config,))
    cluster.ask(IncrementalAlterConfigsRequest(resources=(resource,)), 1)


EVENTS: list[Callable[[Cluster], None]] = [
    change_isr,
    fence_and_return,
    register_again,
    lead_by_preference,
    allow_unclean,
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_t9_no_event_forgets_the_elr(event: Callable[[Cluster], None]) -> None:
    cluster = with_elr(4, **{MIN_ISR: 4})
    cluster.create("t", (1, 2, 3, 4))
    cluster.fence(1)
    cluster.join(1)
    cluster.alter("t", (1, 2, 3, 4))
    cluster.alter("t", (1, 2))
    old = cluster.partition("t")
    assert (old.leader, old.elr) == (2, (3, 4))
    event(cluster)
    assert 3 in cluster.partition("t").elr
    if event is lead_by_preference:
        assert cluster.partition("t").leader == 1


def test_t9_a_leader_that_is_elected_from_the_elr_is_no_longer_in_it() -> None:
    cluster = with_elr()
    cluster.create("t", (1, 2))
    cluster.fence(2)
    cluster.fence(1)
    assert cluster.partition("t").elr == (1, 2)
    cluster.beat(2)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((2,), (1,))


def test_t9_a_record_that_leaves_a_replica_in_isr_and_elr_is_found() -> None:
    cluster = with_elr()
    cluster.create("t", (1, 2))
    image = replayed(cluster.log.records)
    image.check()
    at = cluster.at("t")
    image.apply(r.PartitionChangeRecord(partition_id=0, topic_id=at.topic_id, eligible_leader_replicas=(2,)))
    with pytest.raises(AssertionError):
        image.check()


def test_t10_last_known_elr_is_kept_until_there_is_a_leader() -> None:
    """Who led last, set when the leader goes; and who was eligible last, set when they lose their tails. Nothing clears
    them that leaves nobody in the lead."""
    cluster = with_elr()
    cluster.create("t", (1, 2))
    set_config(cluster, ALL_BROKERS, "None", key="unclean.recovery.strategy")
    known: list[tuple[int, ...]] = []

    def note() -> None:
        partition = cluster.partition("t")
        assert (partition.leader, partition.last_known_leader) == (NOBODY, 1)
        known.append(tuple(sorted(partition.last_known_elr)))

    cluster.fence(2)
    cluster.fence(1)
    note()
    cluster.register(1)
    note()
    assert set_config(cluster, TOPIC, "1").error_code == E.NONE  # nobody is eligible by the old value any more
    note()
    cluster.register(2)
    assert set_config(cluster, ALL_BROKERS, "3").error_code == E.NONE
    note()
    cluster.beat(1)
    cluster.fence(1)
    cluster.register(1)
    note()
    assert known == [(), *[(1,)] * 2, *[(1, 2)] * 2]
    allow_unclean(cluster)
    cluster.beat(2)
    partition = cluster.partition("t")
    assert (partition.leader, partition.last_known_elr, partition.last_known_leader) == (2, (), NOBODY)


def test_t11_metadata_version_alone_makes_nobody_eligible() -> None:
    cluster = Cluster(brokers=2, static={MIN_ISR: 2}, elr=False)
    assert cluster.image.features["metadata.version"] >= 26  # as new as clusters that have ELR by default
    cluster.create("t", (1, 2))
    cluster.fence(2)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), ())
    cluster.join(2)
    cluster.alter("t", (1, 2))
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.fence(2)
    assert cluster.partition("t").elr == (2,)


def test_t12_the_last_member_that_cannot_leave_makes_no_record() -> None:
    cluster = Cluster(brokers=2, elr=False)
    cluster.create("t", (1, 2))
    cluster.fence(2)
    cluster.fence(1)
    old = cluster.partition("t")
    assert (old.leader, old.isr) == (NOBODY, (1,))
    cluster.register(1)  # a new incarnation would leave the ISR, if another member stayed
    before = len(cluster.log.records)
    cluster.register(1)
    assert cluster.partition("t") is old
    (record,) = cluster.log.records[before:]
    assert isinstance(record, r.RegisterBrokerRecord)


@pytest.mark.parametrize("validate_only", [False, True])
def test_t13_min_isr_of_one_broker_is_refused_with_the_reason_also_when_only_asked(validate_only: bool) -> None:
    cluster = with_elr()
    before = len(cluster.log.records)
    answer = set_config(cluster, ONE_BROKER, "1", validate_only)
    assert answer.error_code == E.INVALID_CONFIG
    assert answer.error_message == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    assert len(cluster.log.records) == before
    assert set_config(cluster, ALL_BROKERS, "1", validate_only).error_code == E.NONE, "the place for the value"
    assert (len(cluster.log.records) == before) == validate_only


# --- the last known leader


def test_l8_the_last_known_leader_is_elected_by_strategy_alone_and_uncleanly() -> None:
    """Nobody is in sync or eligible. With None nobody leads; with Balanced, and nothing to recover with, who led last
    does, and it is on record that records may be lost."""
    cluster = with_elr()
    cluster.create("t", (1, 2))
    set_config(cluster, (TOPIC_RESOURCE, "t"), "None", key="unclean.recovery.strategy")
    for node in (2, 1):
        cluster.fence(node)
        cluster.register(node)
    cluster.beat(1)
    assert cluster.partition("t").leader == NOBODY
    assert cluster.partition("t").losses == ()
    set_config(cluster, (TOPIC_RESOURCE, "t"), "Balanced", key="unclean.recovery.strategy")
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), RECOVERING)
    (loss,) = partition.losses
    assert (loss.replica, loss.certainty, loss.new_epoch) == (1, UNKNOWN, partition.leader_epoch)


def test_l8_the_last_leader_waits_for_an_eligible_replica() -> None:
    cluster = with_elr()
    cluster.create("t", (1, 2))
    cluster.fence(2)
    cluster.fence(1)
    cluster.register(1)
    cluster.beat(1)
    assert cluster.partition("t").leader == NOBODY, "2 is eligible, and may come back"
    cluster.beat(2)
    assert (cluster.partition("t").leader, cluster.partition("t").leader_recovery_state) == (2, RECOVERED)


def ids(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(number) for number in numbers)


def test_l9_no_leader_is_never_recorded_as_the_last_leader() -> None:
    """A partition without a leader loses the replica that led last, and another one that never did."""
    rules = Rules(lambda *_: False, LastResort.NOBODY, 2, True, 0)
    old = replace(a_partition((), (2,), (3,), NOBODY), last_known_leader=NodeId(1))
    for left, last in ((ids(1, 2), 1), (ids(2, 3), NOBODY)):
        assignment = Assignment(left, (), (), tuple(Uuid(bytes(16)) for _ in left), original=left)
        change = plan_change(AT, old, Wish(assignment=assignment), rules)
        assert change is not None
        assert merged(old, change).last_known_leader == last
