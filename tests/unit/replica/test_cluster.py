"""Situations of a whole cluster: replication, acknowledgement, ISR changes, failover, truncation."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World, a_batch

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from strandline.replica import replicas
from strandline.replica.config import ReplicaConfig


def test_acks_all_is_answered_when_all_in_sync_replicas_have_the_records(world: Any) -> None:
    world.create()
    answer = world.produce(1, 3)
    world.run(1_000)
    assert answer().error_code == ErrorCode.NONE
    assert answer().base_offset == 0
    assert world.ends() == [3, 3, 3]


def test_followers_learn_the_high_watermark_soon_when_nothing_more_is_appended(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(60)
    assert [world.row(node)[2] for node in (1, 2, 3)] == [2, 2, 2]


def test_acks_all_waits_while_a_member_of_the_isr_is_silent(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.kill(3)
    answer = world.produce(1, timeout_ms=200_000)
    world.run(5_000)
    assert answer() is None
    assert world.row(1)[2] == 0
    world.run(60_000)  # the lag runs out, the controller agrees to the shrink
    assert answer().error_code == ErrorCode.NONE
    assert world.row(1)[4] == (1, 2)


def test_with_a_very_short_lag_there_is_something_to_do_only_while_a_follower_lacks_something() -> None:
    world = World(config=ReplicaConfig(lag_time_max_ms=1, fetch_wait_max_ms=1))
    world.create()
    tick(world, 50)
    leader = world.nodes[NodeId(1)]
    assert leader.next_task <= world.now, "laggards are looked for all the time"
    assert not leader.roles.may_shrink()
    world.kill(3)
    world.produce(1, timeout_ms=200_000)
    assert leader.roles.may_shrink() and leader.is_due(world.now)
    tick(world, 50)
    assert world.row(1)[4] == (1, 2)


def test_where_there_are_many_partitions_tasks_that_are_due_at_once_take_turns(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    node = world.nodes[1]

    def due() -> int:
        return sum(task.next <= world.now for task in node.tasks)

    def all_due() -> None:
        for number, task in enumerate(node.tasks):
            task.next = Instant(world.now - number)
        node.next_task = Instant(0)

    all_due()
    world.perform(1, node.expire(world.now))
    assert due() == 0, "these are few"
    monkeypatch.setattr(replicas, "TOGETHER_MAX", 0)
    all_due()
    last = node.tasks[-1]
    for left in range(len(node.tasks) - 1, -1, -1):
        world.perform(1, node.expire(world.now))
        assert due() == left
        assert last.next > world.now, "who has waited longest is the first"
        assert (node.deadline() <= world.now) == (left > 0)


def tick(world: World, span_ms: int) -> None:
    for _ in range(span_ms):
        world.now = Instant(world.now + 1)
        for node, one in list(world.nodes.items()):
            world.perform(node, one.expire(world.now))


def test_a_shrink_counts_only_once_the_controller_has_agreed(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.controller_answers = False
    world.kill(3)
    answer = world.produce(1, timeout_ms=200_000)
    world.run(100_000)
    assert len(world.held) == 1
    assert answer() is None
    world.answer_controller()
    assert answer().error_code == ErrorCode.NONE


def test_a_follower_that_is_back_enters_the_isr(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.kill(3)
    world.produce(1, 5)
    world.run(60_000)
    assert world.row(1)[4] == (1, 2)
    world.start(NodeId(3))
    world.run(2_000)
    assert world.row(1)[4] == (1, 2, 3)
    assert world.ends() == [5, 5, 5]


def test_a_fenced_broker_does_not_enter_the_isr_until_it_is_unfenced(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.kill(3)
    world.produce(1, 5)
    world.run(60_000)
    world.commit(r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=103, fenced=1))
    world.start(NodeId(3))
    world.run(2_000)
    assert world.row(3)[3] == 5
    assert world.row(1)[4] == (1, 2)
    world.commit(r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=103, fenced=-1))
    world.produce(1)
    world.run(2_000)
    assert world.row(1)[4] == (1, 2, 3)


def test_a_refused_expansion_leaves_the_isr_and_is_proposed_again(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.kill(3)
    world.produce(1)
    world.run(60_000)
    world.refuse_with = ErrorCode.INELIGIBLE_REPLICA
    world.start(NodeId(3))
    world.run(1_000)
    assert world.row(1)[4] == (1, 2)
    world.refuse_with = None
    world.produce(1)
    world.run(1_000)
    assert world.row(1)[4] == (1, 2, 3)


def test_too_small_an_isr_refuses_acks_all_before_writing_and_freezes_the_high_watermark(world: Any) -> None:
    world.create(min_insync_replicas="3")
    world.run(1_000)
    world.kill(3)
    stuck = world.produce(1, timeout_ms=200_000)
    world.run(60_000)
    assert world.row(1)[4] == (1, 2)
    # The gate: the committed ISR is too small, though both of its members have the record.
    assert stuck().error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert world.row(1)[2:4] == (0, 1)
    assert world.produce(1)().error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.row(1)[3] == 1
    assert world.produce(1, acks=1)().error_code == ErrorCode.NONE
    assert not world.consume(1, 0)().records
    world.start(NodeId(3))
    world.run(5_000)
    assert world.row(1)[2:4] == (2, 2)


def test_a_waiting_produce_learns_when_the_isr_is_committed_too_small_and_not_when_it_is_only_proposed(
    world: Any,
) -> None:
    world.create(min_insync_replicas="3")
    world.run(1_000)
    world.kill(3)
    world.controller_answers = False
    stuck = world.produce(1, timeout_ms=200_000)
    world.run(60_000)
    assert stuck() is None
    world.answer_controller()
    assert stuck().error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert stuck().base_offset == -1
    assert world.row(1)[3] == 1  # it is written, and is committed when a replica is back


def test_a_waiting_produce_learns_when_min_isr_is_raised_above_the_isr(world: Any) -> None:
    world.create(min_insync_replicas="2")
    world.change(isr=(1, 2))
    world.cut = {2, 3}
    stuck = world.produce(1, timeout_ms=200_000)
    world.commit(r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="min.insync.replicas", value="3"))
    assert stuck().error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_retry_of_what_was_written_below_min_isr_is_acknowledged_once_and_written_once(world: Any) -> None:
    world.create(min_insync_replicas="3")
    world.run(1_000)
    world.kill(3)
    batch = a_batch(producer_id=7, producer_epoch=0, base_sequence=0)
    first = world.produce(1, timeout_ms=200_000, batch=batch)
    world.run(60_000)
    assert first().error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert world.produce(1, batch=batch)().error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    world.start(NodeId(3))
    world.run(5_000)
    again = world.produce(1, batch=batch)
    assert (again().error_code, again().base_offset) == (ErrorCode.NONE, 0)
    assert world.row(1)[2:4] == (1, 1)


def test_the_brokers_own_append_waits_on_while_the_isr_is_too_small(world: Any) -> None:
    """Who asked for it holds its answer back; the record is in the log, and nobody would write it again."""
    world.create(min_insync_replicas="3")
    world.run(1_000)
    world.kill(3)
    done: list[ErrorCode] = []

    def then(error: ErrorCode, offset: int, now: Instant) -> list[Effect]:
        done.append(error)
        return []

    batch = bytearray(a_batch())
    world.perform(NodeId(1), world.nodes[1].append_internal("t", 0, batch, world.now, then, 200_000))
    world.run(60_000)
    assert (world.row(1)[4], done) == ((1, 2), [])
    world.start(NodeId(3))
    world.run(5_000)
    assert done == [ErrorCode.NONE]


def test_leaders_count_by_the_metadata_and_not_by_their_own_file() -> None:
    """T1: broker 1's file says 1, the log says 3."""
    world = World(static={"min.insync.replicas": 1})
    world.commit(r.ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="min.insync.replicas", value="3"))
    world.cut = {3}
    world.create()
    world.change(isr=(1, 2))
    assert world.produce(1)().error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    world.produce(1, acks=1)
    world.run(1_000)
    assert world.row(1)[2:4] == (0, 1)


