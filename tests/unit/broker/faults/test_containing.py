"""What an exception costs, of which handler it comes, and where in it."""

from importlib import import_module
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from strandline.base.effects import (
    Answered,
    Caller,
    Close,
    Effect,
    Failed,
    Failure,
    Halt,
    Received,
    Reply,
    ReplyTo,
    Report,
    Send,
    ToBroker,
    ToController,
)
from strandline.base.errors import ErrorCode
from strandline.base.interrupted import Interrupted
from strandline.base.time import Instant
from strandline.broker.faults.containing import CRASHED, NOTIFY_MS, REPORT_PAUSE_MS, Containment, HalfDone
from strandline.broker.faults.interruptible import FUNCTIONS, READING
from strandline.broker.faults.quarantine import Quarantine, fingerprint
from strandline.broker.node import Node
from strandline.broker.route import BROKER_ROUTES, CONTROLLER_ROUTES
from strandline.sim.hostile import message, served
from strandline.sim.stranger.probing import Case, Probe
from strandline.sim.world.disk import SimDisk
from strandline.sim.world.machine import Machine
from strandline.wire.api import API_BY_KEY
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.own.get_replica_log_info import GetReplicaLogInfoRequest
from strandline.wire.messages.own.quarantine import QuarantinedRequest, QuarantineRequest, QuarantineResponse

from .digest import digest
from .raising import tried

LINES, ROWS = 2, 14
# Their handlers have several parts. An exception between two leaves the parts before it done, and the answer is lost.
IN_PARTS = ("Produce", "Fetch")


@pytest.fixture(scope="module")
def probe() -> Probe:
    found = Probe(1)
    found.world.run(3_000)
    for machine in found.world.machines.values():
        node_of(machine).containment.is_on = True
    return found


def node_of(machine: Machine) -> Node:
    assert machine.node is not None
    return machine.node


def request(probe: Probe, machine: Machine, key: int, listener: str, *, is_node: bool = False) -> Received:
    api = API_BY_KEY[key]
    version = api.request.versions[-1]
    asked = message(api, version, probe.known(machine, Case(api, listener, {})), {})
    return Received(ReplyTo(999, 0, 0, key, version), Caller("c", "h", listener, is_node=is_node), asked)


def rows() -> list[tuple[str, int]]:
    return [
        (listener, api.key)
        for listener in ("PLAINTEXT", "CONTROLLER")
        for api in served(on_controller=listener == "CONTROLLER")
    ]


def raising(*_: Any) -> list[Effect]:
    raise RecursionError("planted")


def test_every_handler_that_raises_costs_the_connection_and_changes_nothing(probe: Probe) -> None:
    machine = probe.world.machines[next(iter(probe.world.machines))]
    node, now = node_of(machine), machine.clock.now()
    before, own = digest(node), (node.broker_routes, node.controller_routes)
    node.broker_routes = dict.fromkeys(BROKER_ROUTES, raising)
    node.controller_routes = dict.fromkeys(CONTROLLER_ROUTES, raising)
    for listener, key in rows():
        event = request(probe, machine, key, listener)
        effects = node.step(event, now)
        name = f"{API_BY_KEY[key].name} v{event.to.api_version}"
        close = effects[-1]
        assert isinstance(close, Close) and close.connection == 999 and name in close.why
        reported = [effect.text for effect in effects if isinstance(effect, Report)]
        assert reported == [] or (len(reported) == 1 and reported[0].startswith(name)), "a line for each kind"
        assert all(isinstance(effect, Report | Reply | Close) for effect in effects)
    node.broker_routes, node.controller_routes = own
    assert node.containment.contained == len(rows())
    assert digest(node) == before
    node.check()


def test_where_an_exception_is_contained_the_request_was_handled_wholly_or_not_at_all(probe: Probe) -> None:
    rng, tries = Random(7), 0
    for listener, key in [*rng.sample(rows(), ROWS), ("PLAINTEXT", 0), ("PLAINTEXT", 1), ("CONTROLLER", 19)]:
        machine = rng.choice(list(probe.world.machines.values()))
        node, now = node_of(machine), machine.clock.now()
        whole = tried(node, request(probe, machine, key, listener, is_node=True), now, "")
        inside = [line for line in whole.lines if not line.startswith("broker.node.")]
        for line in rng.sample(inside, min(LINES, len(inside))):
            found = tried(node, request(probe, machine, key, listener, is_node=True), now, line)
            assert not found.out and not found.stops, line
            assert found.is_refused, line
            in_parts = API_BY_KEY[key].name in IN_PARTS
            assert found.state in (digest(node), whole.state) or in_parts, line
            tries += 1
    assert tries > ROWS


