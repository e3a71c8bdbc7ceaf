"""KIP-848, the coordinator's side: memory says what the log says, and no answer says more than what is committed."""

import pytest
from msgspec.structs import replace
from tests.unit.group.consuming import SESSION_MS, Consumer, Consumers, error_of, replica, state
from tests.unit.group.coordination import commit_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.group.offsets.offsets import batch_of
from strandline.wire.messages.consumer_groups import records as r
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest


@pytest.fixture
def world() -> Consumers:
    return Consumers()


# --- no promise before its proof


def test_a_heartbeat_that_changes_something_is_answered_when_that_is_committed(world: Consumers) -> None:
    a = world.consumer("a")
    number = world.send(a.request(subscribed_topic_names=("u",), topic_partitions=()))
    assert world.consumers.epoch == 2, "it is in the log"
    assert number not in world.answers
    world.commit()
    assert world.answers[number].member_epoch == 2


def test_a_heartbeat_that_changes_nothing_waits_for_what_its_group_wrote_before(world: Consumers) -> None:
    a, b = world.consumer("a"), world.consumer("b", subscribed_topic_names=("u",))
    world.reconcile(a, b)
    change = world.send(a.request(rack_id="r"))
    quiet = [world.send(b.request()), world.send(a.request())]
    assert not world.answers.keys() & {change, *quiet}
    world.commit()
    assert [world.answers[n].member_epoch for n in (change, *quiet)] == [2, 2, 2]
    assert world.shard.proofs == {}
    assert world.send(b.request()) in world.answers, "now there is nothing to wait for"


def test_what_the_log_refuses_changes_nothing(world: Consumers) -> None:
    a = world.consumer("a")
    before = state(world)
    world.log.refuses = E.NOT_ENOUGH_REPLICAS
    for request in (a.request(rack_id="r"), a.request(subscribed_topic_names=("u",)), a.request(member_epoch=-1)):
        assert error_of(world.ask(request))[0] is E.COORDINATOR_NOT_AVAILABLE
    assert (state(world), world.shard.proofs) == (before, {})
    world.log.refuses = None
    assert a.beat(rack_id="r").error_code == E.NONE


def test_a_member_that_cannot_be_fenced_now_is_fenced_later(world: Consumers) -> None:
    world.consumer("a")
    world.log.refuses = E.NOT_ENOUGH_REPLICAS
    world.wait(SESSION_MS + 10_000)
    assert world.consumers.members.keys() == {"a"}
    world.log.refuses = None
    world.wait(1_000)
    assert world.consumers.members == {}


def test_a_write_of_which_nobody_knows_whether_it_will_be_committed_is_proven_by_the_next_one(
    world: Consumers,
) -> None:
    a = world.consumer("a")
    change = world.send(a.request(rack_id="r"))
    quiet = world.send(a.request())
    world.fail(E.REQUEST_TIMED_OUT, is_written=True)
    for number in (change, quiet):
        assert E(world.answers[number].error_code) is E.COORDINATOR_NOT_AVAILABLE
    assert world.member("a").rack == "r", "it is in the log"
    again = world.send(a.request())
    assert again not in world.answers
    assert world.commit() == 1, "a record that changes nothing"
    assert world.answers[again].error_code == E.NONE
    assert world.send(a.request()) in world.answers


def test_whoever_waits_is_sent_to_another_coordinator_when_the_partition_moves(world: Consumers) -> None:
    a = world.consumer("a")
    waiting = [world.send(a.request(rack_id="r")), world.send(a.request())]
    world.move_away()
    assert [E(world.answers[n].error_code) for n in waiting] == [E.NOT_COORDINATOR] * 2
    assert error_of(a.beat())[0] is E.NOT_COORDINATOR


def test_what_a_new_coordinator_has_found_is_promised_to_nobody_before_it_is_committed(world: Consumers) -> None:
    a = world.consumer("a")
    world.move_away()
    world.log.has_uncommitted = True
    world.take_over(1)
    assert error_of(a.beat())[0] is E.COORDINATOR_LOAD_IN_PROGRESS
    world.log.has_uncommitted = False
    assert a.beat().error_code == E.NONE


