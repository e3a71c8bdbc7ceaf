"""Traps T14–T24: who is in sync, who holds the high watermark back, and when it moves. Each test is named by its
trap."""

import pytest
from tests.kip.traps.scene import LAG_MS, NOW, Leading, a_batch, following, nodes
from tests.unit.controller.cluster import Cluster
from tests.unit.replica.conftest import World

from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, NodeId, PartitionEpoch
from strandline.base.time import Instant
from strandline.metadata import records as r
from strandline.replica.hosting.follower import Next, Served
from strandline.replica.hosting.isr import PendingShrink
from strandline.replica.hosting.leader import Leader
from strandline.wire.messages.brokers.alter_partition import BrokerState

E = ErrorCode


# --- who may join


def test_t14_a_follower_that_caught_up_and_then_lost_its_log_is_not_let_in_by_the_proposal_from_before() -> None:
    """The six steps of KIP-903: the proposal is under way while the follower dies, is fenced, and registers anew."""
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    late = cluster.proposal("t", (1, 2))
    cluster.fence(2)
    cluster.join(2)
    (answer,) = cluster.ask(late, version=3).topics[0].partitions
    assert answer.error_code == E.INELIGIBLE_REPLICA
    assert cluster.partition("t").isr == (1,)
    assert cluster.alter("t", (1, 2)).error_code == E.NONE, "what it says of the new incarnation is believed"


def test_t14_only_a_broker_that_says_no_epoch_is_not_asked_for_it() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    for epoch, error in ((cluster.epochs[2] - 1, E.INELIGIBLE_REPLICA), (-1, E.NONE)):
        states = (BrokerState(broker_id=1), BrokerState(broker_id=2, broker_epoch=epoch))
        assert cluster.alter("t", (1, 2), new_isr_with_epochs=states).error_code == error


def test_t15_a_fetch_that_an_earlier_incarnation_left_behind_changes_nothing() -> None:
    leading = Leading(1, records=10)
    assert leading.fetch(2, 3, broker_epoch=20) is None
    before = leading.leader.followers[NodeId(2)]
    assert leading.fetch(2, 10, broker_epoch=12) == E.NOT_LEADER_OR_FOLLOWER
    assert leading.leader.followers[NodeId(2)] is before


def test_t15_the_proposal_names_the_incarnation_that_was_judged() -> None:
    """Eligible by the registration of the fetch; a newer registration ends that at once."""
    leading = Leading(1, records=10)
    leading.fetch(2, 10)
    leading.registered[NodeId(2)] = leading.broker(2, epoch=BrokerEpoch(20))
    assert leading.leader.propose_expansion(NodeId(2), leading.now) is None
    leading.fetch(2, 10, broker_epoch=20)
    pending = leading.leader.propose_expansion(NodeId(2), leading.now)
    assert pending is not None
    assert dict(pending.proposal)[NodeId(2)] == 20
    leading.registered[NodeId(2)] = leading.broker(2, epoch=BrokerEpoch(30))
    assert dict(pending.proposal)[NodeId(2)] == 20, "said as it was judged, for the controller to compare"


def test_t15_what_a_member_fetched_as_is_proposed_and_not_what_it_has_registered_as_since() -> None:
    leading = Leading(1, 3, records=10)
    leading.fetch(3, 10)
    leading.fetch(2, 10)
    leading.registered[NodeId(3)] = leading.broker(3, epoch=BrokerEpoch(30))
    pending = leading.leader.propose_expansion(NodeId(2), leading.now)
    assert pending is not None
    assert dict(pending.proposal) == {1: 11, 2: 12, 3: 13}


@pytest.mark.parametrize("state", [{"fenced": True}, {"in_controlled_shutdown": True}], ids=str)
def test_t16_a_leader_does_not_propose_a_broker_that_is_fenced_or_shuts_down(state: dict[str, bool]) -> None:
    leading = Leading(1, records=10)
    leading.fetch(2, 10)
    leading.registered[NodeId(2)] = leading.broker(2, **state)
    assert leading.leader.propose_expansion(NodeId(2), leading.now) is None
    leading.registered[NodeId(2)] = leading.broker(2)
    assert leading.leader.propose_expansion(NodeId(2), leading.now) is not None


def test_t16_a_controller_rejects_a_broker_that_is_fenced_or_shuts_down() -> None:
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3))
    cluster.create("led", (3, 1))
    cluster.fence(2)
    assert cluster.alter("t", (1, 2, 3)).error_code == E.INELIGIBLE_REPLICA
    cluster.beat(3, want_shut_down=True)
    assert cluster.image.brokers[NodeId(3)].in_controlled_shutdown
    assert cluster.alter("t", (1, 3)).error_code == E.INELIGIBLE_REPLICA
    assert cluster.partition("t").isr == (1,)


# --- who holds the high watermark back


