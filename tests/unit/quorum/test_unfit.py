"""A node whose log has a record that it cannot apply: it compares with the leader before it cuts, goes on, or stops."""

import pytest
from tests.unit.quorum.memory_log import MemoryLog
from tests.unit.quorum.network import World
from tests.unit.quorum.play import batch
from tests.unit.quorum.test_impaired import applied, committed_on_two, log_of

from strandline.base.ids import NodeId
from strandline.quorum.elections.election_state import SHORT, VOTES_LOST
from strandline.quorum.ports import EpochEnd, SnapshotId, Unfit
from strandline.quorum.roles import Leader, Observing

VALUES = [b"a", b"b", b"c"]


def place_of(log: MemoryLog, value: bytes) -> int:
    return next(at for at, entry in enumerate(log.entries) if value in entry[3])


def found(world: World, node: int, value: bytes) -> Unfit:
    """The next start of this node finds that the record with `value` cannot be applied."""
    log = log_of(world, node)
    at = place_of(log, value)
    offset = log.entries[at][0]
    unfit = Unfit(EpochEnd(log.entries[at - 1][2], offset), offset, f"the record at {offset} cannot be applied")
    world.unfit[NodeId(node)] = unfit
    return unfit


def spoil(world: World, node: int, value: bytes) -> Unfit:
    """The same, and it is another record than was written there."""
    unfit = found(world, node, value)
    log = log_of(world, node)
    at = place_of(log, value)
    base, last, epoch, _ = log.entries[at]
    log.entries[at] = (base, last, epoch, batch(base, epoch, (b"nonsense",)))
    log.durable = log.content()
    return unfit


def was_reported(world: World, text: str) -> bool:
    return any(text in report.text for report in world.reports)


def test_what_the_leader_has_otherwise_is_cut_and_copied_again_and_then_the_voter_votes() -> None:
    world, _, second, _ = committed_on_two()
    world.kill(second)
    unfit = spoil(world, second, b"b")
    world.start(second)
    assert not world.quorum(second).state.has_a_say
    assert world.quorum(second).state.log_end == unfit.sound
    world.run_until(lambda: world.quorum(second).state.unfit is None, 5000)
    world.run_until(lambda: world.quorum(second).state.has_a_say, 5000)
    assert world.committed_values(second) == VALUES
    assert was_reported(world, "cannot be applied") and was_reported(world, "is copied again")


def test_before_a_voter_cuts_it_has_noted_that_it_lost_metadata() -> None:
    world, _, second, _ = committed_on_two()
    world.kill(second)
    spoil(world, second, b"c")
    log = log_of(world, second)
    before, entries = applied(log), list(log.entries)
    world.start(second)
    assert applied(log) == before
    world.run_until(lambda: log.entries != entries, 5000)
    assert applied(log) == SHORT


def test_where_votes_are_lost_too_the_note_stays_as_it_is() -> None:
    world, _, second, _ = committed_on_two()
    world.kill(second)
    spoil(world, second, b"c")
    log = log_of(world, second)
    log.quorum_state = None
    world.save_ms = 300  # the leader answers before
    world.start(second)
    world.run_until(lambda: world.quorum(second).state.unfit is None, 5000)
    world.run(1000)
    assert applied(log) == VOTES_LOST


def test_it_neither_stands_nor_votes_and_nothing_is_cut_while_nobody_leads() -> None:
    world, first, second, third = committed_on_two()
    world.kill(second)
    world.kill(first)
    spoil(world, second, b"b")
    log = log_of(world, second)
    before, entries = applied(log), list(log.entries)
    world.start(second, third)
    world.run(70_000)
    assert world.leader() is None
    assert (applied(log), log.entries) == (before, entries)
    assert sum("cannot be applied; it knows no leader" in report.text for report in world.reports) == 2  # once a minute
    world.start(first)
    world.run_until(lambda: world.quorum(second).state.has_a_say, 8000)
    assert all(world.committed_values(node) == VALUES for node in (first, second, third))


