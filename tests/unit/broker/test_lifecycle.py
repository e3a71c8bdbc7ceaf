"""A broker's standing with the controller: registering, running, leaving, and everything that gets in between."""

from typing import Any

import pytest
from msgspec.structs import replace

from strandline.base.effects import Answered, Effect, Endpoint, Failed, Failure, Halt, Report, ToController
from strandline.base.errors import ErrorCode as E
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.base.time import NEVER, Instant
from strandline.broker.lifecycle import (
    RETRY_MS,
    Identity,
    Lifecycle,
    LifecycleConfig,
    Registered,
    Registering,
    ShutDown,
    ShuttingDown,
)
from strandline.metadata.losses import Cause
from strandline.replica.hosting.withdrawals import Withdrawn
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

IDENTITY = Identity(
    NodeId(3),
    "cluster",
    Uuid(b"i" * 16),
    (Uuid(b"d" * 16),),
    {"PLAINTEXT": Endpoint("here", 9092)},
    "rack-a",
    41,
    {"metadata.version": (7, 25)},
)
T = Instant(1000)


def at(ms: int) -> Instant:
    return Instant(T + ms)


def sent(effects: list[Effect]) -> ToController:
    (only,) = effects
    assert isinstance(only, ToController)
    return only


def fresh() -> tuple[Lifecycle, ToController]:
    lifecycle = Lifecycle(IDENTITY, LifecycleConfig())
    return lifecycle, sent(lifecycle.expire(T))


def answer(lifecycle: Lifecycle, question: ToController, message: Any, now: Instant = T) -> list[Effect]:
    return lifecycle.step(Answered(question.token, message), now)


def registered(epoch: int = 50) -> Lifecycle:
    lifecycle, question = fresh()
    answer(lifecycle, question, BrokerRegistrationResponse(error_code=E.NONE, broker_epoch=epoch))
    return lifecycle


