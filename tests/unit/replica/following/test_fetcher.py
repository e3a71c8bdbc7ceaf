"""How a broker copies from another: one fetch in flight, sessions, retries."""

from typing import Any

from strandline.base.effects import Answered, Caller, Failed, Failure, ReplyTo, Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, NodeId
from strandline.metadata import records as r
from strandline.replica.tokens import FetchSent
from strandline.wire.messages.records.fetch import FetchResponse

CALLER = Caller("client", "127.0.0.1", "PLAINTEXT", is_node=True)


def fetches(world: Any, node: int) -> list[Any]:
    return [e for sender, e in world.sent_by if sender == node and isinstance(e, Send)]


def test_one_fetch_is_in_flight_and_names_only_what_changed(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1)
    world.run(1_000)
    first, *others = [effect.message for effect in fetches(world, 2)]
    assert (first.session_epoch, len(first.topics)) == (0, 1)
    assert [message.session_epoch for message in others] == list(range(1, len(others) + 1))
    assert sum(len(message.topics) for message in others) == 1  # after the one append
    assert len([to for to, (asker, _) in world.asked_of_peers.items() if asker == 2]) == 1


def test_a_leader_that_refuses_connections_is_tried_again_soon(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.cut = {1}
    world.run(1_000)
    world.sent_by.clear()
    world.run(1_000)
    assert len(fetches(world, 2)) == 10


def test_a_leader_that_does_not_answer_is_tried_again_after_the_backoff(world: Any) -> None:
    world.create()
    world.run(100)
    (sent,) = fetches(world, 2)[-1:]
    world.asked_of_peers = {to: at for to, at in world.asked_of_peers.items() if at[0] != 2}
    world.sent_by.clear()
    world.perform(NodeId(2), world.nodes[2].step(Failed(sent.token, Failure.TIMED_OUT), world.now))
    world.run(999)
    assert fetches(world, 2) == []
    world.run(1)
    (again, *_) = fetches(world, 2)
    assert again.message.session_epoch == 0


def test_a_leader_that_registers_anew_is_tried_at_once(world: Any) -> None:
    world.create()
    world.run(100)
    (sent,) = fetches(world, 2)[-1:]
    world.perform(NodeId(2), world.nodes[2].step(Failed(sent.token, Failure.TIMED_OUT), world.now))
    world.sent_by.clear()
    world.commit(r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=-1))
    assert len(fetches(world, 2)) == 1


def test_a_follower_that_registers_anew_reports_all_positions_again(world: Any) -> None:
    """An idle partition of the old session would bear the old broker epoch, and be kept out of the ISR, for good."""
    world.create()
    world.run(1_000)
    world.nodes[2].broker_epoch = BrokerEpoch(world.nodes[2].broker_epoch + 1000)
    world.sent_by.clear()
    world.run(600)
    first = fetches(world, 2)[0].message
    assert (first.session_epoch, len(first.topics)) == (0, 1)
    assert first.replica_state.replica_epoch == world.nodes[2].broker_epoch


def test_a_follower_says_which_high_watermark_it_knows(world: Any) -> None:
    """KIP-1166: its leader answers at once where that is behind."""
    world.create()
    world.produce(1, 3)
    world.run(1_000)
    world.nodes[2].broker_epoch = BrokerEpoch(world.nodes[2].broker_epoch + 1000)  # all positions are told again
    world.sent_by.clear()
    world.run(600)
    asked = fetches(world, 2)[0].message.topics[0].partitions[0]
    assert (asked.fetch_offset, asked.high_watermark) == (3, 3)


def test_a_lost_session_is_opened_anew_at_once(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.nodes[1].fetching.sessions.sessions.clear()
    world.run(600)
    answer = world.produce(1)
    world.run(100)
    assert answer().error_code == ErrorCode.NONE


def test_a_leader_without_room_for_sessions_is_asked_in_full_each_time(world: Any) -> None:
    world.nodes[1].fetching.sessions.has_room = lambda size, replica, now: False
    world.create()
    world.run(1_000)
    answer = world.produce(1)
    world.run(1_000)
    assert answer().error_code == ErrorCode.NONE
    assert {effect.message.session_epoch for effect in fetches(world, 2)} == {0}


def test_an_error_of_a_full_fetch_does_not_spin(world: Any) -> None:
    world.create()
    fetcher = world.nodes[2].fetchers.by_leader[1]
    fetcher.new_session()
    refused = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    token = FetchSent(NodeId(1), fetcher.sequence)
    assert world.nodes[2].step(Answered(token, refused), world.now) == []
    assert world.nodes[2].deadline() <= world.now + 1_000


def test_an_answer_to_an_earlier_fetch_is_ignored(world: Any) -> None:
    world.create()
    world.run(1_000)
    fetcher = world.nodes[2].fetchers.by_leader[1]
    token = FetchSent(NodeId(1), fetcher.sequence - 1)
    assert world.nodes[2].step(Failed(token, Failure.CLOSED), world.now) == []
    assert fetcher.is_in_flight


def test_a_follower_whose_metadata_is_ahead_waits_for_the_leader_to_hear_of_it(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.change(leader=2, isr=(1, 2, 3), skip=(2,))
    world.run(1_000)
    assert world.row(3)[:2] == ("follower", 1)
    world.catch_up(NodeId(2))
    answer = world.produce(2)
    world.run(700)
    assert answer().error_code == ErrorCode.NONE


def test_an_old_full_fetch_that_comes_late_does_not_keep_the_follower_out_for_good(world: Any) -> None:
    """It says where the follower was. The session goes anew, and says where it is."""
    world.create()
    world.run(100)
    (old,) = [effect for effect in fetches(world, 2) if effect.message.session_epoch == 0]
    world.produce(1)
    world.run(1_000)
    (leader,) = [hosted.role for hosted in world.nodes[1].host.partitions.all()]
    assert leader.followers[2].log_end_offset == leader.log.log_end_offset == 1
    late = ReplyTo(1, 0, 0, 1, old.version)
    world.perform(NodeId(1), world.nodes[1].fetch(late, CALLER, old.message, world.now))
    assert leader.followers[2].log_end_offset == 0
    world.run(1_000)
    assert leader.followers[2].log_end_offset == 1