def test_where_it_may_be_half_done_the_node_tells_the_others_and_stops(probe: Probe) -> None:
    """In this order: the list on its own disk, the others, the end. Nothing else is done meanwhile."""
    fresh = Probe(2)
    machine = fresh.world.controller()
    assert machine is not None
    node, now = node_of(machine), machine.clock.now()
    node.containment.is_on = True
    assert node.controller is not None

    def broken(*_: Any) -> None:
        raise RuntimeError("planted")

    node.controller.recoveries.written = broken  # type: ignore[method-assign]
    event = request(fresh, machine, 19, "CONTROLLER", is_node=True)
    effects = node.step(event, now)
    sent = [effect for effect in effects if isinstance(effect, Send)]
    assert len(sent) == 2 and not any(isinstance(effect, Reply | Halt) for effect in effects)
    assert [effect.level for effect in effects if isinstance(effect, Report)] == ["error"]
    (row,) = sent[0].message.requests
    assert (row.api, row.version) == (19, event.to.api_version)
    assert node.containment.quarantine.holds(19, event.to.api_version, event.message)
    before = digest(node)
    assert node.step(request(fresh, machine, 3, "PLAINTEXT"), now) == []
    assert node.shutdown(now) == []
    assert node.step(Failed(sent[0].token, Failure.CLOSED), now) == []
    assert node.deadline() == now + NOTIFY_MS
    assert node.expire(now) == []
    node.step(Failed(sent[1].token, Failure.CLOSED), now)
    assert node.deadline() <= now
    (halt,) = node.expire(now)
    assert isinstance(halt, Halt) and halt.status == CRASHED and "CreateTopics" in halt.why and "planted" in halt.why
    assert digest(node) == before


def test_a_request_that_was_held_stops_the_node_as_others_do() -> None:
    """Its handler runs in the step of another event, or when a time has come."""
    for late in ("step", "expire"):
        fresh = Probe(3)
        machine = next(iter(fresh.world.machines.values()))
        node, now = node_of(machine), machine.clock.now()
        node.containment.is_on = True
        event = request(fresh, machine, 12, "PLAINTEXT")

        def half_done(*_: Any, node: Node = node, event: Received = event) -> list[Effect]:
            raise node.containment.half_done(event, RuntimeError("planted"), "planted")

        with pytest.MonkeyPatch.context() as planted:
            planted.setattr(node, "answered", half_done)
            planted.setattr(node.forwarding, "expire", half_done)
            planted.setattr(node.forwarding, "deadline", lambda now=now: now)
            effects = node.expire(now) if late == "expire" else node.step(Failed("none", Failure.CLOSED), now)
        assert node.containment.is_stopping
        assert node.containment.quarantine.holds(12, event.to.api_version, event.message)
        assert sum(isinstance(effect, Send) for effect in effects) == 2
        with pytest.raises(RuntimeError, match="nobody asked"), pytest.MonkeyPatch.context() as planted:
            other = node_of(fresh.world.machines[max(fresh.world.machines)])
            other.containment.is_on = True

            def broken(*_: Any) -> list[Effect]:
                raise RuntimeError("nobody asked for it")

            planted.setattr(other, "answered", broken)
            other.step(Failed("none", Failure.CLOSED), now)


