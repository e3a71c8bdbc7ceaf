"""Replicas that lost records: what a start finds, and what happens to them until metadata has them out of the ISR."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World
from tests.unit.replica.losses.test_losing import noted

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.evidence.inventory import Left
from strandline.metadata.losses import EXACTLY, Cause, withdrawal
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.leader import Leader
from strandline.replica.hosting.withdrawals import Withdrawals, Withdrawn
from strandline.replica.replicas import Replicas
from strandline.replica.withdrawing import left_in

ME = NodeId(2)
FOLDER = "/data2/t-0"
SEGMENT = f"{FOLDER}/00000000000000000000.log"
Found = tuple[int, int, Cause]


@pytest.fixture
def world() -> World:
    """t-0 with 6 records in three segments on brokers 1, 2 and 3, of which broker 1 leads; all are committed."""
    made = World()
    made.create(segment_bytes="150")
    made.run(1_000)
    for _ in range(6):
        made.produce(1)
    made.run(70_000)
    assert len(log_of(made).segments) == 3
    return made


def log_of(world: World, node: NodeId = ME):  # type: ignore[no-untyped-def]
    hosted = world.nodes[node].host.partitions.find(AT)
    assert hosted is not None
    return hosted.log


def withdrawals(world: World, node: NodeId = ME) -> Withdrawals:
    return world.nodes[node].host.withdrawals


def stopped(world: World, node: NodeId = ME) -> LogsLeft:
    """In order. How its logs are left."""
    replicas = world.nodes[node]
    replicas.shutdown(world.now)
    (log_dir,) = replicas.host.directories.live
    replicas.close()
    left = left_in(replicas.host, world.disks[node], log_dir)
    world.kill(node)
    return {log_dir.path: left}


def found(world: World, node: NodeId = ME) -> dict[TopicIdPartition, Found]:
    return {at: (lost.start, lost.end, lost.cause) for at, lost in withdrawals(world, node).held.items()}


def test_a_stop_in_order_leaves_what_the_next_start_finds(world: World) -> None:
    left = stopped(world)
    world.start(ME, left=left)
    assert found(world) == {}
    world.run(1_000)
    assert world.row(2)[:4] == ("follower", 0, 6, 6)


def test_a_leader_that_has_written_nothing_in_its_epoch_lost_nothing_by_a_stop(world: World) -> None:
    world.change(leader=2)
    assert log_of(world).latest_epoch == 1
    left = stopped(world)
    world.start(ME, left=left)
    assert found(world) == {}


# --- each thing that a start finds


def a_shorter_file(world: World) -> None:
    bases = sorted(path for path in world.disks[ME].files if path.startswith(FOLDER) and path.endswith(".log"))
    file = world.disks[ME].files[bases[-1]]
    file.truncate(len(file.content) // 2)


def no_folder(world: World) -> None:
    world.disks[ME].remove_tree(FOLDER)


def no_first_segment(world: World) -> None:
    for suffix in ("log", "index", "timeindex"):
        world.disks[ME].files.pop(f"{FOLDER}/{0:020d}.{suffix}", None)


def no_middle_segment(world: World) -> None:
    for suffix in ("log", "index", "timeindex"):
        world.disks[ME].files.pop(f"{FOLDER}/{2:020d}.{suffix}", None)


def other_batches(world: World) -> None:
    """Of the same length, and whole: out of another partition."""
    files = world.disks[ME].files
    last = f"{FOLDER}/{4:020d}.log"
    whole = bytes(files[last].content)
    log = log_of(world, NodeId(1))
    assert len(whole) and log.log_end_offset == 6
    from strandline.wire.batch import batches, build, patch, read_header

    made = bytearray()
    for header in batches(whole):
        one = bytearray(build([(1_600_000_000_000, None, b"VALUE", ())]))
        patch(memoryview(one), read_header(one), header.base_offset, header.partition_leader_epoch)
        made += one
    assert len(made) == len(whole)
    files[last].content[:] = made


FINDINGS: dict[str, tuple[Callable[[World], None], Found]] = {
    "a shorter file": (a_shorter_file, (5, 6, Cause.SHORT)),
    "no folder": (no_folder, (0, 6, Cause.MISSING)),
    "no first segment": (no_first_segment, (0, 6, Cause.SHORT)),
    "no segment in the middle": (no_middle_segment, (2, 6, Cause.SHORT)),
    "other batches of the same length": (other_batches, (4, 6, Cause.SHORT)),
}


@pytest.mark.parametrize(("damage", "expected"), FINDINGS.values(), ids=list(FINDINGS))
def test_what_is_not_as_the_stop_left_it_is_found_before_there_is_metadata(
    world: World, damage: Callable[[World], None], expected: Found
) -> None:
    left = stopped(world)
    damage(world)
    world.start(ME, left=left)
    assert found(world) == {AT: expected}
    assert withdrawals(world).news == withdrawals(world).held


@pytest.mark.parametrize("what", ["a shorter file", "no first segment", "no segment in the middle"])
def test_nor_is_what_was_taken_while_the_process_ran_and_did_not_look(world: World, what: str) -> None:
    damage, expected = FINDINGS[what]
    damage(world)
    left = stopped(world)
    world.start(ME, left=left)
    assert found(world) == {AT: expected}


def test_a_folder_and_checkpoints_of_some_time_ago_are_found() -> None:
    world = World()
    world.create()
    world.run(1_000)
    world.produce(1)
    stopped(world)
    disk = world.disks[ME]
    old = {path: bytes(file.content) for path, file in disk.files.items()}
    world.start(ME)
    world.run(1_000)
    world.produce(1)
    world.run(10_000)
    left = stopped(world)
    for path, content in old.items():
        disk.write_file(path, content)
    world.start(ME, left=left)
    assert found(world) == {AT: (1, 2, Cause.SHORT)}


def test_a_log_that_the_stop_does_not_name_is_of_elsewhere(world: World) -> None:
    stopped(world)
    world.start(ME, left={"/data2": ()})
    assert found(world) == {AT: (0, 6, Cause.ANOTHER)}


def test_of_a_log_that_the_stop_left_empty_nothing_can_be_lost() -> None:
    world = World()
    world.create()
    world.run(1_000)
    left = stopped(world)
    no_folder(world)
    world.start(ME, left=left)
    assert found(world) == {}


def test_a_log_below_its_saved_high_watermark_has_lost_records_also_where_no_stop_says_how_it_left_it(
    world: World,
) -> None:
    stopped(world)
    a_shorter_file(world)
    world.start(ME)
    assert found(world) == {AT: (5, 6, Cause.SHORT)}


@pytest.mark.parametrize(
    "file", ["replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
)
def test_a_damaged_checkpoint_alone_loses_nothing(world: World, file: str) -> None:
    """The marker says of each log what it was: by that the log is whole."""
    log_of(world).advance_log_start(1)
    left = stopped(world)
    world.disks[ME].write_file(f"/data2/{file}", b"nonsense")
    world.start(ME, left=left)
    assert found(world) == {}
    assert log_of(world).log_start_offset == 1


def test_after_an_unclean_stop_nothing_is_said_of_single_replicas(world: World) -> None:
    left = stopped(world)
    a_shorter_file(world)
    world.start(ME, clean=False, left=left)
    assert found(world) == {}, "the registration says -1 of all"


def test_a_log_that_is_not_as_it_was_left_is_checked_from_its_beginning(world: World) -> None:
    left = stopped(world)
    a_shorter_file(world)
    world.disks[ME].files[f"{FOLDER}/{2:020d}.log"].content[-1] ^= 1
    world.start(ME, left=left)
    assert found(world) == {AT: (3, 6, Cause.SHORT)}


# --- held, and back


def test_a_replica_that_lost_records_has_no_role_until_metadata_has_it_out_of_the_isr(world: World) -> None:
    left = stopped(world)
    a_shorter_file(world)
    world.start(ME, left=left)
    world.run(5_000)
    assert world.row(2)[0] == "stray"
    assert world.consume(2, 0)().error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.change(isr=(1, 3))
    world.run(5_000)
    assert (world.row(2)[0], world.row(2)[3], found(world)) == ("follower", 6, {})


def test_one_without_a_folder_begins_no_log_before_that(world: World) -> None:
    left = stopped(world)
    no_folder(world)
    world.start(ME, left=left)
    world.run(5_000)
    assert not list(world.nodes[ME].host.partitions.all())
    assert not world.disks[ME].exists(FOLDER)
    world.change(isr=(1, 3), eligible_leader_replicas=(2,))
    assert not list(world.nodes[ME].host.partitions.all()), "it is eligible still"
    world.change(isr=(1, 3), eligible_leader_replicas=())
    world.run(5_000)
    assert world.row(2)[:4] == ("follower", 0, 6, 6)


def test_what_the_registration_told_holds_nobody_who_became_a_member_behind_it(world: World) -> None:
    """It was in neither ISR nor ELR, so nothing was written; then it was elected, since the topic allows that."""
    held = Withdrawals(NodeId(2))
    found_at_start, found_since = Withdrawn(0, 6, Cause.ANOTHER, 5), Withdrawn(3, 6, Cause.DAMAGED, 6, cut_at=3)
    other = TopicIdPartition(AT.topic_id, AT.partition + 1)
    for omitted in ((), (AT,)):
        held.add(AT, found_at_start)
        held.add(other, found_since)
        held.take_news()
        held.registered(omitted)
        assert held.holds(AT, world.image.partition(AT)) == bool(omitted)
        assert list(held.held) == [*omitted, other]
        held.forget(AT)
        held.forget(other)


def test_a_loss_of_a_replica_that_is_others_by_now_is_forgotten(world: World) -> None:
    left = stopped(world)
    no_folder(world)
    world.change(replicas=(1, 3), isr=(1, 3), directories=(Uuid(bytes([1]) * 16), Uuid(bytes([3]) * 16)))
    world.start(ME, left=left)
    assert found(world) == {}


# --- found while it runs


def damaged(world: World, node: int, start: int = 3, end: int = 4) -> None:
    world.perform(NodeId(node), world.nodes[NodeId(node)].withdrawing.withdraw(AT, start, end, world.now))


def taken(world: World, node: int, **fields: Any) -> None:
    """The controller has heard of it."""
    lost = withdrawals(world, NodeId(node)).held[AT]
    event = withdrawal(NodeId(node), lost.start, lost.end, lost.cause, lost.time_ms, 0)
    world.change(withdrawals=(event,), **fields)


def test_a_leader_with_damage_serves_nobody_any_more_and_says_so(world: World) -> None:
    world.cut = {NodeId(2), NodeId(3)}
    waiting = world.produce(1)
    damaged(world, 1)
    assert waiting().error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.produce(1)().error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.consume(1, 0)().error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found(world, NodeId(1)) == {AT: (3, 4, Cause.DAMAGED)}
    assert withdrawals(world, NodeId(1)).take_news().keys() == {AT}
    assert withdrawals(world, NodeId(1)).news == {}


def test_then_it_follows_from_what_is_right_and_copies_the_rest_again(world: World) -> None:
    path = f"/data1/t-0/{2:020d}.log"
    good = bytes(world.disks[NodeId(1)].files[path].content)
    world.disks[NodeId(1)].files[path].content[-1] ^= 1  # in the record at offset 3
    damaged(world, 1)
    world.cut = {NodeId(1)}
    taken(world, 1, leader=2, isr=(2, 3))
    assert world.row(1)[3] == 3
    assert noted(world, 1) == [(3, 6, EXACTLY)]
    world.cut = set()
    world.run(5_000)
    assert world.row(1)[:4] == ("follower", 1, 6, 6)
    assert bytes(world.disks[NodeId(1)].files[path].content) == good


def test_the_checkpoints_no_longer_vouch_for_what_is_cut(world: World) -> None:
    damaged(world, 1)
    world.cut = {NodeId(1)}
    taken(world, 1, leader=2, isr=(2, 3))
    assert world.row(1)[3] == 3, "also where what is read now seems right"
    for file in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert world.disks[NodeId(1)].read_file(f"/data1/{file}") == b"0\n1\nt 0 3\n", file


def test_a_follower_with_damage_copies_nothing_until_it_is_out_of_the_isr(world: World) -> None:
    damaged(world, 2)
    world.produce(1, acks=1)
    world.run(2_000)
    assert world.row(2)[:1] == ("stray",)
    assert world.row(2)[3] == 6
    taken(world, 2, leader=1, isr=(1, 3))
    world.run(5_000)
    assert world.row(2)[3] == 7


def test_a_follower_that_is_in_neither_waits_too_for_it_may_be_proposed_already(world: World) -> None:
    world.change(isr=(1, 3))
    world.controller_answers = False
    damaged(world, 2)
    world.run(2_000)
    world.change(isr=(1,))
    world.run(2_000)
    assert (role_of(world, 2), world.row(2)[3]) == (None, 6), "what it told its leader is still there"
    world.change(isr=(1, 2, 3))
    world.run(2_000)
    assert (role_of(world, 2), world.row(2)[3]) == (None, 6)
    taken(world, 2, leader=1, isr=(1, 3))
    world.run(2_000)
    assert type(role_of(world, 2)) is Follower


def test_a_leader_without_alternative_keeps_the_rest_of_its_log(world: World) -> None:
    """Without Eligible Leader Replicas, as the last member of the ISR; or uncleanly, since nobody else may."""
    world.change(isr=(1,))
    damaged(world, 1)
    world.change(isr=(1,))
    assert role_of(world, 1) is None, "the controller has not heard of it"
    taken(world, 1, leader=1)
    assert type(role_of(world, 1)) is Leader
    assert world.row(1)[1:4] == (1, 6, 6)


def test_a_withdrawal_of_an_earlier_loss_frees_nobody(world: World) -> None:
    early = withdrawal(NodeId(1), 3, 4, Cause.DAMAGED, 5, 0)
    world.change(withdrawals=(early,))
    damaged(world, 1)
    world.change(leader=1)
    assert role_of(world, 1) is None


def test_where_there_is_one_replica_it_goes_on() -> None:
    world = World()
    world.create(replicas=(1,))
    world.run(1_000)
    world.produce(1)
    damaged(world, 1, 0, 1)
    assert type(role_of(world, 1)) is Leader
    assert found(world, NodeId(1)) == {}


def test_a_stop_before_the_controller_has_heard_of_it_leaves_a_marker_that_says_it(world: World) -> None:
    damaged(world, 2)
    left = stopped(world)
    assert left == {"/data2": (Left.in_doubt(AT, 3, 4),)}
    world.start(ME, left=left)
    assert AT in found(world)


def test_the_same_where_no_log_was_begun_yet(world: World) -> None:
    left = stopped(world)
    no_folder(world)
    world.start(ME, left=left)
    again = stopped(world)
    world.start(ME, left=again)
    assert found(world) == {AT: (0, 6, Cause.MISSING)}


def role_of(world: World, node: int) -> Leader | Follower | None:
    replicas: Replicas = world.nodes[NodeId(node)]
    hosted = replicas.host.partitions.find(AT)
    assert hosted is not None
    return hosted.role


def test_a_leader_that_withdraws_waits_for_no_follower_any_more(world: World) -> None:
    world.cut.add(NodeId(3))
    world.change(isr=(1, 2))
    leader = world.nodes[NodeId(1)]
    assert leader.fetching.out_of_sync[NodeId(3)]
    world.perform(NodeId(1), leader.withdrawing.withdraw(AT, 2, 4, world.now))
    taken(world, 1, leader=2, isr=(2,))
    assert world.row(1)[0] == "follower", "it begins again, with another log"
    assert not leader.fetching.out_of_sync[NodeId(3)]
