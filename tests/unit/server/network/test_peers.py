"""Outbound requests, over real loopback sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from tests.unit.server.network.echo import Rig, rig, run

from strandline.base.effects import Answered, Endpoint, Failed, Failure, Probe, Probed, Send
from strandline.base.ids import NOBODY
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest


def send(endpoint: Endpoint, generation: int, order: str = "", *, channel: str = "c", timeout_ms: int = 10_000) -> Send:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=order)
    return Send(endpoint, channel, request, 4, timeout_ms, ("t", generation), NOBODY)


def outcomes(it: Rig) -> list[object]:
    return [e for e in it.node.events if isinstance(e, Answered | Failed | Probed)]


async def port_of_nobody() -> Endpoint:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return Endpoint("127.0.0.1", port)


@asynccontextmanager
async def peer_that_says(answer: bytes) -> AsyncIterator[Endpoint]:
    done = asyncio.Event()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        done.set()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    yield Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
    await done.wait()
    server.close()


def test_requests_are_pipelined_and_each_gets_its_answer() -> None:
    async def scenario() -> None:
        async with rig() as it, rig() as other:
            for n in range(5):
                it.peers.send(send(other.endpoint, n))
            await it.until(lambda: len(outcomes(it)) == 5)
            it.peers.send(send(other.endpoint, 5))
            await it.until(lambda: len(outcomes(it)) == 6)
            assert [(e.token, e.message.throttle_time_ms) for e in outcomes(it)] == [(("t", n), n) for n in range(6)]
            assert len(other.net.connections) == 1

    run(scenario)


def test_a_long_poll_does_not_hold_up_another_channel() -> None:
    async def scenario() -> None:
        async with rig() as it, rig() as other:
            it.peers.send(send(other.endpoint, 1, "hold", channel="fetch"))
            it.peers.send(send(other.endpoint, 2, channel="quorum"))
            await it.until(lambda: outcomes(it))
            assert [e.token for e in outcomes(it)] == [("t", 2)]
            assert len(other.net.connections) == 2

    run(scenario)


def test_where_nobody_listens_all_queued_requests_are_refused() -> None:
    async def scenario() -> None:
        async with rig() as it:
            nobody = await port_of_nobody()
            for n in range(3):
                it.peers.send(send(nobody, n))
            assert outcomes(it) == [], "never while the effect is performed"
            await it.until(lambda: len(outcomes(it)) == 3)
            assert outcomes(it) == [Failed(("t", n), Failure.REFUSED) for n in range(3)]
            assert it.peers.links == {}

    run(scenario)


def test_a_connection_that_breaks_fails_what_waits_and_the_next_request_opens_another() -> None:
    async def scenario() -> None:
        async with rig() as it, rig() as other:
            for n in range(2):
                it.peers.send(send(other.endpoint, n, "hold"))
            await other.until(lambda: len(other.node.parked) == 2)
            for connection in other.net.connections.values():
                connection.transport.abort()
            await it.until(lambda: len(outcomes(it)) == 2)
            assert outcomes(it) == [Failed(("t", n), Failure.CLOSED) for n in range(2)]
            it.peers.send(send(other.endpoint, 9))
            await it.until(lambda: len(outcomes(it)) == 3)
            assert isinstance(outcomes(it)[2], Answered)

    run(scenario)


def test_a_request_without_an_answer_times_out_and_takes_its_connection_along() -> None:
    async def scenario() -> None:
        async with rig() as it, rig() as other:
            it.peers.send(send(other.endpoint, 0, "hold"))
            it.peers.send(send(other.endpoint, 1, "hold", timeout_ms=30))
            await it.until(lambda: len(outcomes(it)) == 2)
            assert outcomes(it) == [Failed(("t", 1), Failure.TIMED_OUT), Failed(("t", 0), Failure.CLOSED)]
            await other.until(lambda: not other.net.connections)

    run(scenario)


def test_an_answer_that_cannot_be_parsed_is_malformed() -> None:
    async def scenario() -> None:
        async with peer_that_says(b"\x00\x00\x00\x05\x00\x00\x00\x00\xff") as endpoint, rig() as it:
            it.peers.send(send(endpoint, 0))
            it.peers.send(send(endpoint, 1))
            await it.until(lambda: len(outcomes(it)) == 2)
            assert outcomes(it) == [Failed(("t", 0), Failure.MALFORMED), Failed(("t", 1), Failure.CLOSED)]

    run(scenario)


def test_an_answer_to_another_request_is_malformed() -> None:
    async def scenario() -> None:
        wrong = b"\x00\x00\x00\x0c" + b"\x00\x00\x00\x07" + b"\x00" * 8
        async with peer_that_says(wrong) as endpoint, rig() as it:
            it.peers.send(send(endpoint, 0))
            await it.until(lambda: outcomes(it))
            assert outcomes(it) == [Failed(("t", 0), Failure.MALFORMED)]

    run(scenario)


def test_a_probe_distinguishes_a_listening_port_from_a_closed_one() -> None:
    async def scenario() -> None:
        async with rig() as it, rig() as other:
            nobody = await port_of_nobody()
            it.peers.probe(Probe(other.endpoint, 1000, ("p", 1)))
            await it.until(lambda: len(outcomes(it)) == 1)
            it.peers.probe(Probe(nobody, 1000, ("p", 2)))
            await it.until(lambda: len(outcomes(it)) == 2)
            assert outcomes(it) == [Probed(("p", 1), None), Probed(("p", 2), Failure.REFUSED)]

    run(scenario)


def test_a_request_that_cannot_be_written_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it, rig() as other:
            it.peers.send(send(other.endpoint, 1 << 40))
            assert not outcomes(it), "not while the effect is performed"
            it.peers.send(send(other.endpoint, 5))
            await it.until(lambda: len(outcomes(it)) == 2)
            assert outcomes(it)[0] == Failed(("t", 1 << 40), Failure.MALFORMED)
            assert outcomes(it)[1].message.throttle_time_ms == 5
            assert it.stops == []

    run(scenario)
    assert "HeartbeatRequest v4 cannot be sent" in caplog.text