def test_without_any_min_isr_in_the_metadata_a_brokers_own_file_is_no_substitute() -> None:
    """T1: else it would refuse, or commit, otherwise than the controller thinks."""
    world = World(static={"min.insync.replicas": 3})
    world.create()
    world.change(isr=(1,))
    assert world.produce(1)().error_code == ErrorCode.NONE


def test_a_waiting_produce_times_out(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.kill(3)
    answer = world.produce(1, timeout_ms=700)
    world.run(699)
    assert answer() is None
    world.run(1)
    assert answer().error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_waiting_produce_and_fetch_learn_at_once_that_the_leadership_is_over(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.cut = {2, 3}
    produced = world.produce(1)
    fetched = world.consume(1, 0, max_wait_ms=60_000, epoch=0)
    assert produced() is None
    assert fetched() is None
    world.change(leader=2, isr=(2, 3))
    assert produced().error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched().error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetched().current_leader.leader_id == 2


def test_a_diverged_follower_cuts_what_was_never_committed(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1, 4)
    world.run(1_000)
    world.cut = {1}
    world.produce(1, 10, acks=1)  # only the old leader has these
    world.change(leader=2, isr=(2, 3), skip=(1,))
    answer = world.produce(2, 3)
    world.run(2_000)
    assert answer().base_offset == 4
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(3_000)
    assert world.ends() == [7, 7, 7]
    assert world.row(2)[4] == (2, 3, 1)
    assert world.reports == []


def test_two_failovers_without_records_between_still_find_the_divergence(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.cut = {1}
    world.produce(1, 3, acks=1)
    world.change(leader=2, isr=(2, 3), skip=(1,))
    world.change(leader=3, isr=(2, 3), skip=(1,))
    world.produce(3, 5)
    world.run(2_000)
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(3_000)
    assert world.ends() == [7, 7, 7]
    assert world.consume(3, 0)().high_watermark == 7


def test_a_cut_below_the_high_watermark_is_reported_before_it_is_made(world: Any) -> None:
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 5)
    world.run(1_000)
    # An unclean election of a replica that lost everything.
    world.kill(2)
    world.change(isr=(1,))
    world.disks[2] = type(world.disks[2])()
    world.cut = {2}
    world.start(NodeId(2))
    world.change(leader=2, isr=(2,), leader_recovery_state=1)
    world.cut = set()
    world.run(2_000)
    assert [world.row(node)[3] for node in (1, 2)] == [0, 0]
    assert [text for text in world.reports if "offsets 0 to 4 were committed here" in text]


def test_a_leader_that_is_elected_keeps_its_high_watermark_and_commits_the_rest(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1, 4)
    world.run(10)
    world.kill(1)
    world.change(leader=2, isr=(2, 3))
    world.run(3_000)
    assert world.row(2)[2:4] == (4, 4)


def test_a_deleted_and_recreated_topic_does_not_find_its_old_log(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 5)
    world.commit(r.RemoveTopicRecord(topic_id=world.image.topic_ids["t"]))
    assert not list(world.nodes[1].host.partitions.all())
    world.create(replicas=(1,))
    assert world.row(1)[3] == 0


def test_a_log_of_another_topic_id_is_removed_when_the_name_is_used_again(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 5)
    old = world.image.topic_ids["t"]
    world.kill(1)
    world.commit(r.RemoveTopicRecord(topic_id=old))
    new = bytes(reversed(old))
    world.commit(
        r.TopicRecord(name="t", topic_id=new),
        r.PartitionRecord(
            partition_id=0, topic_id=new, replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
        ),
    )
    world.start(NodeId(1))
    assert world.row(1)[3] == 0


def test_strays_are_kept_until_metadata_is_known_and_then_deleted(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 5)
    old = world.image.topic_ids["t"]
    world.kill(1)
    world.commit(r.RemoveTopicRecord(topic_id=old))
    world.start(NodeId(1))
    assert world.row(1)[0] == "stray"
    world.perform(NodeId(1), world.nodes[1].delete_strays(world.now))
    assert not list(world.nodes[1].host.partitions.all())


def test_a_clean_restart_finds_log_and_high_watermark(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 5)
    world.perform(NodeId(1), world.nodes[1].shutdown(world.now))
    world.nodes[1].close()
    world.kill(1)
    world.start(NodeId(1))
    assert world.row(1)[2:4] == (5, 5)


def test_who_hears_that_a_leadership_is_over_cannot_append_in_it(world: World) -> None:
    """A coordinator whose record is refused serves who waits for it, and that may be another record."""
    world.create()
    world.cut = {NodeId(1)}
    reported: list[ErrorCode] = []

    def again(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
        reported.append(error)
        if len(reported) > 1:
            return []
        return world.nodes[NodeId(1)].append_internal("t", 0, bytearray(a_batch(1)), now, again)

    world.perform(NodeId(1), world.nodes[NodeId(1)].append_internal("t", 0, bytearray(a_batch(1)), world.now, again))
    world.change(leader=2)
    hosted = world.nodes[NodeId(1)].host.partitions.find(AT)
    assert hosted is not None
    assert reported == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert (hosted.log.log_end_offset, list(hosted.waiting)) == (1, [])