# --- loading


def test_a_coordinator_that_loads_a_group_has_it_as_it_was_and_gives_members_a_whole_session(
    world: Consumers,
) -> None:
    a = world.consumer("a", instance="i", rack_id="r", server_assignor="range")
    b = world.consumer("b", subscribed_topic_names=("u",), subscribed_topic_regex="t")
    a.beat()
    was = state(world)
    assert replica(world.reload()) == was
    world.wait(SESSION_MS - 1)
    world.move_away()
    world.take_over(1)
    assert state(world) == was
    world.wait(SESSION_MS - 1)
    world.reconcile(a, b)
    assert (a.epoch, b.epoch) == (2, 2)
    assert a.has | b.has == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}


def test_a_member_that_must_give_back_has_its_whole_time_for_that_again(world: Consumers) -> None:
    a, b = world.consumer("a"), world.consumer("b")
    a.beat()
    world.move_away()
    world.take_over(1)
    for _ in range(4):
        world.wait(19_000)
        b.beat()
        a.beat(topic_partitions=world.rows({("t", 0), ("t", 1)}))
    assert world.consumers.members.keys() == {"b"}


def written(world: Consumers, *records: tuple[r.ConsumerGroupKey, r.ConsumerGroupValue | None]) -> None:
    world.log.written(bytes(batch_of(records, Instant(world.now))))


def reloaded(world: Consumers) -> None:
    world.move_away()
    world.take_over(1 + (world.log.end % 1000))


def current(member_id: str, epoch: int = 1, **fields: object) -> tuple[r.ConsumerGroupKey, r.ConsumerGroupValue]:
    return (
        r.ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id=member_id),
        r.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch, **fields),  # type: ignore[arg-type]
    )


def test_a_group_of_kafka_before_4_1_has_no_hash_and_its_record_for_that_is_deleted(world: Consumers) -> None:
    topic_id = world.image.topic_ids["t"]
    rows = (r.CurrentTopicPartitions(topic_id=topic_id, partitions=(0, 1)),)
    target = (r.TargetTopicPartition(topic_id=topic_id, partitions=(0, 1)),)
    topics = (r.TopicMetadata(topic_id=topic_id, topic_name="t", num_partitions=2),)
    written(
        world,
        (
            r.ConsumerGroupMemberMetadataKey(group="g", member_id="a"),
            r.ConsumerGroupMemberMetadataValue(subscribed_topic_names=("t",), rebalance_timeout_ms=1000),
        ),
        (r.ConsumerGroupPartitionMetadataKey(group="g"), r.ConsumerGroupPartitionMetadataValue(topics=topics)),
        (r.ConsumerGroupMetadataKey(group="g"), r.ConsumerGroupMetadataValue(epoch=3)),
        (
            r.ConsumerGroupTargetAssignmentMemberKey(group="g", member_id="a"),
            r.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=target),
        ),
        (
            r.ConsumerGroupTargetAssignmentMetadataKey(group="g"),
            r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3),
        ),
        current("a", 3, previous_member_epoch=2, assigned_partitions=rows),
    )
    reloaded(world)
    assert world.consumers.has_partition_metadata
    assert world.member("a").classic is None, "as in our records before there was a null in them"
    a = world.consumer("a", subscribed_topic_names=("t",))
    assert (a.has, a.epoch) == ({("t", 0), ("t", 1)}, 4)
    assert not world.consumers.has_partition_metadata
    assert world.member("a").held_since(topic_id, 0) == 3, "the member's epoch stands for what the record does not say"
    assert world.ask(commit_request(1, "a", 3), 9).topics[0].partitions[0].error_code == E.NONE


