"""A request that makes the node raise, sent again and again to every node of a cluster: what it costs, and what not."""

from typing import Any

import pytest

from strandline.base.effects import Failed
from strandline.controller.partitions.recovery import Recoveries
from strandline.log.log import Log
from strandline.replica.serving import producing
from strandline.sim.hostile import TOPIC
from strandline.sim.stranger.probing import BY_ID, Probe
from strandline.sim.world.machine import Machine
from strandline.wire.batch import build
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest

POISON = b"poison"
ROUNDS = 12


class Besieged(Probe):
    """Someone retries at every node, as a client does that follows the leader."""

    def __init__(self) -> None:
        super().__init__(1)
        self.stopped: list[str] = []

    def produce(self) -> None:
        image = next(one.node.image for one in self.world.machines.values() if one.node is not None)
        batch = bytearray(build([(1, None, POISON, ())]))
        data = TopicProduceData(
            topic_id=image.topic_ids[TOPIC], partition_data=(PartitionProduceData(index=0, records=batch),)
        )
        self.insist("PLAINTEXT", ProduceRequest(acks=-1, timeout_ms=500, topic_data=(data,)), BY_ID)

    def create(self) -> None:
        topic = CreatableTopic(name=POISON.decode(), num_partitions=1, replication_factor=3)
        self.insist("PLAINTEXT", CreateTopicsRequest(topics=(topic,), timeout_ms=500), 7)
        self.insist("CONTROLLER", CreateTopicsRequest(topics=(topic,), timeout_ms=500), 7)

    def insist(self, listener: str, request: Any, version: int) -> None:
        for _ in range(ROUNDS):
            for machine in self.world.machines.values():
                if machine.is_running:
                    self.prober.send(machine, listener, request, version)
            self.world.run(300)
            down = [one.name for one in self.world.machines.values() if not one.is_running]
            self.stopped += [name for name in down if name not in self.stopped]

    def start_again(self) -> None:
        for machine in self.world.machines.values():
            machine.start()
        self.world.run_until("all are in", self.world.why_not_led, 60_000)


def raises_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing has changed yet."""
    plain = producing.has_zstd

    def has_zstd(records: Any) -> bool:
        assert POISON not in bytes(records), "planted"
        return plain(records)

    monkeypatch.setattr(producing, "has_zstd", has_zstd)
    monkeypatch.setattr(producing, "ZSTD_SINCE", BY_ID + 1)


def raises_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader's log has the batch, and nothing else knows of it."""
    append, write = Log.append_accepted, Log.write

    def raising(log: Log) -> Any:
        def write_and_raise(*arguments: Any) -> None:
            write(log, *arguments)
            raise MemoryError

        return write_and_raise

    def append_accepted(self: Log, header: Any, buffer: Any, *arguments: Any, **named: Any) -> Any:
        if POISON in bytes(buffer):
            self.write = raising(self)  # type: ignore[method-assign]
        return append(self, header, buffer, *arguments, **named)

    monkeypatch.setattr(Log, "append_accepted", append_accepted)


def test_a_request_that_raises_before_it_changes_anything_costs_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Machine, "contains", True)
    one = Besieged()
    with monkeypatch.context() as planted:
        raises_before(planted)
        failed: list[Any] = []
        planted.setattr(one.prober, "event", lambda event: failed.append(event) if isinstance(event, Failed) else None)
        one.produce()
    assert not one.stopped
    assert len(failed) >= ROUNDS, "each connection was closed"
    assert sum(m.node.containment.contained for m in one.world.machines.values() if m.node) >= ROUNDS
    one.go_on("after")


def test_a_request_that_raises_in_the_middle_stops_one_node_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "contains", True)
    one = Besieged()
    raises_in_the_middle(monkeypatch)
    one.produce()
    assert len(one.stopped) == 1
    one.start_again()
    one.produce()
    assert len(one.stopped) == 1, "neither the others nor the one that has started again take it"
    assert all(machine.is_running for machine in one.world.machines.values())
    one.go_on("after")


def test_a_request_that_brokers_pass_on_stops_one_controller_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "contains", True)
    one = Besieged()
    plain = Recoveries.written

    def written(self: Recoveries, records: Any, image: Any) -> None:
        plain(self, records, image)
        assert not any(getattr(record, "name", "") == POISON.decode() for record in records), "planted"

    with monkeypatch.context() as planted:
        planted.setattr(Recoveries, "written", written)
        one.create()
        assert len(one.stopped) == 1
        one.start_again()
        one.create()
    assert len(one.stopped) == 1
    one.go_on("after")
