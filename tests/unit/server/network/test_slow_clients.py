"""Clients that take and do not give, over real loopback sockets: slow readers, slow requests, silent connections."""

import asyncio
import logging
import socket
from contextlib import suppress
from struct import pack

import pytest
from tests.unit.server.network.echo import Client, Rig, answer, fetch, fetched, heartbeat, produce, rig, run

from strandline.base.answer_memory import AnswerMemory
from strandline.base.effects import Disconnected
from strandline.server.network import accepting, watch
from strandline.server.network.limits import LimitsConfig
from strandline.server.network.net import NetConfig
from strandline.server.network.slowness import STALLED_LOOKS
from strandline.server.network.unsent import WRITE_BUFFER_BYTES
from strandline.server.network.watch import NO_REQUEST, READS_SLOWLY, SENDS_SLOWLY
from strandline.wire.frame import encode_response

MIB = 1 << 20
SMALL_BUFFERS = NetConfig(send_buffer_bytes=4096)


def size_of(records: bytes) -> int:
    """Of the answer to `fetch`, with its size."""
    return sum(map(len, encode_response(fetched(records), 12, 0)))


async def slow_reader(it: Rig) -> Client:
    """It has asked for records, and takes nothing."""
    client = await it.client(receive_buffer=4096)
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport for both ways
    before = it.net.answers.held
    client.writer.write(fetch(0))
    await it.until(lambda: it.net.answers.held > before)
    return client


# --- answers that are not read


def test_what_is_not_read_is_counted_until_all_of_it_is_sent() -> None:
    async def scenario() -> None:
        async with rig(SMALL_BUFFERS) as it:
            it.node.records = bytes(8 * MIB)
            client = await slow_reader(it)
            (connection,) = it.net.connections.values()
            assert 7 * MIB < it.net.answers.held == connection.unsent <= size_of(it.node.records)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
            await client.reader.readexactly(size_of(it.node.records))
            await it.until(lambda: it.net.answers.held == 0)
            client.send(1)
            await client.answer()

    run(scenario)


def test_what_was_written_counts_until_the_last_of_it_is_sent_although_more_may_be_written() -> None:
    async def scenario() -> None:
        async with rig(SMALL_BUFFERS) as it:
            it.node.records = bytes(8 * MIB)
            client = await slow_reader(it)
            (connection,) = it.net.connections.values()
            held = it.net.answers.held
            connection.transport.set_write_buffer_limits(9 * MIB, 7 * MIB)  # low is above what is written next
            connection.transport.write(bytes(6 * MIB))
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]  # a transport for both ways
            await client.reader.readexactly(size_of(it.node.records) + MIB)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # as above
            await it.until(lambda: connection.writable)
            await asyncio.sleep(0.12)  # two looks of `release_sent`
            assert 0 < connection.transport.get_write_buffer_size() < held
            assert it.net.answers.held == held

    run(scenario)


