"""The network between machines: cut, one way or both, slow, and connections that break."""

from itertools import combinations
from random import Random
from typing import Any

from strandline.log.producers.producers import STRICT_MARKERS
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.world.connection import Connection
from strandline.sim.world.trace import Kind
from strandline.wire.batch import CRC_AT, read_header
from strandline.wire.messages.records.fetch import FetchResponse
from strandline.wire.messages.transactions.write_txn_markers import WriteTxnMarkersRequest

UNPROTECTED = (*range(8), *range(12, 16))  # base offset and leader epoch, which no checksum covers


def cut(injector: FaultInjector, rng: Random) -> None:
    machines = list(injector.world.machines.values())
    a, b = rng.choice(list(combinations(machines, 2)))
    controller = injector.world.controller()
    if controller is not None and controller is not a and rng.randrange(3) == 0:
        b = controller  # it is fenced, and goes on fetching
    if rng.randrange(0, 2):
        a, b = b, a
    if injector.may_suffer(a) or injector.may_suffer(b):
        both = bool(rng.randrange(0, 2))
        injector.note(f"the network between {a.name} and {b.name} is cut{'' if both else ', one way'}")
        injector.world.network.cut(a.name, b.name, both=both)


def isolate(injector: FaultInjector, rng: Random) -> None:
    machine = injector.someone(rng)
    if machine is not None:
        both = bool(rng.randrange(0, 2))
        injector.note(f"{machine.name} is isolated{'' if both else ', one way'}")
        for name in sorted(injector.world.network.stations):
            if name != machine.name and (name[0] == "n" or rng.randrange(0, 2)):
                injector.world.network.cut(machine.name, name, both=both)


def heal(injector: FaultInjector, rng: Random) -> None:
    injector.world.note(Kind.HEALED, "the network heals")
    injector.world.network.heal()


def slow(injector: FaultInjector, rng: Random) -> None:
    """A way that is slow for everything, or one connection that is, while its siblings overtake it."""
    span = rng.choice((20, 200, 1000))
    between = [one for one in injector.world.network.connections() if one.source.name[0] == "n"]
    if rng.randrange(2) and between:
        connection = rng.choice(between)
        rng.choice((connection.up, connection.down)).lag_ms = span
        injector.note(f"one connection of {connection.source.name} to {connection.target.name} takes {span} ms more")
        return
    a = rng.choice(list(injector.world.machines.values())).name
    b = rng.choice(sorted(injector.world.network.stations))
    if rng.randrange(2):
        a, b = b, a
    injector.note(f"the way from {a} to {b} takes {span} ms more")
    injector.world.network.slow[a, b] = span


def break_off(injector: FaultInjector, rng: Random) -> None:
    connections = injector.world.network.connections()
    for connection in rng.sample(connections, min(3, len(connections))):
        connection.break_off()


def flipped(injector: FaultInjector, rng: Random) -> None:
    """A bit flips in the next records that a follower is sent: TCP's sum is weak, and a switch may write a new one."""
    network, machines = injector.world.network, injector.world.machines
    before = network.tamper

    def tamper(connection: Connection, message: Any, version: int) -> Any:
        machine = next((one for one in machines.values() if one is connection.source), None)
        if machine is not None and connection.listener == "PLAINTEXT" and type(message) is FetchResponse:
            records = next(
                (row.records for topic in message.responses for row in topic.partitions if row.records), None
            )
            if records is not None:
                assert isinstance(records, memoryview)
                position = rng.randrange(read_header(records).end)
                position = CRC_AT if position in UNPROTECTED else position
                records[position] ^= 1 << rng.randrange(8)
                injector.note(f"a bit flips in what {machine.name} is sent, at {position}")
                machine.has_misread = True
                network.tamper = before
        return message

    network.tamper = tamper


def late_markers(injector: FaultInjector, rng: Random) -> None:
    """For a while requests to write markers come a second time, when the next transaction may have begun. Not those of
    older clients: their transactions have no epochs of their own (docs/transactions.md)."""
    network, one_in = injector.world.network, rng.randrange(1, 4)

    def repeats(message: Any) -> bool:
        if type(message) is not WriteTxnMarkersRequest or rng.randrange(one_in):
            return False
        return all(marker.transaction_version >= STRICT_MARKERS for marker in message.markers)

    def end() -> None:
        if network.repeats is repeats:
            network.repeats = None

    injector.note("markers of transactions come late a second time")
    network.repeats = repeats
    injector.later(rng.randrange(1000, 4000), end)
