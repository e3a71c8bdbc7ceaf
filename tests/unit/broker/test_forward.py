"""Requests for the controller: passed on, tried again while it moves, answered in their own form when time is up."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from strandline.base.effects import (
    NAME_SHOWN,
    Answered,
    Caller,
    Effect,
    Failed,
    Failure,
    Received,
    Reply,
    ReplyTo,
    ToController,
)
from strandline.base.errors import ErrorCode as E
from strandline.base.time import NEVER, Instant
from strandline.broker.forward import ANSWER_MS, RETRY_MS, WAITING_MAX, WAITING_OF_CONNECTION_MAX, Forwarding
from strandline.broker.refusals import error_in, refusal_of
from strandline.broker.route import (
    BROKER_ROUTES,
    CONTROLLER_ROUTES,
    pass_on,
    pass_on_within_quota,
    to_controller,
    to_controller_within_quota,
)
from strandline.controller.acknowledging import NAME_MAX
from strandline.wire.codec import encode_bytes
from strandline.wire.messages.cluster import alter_configs
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest
from strandline.wire.messages.cluster.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionDataResponse,
    TopicDataResponse,
)
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.cluster.update_features import UpdateFeaturesRequest
from strandline.wire.messages.own.acknowledge_losses import AcknowledgeLossesRequest, SeenLosses
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest, EntryData
from strandline.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.topics.elect_leaders import LONGEST_LOG_AGGRESSIVE, ElectLeadersRequest, TopicPartitions
from strandline.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest

T = Instant(1000)
TO = ReplyTo(1, 0, 7, CreateTopicsRequest.api_key, 7)
CREATE = CreateTopicsRequest(topics=(CreatableTopic(name="t"), CreatableTopic(name="u")))
MOVED = CreateTopicsResponse(topics=(CreatableTopicResult(name="t", error_code=E.NOT_CONTROLLER),))


def asked(effects: list[Effect]) -> ToController:
    (only,) = effects
    assert isinstance(only, ToController)
    return only


def answer_in(effects: list[Effect]) -> Any:
    (only,) = effects
    assert isinstance(only, Reply)
    assert only.to == TO
    return only.message


def test_the_request_goes_on_unchanged_and_so_does_the_answer() -> None:
    forwarding = Forwarding()
    question = asked(forwarding.forward(TO, CREATE, 7, 5000, T))
    assert (question.message, question.version, question.timeout_ms) == (CREATE, 7, 5000)
    response = CreateTopicsResponse(topics=(CreatableTopicResult(name="t", error_code=E.TOPIC_ALREADY_EXISTS),))
    assert answer_in(forwarding.step(Answered(question.token, response), T)) is response
    assert (forwarding.out, forwarding.deadline()) == ({}, NEVER)


@pytest.mark.parametrize("failure", [Failure.CLOSED, Failure.REFUSED, Failure.MALFORMED, None])
def test_without_a_controller_it_is_tried_again_until_its_time_is_up(failure: Failure | None) -> None:
    forwarding = Forwarding()
    now = T
    effects = forwarding.forward(TO, CREATE, 7, 1000, now)
    tries = 0
    while effects and isinstance(effects[0], ToController):
        tries += 1
        assert effects[0].timeout_ms == T + 1000 - now, "what is left of its time"
        token = effects[0].token
        event = Answered(token, MOVED) if failure is None else Failed(token, failure)
        assert forwarding.step(event, now) == []
        now = forwarding.deadline()
        effects = forwarding.expire(now)
    assert tries == 1000 // RETRY_MS
    refused = answer_in(effects)
    assert [(t.name, t.error_code) for t in refused.topics] == [("t", E.REQUEST_TIMED_OUT), ("u", E.REQUEST_TIMED_OUT)]
    assert (forwarding.out, forwarding.again) == ({}, {})


def test_a_controller_that_does_not_answer_in_time_is_not_asked_again() -> None:
    forwarding = Forwarding()
    question = asked(forwarding.forward(TO, CREATE, 7, 5000, T))
    refused = answer_in(forwarding.step(Failed(question.token, Failure.TIMED_OUT), T))
    assert refused.topics[0].error_code == E.REQUEST_TIMED_OUT


def test_time_is_at_least_a_second_and_at_most_half_a_minute() -> None:
    forwarding = Forwarding()
    assert asked(forwarding.forward(TO, CREATE, 7, 0, T)).timeout_ms == 1000
    assert asked(forwarding.forward(TO, CREATE, 7, 10**9, T)).timeout_ms == 30_000


def test_time_is_bounded_by_request_timeout_ms_and_that_is_it_where_the_client_says_none() -> None:
    forwarding = Forwarding(timeout_ms_max=4_000)
    assert asked(forwarding.forward(TO, CREATE, 7, 10**9, T)).timeout_ms == 4_000
    assert asked(forwarding.forward(TO, CREATE, 7, 2_000, T)).timeout_ms == 2_000
    assert asked(forwarding.forward(TO, CREATE, 7, None, T)).timeout_ms == 4_000


def test_an_election_by_hand_is_waited_for_until_the_controller_has_said_that_its_time_is_up() -> None:
    by_hand = ElectLeadersRequest(election_type=LONGEST_LOG_AGGRESSIVE, timeout_ms=60_000)
    forwarding = Forwarding()
    assert asked(forwarding.forward(TO, by_hand, 3, by_hand.timeout_ms, T)).timeout_ms == 60_000 + ANSWER_MS


def test_the_client_is_named_in_a_short_line() -> None:
    assert Caller("an\nadmin", "10.0.0.1", "PLAINTEXT").named == "anadmin at 10.0.0.1"
    assert Caller("", "10.0.0.1", "PLAINTEXT").named == "somebody at 10.0.0.1"
    assert len(Caller("x" * 9000, "h", "PLAINTEXT").named) == NAME_SHOWN + len(" at h")
    assert Caller("app", "h", "SASL", "User:an\nn").named == "User:ann (app) at h", "who it is, then what it says"


def test_a_client_of_a_controllers_listener_does_not_write_down_itself_who_it_is() -> None:
    seen: list[Any] = []
    controller = SimpleNamespace(step=lambda received, now: seen.append(received.message) or [])
    for forged in (ElectLeadersRequest(asked_by="boss"), AcknowledgeLossesRequest(asked_by="boss")):
        for is_node in (False, True):
            caller = Caller("app", "10.0.0.1", "CONTROLLER", "User:ann", is_node)
            to_controller(cast(Any, SimpleNamespace(controller=controller)), Received(TO, caller, forged), T)
    by_client, by_node = [message.asked_by for message in seen[::2]], [message.asked_by for message in seen[1::2]]
    assert by_client == ["User:ann (app) at 10.0.0.1", "boss (User:ann (app) at 10.0.0.1)"]
    assert by_node == ["boss", "boss"], "a node has asked whoever asked it"
    talker = AcknowledgeLossesRequest(asked_by="b" * NAME_MAX)
    caller = Caller("c" * 999, "h" * 39, "CONTROLLER", "User:" + "u" * 999)
    to_controller(cast(Any, SimpleNamespace(controller=controller)), Received(TO, caller, talker), T)
    assert seen[-1].asked_by.endswith(caller.named + ")") and len(seen[-1].asked_by) <= NAME_MAX, "nothing is cut off"


def test_what_this_node_asks_itself_answers_nobody() -> None:
    forwarding = Forwarding()
    question = asked(forwarding.forward(None, CREATE, 7, 1000, T))
    assert forwarding.step(Answered(question.token, CreateTopicsResponse()), T) == []


def test_no_more_than_a_bounded_number_waits() -> None:
    forwarding = Forwarding()
    for number in range(WAITING_MAX):
        to = replace(TO, connection=2 + number // WAITING_OF_CONNECTION_MAX)
        asked(forwarding.forward(to, CREATE, 7, 1000, T))
    assert answer_in(forwarding.forward(TO, CREATE, 7, 1000, T)).topics[0].error_code == E.REQUEST_TIMED_OUT


def test_one_connection_leaves_places_for_others_and_may_use_its_own_again() -> None:
    for greedy in (TO, None):  # None: a topic that is created since Metadata names it
        forwarding = Forwarding()
        questions = [asked(forwarding.forward(greedy, CREATE, 7, 1000, T)) for _ in range(WAITING_OF_CONNECTION_MAX)]
        refused = forwarding.forward(greedy, CREATE, 7, 1000, T)
        assert refused == [] if greedy is None else answer_in(refused).topics[0].error_code == E.REQUEST_TIMED_OUT
        asked(forwarding.forward(replace(TO, connection=2), CREATE, 7, 1000, T))
        forwarding.check()
        forwarding.step(Answered(questions[0].token, CreateTopicsResponse()), T)
        forwarding.step(Failed(questions[1].token, Failure.TIMED_OUT), T)
        forwarding.step(Failed(questions[2].token, Failure.CLOSED), T)
        forwarding.check()
        forwarding.expire(Instant(T + 1000))  # the third: its time is up
        for _ in range(3):
            asked(forwarding.forward(greedy, CREATE, 7, 1000, T))
        forwarding.check()


def test_a_quorum_leader_that_stepped_down_says_so_per_partition_and_is_not_the_last_word() -> None:
    forwarding = Forwarding()
    question = asked(forwarding.forward(TO, DescribeQuorumRequest(), 2, 1000, T))
    partition = PartitionDataResponse(error_code=E.NOT_LEADER_OR_FOLLOWER)
    moved = DescribeQuorumResponse(topics=(TopicDataResponse(partitions=(partition,)),))
    assert forwarding.step(Answered(question.token, moved), T) == []
    assert forwarding.deadline() == T + RETRY_MS


FULL: dict[type, Any] = {
    AcknowledgeLossesRequest: AcknowledgeLossesRequest(partitions=(SeenLosses(ids=(1,)),)),
    CreateTopicsRequest: CREATE,
    DeleteTopicsRequest: DeleteTopicsRequest(topic_names=("t",)),
    CreatePartitionsRequest: CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=2),)),
    CreateAclsRequest: CreateAclsRequest(creations=(AclCreation(resource_name="t"),)),
    DeleteAclsRequest: DeleteAclsRequest(filters=(DeleteAclsFilter(),)),
    AlterConfigsRequest: AlterConfigsRequest(
        resources=(alter_configs.AlterConfigsResource(resource_type=2, resource_name="t"),)
    ),
    IncrementalAlterConfigsRequest: IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=2, resource_name="t"),)
    ),
    DescribeQuorumRequest: DescribeQuorumRequest(),
    UnregisterBrokerRequest: UnregisterBrokerRequest(broker_id=1),
    AlterPartitionReassignmentsRequest: AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name="t", partitions=(ReassignablePartition(replicas=(1,)),)),)
    ),
    ListPartitionReassignmentsRequest: ListPartitionReassignmentsRequest(),
    ElectLeadersRequest: ElectLeadersRequest(topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),)),
    UpdateFeaturesRequest: UpdateFeaturesRequest(),
    AlterClientQuotasRequest: AlterClientQuotasRequest(entries=(EntryData(),)),
    AlterUserScramCredentialsRequest: AlterUserScramCredentialsRequest(deletions=(ScramCredentialDeletion(name="u"),)),
}


def test_every_request_that_is_passed_on_has_a_refusal_of_its_own_form() -> None:
    forwarded = [cls for cls, route in BROKER_ROUTES.items() if route in (pass_on, pass_on_within_quota)]
    assert set(forwarded) == set(FULL)
    for cls in forwarded:
        refused = refusal_of(FULL[cls], E.REQUEST_TIMED_OUT)
        assert error_in(refused) is E.REQUEST_TIMED_OUT, cls
        for version in cls.versions:
            assert encode_bytes(refused, version), (cls, version)


HERE = (to_controller, to_controller_within_quota)


def test_what_a_node_without_a_controller_refuses_has_a_form_too() -> None:
    for cls in [cls for cls, route in CONTROLLER_ROUTES.items() if route in HERE]:
        refused = refusal_of(FULL.get(cls) or cls(), E.NOT_CONTROLLER)
        for version in cls.versions:
            encode_bytes(refused, version)
