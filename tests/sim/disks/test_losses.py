"""Real nodes that lose more than they were set up for: what was lost is in the ledgers."""

import pytest
from tests.sim.play import SETTINGS, Play

from strandline.base.effects import Caller, Received, Reply, ReplyTo
from strandline.metadata.losses import NO_END
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, DescribeLossesResponse, Loss


def losses_of(machine: Machine) -> list[Loss]:
    """What its broker answers."""
    assert machine.node is not None
    to = ReplyTo(10_000, 0, 1, DescribeLossesRequest.api_key, 0)
    asked = Received(to, Caller("test", "127.0.0.1", "PLAINTEXT"), DescribeLossesRequest(topics=("orders",)))
    replies = [e for e in machine.node.step(asked, machine.clock.now()) if isinstance(e, Reply) and e.to == to]
    assert isinstance(replies[0].message, DescribeLossesResponse)
    return list(replies[0].message.losses)


def covers(loss: Loss, start: int, end: int) -> bool:
    return loss.start <= start and (loss.end == NO_END or end <= loss.end)


@pytest.mark.parametrize("elr", [False, True], ids=["without ELR", "with ELR"])
@pytest.mark.parametrize("seed", (1, 3))
def test_all_lose_power_at_once_and_what_they_lost_is_in_the_ledgers(seed: int, elr: bool) -> None:
    settings = SETTINGS | {"unclean.leader.election.enable": str(elr).lower()}
    play = Play(seed, options=Options(settings=settings, is_ruthless=True, elr=elr))
    play.run(2_000 + 130 * seed)
    at = play.at()
    node = play.leader().node
    assert node is not None
    assert node.broker is not None
    hosted = node.broker.replicas.host.partitions.find(at)
    assert hosted is not None
    committed = hosted.high_watermark
    before = [loss for machine in play.machines for loss in losses_of(machine)]
    assert before == []
    for machine in play.machines:
        machine.power_cut()
    ends: list[int] = []
    for machine in play.machines:
        machine.start()
    play.heal()
    for machine in play.machines:
        assert machine.node is not None
        assert machine.node.broker is not None
        replica = machine.node.broker.replicas.host.partitions.find(at)
        assert replica is not None
        ends.append(replica.log.epochs.entries[-1].start_offset)
    began = min(ends)  # where the new leader's epoch begins
    losses = [loss for machine in play.machines for loss in losses_of(machine)]
    assert began < committed, "nothing was lost: another seed"
    assert [loss for loss in losses if covers(loss, began, committed)], losses