def test_the_same_on_the_leader_is_the_end_and_nothing_is_cut() -> None:
    world, first, second, _ = committed_on_two()
    world.kill(second)
    unfit = found(world, second, b"b")
    log = log_of(world, second)
    before, entries = applied(log), list(log.entries)
    world.start(second)
    world.run_until(lambda: bool(world.quorum(second).state.verdict), 5000)
    verdict = world.quorum(second).state.verdict
    assert verdict.startswith(f"{unfit.text}. Node {first}, which leads, has the same. Start the version that wrote it")
    world.run(10_000)
    assert (applied(log), log.entries) == (before, entries)
    assert not world.quorum(second).state.has_a_say
    assert world.quorum(second).high_watermark <= unfit.offset


def test_a_leader_that_has_nothing_there_never_committed_it() -> None:
    world, first, second, third = committed_on_two()
    world.kill(second)
    log = log_of(world, second)
    end, epoch = log.log_end_offset, log.last_epoch
    log.append_as_follower(batch(end, epoch, (b"nonsense",)), epoch)
    log.durable = log.content()
    found(world, second, b"nonsense")
    world.start(second)
    world.run_until(lambda: world.quorum(second).state.has_a_say, 8000)
    world.start(third)
    world.append(first, b"d")
    world.run_until(lambda: all(world.committed_values(n) == [*VALUES, b"d"] for n in (first, second, third)), 8000)


def test_a_snapshot_takes_the_place_of_what_the_leader_has_no_longer() -> None:
    world, first, second, _ = committed_on_two()
    world.kill(second)
    spoil(world, second, b"a")
    world.snapshot(first)
    world.start(second)
    world.run_until(lambda: world.quorum(second).state.has_a_say, 8000)
    assert log_of(world, second).snapshots == log_of(world, first).snapshots


def test_an_observer_promised_nothing_and_cuts_at_once() -> None:
    world = World(1, 3, observers=1)
    world.start()
    world.run_until(world.is_caught_up, 3000)
    leader = world.leader()
    assert leader is not None
    for value in VALUES:
        world.append(leader.me, value)
    world.run_until(world.is_caught_up, 3000)
    world.kill(4)
    spoil(world, 4, b"b")
    world.start(4)
    world.run_until(lambda: world.quorum(4).state.unfit is None, 3000)
    assert isinstance(world.quorum(4).state.role, Observing)
    world.run_until(lambda: world.committed_values(4) == VALUES, 3000)


def test_a_voter_without_others_to_copy_from_stops_and_does_not_lead() -> None:
    world = World(1, 1)
    world.start()
    world.run_until(lambda: isinstance(world.quorum(1).state.role, Leader), 3000)
    world.append(1, b"a")
    world.run(100)
    world.kill(1)
    unfit = found(world, 1, b"a")
    world.start(1)
    assert world.quorum(1).state.verdict.startswith(f"{unfit.text}. There is no other voter to copy it from")
    world.run(10_000)
    assert not isinstance(world.quorum(1).state.role, Leader)


@pytest.mark.parametrize("value", [b"a", b"c"])
def test_it_claims_only_what_is_sound(value: bytes) -> None:
    """Its Fetches count for what is committed: records from there on are not its own."""
    world, first, second, _ = committed_on_two()
    world.kill(second)
    unfit = found(world, second, value)
    world.start(second)
    world.append(first, b"d")
    world.run_until(lambda: bool(world.quorum(second).state.verdict), 5000)
    role = world.quorum(first).state.role
    assert isinstance(role, Leader)
    assert role.progress[NodeId(second)].end_offset == unfit.sound.end_offset


def test_a_snapshot_above_what_does_not_fit_proves_nothing_to_be_in_the_log() -> None:
    """As long as the log begins at 0 it is replayed from there, whatever snapshots there are."""
    world, _, second, _ = committed_on_two()
    world.kill(second)
    unfit = spoil(world, second, b"b")
    log = log_of(world, second)
    log.snapshots[SnapshotId(log.log_end_offset, log.last_epoch)] = b"later"
    log.durable = log.content()
    assert unfit.sound.end_offset < log.log_end_offset
    world.start(second)
    assert world.quorum(second).high_watermark <= unfit.sound.end_offset
    world.run_until(lambda: world.quorum(second).state.has_a_say, 5000)
    assert world.committed_values(second) == VALUES