def test_t17_a_caught_up_replica_that_may_not_join_does_not_hold_the_high_watermark() -> None:
    leading = Leading(1, 2)
    leading.fetch(2, 0)
    leading.fetch(3, 0)
    leading.append(5)
    leading.fetch(2, 5)
    assert leading.high_watermark == 0, "3 had everything a moment ago, and may be about to join"
    leading.registered[NodeId(3)] = leading.broker(3, fenced=True)
    leading.leader.advance(leading.now)
    assert leading.high_watermark == 5


def test_t17_an_isr_that_shrinks_opens_no_leader_epoch() -> None:
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3))
    cluster.alter("t", (1, 2))
    cluster.fence(2)
    new = cluster.partition("t")
    assert (new.isr, new.leader_epoch, new.partition_epoch) == ((1,), 0, 2)


@pytest.mark.parametrize(
    ("configured", "replicas", "isr", "is_enough"), [(3, 2, 2, True), (3, 2, 1, False), (5, 1, 1, True)]
)
def test_t19_min_isr_counts_no_more_replicas_than_there_are(
    configured: int, replicas: int, isr: int, is_enough: bool
) -> None:
    """By the leader and by the controller alike, and for each partition by its own replicas (L2)."""
    world = World()
    world.create(replicas=tuple(range(1, replicas + 1)), min_insync_replicas=str(configured))
    world.run(1_000)
    for node in range(isr + 1, replicas + 1):
        world.kill(NodeId(node))
    world.change(isr=tuple(range(1, isr + 1)))
    answer = world.produce(1)
    world.run(1_000)
    assert answer().error_code == (E.NONE if is_enough else E.NOT_ENOUGH_REPLICAS)
    cluster = Cluster(brokers=3, static={"min.insync.replicas": configured})
    cluster.controller.write([r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)], NOW)
    cluster.create("t", (1, 2, 3))
    own_replicas = tuple(range(1, replicas + 1))
    small = r.PartitionRecord(
        partition_id=1,
        topic_id=cluster.at("t").topic_id,
        replicas=own_replicas,
        isr=own_replicas,
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
    cluster.controller.write([small], NOW)
    for node in range(isr + 1, replicas + 1):
        cluster.fence(node)
    own = cluster.partition("t", 1)
    assert (len(own.isr), bool(own.elr)) == (isr, not is_enough)


@pytest.mark.parametrize("how", ["by the answer", "by metadata"])
def test_t20_acks_all_is_answered_with_the_change_that_commits_it_and_not_with_the_next_fetch(how: str) -> None:
    world = World()
    world.create()
    world.run(1_000)
    world.kill(NodeId(3))
    answer = world.produce(1, timeout_ms=500_000)
    world.run(10_000)
    assert answer() is None
    world.controller_answers = False
    world.run(40_000)
    assert len(world.held) == 1
    world.cut = set(nodes(2))  # nobody fetches any more
    assert answer() is None
    if how == "by the answer":
        world.answer_controller()
    else:
        world.change(isr=(1, 2))
    assert answer().error_code == E.NONE


def test_t21_the_gate_is_the_committed_isr_and_the_minimum_is_the_maximal_one() -> None:
    """KIP-966's own example: the ISR is 1 alone, 2 is eligible, and 3 is about to join."""
    leading = Leading(1, min_isr=2, records=5)
    leading.fetch(3, 5)
    pending = leading.leader.propose_expansion(NodeId(3), leading.now)
    assert pending is not None and leading.leader.isr.maximal == (1, 3)
    leading.leader.advance(leading.now)
    assert leading.high_watermark == 0, "committed, the ISR is still too small"
    leading.append(2)
    leading.leader.committed(nodes(1, 3), PartitionEpoch(1))
    leading.leader.advance(leading.now)
    assert leading.high_watermark == 5, "now the gate is open, and 3 is the minimum"


def test_t21_a_member_that_is_about_to_leave_still_counts() -> None:
    leading = Leading(1, 2, 3, min_isr=2, records=0)
    leading.fetch(2, 0)
    leading.now = Instant(NOW + LAG_MS + 1)
    leading.append(4)
    leading.fetch(2, 4)
    assert leading.leader.propose_shrink(leading.now) is not None
    leading.leader.advance(leading.now)
    assert leading.high_watermark == 0
    leading.leader.committed(nodes(1, 2), PartitionEpoch(1))
    leading.leader.advance(leading.now)
    assert leading.high_watermark == 4


def test_t21_a_refused_shrink_has_committed_nothing() -> None:
    leading = Leading(1, 2, records=0)
    leading.append(4)
    leading.now = Instant(NOW + LAG_MS + 1)
    pending = leading.leader.propose_shrink(leading.now)
    assert pending is not None
    leading.leader.advance(leading.now)
    leading.leader.refused(pending)
    leading.leader.advance(leading.now)
    assert (leading.high_watermark, leading.leader.isr.isr) == (0, (1, 2))


# --- the follower's high watermark


def test_t22_the_leaders_high_watermark_counts_only_after_the_cut_and_up_to_the_own_end() -> None:
    follower = following(records=10, high_watermark=3)
    answer = Served(E.NONE, high_watermark=9, log_start_offset=0, diverging_epoch=0, diverging_end=6)
    assert follower.served(follower.position(), answer, NOW) is Next.GO_ON
    assert (follower.high_watermark, follower.log.log_end_offset) == (3, 6)
    answer = Served(E.NONE, high_watermark=9, log_start_offset=0, records=a_batch(1, 6, 5))
    follower.served(follower.position(), answer, NOW)
    assert (follower.high_watermark, follower.log.log_end_offset) == (7, 7)


@pytest.mark.parametrize(("start", "before"), [(50, 4), (2, 9)], ids=["the leader starts later", "it starts earlier"])
def test_t23_after_a_whole_log_is_thrown_away_the_high_watermark_lies_within_the_new_one(
    start: int, before: int
) -> None:
    follower = following(records=10, high_watermark=before)
    follower.served(follower.position(), Served(E.OFFSET_OUT_OF_RANGE, log_start_offset=start), NOW)
    log = follower.log
    assert (log.log_start_offset, follower.high_watermark, log.log_end_offset) == (start, start, start)
    follower.check()


def test_t23_a_partial_cut_clamps_it_too() -> None:
    follower = following(records=6, high_watermark=6)
    answer = Served(E.NONE, high_watermark=6, log_start_offset=0, diverging_epoch=0, diverging_end=4)
    follower.served(follower.position(), answer, NOW)
    assert (follower.high_watermark, follower.log.log_end_offset) == (4, 4)


def test_t21_metadata_that_is_older_than_the_answer_changes_nothing() -> None:
    leading = Leading(1, 2, 3)
    assert leading.leader.committed(nodes(1), PartitionEpoch(2))
    assert not leading.leader.committed(nodes(1, 2), PartitionEpoch(1))
    assert not leading.leader.committed(nodes(1, 2), PartitionEpoch(2))
    assert leading.leader.isr.isr == (1,)


def test_t21_a_newcomer_counts_from_its_proposal_on_whatever_becomes_of_it() -> None:
    """The controller may have let it in already."""
    leading = Leading(1, records=5, high_watermark=5)
    leading.fetch(2, 5)
    assert leading.leader.propose_expansion(NodeId(2), leading.now) is not None
    leading.registered[NodeId(2)] = leading.broker(2, fenced=True)
    leading.append(3)
    assert leading.high_watermark == 5


def test_t21_after_a_refusal_that_may_be_none_the_proposal_stays_pending() -> None:
    world = World()
    world.create()
    world.run(1_000)
    world.kill(NodeId(3))
    answer = world.produce(1, timeout_ms=500_000)
    world.refuse_with = E.INVALID_UPDATE_VERSION
    world.run(2 * LAG_MS)
    hosted = world.nodes[NodeId(1)].host.partitions.named("t", 0)
    assert hosted is not None and isinstance(hosted.role, Leader)
    assert type(hosted.role.isr) is PendingShrink
    world.refuse_with = None
    world.run(2 * LAG_MS)
    assert answer() is None, "nothing is proposed over it until metadata says what was done"
    world.change(isr=(1, 2))
    assert answer().error_code == E.NONE


def test_t21_acks_all_is_judged_by_the_committed_isr() -> None:
    world = World()
    world.create(min_insync_replicas="2")
    world.run(1_000)
    world.change(isr=(1,))
    world.controller_answers = False
    world.produce(1, acks=1)
    world.run(3_000)
    assert world.held, "2 and 3 are about to join"
    assert world.produce(1)().error_code == E.NOT_ENOUGH_REPLICAS
    world.controller_answers = True
    world.answer_controller()
    world.run(3_000)
    answer = world.produce(1)
    world.run(1_000)
    assert answer().error_code == E.NONE


def test_t24_under_min_isr_acks_1_is_acknowledged_and_no_consumer_sees_it() -> None:
    """Not so before Kafka 3.7, and the reason why consumers seem stuck."""
    world = World()
    world.create(min_insync_replicas="2")
    world.run(1_000)
    for node in (2, 3):
        world.kill(NodeId(node))
    world.run(2 * LAG_MS)
    world.change(isr=(1,))
    for acks in (0, 1):
        world.produce(1, 2, acks=acks)
    world.run(2 * LAG_MS)  # nobody else counts any more
    assert world.row(1)[2:] == (0, 4, (1,))
    seen = world.consume(1, 0)()
    assert (seen.error_code, len(seen.records), seen.high_watermark) == (E.NONE, 0, 0)
    world.start(NodeId(2))
    world.run(3_000)
    assert world.row(1)[2:4] == (4, 4)
    assert world.consume(1, 0)().records