def test_answers_that_wait_for_an_earlier_one_are_counted_and_stop_the_reading() -> None:
    async def scenario() -> None:
        async with rig() as it:
            it.node.records = bytes(MIB)
            client, other = await it.client(), await it.client()
            client.send(0, "hold")
            await it.until(lambda: len(it.node.parked) == 1)
            (connection,) = (one for one in it.net.connections.values() if one.slots)
            for number in range(10):
                client.writer.write(fetch(number))
            await it.until(lambda: connection.stopped)
            size = size_of(it.node.records)
            assert connection.kept == it.net.answers.held == (WRITE_BUFFER_BYTES // size + 1) * size
            other.send(1, "release")
            await client.frame()
            for _ in range(10):
                assert len(await client.frame()) == size - 4
            await it.until(lambda: it.net.answers.held == connection.kept == 0)

    run(scenario)


def test_a_connection_that_ends_gives_back_what_it_held() -> None:
    async def scenario() -> None:
        async with rig(SMALL_BUFFERS) as it:
            it.node.records = bytes(8 * MIB)
            client = await slow_reader(it)
            client.send(1, "hold")
            client.writer.transport.abort()
            await it.until(lambda: not it.net.connections)
            assert it.net.answers.held == 0
            assert it.net.limits.total == 0

    run(scenario)


def test_over_the_bound_the_largest_of_those_that_read_slowly_are_closed_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 1000)  # it happens at once

    async def scenario() -> None:
        async with rig(SMALL_BUFFERS) as it:
            it.net.answers = AnswerMemory(10 * MIB)
            good = await it.client()
            it.node.records = bytes(2 * MIB)
            small = await slow_reader(it)
            it.node.records = bytes(6 * MIB)
            large = await slow_reader(it)
            it.node.records = bytes(3 * MIB)
            last = await it.client(receive_buffer=4096)
            last.writer.write(fetch(0))
            await it.until(lambda: it.net.watch.dropped[READS_SLOWLY])
            good.send(1)
            assert await good.answer() == (0, 1)
            large.writer.transport.resume_reading()  # type: ignore[attr-defined]  # a transport for both ways
            with pytest.raises(asyncio.IncompleteReadError):
                await large.reader.readexactly(6 * MIB)
            small.writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
            assert len(await small.frame()) > 2 * MIB
            assert len(await last.frame()) > 3 * MIB
            assert it.stops == []

    run(scenario)


def test_above_half_of_the_bound_clients_that_stopped_to_read_are_closed() -> None:
    async def scenario() -> None:
        async with rig(SMALL_BUFFERS) as it:
            it.net.answers = AnswerMemory(10 * MIB)
            it.node.records = bytes(6 * MIB)
            await slow_reader(it)
            for _ in range(STALLED_LOOKS):
                it.net.watch.look()
                await asyncio.sleep(0)
                assert len(it.net.connections) == 1
            it.net.watch.look()
            await it.until(lambda: not it.net.connections)

    run(scenario)