def test_an_expression_that_only_kafka_takes_stops_nobody_but_its_member(world: Consumers) -> None:
    regex = "t|" * 3000 + "t"  # longer than is taken here
    written(
        world,
        (
            r.ConsumerGroupMemberMetadataKey(group="g", member_id="k"),
            r.ConsumerGroupMemberMetadataValue(subscribed_topic_regex=regex, rebalance_timeout_ms=1000),
        ),
        (r.ConsumerGroupMetadataKey(group="g"), r.ConsumerGroupMetadataValue(epoch=3)),
        (
            r.ConsumerGroupRegularExpressionKey(group="g", regular_expression=regex),
            r.ConsumerGroupRegularExpressionValue(topics=("t",)),
        ),
        current("k", 3),
    )
    reloaded(world)
    a, k = world.consumer("a", subscribed_topic_names=("t",)), Consumer(world, "k")
    k.epoch = 3
    world.reconcile(a, k)
    assert (len(a.has), len(k.has), world.consumers.regexes[regex].topics) == (1, 1, {"t"})
    world.create("tt")
    assert k.beat().error_code == E.INVALID_REGULAR_EXPRESSION
    assert a.beat().error_code == E.NONE


def test_nothing_is_left_of_a_group_that_is_deleted_whatever_its_log_has(world: Consumers) -> None:
    written(
        world,
        (r.ConsumerGroupMetadataKey(group="g"), r.ConsumerGroupMetadataValue(epoch=3)),
        (r.ConsumerGroupPartitionMetadataKey(group="g"), r.ConsumerGroupPartitionMetadataValue()),
        (
            r.ConsumerGroupRegularExpressionKey(group="g", regular_expression="t"),
            r.ConsumerGroupRegularExpressionValue(topics=("t",)),
        ),
    )
    reloaded(world)
    world.ask(DeleteGroupsRequest(groups_names=("g",)))
    assert (world.shard.groups, world.log.live_keys()) == ({}, [])


def test_of_two_members_with_one_partition_the_later_record_is_right(world: Consumers) -> None:
    """A compacted log may have lost the record by which the first one gave it up."""
    topic_id = world.image.topic_ids["t"]
    rows = (r.CurrentTopicPartitions(topic_id=topic_id, partitions=(0, 1)),)
    written(world, current("a", assigned_partitions=rows), current("b", 2, assigned_partitions=rows))
    reloaded(world)
    world.groups.check()
    assert (world.member("a").assigned, world.held(world.member("b").assigned)) == ({}, {("t", 0), ("t", 1)})


def test_a_member_in_a_state_that_is_not_known_begins_anew(world: Consumers) -> None:
    world.consumer("b")
    written(world, current("b", 1, state=9))
    reloaded(world)
    b = world.consumers.members["b"]
    again = Consumer(world, "b").request(member_epoch=1)
    answer = world.ask(again)
    assert error_of(answer) == (
        E.FENCED_MEMBER_EPOCH,
        "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
    )
    assert world.ask(replace(again, topic_partitions=())).error_code == E.NONE
    assert world.consumers.members["b"].state is not b.state


def test_records_that_no_group_can_have_are_skipped(world: Consumers) -> None:
    topic_id = world.image.topic_ids["t"]
    both = (r.CurrentTopicPartitions(topic_id=topic_id, partitions=(0,)),)
    bad = [
        (r.ConsumerGroupMetadataKey(group="g"), r.ConsumerGroupMetadataValue(epoch=-1)),
        (r.ConsumerGroupMetadataKey(group="g"), r.ConsumerGroupMetadataValue(epoch=(1 << 31) - 1)),
        (r.ConsumerGroupMetadataKey(group=""), r.ConsumerGroupMetadataValue(epoch=1)),
        (r.ConsumerGroupMemberMetadataKey(group="g", member_id=""), r.ConsumerGroupMemberMetadataValue()),
        current(""),
        current("a", -3),
        current("a", state=1, assigned_partitions=both, partitions_pending_revocation=both),
        current("a", state=0, partitions_pending_revocation=both),
        current("a", assigned_partitions=(r.CurrentTopicPartitions(topic_id=topic_id, partitions=(-1,)),)),
    ]
    written(world, *bad)
    reloaded(world)
    assert (world.shard.groups, world.shard.unreadable) == ({}, len(bad))