def test_a_node_that_is_told_of_a_request_refuses_it_and_no_other(probe: Probe) -> None:
    machine = next(iter(probe.world.machines.values()))
    node, now = node_of(machine), machine.clock.now()
    open_routes = node.broker_routes
    bad = request(probe, machine, 12, "PLAINTEXT")
    quarantined = request(probe, machine, 1003, "PLAINTEXT", is_node=True)
    found = fingerprint(12, bad.to.api_version, bad.message)
    for digits, error in (("", ErrorCode.INVALID_REQUEST), (found.digest, ErrorCode.NONE)):
        row = QuarantinedRequest(12, bad.to.api_version, digits)
        asked = Received(quarantined.to, quarantined.caller, QuarantineRequest((row,)))
        answer = node.step(asked, now)
        assert answer == [Reply(quarantined.to, QuarantineResponse(error_code=error))]
    assert node.broker_routes is not open_routes and node.broker_routes[type(quarantined.message)] is not None
    assert isinstance(node.step(bad, now)[-1], Close)
    other = Received(bad.to, bad.caller, replace(bad.message, group_id="another"))
    assert not any(isinstance(effect, Close) for effect in node.step(other, now))
    same = [cls for cls, route in node.broker_routes.items() if route is open_routes[cls]]
    assert len(same) == len(BROKER_ROUTES) - 1, "others are not compared"


def test_a_node_whose_own_request_raises_learns_that_it_failed(probe: Probe) -> None:
    """In the answer if there is a form for it; else as a request that nobody answered. Nothing waits for ever."""
    machine = probe.world.controller()
    assert machine is not None
    node, now = node_of(machine), machine.clock.now()
    answers: list[Any] = []
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(node, "broker_routes", {GetReplicaLogInfoRequest: raising})
        planted.setattr(node, "controller_routes", {AllocateProducerIdsRequest: raising})
        planted.setattr(node, "answered", lambda event, now: answers.append(event) or [])
        asked = [
            ToBroker(node.me, "c", GetReplicaLogInfoRequest(), 0, 100, "one"),
            ToController(AllocateProducerIdsRequest(), 0, 100, "two"),
        ]
        for effect in asked:
            node.propagate([effect], now)
    assert answers[0] == Failed("one", Failure.TIMED_OUT)
    assert isinstance(answers[1], Answered) and answers[1].token == "two"
    assert answers[1].message.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not node.own_requests


def test_what_the_parts_before_the_exception_want_done_is_done() -> None:
    containment = Containment(Quarantine(SimDisk(), "/d"))
    other = Reply(ReplyTo(7, 0, 0, 12, 4), None)
    event = Received(ReplyTo(1, 0, 0, 12, 4), Caller("c", "h", "PLAINTEXT"), HeartbeatRequest())
    error = Interrupted([other])
    error.__cause__ = ZeroDivisionError("planted")
    effects = containment.cost(event, error, Instant(0))
    assert other in effects
    assert effects[-1] == Close(1, "Heartbeat v4 made this node raise ZeroDivisionError")
    # A line for the first; others of its kind are counted, and told later.
    lines = [containment.report(event, error, Instant(at)) for at in (1, 2, REPORT_PAUSE_MS + 1)]
    assert lines[:2] == [[], []]
    assert "2 more like it" in lines[2][0].text


def test_what_a_client_wrote_stays_in_one_line_and_passwords_are_not_shown() -> None:
    def found(key: int, text: str) -> tuple[str, str]:
        """The lines, and why the node would stop."""
        containment = Containment(Quarantine(SimDisk(), "/d"))
        event = Received(ReplyTo(1, 0, 0, key, 0), Caller("c", "h", "PLAINTEXT"), HeartbeatRequest())
        error = RuntimeError("outside")
        error.__cause__ = ValueError(text)
        (line,) = containment.report(event, error, Instant(0))
        half_done = HalfDone(event, (), "planted")
        half_done.__cause__ = error
        (stops,) = containment.stop(event, half_done, half_done, {}, Instant(0))
        assert isinstance(stops, Report)
        assert "outside" not in line.text or key == 12
        return line.text + stops.text, containment.why

    for text in found(12, "pass\nError: word" + "x" * 10_000):
        assert "ValueError: pass?Error: word" in text
        assert len(text) < 2000
    for key in (33, 36, 44, 51):
        for text in found(key, "password"):
            assert "ValueError: [hidden]" in text
            assert "password" not in text


def test_the_table_names_what_there_is() -> None:
    for module in READING:
        import_module(f"strandline.{module}")
    for module, names in FUNCTIONS.items():
        found = import_module(f"strandline.{module}")
        for name in names:
            at: Any = found
            for part in name.split("."):
                if part == "<locals>" or part == "<lambda>":
                    break
                at = getattr(at, part)
