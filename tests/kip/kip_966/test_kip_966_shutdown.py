"""KIP-966, section "Detection of an unclean shutdown": what a broker says of its last stop, and who believes it.

What would make it a lie is in `traps/test_registration.py` (T27 to T29).
"""

import json

from tests.sim.play import SETTINGS, Play
from tests.unit.controller.cluster import CLUSTER_ID, incarnation
from tests.unit.controller.elections.recovered import Recovered

from strandline.base.ids import NodeId
from strandline.log.evidence.clean_shutdown import FILE
from strandline.metadata.image import Partition
from strandline.metadata.records import FeatureLevelRecord
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest

ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def stopped(play: Play, machine: Machine) -> None:
    machine.shut_down()
    play.until("it has stopped in order", lambda: not machine.is_running)


def epoch_of(play: Play, machine: Machine) -> int:
    return int(play.world.laws.metadata.image.brokers[NodeId(machine.node_id)].epoch)


def test_a_broker_writes_its_epoch_when_it_shuts_down_as_json_with_a_version_in_each_directory() -> None:
    play = Play(options=Options(settings=SETTINGS, log_dirs=2))
    machine = play.machines[0]
    assert len(machine.log_dirs) == 2
    epoch = epoch_of(play, machine)
    stopped(play, machine)
    for root in machine.log_dirs:
        found = json.loads(machine.disk.read_file(f"{root}/{FILE}") or b"")
        assert (found["version"], found["brokerEpoch"]) == (0, epoch)
    machine.start()
    play.heal()
    play.end()


def test_a_broker_that_starts_puts_the_epoch_of_the_file_into_its_registration_and_removes_the_file() -> None:
    play = Play()
    machine = play.machines[0]
    epoch = epoch_of(play, machine)
    stopped(play, machine)
    machine.start()
    node = machine.node
    assert node is not None and node.broker is not None
    assert node.broker.lifecycle.identity.previous_broker_epoch == epoch
    assert not any(machine.disk.exists(f"{root}/{FILE}") for root in machine.log_dirs)
    play.heal()
    play.end()


def test_the_same_epoch_as_is_registered_is_a_clean_shutdown_end_to_end() -> None:
    """A real broker is eligible still when it has restarted in order; `test_t5_…` has the one that lost power."""
    play = Play(min_insync_replicas="3")
    controller = play.world.controller()
    assert controller is not None and controller.node is not None
    active = controller.node.controller
    assert active is not None
    controller.run("elr is switched on", lambda node, now: active.write([ELR_ON], now))
    play.run(500)
    victim = next(machine for machine in play.machines if machine not in (play.leader(), controller))
    me = NodeId(victim.node_id)
    seen: list[tuple[int, bool, bool]] = []

    def look() -> bool:
        image = play.world.laws.metadata.image
        partition: Partition | None = image.partition(play.at())
        assert partition is not None
        seen.append((image.brokers[me].epoch, me in partition.elr, me in partition.isr))
        return me in partition.isr

    before = epoch_of(play, victim)
    stopped(play, victim)
    victim.start()
    play.until("it is in sync again", look)
    assert any(epoch > before and in_elr for epoch, in_elr, _ in seen), "it has registered anew"
    assert all(in_elr or in_isr for _, in_elr, in_isr in seen)
    play.end()


def test_a_registration_that_cannot_say_an_epoch_is_one_after_an_unclean_shutdown() -> None:
    """Clean shutdown is guarded by a version: who speaks an older one says −1, which is nobody's epoch."""
    request = BrokerRegistrationRequest(
        broker_id=1, cluster_id=CLUSTER_ID, incarnation_id=incarnation(1, 1), previous_broker_epoch=7
    )
    said = {
        version: decode_all(BrokerRegistrationRequest, version, encode_bytes(request, version)).previous_broker_epoch
        for version in range(5)
    }
    assert said == {0: -1, 1: -1, 2: -1, 3: 7, 4: 7}
    cluster = Recovered()
    for node in (2, 3):
        cluster.fence(node)
    assert cluster.partition("t").elr == (3,), "who left first left an ISR that was large enough"
    cluster.register(3, previous=-1)
    assert (cluster.partition("t").elr, cluster.partition("t").last_known_elr) == ((), (3,))


def test_an_epoch_that_is_not_the_registered_one_means_an_unclean_shutdown() -> None:
    for name, previous in (("an earlier one", -1), ("a later one", 1), ("the registered one", 0)):
        cluster = Recovered()
        for node in (2, 3):
            cluster.fence(node)
        (eligible,) = cluster.partition("t").elr
        cluster.register(eligible, previous=cluster.epochs[eligible] + previous)
        assert cluster.partition("t").elr == ((eligible,) if previous == 0 else ()), name