def test_many_connections_that_hold_a_little_each_are_counted_too() -> None:
    async def scenario() -> None:
        async with rig(SMALL_BUFFERS) as it:
            it.net.answers = AnswerMemory(2 * MIB)
            it.node.records = bytes(MIB // 2)
            clients = [await it.client(receive_buffer=4096) for _ in range(3)]
            for client in clients:
                client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport for both ways
                client.writer.write(fetch(0))
            await it.until(lambda: len(it.node.events) == 3)
            await asyncio.sleep(0)
            assert it.net.answers.held == 0
            it.net.watch.look()
            assert MIB < it.net.answers.held < 2 * MIB
            clients[0].writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
            await clients[0].frame()
            await it.until(lambda: it.net.answers.held < MIB)
            assert len(it.net.connections) == 3

    run(scenario)


def test_a_closed_connection_does_not_wait_for_its_reader_for_ever() -> None:
    async def scenario() -> None:
        async with rig(SMALL_BUFFERS) as it:
            it.node.records = bytes(6 * MIB)
            await slow_reader(it)
            (connection,) = it.net.connections.values()
            connection.refuse("enough")
            it.net.watch.look()
            await asyncio.sleep(0.01)
            assert it.net.connections, "what is written goes out, if somebody takes it"
            it.net.watch.look()
            await it.until(lambda: not it.net.connections)

    run(scenario)


# --- requests that come slowly


async def begun(it: Rig, size: int, sent: int) -> Client:
    """A client that has sent so much of a large request."""
    client = await it.client()
    client.writer.write(produce(0, size)[:sent])
    return client


def received(it: Rig) -> int:
    return sum(one.filled for one in it.net.connections.values() if one.large is not None)


def test_parts_of_large_requests_have_bounded_memory_and_the_slowest_give_way(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "FRAMES_S", 1000)  # the test itself looks

    async def scenario() -> None:
        async with rig() as it:
            it.net.requests.parts_max = 3 * MIB
            slow = [await begun(it, 2 * MIB, 20_000 + n) for n in range(3)]
            await it.until(lambda: received(it) > 59_900)
            assert it.net.requests.parts == 3 * MIB
            waiting = await begun(it, 2 * MIB, 5 * MIB)
            small = await it.client()
            small.send(7)
            assert await small.answer() == (0, 7)
            await it.until(lambda: it.net.watch.frames_timer is not None)
            slow[1].writer.write(bytes(1000))
            await it.until(lambda: received(it) > 60_900)
            assert it.net.requests.parts == 3 * MIB, "nothing was closed before it was slow for a second"
            it.net.watch.relieve_frames()
            assert await slow[0].is_closed()
            assert await slow[2].is_closed()
            await waiting.frame()
            assert it.net.watch.dropped[SENDS_SLOWLY] == 2
            slow[1].writer.write(produce(0, 2 * MIB)[21_001:])
            await slow[1].frame()
            assert it.net.requests.parts == 0

    with caplog.at_level(logging.WARNING, "strandline"):
        run(scenario)
    assert "its request comes slowly" in caplog.text


def test_a_large_request_waits_for_more_memory_in_the_middle_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FRAMES_S", 1000)  # the test itself looks

    async def scenario() -> None:
        async with rig() as it:
            it.net.requests.parts_max = 2 * MIB
            client, other = await begun(it, 4 * MIB, 20_000), await begun(it, 4 * MIB, 20_000)
            await it.until(lambda: received(it) > 39_900)
            other.writer.write(produce(0, 4 * MIB)[20_000 : 2 * MIB])
            await it.until(lambda: received(it) > 2 * MIB)
            assert it.net.requests.parts == 5 * MIB, "one frame is favoured"
            client.writer.write(produce(0, 4 * MIB)[20_000:])
            await it.until(lambda: it.net.requests.waiting)
            assert it.net.requests.parts == 5 * MIB
            it.net.watch.relieve_frames()
            assert await other.is_closed(), "it has memory, and does not come on; the other one cannot"
            await client.frame()
            assert (it.net.requests.parts, it.net.requests.favoured) == (0, None)
            assert sum(isinstance(event, Disconnected) for event in it.node.events) == 1

    run(scenario)


def test_at_the_bound_of_all_requests_nothing_more_is_read_until_there_is_room() -> None:
    async def scenario() -> None:
        async with rig(NetConfig(queued_request_bytes_max=1000)) as it:
            clients = [await it.client() for _ in range(3)]
            size = len(heartbeat(0, 0, "hold")) - 4
            for client in clients:
                for generation in range(60):
                    client.send(generation, "hold")
            await it.until(lambda: len(it.net.requests.waiting) == 3)
            parked = len(it.node.parked)
            assert 1000 // size <= parked <= 1000 // size + 1 + len(clients)
            assert it.net.requests.queued == parked * size
            clients[0].writer.transport.abort()
            answered = [asyncio.create_task(drained(client, 60)) for client in clients[1:]]
            while not all(task.done() for task in answered):
                for event in it.node.parked[:]:
                    it.node.parked.remove(event)
                    it.net.reply(answer(event))
                await asyncio.sleep(0.001)
            assert it.net.requests.queued == 0

    run(scenario)


async def drained(client: Client, count: int) -> None:
    assert [(await client.answer())[1] for _ in range(count)] == list(range(count))


# --- connections that say nothing, and too many of them


def test_a_connection_without_a_request_is_closed_and_one_that_made_a_request_is_not() -> None:
    async def scenario() -> None:
        async with rig(NetConfig(setup_ms_max=20)) as it:
            good, silent, partial = await it.client(), await it.client(), await it.client()
            good.send(1)
            await good.answer()
            partial.writer.write(heartbeat(0, 1)[:10])
            await asyncio.sleep(0.03)
            it.net.watch.look()
            assert await silent.is_closed()
            assert await partial.is_closed()
            good.send(2)
            assert await good.answer() == (1, 2)
            assert it.net.watch.dropped[NO_REQUEST] == 2

    run(scenario)


def is_refused(at: int) -> bool:
    with socket.create_connection(("127.0.0.1", at), timeout=10) as sock:
        with suppress(ConnectionError):
            return sock.recv(1) == b""
        return True


def test_over_the_number_of_an_address_connections_are_closed_and_the_log_stays_small(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        config = NetConfig(limits=LimitsConfig(per_address_max=2))
        async with rig(config) as it:
            first, second = await it.client(), await it.client("CONTROLLER")
            first.send(1)
            await first.answer()
            await it.until(lambda: it.net.limits.total == 2)
            for _ in range(300):
                assert await asyncio.to_thread(is_refused, it.endpoint.port)
            assert it.net.limits.refused["per ip"] == 300
            second.writer.transport.abort()
            await it.until(lambda: it.net.limits.total == 1)
            third = await it.client()
            third.send(3)
            assert await third.answer() == (0, 3)

    with caplog.at_level(logging.WARNING, "strandline"):
        run(scenario)
    assert len(caplog.records) == 10
    assert "from 127.0.0.1 on PLAINTEXT: it has 2 connections (max.connections.per.ip)" in caplog.text


def test_over_the_number_of_a_node_clients_wait_and_a_node_takes_the_place_of_an_idle_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accepting, "LIMITS_S", 1000)  # it is woken, and does not only look again

    async def scenario() -> None:
        config = NetConfig(limits=LimitsConfig(connections_max=2, node_listeners=frozenset(["CONTROLLER"])))
        async with rig(config) as it:
            waits, idle = await it.client(), await it.client()
            waits.send(1, "hold")
            idle.send(2)
            await idle.answer()
            late = await it.client()
            late.send(3)
            await asyncio.sleep(0.05)
            assert it.net.limits.total == 2
            node = await it.client("CONTROLLER")
            assert await idle.is_closed()
            node.writer.write(pack(">i", 0))
            assert await node.is_closed()
            assert await late.answer() == (0, 3)

    run(scenario)


def test_over_a_rate_connections_wait_and_are_served_later() -> None:
    async def scenario() -> None:
        async with rig(NetConfig(limits=LimitsConfig(rate=10))) as it:
            first = await it.client()
            first.send(1)
            await first.answer()
            it.net.limits.rates[None].left = 0
            second = await it.client()
            second.send(2)
            assert await second.answer() == (0, 2)
            assert it.net.acceptors[0].throttled_ms > 0

    run(scenario)


def test_over_the_rate_of_its_address_a_connection_is_closed_after_a_while() -> None:
    async def scenario() -> None:
        async with rig() as it:
            it.net.limits.set_address_rates({}, default=0.1)
            client = await it.client()
            client.send(1)
            await client.answer()
            refused = asyncio.create_task(asyncio.to_thread(is_refused, it.endpoint.port))
            await it.until(lambda: it.net.acceptors[0].paused)
            assert it.net.limits.total == 1
            assert await refused
            assert not it.net.acceptors[0].paused

    run(scenario)


def test_without_files_the_acceptor_waits_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it:
            acceptor = it.net.acceptors[0]
            real, tries = acceptor.sock, []

            class Exhausted:
                def accept(self) -> tuple[socket.socket, tuple[str, int]]:
                    tries.append(1)
                    if len(tries) == 1:
                        raise OSError(24, "Too many open files")
                    return real.accept()

                def __getattr__(self, name: str) -> object:
                    return getattr(real, name)

            acceptor.sock = Exhausted()  # type: ignore[assignment]  # stands in for it
            client = await it.client()
            client.send(1)
            assert await client.answer() == (0, 1)
            assert len(tries) > 1

    with caplog.at_level(logging.WARNING, "strandline"):
        run(scenario)
    assert "Too many open files" in caplog.text
