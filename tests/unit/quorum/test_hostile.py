"""One packet must not end the quorum, and a quorum that one packet has ended before begins again."""

from typing import Any

import pytest
from tests.unit.quorum.network import CALLER, CLUSTER, World

from strandline.base.effects import Endpoint, Received, ReplyTo
from strandline.base.ids import NOBODY, OFFSET_MAX, NodeId, Uuid
from strandline.quorum import messages
from strandline.quorum.elections.election_state import ElectionState, encode_election
from strandline.quorum.elections.epochs import EPOCH_MAX, MARGIN
from strandline.quorum.following import begin_download
from strandline.quorum.ports import EpochEnd, SnapshotId
from strandline.quorum.roles import Follower

ME, OTHER = NodeId(1), NodeId(2)


def vote(epoch: int, *, pre_vote: bool, cluster: Any = CLUSTER, by: NodeId = OTHER) -> Any:
    last = EpochEnd(0, 0)
    return messages.vote_request(
        cluster_id=cluster,
        voter=NodeId(-1),
        me=by,
        directory_id=Uuid(bytes(16)),
        epoch=epoch,
        last=last,
        pre_vote=pre_vote,
    )


def begin(epoch: int) -> Any:
    endpoint = Endpoint("host", 2)
    return messages.begin_request(cluster_id=CLUSTER, voter=NodeId(-1), me=OTHER, epoch=epoch, endpoint=endpoint)


def end(epoch: int) -> Any:
    endpoint = Endpoint("host", 2)
    return messages.end_request(cluster_id=CLUSTER, me=OTHER, epoch=epoch, successors=(ME,), endpoint=endpoint)


HOSTILE = {
    "a pre-vote without a cluster id": vote(EPOCH_MAX, pre_vote=True, cluster=None),
    "a pre-vote": vote(EPOCH_MAX, pre_vote=True),
    "a vote": vote(EPOCH_MAX, pre_vote=False),
    "the last vote but one": vote(EPOCH_MAX - 1, pre_vote=False),
    "a beginning": begin(EPOCH_MAX),
    "an end": end(EPOCH_MAX),
    "a pre-vote of a later epoch": vote(9, pre_vote=True),
    "a vote of a stranger": vote(9, pre_vote=False, by=NodeId(77)),
    "a vote without a cluster id": vote(9, pre_vote=False, cluster=None),
    "a vote of another cluster": vote(9, pre_vote=False, cluster="other"),
}


def running() -> World:
    world = World(1)
    world.start()
    world.run_until(world.is_caught_up, 10_000)
    return world


def receive(world: World, node: int, message: Any) -> None:
    machine = world.machines[NodeId(node)]
    received = Received(ReplyTo(1, 1, 1, type(message).key, 2), CALLER, message)
    effects = [effect for effect in world.quorum(NodeId(node)).step(received, world.now) if "Reply" not in repr(effect)]
    world.perform(machine, effects)


@pytest.mark.parametrize("name", HOSTILE)
def test_one_packet_to_each_voter_leaves_the_quorum_as_it_was(name: str) -> None:
    world = running()
    before = [(quorum.state.election, type(quorum.state.role)) for quorum in world.alive]
    for node in world.machines:
        receive(world, node, HOSTILE[name])
    assert [(quorum.state.election, type(quorum.state.role)) for quorum in world.alive] == before
    world.run(5_000)
    assert [quorum.state.election for quorum in world.alive] == [election for election, _ in before]


@pytest.mark.parametrize(
    "states",
    [
        (ElectionState(EPOCH_MAX + 1, NOBODY, ME), ElectionState(EPOCH_MAX), ElectionState(EPOCH_MAX)),
        (ElectionState(EPOCH_MAX + 1, NOBODY, ME), ElectionState(EPOCH_MAX + 1, NOBODY, OTHER), None),
        (ElectionState(EPOCH_MAX), None, None),
    ],
)
def test_a_poisoned_quorum_begins_again(states: tuple[ElectionState | None, ...]) -> None:
    """As the packet left the files of one to three voters; None is a voter that it did not reach."""
    world = running()
    for node, state in zip((1, 2, 3), states, strict=True):
        world.kill(node)
        if state is not None:
            world.machines[NodeId(node)].log.quorum_state = encode_election(state, CLUSTER, world.voters)
    world.start()
    world.run_until(world.is_caught_up, 30_000)
    leader = world.leader()
    assert leader is not None
    assert leader.state.epoch < 2 * MARGIN
    world.append(leader.me, b"goes on")
    world.run_until(world.is_caught_up, 5_000)


def test_a_node_that_was_cut_off_in_a_later_epoch_returns_though_its_pre_votes_change_no_epoch() -> None:
    """Its answer to the leader's BeginQuorumEpoch says how far it is."""
    world = running()
    leader = world.leader()
    assert leader is not None
    away = next(node for node in world.voters if node != leader.me)
    epoch = leader.state.epoch + 3
    world.kill(away)
    world.machines[away].log.quorum_state = encode_election(ElectionState(epoch, NOBODY, away), CLUSTER, world.voters)
    world.start(away)
    world.run_until(lambda: all(quorum.leader_epoch > epoch for quorum in world.alive) and world.is_caught_up(), 30_000)


@pytest.mark.parametrize(("end", "later"), [(OFFSET_MAX + 1, 0), (100, 1)])
def test_a_snapshot_that_nobody_can_have_is_not_fetched(end: int, later: int) -> None:
    """Of an offset that no log has, or of an epoch that is still to come."""
    world = running()
    quorum = next(one for one in world.alive if isinstance(one.state.role, Follower))
    role = quorum.state.role
    assert isinstance(role, Follower)
    quorum.state.out.clear()
    begin_download(quorum.state, role, SnapshotId(end, quorum.leader_epoch + later), world.now)
    assert role.fetching.download is None
    assert "which cannot exist" in repr(quorum.state.out)
    begin_download(quorum.state, role, SnapshotId(100, quorum.leader_epoch), world.now)
    assert role.fetching.download is not None
