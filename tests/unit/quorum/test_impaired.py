"""A voter whose metadata was damaged while it was down: it gives no vote until it has what is committed."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.quorum.memory_log import MemoryLog
from tests.unit.quorum.network import World
from tests.unit.quorum.play import CLUSTER, Play

from strandline.base.effects import Answered, Failed, Failure
from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, NOBODY, NodeId
from strandline.quorum.elections.election_state import (
    SHORT,
    VOTES_LOST,
    ElectionState,
    decode_quorum_state,
    encode_election,
)
from strandline.quorum.elections.epochs import REACH
from strandline.quorum.roles import Follower, Observing, Seeking, Voted
from strandline.quorum.storage.evidence import SAVE_EVERY_MS
from strandline.quorum.tokens import CensusSent
from strandline.wire.messages.cluster.describe_quorum import (
    DescribeQuorumResponse,
    PartitionDataResponse,
    TopicDataResponse,
)


def applied(log: Any) -> int:
    return decode_quorum_state(log.quorum_state, "quorum-state")[1]


def log_of(world: World, node: int) -> Any:
    return world.machines[NodeId(node)].log


def committed_on_two(seed: int = 1) -> tuple[World, int, int, int]:
    """Records are committed on `first`, which leads, and on `second`; `third` lacks them."""
    world = World(seed, 3)
    world.start()
    world.run_until(world.is_caught_up, 3000)
    leader = world.leader()
    assert leader is not None
    first = int(leader.me)
    second, third = (int(voter) for voter in leader.state.others)
    world.isolate(third)
    for value in (b"a", b"b", b"c"):
        world.append(first, value)
    world.run(SAVE_EVERY_MS + 1000)
    world.kill(third)
    world.heal()
    return world, first, second, third


def truncate(log: Any, records: int) -> None:
    log.entries = log.entries[:records]
    log.durable = log.content()


def shorten(log: Any) -> None:
    truncate(log, 1)


def forget(log: Any) -> None:
    log.quorum_state = None


def damage(log: Any) -> None:
    log.quorum_state = b"\0" * 100


def make_older(log: Any) -> None:
    log.quorum_state = encode_election(ElectionState(log.last_epoch - 1), CLUSTER, [NodeId(1)], log.log_end_offset)


@pytest.mark.parametrize("harm", [shorten, forget, damage, make_older])
def test_with_the_vote_of_a_damaged_voter_no_candidate_wins_that_lacks_committed_metadata(
    harm: Callable[[Any], None],
) -> None:
    world, first, second, third = committed_on_two()
    world.kill(second)
    world.kill(first)
    harm(log_of(world, second))
    shorten(log_of(world, second))
    world.start(second, third)
    world.run(15_000)
    assert world.leader() is None
    world.start(first)
    world.run_until(world.is_caught_up, 8000)
    leader = world.leader()
    assert leader is not None
    assert leader.me == first
    assert all(world.committed_values(node) == [b"a", b"b", b"c"] for node in (first, second, third))
    world.run_until(lambda: world.quorum(second).state.has_a_say, 3000)


@pytest.mark.parametrize("harm", [shorten, forget, damage, make_older])
def test_each_of_these_is_evidence(harm: Callable[[Any], None]) -> None:
    world, _, second, _ = committed_on_two()
    world.kill(second)
    harm(log_of(world, second))
    world.start(second)
    assert not world.quorum(second).state.has_a_say


def test_it_votes_again_after_it_has_caught_up() -> None:
    world, first, second, third = committed_on_two()
    world.kill(second)
    shorten(log_of(world, second))
    world.start(second, third)
    world.run_until(lambda: world.quorum(second).state.has_a_say, 8000)
    world.run_until(lambda: applied(log_of(world, second)) == world.quorum(second).high_watermark, 8000)
    world.kill(first)
    world.run_until(lambda: world.leader() is not None and world.quorum(second).leader_id != NOBODY, 8000)


def test_its_fetches_count_for_what_is_committed() -> None:
    world, first, second, third = committed_on_two()
    world.kill(second)
    forget(log_of(world, second))
    world.start(second)
    last = world.append(first, b"d")
    world.run_until(lambda: world.quorum(first).high_watermark > last, 3000)
    assert not world.quorum(second).state.has_a_say  # the third has not told its epoch
    world.start(third)
    world.run_until(lambda: world.quorum(second).state.has_a_say, 5000)


def test_where_votes_are_known_nobody_else_needs_to_be_asked() -> None:
    world, _, second, _ = committed_on_two()
    world.kill(second)
    shorten(log_of(world, second))
    world.start(second)
    world.run_until(lambda: world.quorum(second).state.has_a_say, 5000)


def test_after_a_clean_stop_every_committed_record_is_missed() -> None:
    world = World(1, 3)
    world.start()
    world.run_until(world.is_caught_up, 3000)
    leader = world.leader()
    assert leader is not None
    node = int(leader.state.others[0])
    last = world.append(leader.me, b"a")
    world.run_until(lambda: world.quorum(node).high_watermark > last, 1000)
    assert applied(log_of(world, node)) <= last  # not due yet
    machine = world.machines[NodeId(node)]
    world.perform(machine, world.quorum(node).close(world.now))
    world.run_until(lambda: world.quorum(node).is_closed, 1000)
    assert applied(machine.log) == machine.log.log_end_offset == world.quorum(node).high_watermark
    world.kill(node)
    truncate(machine.log, len(machine.log.entries) - 1)
    world.start(node)
    assert not world.quorum(node).state.has_a_say


def test_an_older_image_of_the_whole_folder_looks_whole() -> None:
    """Nothing in it says that there was more: this is outside the promise."""
    world, _, second, _ = committed_on_two()
    log = log_of(world, second)
    log.entries, log.quorum_state = (
        log.entries[:1],
        encode_election(world.quorum(second).state.election, CLUSTER, [], 1),
    )
    world.kill(second)
    world.start(second)
    assert world.quorum(second).state.has_a_say


def test_after_a_snapshot_the_evidence_is_saved() -> None:
    world, first, second, _ = committed_on_two()
    last = world.append(first, b"d")
    world.run_until(lambda: world.quorum(second).high_watermark > last, 1000)
    assert applied(log_of(world, second)) <= last
    world.snapshot(second)
    world.append(first, b"e")
    world.run(100)
    assert applied(log_of(world, second)) > last


def test_an_operator_accepts_what_is_lost() -> None:
    """As docs/recovery.md has it: one voter is kept, the others begin as new ones."""
    world, first, second, third = committed_on_two()
    world.kill(first)
    world.kill(second)
    forget(log_of(world, second))
    epoch = world.machines[NodeId(second)].log.last_epoch + 1
    log_of(world, second).quorum_state = encode_election(ElectionState(epoch), CLUSTER, [], 0)
    for lost in (first, third):
        world.machines[NodeId(lost)].log = MemoryLog()
    world.start(first, second, third)
    world.run_until(world.is_caught_up, 5000)
    assert world.quorum(second).is_leader
    assert world.committed_values(first) == [b"a", b"b", b"c"]


# --- one voter on the stage


def play(**words: str) -> tuple[Play, list[str]]:
    stage = Play()
    return stage, stage.show_all(stage.new(**words))


def test_a_new_voter_is_whole() -> None:
    stage = Play()
    stage.new("1", "1,2,3")
    log = MemoryLog()
    assert log.read_quorum_state() is None
    machine = World(1, 3)
    machine.start(1)
    assert machine.quorum(1).state.has_a_say


def test_it_says_what_is_missing_and_what_to_do() -> None:
    _, lines = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied="5")
    (line,) = [line for line in lines if line.startswith("error")]
    assert "ends at 2, and it was committed and durable here up to 5" in line
    assert "Start the other voters (2, 3); do not empty this one's directory" in line


def test_it_grants_no_vote_and_no_pre_vote_and_never_stands() -> None:
    stage, _ = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied="5")
    assert stage.perform("vote", {"by": "3", "epoch": "4", "last": "9@4", "pre": "yes"}).startswith("<- not granted")
    assert "<- not granted" in stage.perform("vote", {"by": "3", "epoch": "5", "last": "9@4"})
    for _ in range(20):
        assert isinstance(stage.quorum.state.role, Seeking)
        peer = next(
            peer
            for peer, send in stage.sent.items()
            if getattr(send.token, "number", 0) == stage.quorum.state.role.fetching.request
        )
        assert stage.perform("failed", {"peer": str(peer), "why": "refused"}).count("->") == 0
        assert "fetch" in stage.perform("wait", {})


def test_an_intact_log_votes() -> None:
    stage, lines = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied="2")
    assert not lines
    assert "<- granted" in stage.perform("vote", {"by": "3", "epoch": "5", "last": "9@4"})
    assert isinstance(stage.quorum.state.role, Voted)


@pytest.mark.parametrize("mark", [SHORT, VOTES_LOST])
def test_the_impairment_outlives_a_restart(mark: int) -> None:
    stage, _ = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied=str(mark))
    assert not stage.quorum.state.has_a_say
    stage.perform("begin", {"by": "2", "epoch": "6"})
    assert applied(stage.quorum.state.log) == mark


def test_a_short_log_is_marked_at_once() -> None:
    stage, lines = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied="5")
    assert [line for line in lines if line.startswith("save")]
    assert applied(stage.quorum.state.log) == SHORT


def test_what_was_committed_before_a_leader_has_committed_of_its_own_is_not_enough() -> None:
    """Its high watermark may be an old one."""
    stage, _ = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied="5")
    stage.perform("begin", {"by": "2", "epoch": "5"})
    stage.perform("fetched", {"by": "2", "epoch": "5", "records": "2@4", "hw": "3"})
    stage.perform("fetched", {"by": "2", "epoch": "5", "records": "3@4", "hw": "3"})
    assert isinstance(stage.quorum.state.role, Observing)
    stage.perform("fetched", {"by": "2", "epoch": "5", "records": "4@5", "hw": "4"})
    assert isinstance(stage.quorum.state.role, Observing)
    stage.perform("fetched", {"by": "2", "epoch": "5", "hw": "5"})
    assert isinstance(stage.quorum.state.role, Follower)
    assert applied(stage.quorum.state.log) == 5


def test_what_is_not_durable_is_not_enough() -> None:
    stage, _ = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied="5")
    stage.perform("begin", {"by": "2", "epoch": "5"})
    stage.slow()
    stage.perform("fetched", {"by": "2", "epoch": "5", "records": "2@5", "hw": "3"})
    assert isinstance(stage.quorum.state.role, Observing)
    stage.perform("synced", {})
    assert isinstance(stage.quorum.state.role, Follower)


def test_the_evidence_is_never_more_than_what_is_durable() -> None:
    stage, _ = play(me="1", voters="1,2,3", epoch="5", log="1,4", applied="0")
    stage.perform("begin", {"by": "2", "epoch": "5"})
    stage.slow()
    stage.now = type(stage.now)(2 * SAVE_EVERY_MS)
    stage.perform("fetched", {"by": "2", "epoch": "5", "records": "2@5", "hw": "3"})
    assert applied(stage.quorum.state.log) == 2


def test_a_save_of_the_evidence_lets_out_no_promise() -> None:
    stage, _ = play(me="1", voters="1,2,3", epoch="5", log="1,5")
    stage.perform("begin", {"by": "2", "epoch": "5"})
    stage.slow()
    stage.now = type(stage.now)(2 * SAVE_EVERY_MS)
    assert "save epoch=5" in stage.perform("fetched", {"by": "2", "epoch": "5", "hw": "2"})
    shown = stage.perform("vote", {"by": "3", "epoch": "6", "last": "9@5"})
    assert "granted" not in shown
    assert "save" not in shown  # one at a time
    shown = stage.perform("synced", {})
    assert "granted" not in shown
    assert "save epoch=6 leader=-1 voted=3" in shown
    assert "<- granted" in stage.perform("synced", {})


def test_what_an_earlier_process_knew_to_be_committed_is_not_cut() -> None:
    stage, _ = play(me="1", voters="1,2,3", epoch="4", log="1,4,4,4", applied="3")
    stage.perform("begin", {"by": "2", "epoch": "5"})
    assert "refused" in stage.perform("fetched", {"by": "2", "epoch": "5", "diverging": "2@4"})
    assert stage.quorum.state.log.log_end_offset == 4


def test_a_sole_voter_goes_on_with_what_it_has_and_says_what_is_gone() -> None:
    stage, lines = play(me="1", voters="1", epoch="4", log="1,4", applied="5")
    assert "what is missing is gone" in "\n".join(lines)
    assert stage.quorum.is_leader


def test_a_sole_voter_with_an_unreadable_vote_does_not_start() -> None:
    world = World(1, 1)
    damage(log_of(world, 1))
    with pytest.raises(ValueError, match="quorum-state"):
        world.start(1)


def census_answer(epoch: int) -> DescribeQuorumResponse:
    partition = PartitionDataResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=NOBODY, leader_epoch=epoch)
    return DescribeQuorumResponse(topics=(TopicDataResponse(topic_name=METADATA_TOPIC, partitions=(partition,)),))


def test_the_epochs_of_all_others_count_where_votes_are_lost() -> None:
    """A forgotten vote may be of the latest of them."""
    stage, _ = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied=str(VOTES_LOST))
    census = stage.quorum.state.evidence.impairment.census  # type: ignore[union-attr]
    stage.quorum.step(Answered(CensusSent(NodeId(3)), census_answer(REACH + 9)), stage.now)
    assert NodeId(3) in census.due  # no voter can be so far ahead
    stage.quorum.step(Answered(CensusSent(NodeId(3)), census_answer(7)), stage.now)
    assert stage.quorum.leader_epoch == 7
    assert NodeId(3) not in census.due
    stage.quorum.step(Failed(CensusSent(NodeId(2)), Failure.REFUSED), stage.now)
    assert NodeId(2) in census.due


def test_a_voter_that_waits_says_so_again() -> None:
    stage, _ = play(me="1", voters="1,2,3", epoch="4", log="1,4", applied="5")
    stage.now = type(stage.now)(70_000)
    peer = next(iter(stage.sent))
    assert "knows no leader" in stage.perform("failed", {"peer": str(peer), "why": "refused"})
    assert "knows no leader" not in stage.perform("wait", {})
