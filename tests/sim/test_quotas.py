"""Clients with quotas in the simulator: they wait, they lose nothing, and nodes go on as if there were no quota."""

from tests.sim.play import Play

from strandline.metadata.security.quotas import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from strandline.sim.clients.client import Life
from strandline.wire.messages.security.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)


def alter(play: Play, *, remove: bool) -> Life:
    """For every client id: so little that each batch costs a wait."""
    keys = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
    ops = tuple(OpData(key=key, value=100.0, remove=remove) for key in keys)
    entry = EntryData(entity=(EntityData("client-id", None),), ops=ops)
    yield from play.admin.ask("alters quotas", AlterClientQuotasRequest(entries=(entry,)), 1)


def throttled(play: Play) -> int:
    nodes = [machine.node for machine in play.machines if machine.node is not None]
    return sum(count for node in nodes for count, _ in node.quotas.throttled.values())


def acknowledged(play: Play, span_ms: int) -> int:
    """Batches, in this time."""
    before = sum(getattr(writer, "acked", 0) for writer in play.workload.writers)
    play.run(span_ms)
    return sum(getattr(writer, "acked", 0) for writer in play.workload.writers) - before


def test_throttled_clients_wait_and_replicas_do_not() -> None:
    play = Play()
    freely = acknowledged(play, 5000)
    assert throttled(play) == 0
    play.admin.errands.append(alter(play, remove=False))
    play.until("clients are throttled", lambda: throttled(play) > 10)
    play.until(
        "a node reads nothing from a client", lambda: any(one.held for m in play.machines for one in m.inbound.values())
    )
    assert 0 < acknowledged(play, 10_000) < freely
    partition = play.world.laws.metadata.image.partition(play.at())
    assert partition is not None
    assert len(partition.isr) == 3
    play.admin.errands.append(alter(play, remove=True))
    play.until("no node has quotas", lambda: not any(m.node is not None and m.node.has_quotas for m in play.machines))
    play.end()
