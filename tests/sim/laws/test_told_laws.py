"""The laws about what nodes tell one another fire: fetches, proposals, registrations. And single log directories that
fail are survived."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec import structs
from tests.sim.laws.test_laws import hosted_on, of_leader, other
from tests.sim.play import SETTINGS, Play

from strandline.base.effects import Disconnected
from strandline.base.ids import BrokerEpoch, LeaderEpoch, NodeId
from strandline.broker import parts
from strandline.log.epochs import EpochStart
from strandline.log.evidence.clean_shutdown import FILE, Stop
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.isr import PendingExpand
from strandline.replica.hosting.leader import Leader
from strandline.replica.serving.reading import Reading
from strandline.sim.faults import directories
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.wires import flipped
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.sim.world.trace import Kind
from strandline.sim.world.violation import Violation
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)

THREE = Options(settings=SETTINGS, log_dirs=3, elr=True)


def test_a_fetch_without_the_epoch_of_its_registration_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    node = other(play).node
    assert node is not None and node.broker is not None
    monkeypatch.setattr(node.broker.lifecycle, "check", lambda: None)  # the law is to notice it, too
    node.broker.replicas.broker_epoch = BrokerEpoch(-1)
    node.broker.lifecycle.last_epoch = -1
    with pytest.raises(Violation, match="fetches as broker epoch -1, and is registered in"):
        play.run(2000)


@pytest.mark.parametrize(
    ("named", "is_fenced", "law"),
    [
        (99, False, "as of broker epoch 99, and has heard of it in"),
        (98, False, "as of broker epoch 98, and its metadata has epoch"),
        (-1, False, "as of no broker epoch, and it has fetched in epochs"),
        (None, True, "its metadata has it fenced, or leaving"),
    ],
)
def test_a_proposal_with_a_wrong_broker_epoch_is_noticed(named: int | None, is_fenced: bool, law: str) -> None:
    play = Play()
    machine, hosted, _ = of_leader(play)
    follower = other(play)
    assert machine.node is not None
    node, isr, newcomer = machine.node, (machine.node_id,), NodeId(follower.node_id)
    epoch = BrokerEpoch(node.image.brokers[newcomer].epoch)

    def proposed(epoch: BrokerEpoch) -> None:
        pending = PendingExpand(isr, (*isr, newcomer), ((machine.node_id, epoch), (newcomer, epoch)))
        play.world.laws.fetches.proposes(machine, node, hosted, pending)

    proposed(epoch)
    play.world.laws.fetches.heard[machine.name, machine.life, newcomer][98] = None
    if is_fenced:
        follower.kill()
        play.until("it is fenced", lambda: not node.image.brokers[newcomer].is_active)
    with pytest.raises(AssertionError, match=law):
        proposed(epoch if named is None else BrokerEpoch(named))


@pytest.mark.parametrize("what", ["epoch", "batch", ""])
def test_a_divergence_that_a_leader_does_not_name_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    monkeypatch.setattr(Reading, "why_not_read", lambda *_: None)
    if what == "epoch":
        of_leader(play)[1].log.epochs.entries[:] = [EpochStart(99, 0)]
    elif what == "batch":
        monkeypatch.setattr(
            "strandline.sim.laws.logs.logs.content", lambda log, *_: log if "orders" in log.directory else b""
        )
    play.world.laws.logs.matched.clear()
    if what:
        with pytest.raises(Violation, match=f"another batch .* names no divergence|{what} is .* names no divergence"):
            play.run(2000)
    else:
        play.run(2000)
        assert play.world.laws.logs.matched, "answers are looked at"


def test_a_bit_that_flips_on_the_wire_is_refused_and_copied_again() -> None:
    play = Play()
    injector, rng = FaultInjector(play.world, play.admin), Random(1)
    for _ in range(10):
        flipped(injector, rng)
        play.run(500)
    assert sum("a bit flips in what" in line for line in play.world.story) >= 8
    assert any("refused" in line for line in play.world.story)
    play.end()


def test_a_follower_that_takes_a_flipped_bit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    injector, rng = FaultInjector(play.world, play.admin), Random(1)
    monkeypatch.setattr("strandline.log.log.why_invalid", lambda *_: None)
    with pytest.raises(Violation):
        for _ in range(10):
            flipped(injector, rng)
            play.run(500)


def test_an_answer_that_names_a_stable_offset_above_its_high_watermark_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play()
    monkeypatch.setattr(Leader, "last_stable_offset", property(lambda leader: leader.log.log_end_offset))
    with pytest.raises(Violation, match="names the last stable offset"):
        play.run(2000)


def test_a_leader_that_serves_an_incarnation_that_is_replaced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    machine, follower = of_leader(play)[0], other(play)
    assert machine.node is not None
    broker = machine.node.image.brokers[follower.node_id]
    later = structs.replace(broker, epoch=broker.epoch + 1)
    machine.node.image.brokers[follower.node_id] = later
    monkeypatch.setattr(Leader, "is_left_behind", lambda *_: False)
    with pytest.raises(Violation, match="its metadata has a later incarnation of that"):
        play.run(2000)


def test_a_leader_that_names_itself_as_another_incarnation_is_noticed() -> None:
    play = Play()
    machine, me = play.leader(), play.leader().node_id
    member = BrokerState(broker_id=me, broker_epoch=-1)
    row = PartitionData(new_isr_with_epochs=(member,))
    request = AlterPartitionRequest(broker_id=me, broker_epoch=7, topics=(TopicData(partitions=(row,)),))
    with pytest.raises(AssertionError, match=r"proposes itself as of broker epochs \[-1\], and is in 7"):
        play.world.laws.fetches.names_itself(machine, request)


@pytest.mark.parametrize("is_left_waiting", [True, False])
def test_a_leader_that_leaves_a_producer_waiting_is_noticed(is_left_waiting: bool) -> None:
    play = Play()
    machine, hosted, _ = of_leader(play)
    if is_left_waiting:
        *_, batch = hosted.log.headers(0)
        asked = play.world.laws.answers.asked
        asked[machine.name, machine.life, -1, -1] = (-1, {hosted.at: (batch, b"")})
    for one in play.machines:
        if one is not machine:
            play.world.network.cut(one.name, machine.name)
    play.until("another one leads", lambda: play.leader() is not machine)
    play.world.network.heal()
    if is_left_waiting:
        with pytest.raises(Violation, match="does not tell who waits to have written there"):
            play.run(8000)
    else:
        play.run(8000)
        assert play.leader() is not None


def test_a_broker_owes_no_answer_to_who_has_left_before_it_joined() -> None:
    play = Play()
    machine, hosted, _ = of_leader(play)
    assert machine.node is not None
    answers = play.world.laws.answers
    *_, batch = hosted.log.headers(0)
    answers.asked = {
        (machine.name, machine.life, number, 0): (-1, {hosted.at: (batch, b"", False)}) for number in (1, 2)
    }
    answers.received(machine, Disconnected(1))
    assert len(answers.asked) == 2, "it has joined, and answers all"
    machine.node.early = []
    answers.received(machine, Disconnected(1))
    assert [which[2] for which in answers.asked] == [2]


def test_an_answer_to_what_was_asked_in_an_earlier_epoch_and_is_taken_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play()
    follower = hosted_on(other(play))
    assert isinstance(follower.role, Follower)
    role = follower.role
    monkeypatch.setattr(Follower, "fits", lambda self, asked: asked.offset == self.log.log_end_offset)
    role.epoch = LeaderEpoch(role.epoch + 1)
    with pytest.raises(Violation, match="to what it asked in an earlier leader epoch"):
        play.run(2000)


# --- stops


def stop(play: Play) -> Machine:
    machine = other(play)
    machine.shut_down()
    play.until("it has stopped", lambda: not machine.is_running)
    return machine


def test_a_stop_in_order_that_counts_as_another_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(options=THREE)
    machine = stop(play)
    monkeypatch.setattr(parts, "take_clean_shutdown", lambda *_: None)
    machine.start()
    with pytest.raises(Violation, match="as after one that was not"):
        play.run(2000)


@pytest.mark.parametrize(
    ("harm", "law"),
    [
        (lambda machine: machine.replace_disk("/d1"), "1 of the directories of then are not there"),
        (lambda machine: machine.disk.tamper(f"/d1/{FILE}", None), "not all of its directories had the marker of it"),
    ],
    ids=["a directory", "a marker"],
)
def test_a_stop_that_is_named_without_all_that_it_left_is_noticed(
    harm: Callable[[Machine], None], law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(options=THREE)
    machine = stop(play)
    epoch = play.world.laws.metadata.image.brokers[machine.node_id].epoch
    harm(machine)
    monkeypatch.setattr(parts, "take_clean_shutdown", lambda *_: Stop(epoch, {}))
    machine.start()
    with pytest.raises(Violation, match=law):
        play.run(2000)


def test_a_replica_that_has_lost_nothing_and_reports_that_it_has_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(options=THREE)
    machine = stop(play)
    take = parts.take_clean_shutdown

    def take_one(*given: Any) -> Stop | None:
        """What the stop left in other directories is not known any more."""
        found = take(*given)
        assert found is not None
        return Stop(found.broker_epoch, dict(list(found.logs.items())[:1]))

    monkeypatch.setattr(parts, "take_clean_shutdown", take_one)
    machine.start()
    with pytest.raises(Violation, match="nobody has touched its files, and it has lost records of"):
        play.run(2000)


def test_a_stop_that_is_named_with_a_directory_that_nobody_knows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(options=THREE)
    machine = stop(play)
    laws = play.world.laws.stops
    last = laws.last[machine.name]
    laws.last[machine.name] = last._replace(live=dict(list(last.live.items())[:2]))
    machine.start()
    with pytest.raises(Violation, match="it has a directory of which that knew nothing"):
        play.run(2000)


def root_of_orders(machine: Machine) -> str:
    return hosted_on(machine).directory.path


def test_what_is_back_with_its_directory_and_is_trusted_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(options=THREE)
    machine = other(play)
    root = root_of_orders(machine)
    machine.disk.fail(root)
    play.until("it is offline", lambda: machine.has_offline_directories)
    machine.shut_down()
    at = play.at()
    play.until("it has stopped", lambda: not machine.is_running)
    machine.disk.mend(root)
    last = play.world.laws.stops.last[machine.name]
    assert last.offline
    directory = next(iter(last.offline))
    monkeypatch.setattr(play.world.laws.stops, "lying", lambda _: {at: directory})
    play.world.laws.stops.last[machine.name] = last._replace(absent={at: directory})
    monkeypatch.setattr("strandline.replica.losses.losing.Findings.vouches_for", lambda *_: True)
    monkeypatch.setattr("strandline.sim.laws.logs.durable.Durable.look", lambda *_: None)
    machine.start()
    with pytest.raises(Violation, match="lay in a directory that was offline then and is back"):
        play.run(2000)


def test_a_machine_that_comes_back_by_itself_for_a_directory_that_has_failed_is_noticed() -> None:
    play = Play(options=THREE)
    machine = other(play)
    root = root_of_orders(machine)
    machine.disk.filled[root] = None
    play.until("it is offline", lambda: machine.has_offline_directories)
    machine.disk.break_down(f"{root}/orders-0")
    machine.make_room()
    with pytest.raises(Violation, match=r"begins anew by itself since there is room, and .* has failed"):
        play.run(6000)


@pytest.mark.parametrize("fault", [directories.full_directory, directories.stopped_without, directories.exchanged])
def test_what_befalls_single_directories_is_survived(fault: Callable[[FaultInjector, Random], None]) -> None:
    play = Play(options=THREE)
    injector, rng = FaultInjector(play.world, play.admin), Random(1)
    before = play.world.seen.copy()
    for _ in range(2):
        fault(injector, rng)
        play.run(7000)
    assert play.world.seen[Kind.STARTED] > before[Kind.STARTED]
    injector.is_over = True
    play.end()
