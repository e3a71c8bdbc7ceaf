"""KIP-848, the consumer group protocol: what a coordinator does with heartbeats, sentence by sentence."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.rows import each
from tests.unit.group.consuming import REBALANCE_MS, SESSION_MS, Consumers, error_of

from strandline.base.errors import ErrorCode as E
from strandline.base.errors import message_of
from strandline.group.consumer.group import ConsumerGroupState
from strandline.group.consumer.member import MemberState
from strandline.metadata.features import GROUP_FEATURE
from strandline.metadata.records import FeatureLevelRecord
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

ALL = {("t", 0), ("t", 1)}


@pytest.fixture
def world() -> Consumers:
    return Consumers()


# --- the first heartbeat


def test_a_member_joins_with_epoch_0_and_is_told_its_epoch_its_partitions_and_how_often_to_report(
    world: Consumers,
) -> None:
    a = world.consumer("a")
    answer = a.join()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 1, 5000)
    assert a.has == ALL
    assert world.consumers.state is ConsumerGroupState.STABLE


def test_before_version_1_the_coordinator_makes_the_members_id(world: Consumers) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", rebalance_timeout_ms=1, subscribed_topic_names=("t",), topic_partitions=()
    )
    made = [world.ask(request, 0).member_id for _ in range(2)]
    assert len(set(made)) == 2 and all(len(member_id) == 22 for member_id in made)
    assert world.consumers.members.keys() == set(made)
    assert error_of(world.ask(request, 1)) == (E.INVALID_REQUEST, "MemberId can't be empty.")


FIRST = ConsumerGroupHeartbeatRequest(
    group_id="g", member_id="a", rebalance_timeout_ms=1, subscribed_topic_names=("t",), topic_partitions=()
)
OWNED = (TopicPartitions(partitions=(0,)),)
SUBSCRIBE = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
LONG_NAME = "SubscribedTopicNames has a name that is too long."


@each(
    ("changes", "error", "message"),
    [
        ({"member_id": ""}, E.INVALID_REQUEST, "MemberId can't be empty."),
        ({"group_id": ""}, E.INVALID_REQUEST, "GroupId can't be empty."),
        ({"instance_id": ""}, E.INVALID_REQUEST, "InstanceId can't be empty."),
        ({"rack_id": ""}, E.INVALID_REQUEST, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, E.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, E.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining."),
        ({"topic_partitions": OWNED}, E.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining."),
        ({"subscribed_topic_names": None}, E.INVALID_REQUEST, SUBSCRIBE),
        ({"member_epoch": -2}, E.INVALID_REQUEST, "InstanceId can't be null."),
        ({"member_epoch": -3}, E.INVALID_REQUEST, "MemberEpoch is invalid."),
        ({"member_id": "x" * 40_000}, E.INVALID_REQUEST, "MemberId is too long."),
        ({"instance_id": "x" * 40_000}, E.INVALID_REQUEST, "InstanceId is too long."),
        ({"rack_id": "x" * 40_000}, E.INVALID_REQUEST, "RackId is too long."),
        ({"subscribed_topic_names": ("t", "x" * 40_000)}, E.INVALID_REQUEST, LONG_NAME),
        ({"subscribed_topic_regex": "x" * 40_000}, E.INVALID_REQUEST, "SubscribedTopicRegex is too long."),
        (
            {"server_assignor": "mine"},
            E.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor mine is not supported. Supported assignors: uniform, range.",
        ),
        ({"member_epoch": 1}, E.GROUP_ID_NOT_FOUND, "Group g not found."),
        ({"member_epoch": -1}, E.GROUP_ID_NOT_FOUND, "Group g not found."),
    ],
)
def test_a_heartbeat_that_makes_no_sense_has_kafkas_error_and_changes_nothing(
    changes: dict[str, Any], error: E, message: str
) -> None:
    world = Consumers()
    assert error_of(world.ask(replace(FIRST, **changes))) == (error, message)
    assert (world.shard.groups, world.log.batches) == ({}, [])


def test_the_protocol_is_on_if_the_cluster_and_the_broker_say_so() -> None:
    without = Consumers()
    without.image.apply(FeatureLevelRecord(name=GROUP_FEATURE, feature_level=0))
    for world in (Consumers(is_consumer_protocol_enabled=False), without):
        assert error_of(world.ask(FIRST)) == (E.UNSUPPORTED_VERSION, message_of(E.UNSUPPORTED_VERSION))


def test_a_group_may_have_timeouts_of_its_own(world: Consumers) -> None:
    world.configure_group("consumer.session.timeout.ms", "50000")
    world.configure_group("consumer.heartbeat.interval.ms", "7000")
    a = world.consumer("a")
    assert a.beat().heartbeat_interval_ms == 7000
    world.wait(49_999)
    assert world.consumers.members
    world.wait(1)
    assert not world.consumers.members


def test_a_group_has_as_many_members_as_are_allowed_and_those_that_it_has_may_rejoin() -> None:
    world = Consumers(consumer_max_size=1)
    a = world.consumer("a")
    refused = world.ask(replace(FIRST, member_id="b"))
    assert error_of(refused) == (
        E.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    assert a.join().error_code == E.NONE


# --- the group epoch


def test_the_group_epoch_grows_with_members_subscriptions_and_assignors_and_with_nothing_else(
    world: Consumers,
) -> None:
    a = world.consumer("a")
    b = world.consumer("b", subscribed_topic_names=("u",))
    assert world.consumers.epoch == 2
    written = len(world.log.batches)
    world.reconcile(a, b)
    a.beat(rack_id="r1")
    assert (world.consumers.epoch, len(world.log.batches) - written) == (2, 2), "a reaches epoch 2, and has a rack"
    for epoch, change in ((3, {"subscribed_topic_names": ("t", "u")}), (4, {"server_assignor": "range"})):
        a.beat(**change)
        assert world.consumers.epoch == epoch, change
    b.leave()
    assert world.consumers.epoch == 5
    assert world.consumers.state is ConsumerGroupState.ASSIGNING
    a.beat()
    assert (world.consumers.target_epoch, world.consumers.state) == (5, ConsumerGroupState.STABLE)


def test_a_subscribed_topic_that_comes_grows_or_goes_makes_a_new_epoch_with_the_next_heartbeat(
    world: Consumers,
) -> None:
    a = world.consumer("a", subscribed_topic_names=("t", "late"))
    for epoch, happens, has in (
        (2, lambda: world.create("late", 1), ALL | {("late", 0)}),
        (3, lambda: world.grow("t", 3), ALL | {("t", 2), ("late", 0)}),
        (4, lambda: world.delete("t"), {("late", 0)}),
    ):
        happens()
        assert world.consumers.epoch == epoch - 1
        world.reconcile(a)
        assert (world.consumers.epoch, a.epoch, a.has) == (epoch, epoch, has)
    world.create("other")
    a.beat()
    assert world.consumers.epoch == 4


def test_a_topic_that_is_made_anew_under_its_name_is_another_topic(world: Consumers) -> None:
    a = world.consumer("a")
    world.delete("t")
    world.create("t")
    world.reconcile(a)
    assert (a.has, a.epoch) == (ALL, 2)
    assert set(world.member("a").assigned) == {world.image.topic_ids["t"]}


def test_a_broker_that_moves_to_another_rack_makes_a_new_epoch(world: Consumers) -> None:
    world.register(1, "r1")
    a = world.consumer("a")
    world.register(1, "r2")
    a.beat()
    assert world.consumers.epoch == 2
    world.register(1, "r2")
    a.beat()
    assert world.consumers.epoch == 2


def test_members_choose_the_assignor_by_their_number_and_the_first_is_the_default(world: Consumers) -> None:
    a = world.consumer("a")
    assert world.described().assignor_name == "uniform"
    world.consumer("b", server_assignor="range")
    assert world.described().assignor_name == "range"
    a.beat(server_assignor="uniform")
    assert world.described().assignor_name == "uniform", "of two with one vote each, the first"


# --- reconciliation


def test_a_partition_is_revoked_from_its_owner_before_anybody_else_is_assigned_it(world: Consumers) -> None:
    a = world.consumer("a")
    b = world.consumer("b")
    assert (b.epoch, b.has) == (2, set())
    assert world.member("b").state is MemberState.UNRELEASED_PARTITIONS
    reported = a.beat()
    assert (reported.member_epoch, len(a.has)) == (1, 1), "it keeps its epoch while it revokes"
    assert world.member("a").state is MemberState.UNREVOKED_PARTITIONS
    lost = ALL - a.has
    b.beat()
    assert b.has == set(), "a has not said yet that it gave it up"
    assert world.consumers.state is ConsumerGroupState.RECONCILING
    assert a.beat().member_epoch == 2
    b.beat()
    assert b.has == lost
    assert world.consumers.state is ConsumerGroupState.STABLE


def test_a_member_that_does_not_report_what_it_owns_has_revoked_nothing(world: Consumers) -> None:
    a = world.consumer("a")
    world.consumer("b")
    a.beat()
    for owned in (None, world.rows(ALL)):
        a.beat(topic_partitions=owned)
        assert world.member("a").state is MemberState.UNREVOKED_PARTITIONS
    a.beat()
    assert world.member("a").state is MemberState.STABLE


def test_a_member_that_changes_its_subscription_while_it_revokes_must_give_back_more(world: Consumers) -> None:
    a = world.consumer("a", subscribed_topic_names=("t", "u"))
    world.consumer("b", subscribed_topic_names=("t", "u"))
    a.beat()
    kept = {("t", 0), ("t", 1), ("u", 0), ("u", 1)} - world.held(world.member("a").revoking)
    a.beat(topic_partitions=world.rows({("t", 0), ("t", 1), ("u", 0), ("u", 1)}), subscribed_topic_names=("u",))
    member = world.member("a")
    assert world.held(member.assigned) == {at for at in kept if at[0] == "u"}
    assert (member.state, member.epoch) == (MemberState.UNREVOKED_PARTITIONS, 1)


def test_the_answer_has_the_assignment_if_it_has_changed_or_if_the_member_said_everything(world: Consumers) -> None:
    a = world.consumer("a")
    assert a.beat().assignment is None
    world.consumer("b")
    assert a.beat().assignment is not None
    assert a.beat().assignment is None, "it reaches the epoch, with what it has"
    everything = replace(a.first(), topic_partitions=a.owned(), member_epoch=a.epoch)
    assert world.names(world.ask(everything).assignment.topic_partitions) == a.has


def test_a_member_that_is_subscribed_to_nothing_is_one_and_has_nothing(world: Consumers) -> None:
    a = world.consumer("a", subscribed_topic_names=())
    assert (a.epoch, a.has, world.consumers.state) == (1, set(), ConsumerGroupState.STABLE)


# --- fencing


def test_a_member_that_is_silent_for_its_session_is_removed_and_others_get_what_it_had(world: Consumers) -> None:
    a, b = world.consumer("a"), world.consumer("b")
    world.reconcile(a, b)
    world.wait(SESSION_MS - 1)
    b.beat()
    world.wait(1)
    assert world.consumers.members.keys() == {"b"}
    assert b.beat().member_epoch == 3
    assert b.has == ALL
    assert error_of(a.beat()) == (E.UNKNOWN_MEMBER_ID, "Member a is not a member of group g.")
    world.wait(SESSION_MS)
    assert world.consumers.state is ConsumerGroupState.EMPTY


def test_a_member_that_does_not_revoke_within_its_rebalance_timeout_is_removed(world: Consumers) -> None:
    a, b = world.consumer("a"), world.consumer("b")
    a.beat()
    for rack in ("r1", "r2", "r3"):
        world.wait(REBALANCE_MS // 3 - 1)
        a.beat(topic_partitions=world.rows(ALL), rack_id=rack)
        b.beat()
    assert world.consumers.members.keys() == {"a", "b"}
    world.wait(3)
    assert world.consumers.members.keys() == {"b"}


def test_a_rebalance_timeout_ends_with_the_revocation(world: Consumers) -> None:
    a, b = world.consumer("a"), world.consumer("b")
    a.beat()
    a.beat()
    for _ in range(4):
        world.wait(REBALANCE_MS // 3)
        world.reconcile(a, b, rounds=1)
    assert world.consumers.members.keys() == {"a", "b"}


ABANDON = "The member must abandon all its partitions and rejoin."


def test_a_member_with_another_epoch_is_fenced(world: Consumers) -> None:
    a = world.consumer("a")
    for assignor in ("range", "uniform", "range", "uniform"):
        a.beat(server_assignor=assignor)
    assert a.epoch == 5
    for epoch, how in ((6, "greater"), (3, "smaller")):
        why = f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the group "
        fenced = world.ask(a.request(member_epoch=epoch, topic_partitions=a.owned()))
        assert error_of(fenced) == (E.FENCED_MEMBER_EPOCH, f"{why}coordinator (5). {ABANDON}")


def test_a_member_that_missed_the_answer_with_its_new_epoch_comes_with_the_one_before(world: Consumers) -> None:
    a = world.consumer("a")
    missed = world.ask(a.request(subscribed_topic_names=("t", "u"), topic_partitions=a.owned()))
    assert (a.epoch, missed.member_epoch) == (1, 2)
    assert a.beat().member_epoch == 2
    a.epoch = 1
    for owned in (None, world.rows({*a.has, ("u", 0), ("u", 1), ("t", 7)})):
        assert error_of(a.beat(topic_partitions=owned))[0] is E.FENCED_MEMBER_EPOCH, "it owns what it was never given"


def test_a_fenced_member_rejoins_with_epoch_0(world: Consumers) -> None:
    a = world.consumer("a")
    a.epoch = 9
    assert error_of(a.beat())[0] is E.FENCED_MEMBER_EPOCH
    assert a.join().member_epoch == 1
    assert a.has == ALL


def test_a_member_that_leaves_is_gone_at_once(world: Consumers) -> None:
    a, b = world.consumer("a"), world.consumer("b")
    world.reconcile(a, b)
    left = a.leave()
    assert (left.member_id, left.member_epoch, left.assignment) == ("a", -1, None)
    b.beat()
    assert b.has == ALL
    assert error_of(a.leave())[0] is E.UNKNOWN_MEMBER_ID
    b.leave()
    assert (world.consumers.epoch, world.consumers.target_epoch) == (4, 4)
    assert world.consumers.state is ConsumerGroupState.EMPTY
    assert a.join().member_epoch == 5, "a group that is empty goes on counting"


# --- static members


def test_a_static_member_that_comes_back_has_its_partitions_without_a_rebalance(world: Consumers) -> None:
    a, b = world.consumer("a", instance="i"), world.consumer("b")
    world.reconcile(a, b)
    had, epoch = a.has, world.consumers.epoch
    assert a.leave(-2).member_epoch == -2
    world.reconcile(b)
    assert len(b.has) == 1, "its partitions wait for it"
    back = world.consumer("a2", instance="i")
    assert (back.has, world.consumers.epoch) == (had, epoch)
    assert world.consumers.static == {"i": "a2"}
    assert world.consumers.members.keys() == {"a2", "b"}
    assert error_of(a.beat()) == (
        E.FENCED_INSTANCE_ID,
        "Static member a with instance id i was fenced by member a2.",
    )


def test_a_static_member_that_has_left_for_a_while_speaks_with_no_older_epoch(world: Consumers) -> None:
    a = world.consumer("a", instance="i")
    a.beat(server_assignor="range")
    a.leave(-2)
    assert (world.member("a").epoch, world.member("a").previous_epoch) == (-2, 1)
    for epoch in (1, 2):
        fenced = world.ask(a.request(member_epoch=epoch, topic_partitions=a.owned()))
        assert error_of(fenced)[0] is E.FENCED_MEMBER_EPOCH


def test_a_static_member_that_comes_back_with_its_own_id_is_the_same_member(world: Consumers) -> None:
    a = world.consumer("a", instance="i")
    a.leave(-2)
    assert (a.join().member_epoch, a.has, world.consumers.epoch) == (1, ALL, 1)
    assert (a.join().member_epoch, a.has, world.consumers.epoch) == (1, ALL, 1), "its answer was lost: as a dynamic one"
    b = world.consumer("b")
    a.beat(topic_partitions=None)
    assert (a.leave(-2).member_epoch, world.member("a").revoking) == (-2, {})
    a.join()
    world.reconcile(a, b)
    assert (len(a.has), len(b.has), world.consumers.epoch) == (1, 1, 2)


def test_a_member_keeps_its_instance_id(world: Consumers) -> None:
    a, b = world.consumer("a", instance="i"), world.consumer("b")
    world.reconcile(a, b)
    a.leave(-2)
    for instance in ("i", "j"):
        refused = world.ask(replace(FIRST, member_id="b", instance_id=instance))
        assert error_of(refused) == (E.INVALID_REQUEST, f"Member b cannot change its instance id to {instance}.")
    assert (world.consumers.static, world.held(world.member("b").assigned)) == ({"i": "a"}, b.has)


def test_a_static_member_that_does_not_come_back_within_its_session_is_removed(world: Consumers) -> None:
    a, b = world.consumer("a", instance="i"), world.consumer("b")
    world.reconcile(a, b)
    world.wait(SESSION_MS // 2)
    b.beat()
    a.leave(-2)
    world.wait(SESSION_MS // 2)
    assert world.consumers.members.keys() == {"b"}
    world.reconcile(b)
    assert b.has == ALL


def test_an_instance_id_belongs_to_a_living_member_alone(world: Consumers) -> None:
    world.consumer("a", instance="i")
    taken = world.ask(replace(FIRST, member_id="b", instance_id="i"))
    assert error_of(taken) == (
        E.UNRELEASED_INSTANCE_ID,
        "Static member b with instance id i cannot join the group because the instance id is owned by a member.",
    )
    stranger = replace(FIRST, member_id="b", member_epoch=1)
    for epoch in (1, -1, -2):
        fenced = world.ask(replace(stranger, member_epoch=epoch, instance_id="i"))
        assert error_of(fenced)[0] is E.FENCED_INSTANCE_ID
        unknown = world.ask(replace(stranger, member_epoch=epoch, instance_id="j"))
        assert error_of(unknown) == (E.UNKNOWN_MEMBER_ID, "Instance id j is unknown.")


def test_a_static_member_that_leaves_for_good_makes_room(world: Consumers) -> None:
    a = world.consumer("a", instance="i")
    a.leave()
    assert (world.consumers.members, world.consumers.static) == ({}, {})
    full = Consumers(consumer_max_size=1)
    b = full.consumer("b", instance="i")
    b.leave(-2)
    assert full.consumer("c", instance="i").has == ALL, "who comes back takes no new place"


# --- regular expressions


def test_a_regular_expression_is_resolved_by_the_coordinator_and_again_when_topics_come_and_go(
    world: Consumers,
) -> None:
    a = world.consumer("a", subscribed_topic_names=(), subscribed_topic_regex="t.*")
    b = world.consumer("b", subscribed_topic_names=("u",), subscribed_topic_regex="")
    world.reconcile(a, b)
    assert (a.has, b.has) == (ALL, {("u", 0), ("u", 1)})
    assert world.consumers.regexes["t.*"].topics == {"t"}
    world.create("tt", 1)
    world.reconcile(a, b)
    assert (a.has, world.consumers.regexes["t.*"].topics) == (ALL | {("tt", 0)}, {"t", "tt"})
    world.delete("tt")
    world.reconcile(a, b)
    assert (a.has, world.consumers.regexes["t.*"].topics) == (ALL, {"t"})
    a.beat(subscribed_topic_regex="u")
    assert world.consumers.regexes.keys() == {"u"}
    a.leave()
    assert world.consumers.regexes == {}


def test_a_regular_expression_that_is_none_is_refused(world: Consumers) -> None:
    refused = world.ask(replace(FIRST, subscribed_topic_names=None, subscribed_topic_regex="(t"))
    error, message = error_of(refused)
    assert error is E.INVALID_REGULAR_EXPRESSION
    assert message is not None and message.startswith("SubscribedTopicRegex `(t` is not a valid regular expression: ")
    assert world.shard.groups == {}
