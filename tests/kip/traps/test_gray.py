"""Trap T30 (KAFKA-19586): a leader that is stuck, and whose heartbeats are not. The protocol lets it lead; an operator
can replace it, without loss, while it is stuck."""

from tests.sim.play import ORDERS, Play

from strandline.base.ids import NodeId
from strandline.metadata.image import Partition
from strandline.metadata.records import FeatureLevelRecord
from strandline.sim.faults.scripted import hold
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options

ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def partition(play: Play) -> Partition:
    found = play.world.laws.metadata.image.partition(play.at())
    assert found is not None
    return found


def a_leader_beside_the_controller(play: Play) -> Machine:
    """Whose fall does not move the controller, too."""
    if play.leader() is play.world.controller():
        first, *rest = [node for node in partition(play).replicas if node != play.leader().node_id]
        order = (int(first), *map(int, rest), int(play.leader().node_id))
        play.admin.errands += [play.admin.reassign(ORDERS.topic, 0, order), play.admin.elect()]
        play.until("another one leads", lambda: play.leader() is not play.world.controller())
    return play.leader()


def freeze(machine: Machine) -> None:
    """Its next flush never ends, nor does any after it."""
    machine.is_flushing = True


def test_t30_a_leader_whose_disk_is_frozen_is_replaced_by_an_election() -> None:
    """Its flushes hang, its process lives: it leads until it is asked not to, and nobody else asks than an operator."""
    play = Play(auto_leader_rebalance_enable="false")
    stuck = a_leader_beside_the_controller(play)
    freeze(stuck)
    play.run(8_000)
    assert play.leader() is stuck, "no session has ended: nobody can tell that it is stuck"
    others = [int(node) for node in partition(play).replicas if node != stuck.node_id]
    play.admin.errands += [
        play.admin.reassign(ORDERS.topic, 0, (*others, int(stuck.node_id))),
        play.admin.elect(),
    ]
    play.until("another one leads", lambda: play.leader().node_id == others[0])
    stuck.power_cut()  # what it had not made durable in all that time is gone
    stuck.start()
    play.heal()
    play.end()


def test_t30_a_leader_whose_disk_is_frozen_is_replaced_by_a_reassignment() -> None:
    """To a broker that had no replica; the stuck one leaves with the end of the move."""
    settings = Play().world.options.settings
    play = Play(options=Options(brokers=4, settings=settings))
    stuck = a_leader_beside_the_controller(play)
    freeze(stuck)
    fresh = next(node for node in play.world.machines if node not in partition(play).replicas)
    target = tuple(int(node) for node in (*partition(play).replicas, fresh) if node != stuck.node_id)
    play.admin.errands.append(play.admin.reassign(ORDERS.topic, 0, target))
    play.until("it is no replica any more", lambda: stuck.node_id not in partition(play).replicas)
    assert partition(play).leader in map(NodeId, target)
    stuck.power_cut()
    stuck.start()
    play.heal()
    play.end()


def test_t30_a_leader_that_serves_nobody_gives_way_to_an_eligible_replica_when_it_is_stopped() -> None:
    """Its followers get no answers and leave the ISR. Because they stay eligible, to stop its process is enough."""
    play = Play()
    controller = play.world.controller()
    assert controller is not None and controller.node is not None
    active = controller.node.controller
    assert active is not None
    controller.run("elr is switched on", lambda node, now: active.write([ELR_ON], now))
    stuck = a_leader_beside_the_controller(play)
    followers = [machine for machine in play.machines if machine is not stuck]

    def starve() -> bool:
        for follower in followers:
            hold(follower, stuck, 600_000, "fetch")
        return partition(play).isr == (stuck.node_id,)

    play.until("it is alone in the ISR", starve)
    play.run(4_000)
    assert play.leader() is stuck
    assert set(partition(play).elr) == {machine.node_id for machine in followers}
    stuck.kill()
    play.until("an eligible replica leads", lambda: partition(play).leader in partition(play).isr != (stuck.node_id,))
    assert play.leader() in followers
    stuck.start()
    play.heal()
    play.end()