def running() -> Lifecycle:
    """Unfenced; the next heartbeat is due two seconds after T."""
    lifecycle = registered()
    lifecycle.metadata_moved(51, T)
    answer(lifecycle, sent(lifecycle.expire(T)), BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert lifecycle.is_unfenced
    return lifecycle


def test_the_registration_says_who_this_is_and_only_one_is_out() -> None:
    lifecycle, question = fresh()
    message = question.message
    assert isinstance(message, BrokerRegistrationRequest)
    assert (message.broker_id, message.cluster_id, message.rack) == (3, "cluster", "rack-a")
    assert (message.incarnation_id, message.previous_broker_epoch) == (IDENTITY.incarnation_id, 41)
    assert [(x.name, x.host, x.port) for x in message.listeners] == [("PLAINTEXT", "here", 9092)]
    assert (lifecycle.deadline(), lifecycle.expire(at(59_999))) == (at(60_000), [])


def test_a_broker_that_no_controller_takes_in_time_ends() -> None:
    lifecycle, question = fresh()
    lifecycle.step(Failed(question.token, Failure.TIMED_OUT), at(1_000))
    assert isinstance(sent(lifecycle.expire(at(2_000))), ToController)
    (halt,) = lifecycle.expire(at(60_000))
    assert isinstance(halt, Halt)
    assert halt.status == 1


def test_a_broker_that_was_taken_once_asks_for_ever() -> None:
    lifecycle = running()
    lifecycle.next_send = at(1_000)
    forgotten = sent(lifecycle.expire(at(1_000)))
    answer(lifecycle, forgotten, BrokerHeartbeatResponse(error_code=E.BROKER_ID_NOT_REGISTERED), at(1_000))
    question = sent(lifecycle.expire(at(1_000)))
    assert isinstance(question.message, BrokerRegistrationRequest)
    lifecycle.step(Failed(question.token, Failure.TIMED_OUT), at(90_000))
    assert isinstance(sent(lifecycle.expire(at(100_000))).message, BrokerRegistrationRequest)


def test_while_an_earlier_incarnation_has_a_session_it_asks_again() -> None:
    lifecycle, question = fresh()
    refused = BrokerRegistrationResponse(error_code=E.DUPLICATE_BROKER_REGISTRATION)
    (report,) = answer(lifecycle, question, refused)
    assert isinstance(report, Report)
    assert report.level == "info"
    assert lifecycle.expire(at(RETRY_MS - 1)) == []
    assert isinstance(sent(lifecycle.expire(at(RETRY_MS))).message, BrokerRegistrationRequest)


def test_refusals_are_reported_except_that_the_controller_moved() -> None:
    for error, level in ((E.INCONSISTENT_CLUSTER_ID, "error"), (E.NOT_CONTROLLER, None)):
        lifecycle, question = fresh()
        effects = answer(lifecycle, question, BrokerRegistrationResponse(error_code=error))
        assert [e.level for e in effects if isinstance(e, Report)] == ([] if level is None else [level])
        assert lifecycle.deadline() == at(RETRY_MS)


def test_a_failed_question_is_asked_again() -> None:
    lifecycle, question = fresh()
    assert lifecycle.step(Failed(question.token, Failure.CLOSED), T) == []
    assert lifecycle.deadline() == at(RETRY_MS)


def test_a_registered_broker_is_fenced_until_the_controller_lets_it_in() -> None:
    lifecycle = registered(50)
    assert (lifecycle.role, lifecycle.epoch, lifecycle.is_unfenced) == (Registered(50, True), 50, False)
    question = sent(lifecycle.expire(at(RETRY_MS)))
    assert isinstance(question.message, BrokerHeartbeatRequest)
    assert (question.message.broker_epoch, question.message.want_shut_down) == (50, False)
    answer(lifecycle, question, BrokerHeartbeatResponse(is_fenced=True))
    assert not lifecycle.is_unfenced
    assert lifecycle.deadline() == at(RETRY_MS), "a fenced broker asks often"


def test_catching_up_with_its_own_registration_asks_at_once_and_only_once() -> None:
    lifecycle = registered(50)
    lifecycle.metadata_moved(50, T)
    assert lifecycle.deadline() == at(RETRY_MS), "offset 50 itself is not applied yet"
    lifecycle.metadata_moved(51, T)
    assert lifecycle.deadline() == T
    assert sent(lifecycle.expire(T)).message.current_metadata_offset == 50
    before = registered(50)
    before.metadata_moved(51, T)
    before.next_send = at(70)
    before.metadata_moved(52, T)
    assert before.deadline() == at(70)


def test_a_running_broker_heartbeats_at_its_interval() -> None:
    lifecycle = running()
    assert lifecycle.deadline() == at(2000)
    assert lifecycle.expire(at(1999)) == []
    assert sent(lifecycle.expire(at(2000))).message.want_shut_down is False


def test_a_registration_that_the_controller_forgot_is_made_again() -> None:
    for error in (E.STALE_BROKER_EPOCH, E.BROKER_ID_NOT_REGISTERED):
        lifecycle = running()
        effects = answer(
            lifecycle, sent(lifecycle.expire(at(2000))), BrokerHeartbeatResponse(error_code=error), at(2000)
        )
        assert [e.level for e in effects if isinstance(e, Report)] == ["warning"]
        assert (lifecycle.role, lifecycle.epoch) == (Registering(), -1)
        again = sent(lifecycle.expire(at(2000))).message
        assert again.incarnation_id == IDENTITY.incarnation_id


def test_a_new_controller_gets_the_report_at_once_and_the_old_ones_answer_is_ignored() -> None:
    lifecycle = running()
    old = sent(lifecycle.expire(at(2000)))
    lifecycle.controller_changed(at(2100))
    new = sent(lifecycle.expire(at(2100)))
    assert answer(lifecycle, old, BrokerHeartbeatResponse(error_code=E.STALE_BROKER_EPOCH), at(2200)) == []
    assert lifecycle.is_unfenced
    assert new.token != old.token


def test_leaving_waits_for_the_controllers_consent() -> None:
    lifecycle = running()
    lifecycle.leave(at(100))
    question = sent(lifecycle.expire(at(100)))
    assert question.message.want_shut_down is True
    assert not lifecycle.is_unfenced
    answer(lifecycle, question, BrokerHeartbeatResponse(should_shut_down=False), at(100))
    assert isinstance(lifecycle.role, ShuttingDown)
    question = sent(lifecycle.expire(at(200)))
    answer(lifecycle, question, BrokerHeartbeatResponse(should_shut_down=True), at(200))
    assert lifecycle.role == ShutDown(clean=True)
    assert (lifecycle.deadline(), lifecycle.last_epoch) == (NEVER, 50)


def test_leaving_does_not_wait_for_an_answer_longer_than_its_patience() -> None:
    lifecycle = running()
    lifecycle.leave(T)
    sent(lifecycle.expire(T))
    end = at(lifecycle.config.leave_patience_ms)
    assert lifecycle.deadline() == end, "although the heartbeat is still out"
    (report,) = lifecycle.expire(end)
    assert isinstance(report, Report)
    assert lifecycle.role == ShutDown(clean=False)


def test_leaving_replaces_a_heartbeat_that_is_out() -> None:
    lifecycle = running()
    old = sent(lifecycle.expire(at(2000)))
    lifecycle.leave(at(2001))
    sent(lifecycle.expire(at(2001)))
    answer(lifecycle, old, BrokerHeartbeatResponse(should_shut_down=True), at(2002))
    assert isinstance(lifecycle.role, ShuttingDown), "that was no answer to the wish to leave"


def test_a_broker_that_never_registered_stops_at_once() -> None:
    lifecycle, _ = fresh()
    lifecycle.leave(T)
    assert lifecycle.role == ShutDown(clean=False)


# --- log directories that fail

LOST = (Uuid(b"d" * 16),)


def test_a_lost_directory_is_reported_at_once_though_a_heartbeat_is_out() -> None:
    lifecycle = running()
    out = sent(lifecycle.expire(lifecycle.deadline()))
    lifecycle.directories_failed(LOST, at(5000))
    reported = sent(lifecycle.expire(at(5000)))
    assert reported.message.offline_log_dirs == LOST
    assert answer(lifecycle, out, BrokerHeartbeatResponse(is_fenced=False), at(5001)) == []
    assert lifecycle.report_until < NEVER, "the earlier heartbeat did not say so"
    answer(lifecycle, reported, BrokerHeartbeatResponse(is_fenced=False), at(5002))
    assert lifecycle.report_until == NEVER


def test_it_is_reported_with_every_heartbeat_and_left_out_of_every_registration() -> None:
    lifecycle = running()
    lifecycle.directories_failed(LOST, at(5000))
    answer(lifecycle, sent(lifecycle.expire(at(5000))), BrokerHeartbeatResponse(is_fenced=False), at(5001))
    again = sent(lifecycle.expire(lifecycle.deadline()))
    assert again.message.offline_log_dirs == LOST
    answer(lifecycle, again, BrokerHeartbeatResponse(error_code=E.STALE_BROKER_EPOCH), at(9000))
    assert sent(lifecycle.expire(at(9000))).message.log_dirs == ()


def test_a_loss_that_cannot_be_reported_ends_the_node() -> None:
    lifecycle = running()
    lifecycle.directories_failed(LOST, at(5000))
    until = 5000 + lifecycle.config.directory_failure_timeout_ms
    question = sent(lifecycle.expire(at(5000)))
    while lifecycle.deadline() < at(until):
        now = lifecycle.deadline()
        if lifecycle.in_flight == 0:
            question = sent(lifecycle.expire(now))
        lifecycle.step(Failed(question.token, Failure.TIMED_OUT), now)
    (halt,) = lifecycle.expire(at(until))
    assert isinstance(halt, Halt)
    assert halt.status == 1


def test_which_directories_are_cordoned_is_said_when_the_metadata_is_known_and_at_once_when_it_changes() -> None:
    lifecycle = registered()
    directories = IDENTITY.log_dirs
    lifecycle.next_send = T
    first = sent(lifecycle.expire(T))
    assert first.message.cordoned_log_dirs is None
    answer(lifecycle, first, BrokerHeartbeatResponse(is_fenced=True))
    lifecycle.metadata_moved(51, T)
    second = sent(lifecycle.expire(T))
    assert second.message.cordoned_log_dirs == ()
    answer(lifecycle, second, BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert lifecycle.expire(at(1)) == []
    lifecycle.directories_cordoned((), at(1))
    assert lifecycle.expire(at(1)) == []
    lifecycle.directories_cordoned(directories, at(2))
    assert sent(lifecycle.expire(at(2))).message.cordoned_log_dirs == directories


def test_directories_with_one_id_are_for_the_controller_to_refuse() -> None:
    """Somebody has copied one, with its `meta.properties`."""
    lifecycle = registered()
    lifecycle.directories_failed(LOST * 2, at(1))
    lifecycle.directories_cordoned(LOST * 2, at(1))
    assert sent(lifecycle.expire(at(1))).message.offline_log_dirs == LOST * 2


@pytest.mark.parametrize("code", [-32768, -2, 32766])
def test_an_error_that_nobody_knows_is_a_refusal_and_no_crash(code: int) -> None:
    lifecycle, question = fresh()
    (report,) = answer(lifecycle, question, BrokerRegistrationResponse(error_code=code, broker_epoch=50))
    assert isinstance(report, Report)
    lifecycle = running()
    heartbeat = sent(lifecycle.expire(at(2_000)))
    assert answer(lifecycle, heartbeat, BrokerHeartbeatResponse(error_code=code), at(2_000)) == []
    assert lifecycle.is_unfenced


def test_a_broker_epoch_that_is_no_offset_is_not_taken() -> None:
    lifecycle, question = fresh()
    answer(lifecycle, question, BrokerRegistrationResponse(error_code=E.NONE, broker_epoch=-(1 << 63)))
    assert isinstance(lifecycle.role, Registering)
    assert lifecycle.last_epoch < 0


# --- replicas that lost records

ONE, TWO = (TopicIdPartition(Uuid(b"t" * 16), n) for n in (1, 2))
TORN = Withdrawn(50, 100, Cause.SHORT, 7)


def said(question: ToController) -> list[tuple[int, int, int, int]]:
    rows = [row for topic in question.message.lost_replicas for row in topic.partitions]
    return [(row.partition_index, row.start, row.end, row.cause) for row in rows]


def test_what_the_logs_lack_is_said_with_the_first_registration() -> None:
    lifecycle = Lifecycle(IDENTITY, LifecycleConfig())
    lifecycle.replicas_lost({ONE: TORN, TWO: TORN}, T)
    question = sent(lifecycle.expire(T))
    assert type(question.message) is BrokerRegistrationRequest
    assert said(question) == [(1, 50, 100, Cause.SHORT), (2, 50, 100, Cause.SHORT)]
    assert [topic.topic_id for topic in question.message.lost_replicas] == [ONE.topic_id]


def test_a_broker_registers_the_protocol_of_each_listener() -> None:
    listeners = {"PLAINTEXT": Endpoint("here", 9092), "INSIDE": Endpoint("here", 9094)}
    lifecycle = Lifecycle(replace(IDENTITY, listeners=listeners, protocols={"INSIDE": 1}), LifecycleConfig())
    question = sent(lifecycle.expire(T))
    assert [(at.name, at.security_protocol) for at in question.message.listeners] == [("PLAINTEXT", 0), ("INSIDE", 1)]


def test_it_is_said_until_a_controller_has_answered_and_not_after_that() -> None:
    lifecycle = running()
    lifecycle.replicas_lost({ONE: TORN}, at(1))
    for failure in (E.NOT_CONTROLLER, E.NOT_CONTROLLER):
        question = sent(lifecycle.expire(lifecycle.deadline()))
        assert said(question) == [(1, 50, 100, Cause.SHORT)]
        answer(lifecycle, question, BrokerHeartbeatResponse(error_code=failure), at(1))
    question = sent(lifecycle.expire(lifecycle.deadline()))
    lifecycle.step(Failed(question.token, Failure.TIMED_OUT), at(500))
    question = sent(lifecycle.expire(lifecycle.deadline()))
    assert said(question) == [(1, 50, 100, Cause.SHORT)]
    answer(lifecycle, question, BrokerHeartbeatResponse(is_fenced=False), at(700))
    assert said(sent(lifecycle.expire(lifecycle.deadline()))) == []


def test_it_is_said_at_once_though_a_heartbeat_is_out_whose_answer_settles_nothing() -> None:
    lifecycle = running()
    out = sent(lifecycle.expire(lifecycle.deadline()))
    lifecycle.replicas_lost({ONE: TORN}, at(5000))
    reported = sent(lifecycle.expire(at(5000)))
    answer(lifecycle, out, BrokerHeartbeatResponse(is_fenced=False), at(5001))
    assert lifecycle.lost == {ONE: TORN}
    lifecycle.replicas_lost({TWO: TORN}, at(5002))
    answer(lifecycle, reported, BrokerHeartbeatResponse(is_fenced=False), at(5003))
    assert said(sent(lifecycle.expire(at(5003)))) == [(1, 50, 100, Cause.SHORT), (2, 50, 100, Cause.SHORT)]


def test_a_broker_that_was_registered_before_it_found_out_says_it_before_it_is_let_in() -> None:
    lifecycle = registered()
    lifecycle.replicas_lost({ONE: TORN}, T)
    lifecycle.metadata_moved(51, T)
    question = sent(lifecycle.expire(T))
    assert type(question.message) is BrokerHeartbeatRequest
    assert said(question) == [(1, 50, 100, Cause.SHORT)]
    answer(lifecycle, question, BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True))
    assert not lifecycle.is_unfenced
    assert said(sent(lifecycle.expire(lifecycle.deadline()))) == []


def test_what_was_found_while_it_took_part_is_said_by_a_heartbeat_too() -> None:
    """A registration counts for who is in ISR or ELR alone: it may be in neither, and proposed already."""
    lifecycle = Lifecycle(IDENTITY, LifecycleConfig())
    damaged = Withdrawn(50, 100, Cause.DAMAGED, 7, cut_at=50)
    lifecycle.replicas_lost({ONE: TORN, TWO: damaged}, T)
    answer(lifecycle, sent(lifecycle.expire(T)), BrokerRegistrationResponse(broker_epoch=50))
    lifecycle.metadata_moved(51, T)
    question = sent(lifecycle.expire(lifecycle.deadline()))
    assert said(question) == [(2, 50, 100, Cause.DAMAGED)]
    answer(lifecycle, question, BrokerHeartbeatResponse(is_fenced=True))
    assert lifecycle.lost == {}


def test_who_leaves_says_it_too() -> None:
    lifecycle = running()
    lifecycle.replicas_lost({ONE: TORN}, at(1))
    lifecycle.leave(at(2))
    question = sent(lifecycle.expire(at(2)))
    assert said(question) == [(1, 50, 100, Cause.SHORT)]
    answer(lifecycle, question, BrokerHeartbeatResponse(should_shut_down=True), at(3))
    assert lifecycle.lost == {}
