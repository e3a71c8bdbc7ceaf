"""Inbound connections, over real loopback sockets."""

import logging
from struct import pack

import pytest
from tests.unit.server.network.echo import Rig, heartbeat, produce, rig, run

from strandline.base.effects import Close, Disconnected, Received, Throttle
from strandline.server.network import net
from strandline.server.network.net import UNANSWERED_MAX, NetConfig
from strandline.wire.frame import decode_response, encode_request
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.messages.quorum.vote import VoteRequest


def test_pipelined_requests_are_answered_in_order_though_completed_out_of_order() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            for generation in range(10):
                client.send(generation, "hold")
            client.send(10, "release")
            client.send(11)
            assert [await client.answer() for _ in range(12)] == [(n, n) for n in range(12)]

    run(scenario)


def test_a_reply_without_a_message_leaves_no_trace_and_holds_nobody_up() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            client.send(0, "mute")
            client.send(1, "hold")
            client.send(2, "mute")
            client.send(3, "release")
            assert [await client.answer() for _ in range(2)] == [(1, 1), (3, 3)]

    run(scenario)


def test_the_node_learns_the_client_and_the_listener() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            client.send(7)
            await client.answer()
            (event,) = it.node.events
            assert isinstance(event, Received)
            assert (event.caller.client_id, event.caller.host, event.caller.listener) == (
                "tester",
                "127.0.0.1",
                "PLAINTEXT",
            )
            assert (event.to.sequence, event.to.api_key, event.to.api_version) == (0, 12, 4)

    run(scenario)


def test_frames_cut_anywhere_are_put_together() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            stream = heartbeat(0, 5) + heartbeat(1, 6)
            for byte in stream:
                client.writer.write(bytes([byte]))
                await client.writer.drain()
            assert [await client.answer() for _ in range(2)] == [(0, 5), (1, 6)]

    run(scenario)


@pytest.mark.parametrize("size", [10, 16_000, 17_000, 300_000, 1_048_576, 5_000_000])
def test_large_and_small_frames_arrive_whole_and_writable(size: int) -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            client.writer.write(heartbeat(0, 1) + produce(1, size) + heartbeat(2, 3))
            await client.answer()
            await client.frame()
            assert await client.answer() == (2, 3)
            event = it.node.events[1]
            assert isinstance(event, Received)
            records = event.message.topic_data[0].partition_data[0].records
            assert bytes(records) == b"x" * size
            records[0] = 0  # the log patches headers in place

    run(scenario)


def refused(stream: bytes, caplog: pytest.LogCaptureFixture, why: str, listener: str = "PLAINTEXT") -> None:
    async def scenario() -> None:
        async with rig() as it:
            good, bad = await it.client(), await it.client(listener)
            good.send(1)
            assert await good.answer() == (0, 1)
            bad.writer.write(stream)
            assert await bad.is_closed()
            good.send(2)
            assert await good.answer() == (1, 2)
            await it.until(lambda: any(isinstance(e, Disconnected) for e in it.node.events))
            assert it.stops == []

    with caplog.at_level(logging.WARNING, "strandline"):
        run(scenario)
    assert len(caplog.records) == 1
    assert why in caplog.text


def test_garbage_costs_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    refused(pack(">i", 50) + b"\xff" * 50, caplog, "Unsupported")


def test_a_message_that_ends_too_early_costs_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    whole = heartbeat(0, 1)[4:-6]
    refused(pack(">i", len(whole)) + whole, caplog, "Malformed")


def test_an_empty_frame_costs_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    refused(pack(">i", 0), caplog, "Malformed")


def test_a_size_beyond_the_limit_costs_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    refused(pack(">i", 100 * 1024 * 1024 + 1), caplog, "the limit is")


def test_tls_on_a_plain_listener_is_named_in_the_log_with_its_peer(caplog: pytest.LogCaptureFixture) -> None:
    hello = bytes.fromhex("16030100c5010000c10303") + bytes(40)
    refused(hello, caplog, "looks like TLS")
    assert "from 127.0.0.1" in caplog.text


def test_a_negative_size_costs_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    refused(pack(">i", -1), caplog, "-1 bytes")


def test_a_controllers_api_on_a_clients_listener_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    refused(b"".join(encode_request(VoteRequest(), 0, 0, None)), caplog, "not served on this listener")


def test_a_clients_api_on_a_controllers_listener_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    refused(heartbeat(0, 1), caplog, "not served on this listener", "CONTROLLER")


def test_a_codec_that_raises_costs_the_connection_and_is_logged_with_the_requests_name(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a request, or writing an answer; with a trace once."""

    def raising(*_: object) -> None:
        raise MemoryError("planted")

    async def scenario() -> None:
        async with rig() as it:
            other = await it.client()
            for function in ("decode_request", "encode_response", "encode_response"):
                with monkeypatch.context() as planted:
                    planted.setattr(net, function, raising)
                    client = await it.client()
                    client.send(1)
                    assert await client.is_closed()
            other.send(2)
            assert (await other.answer())[1] == 2
            assert it.stops == []

    run(scenario)
    reported = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert [text.partition(" from")[0] for text in reported] == ["decoding Heartbeat v4", "answering Heartbeat v4"]
    assert all("MemoryError: planted" in text for text in reported)
    assert sum("answering Heartbeat v4 raised MemoryError" in record.message for record in caplog.records) == 2


def test_nothing_behind_a_refused_frame_is_served(caplog: pytest.LogCaptureFixture) -> None:
    refused(pack(">i", 0) + heartbeat(0, 99), caplog, "Malformed")


def test_a_connection_that_ends_in_the_middle_of_a_frame_is_reported_as_gone() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            client.writer.write(heartbeat(0, 1) + produce(1, 500_000)[:300_000])
            await client.answer()
            client.writer.close()
            await it.until(lambda: len(it.node.events) == 2)
            assert it.node.events[1] == Disconnected(it.node.events[0].to.connection)

    run(scenario)


def of_a_newer_client(correlation_id: int) -> bytes:
    frame = bytearray(b"".join(encode_request(ApiVersionsRequest(), 0, correlation_id, "newer")))
    frame[6:8] = pack(">h", 99)
    return bytes(frame)


def test_an_unknown_version_of_api_versions_is_answered_in_version_0_with_its_own_row() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            client.send(1, "hold")
            client.writer.write(of_a_newer_client(77))
            client.send(2, "release")
            assert await client.answer() == (0, 1)
            correlation_id, message = decode_response(ApiVersionsResponse, 0, memoryview(await client.frame()))
            assert (correlation_id, message.error_code) == (77, 35)
            assert [api.api_key for api in message.api_keys] == [18]
            assert await client.answer() == (1, 2)

    run(scenario)


def test_at_the_bound_of_unanswered_requests_reading_stops_until_answers_go_out() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client, other = await it.client(), await it.client()
            for generation in range(3 * UNANSWERED_MAX):
                client.send(generation, "hold")
            await it.until(lambda: len(it.node.parked) >= UNANSWERED_MAX)
            other.send(0)
            await other.answer()
            assert len(it.node.parked) == UNANSWERED_MAX
            for done in range(3):
                await it.until(lambda done=done: len(it.node.parked) == UNANSWERED_MAX)
                other.send(1, "release")
                expected = range(done * UNANSWERED_MAX, (done + 1) * UNANSWERED_MAX)
                assert [(await client.answer())[1] for _ in expected] == list(expected)

    run(scenario)


def test_requests_of_unknown_versions_count_as_unanswered_while_an_earlier_one_waits() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client, other = await it.client(), await it.client()
            client.send(1, "hold")
            await it.until(lambda: len(it.node.parked) == 1)
            (connection,) = (one for one in it.net.connections.values() if one.slots)
            for number in range(3 * UNANSWERED_MAX):
                client.writer.write(of_a_newer_client(number))
            await it.until(lambda: len(connection.slots) >= UNANSWERED_MAX)
            other.send(0)
            await other.answer()
            assert len(connection.slots) == UNANSWERED_MAX
            other.send(1, "release")
            assert await client.answer() == (0, 1)
            for number in range(3 * UNANSWERED_MAX):
                assert decode_response(ApiVersionsResponse, 0, memoryview(await client.frame()))[0] == number

    run(scenario)


async def next_sweep(it: Rig) -> None:
    """Of idle connections."""
    last = it.net.sweeper
    await it.until(lambda: it.net.sweeper is not last)


def test_from_a_throttled_connection_nothing_is_read_until_the_last_throttle_is_over() -> None:
    async def scenario() -> None:
        async with rig(NetConfig(idle_ms_max=20)) as it:
            client, other = await it.client(), await it.client()
            client.send(1, "hold")
            await it.until(lambda: len(it.node.parked) == 1)
            (number,) = (one.number for one in it.net.connections.values() if one.slots)
            connection = it.net.connections[number]
            it.node.then = [Throttle(number, 3_600_000), Throttle(number, 3_600_000), Throttle(999, 1)]
            other.send(2, "release")
            assert await client.answer() == (0, 1), "what was asked before is answered"
            for generation in range(3, 9):
                client.send(generation)
            for ends in (1, 2):
                for _ in range(3):
                    await next_sweep(it)
                assert connection.throttles == 3 - ends
                assert len([event for event in it.node.events if isinstance(event, Received)]) == 2
                assert number in it.net.connections, "it is not closed as idle"
                connection.throttled()
            assert [(await client.answer())[1] for _ in range(6)] == [3, 4, 5, 6, 7, 8]

    run(scenario)


def test_a_client_that_does_not_read_its_answers_is_not_read_from() -> None:
    async def scenario() -> None:
        async with rig(NetConfig(send_buffer_bytes=4096)) as it:
            client = await it.client(receive_buffer=4096)
            total = 100_000
            client.writer.write(b"".join(heartbeat(n, n) for n in range(total)))
            await it.until(lambda: any(not c.writable for c in it.net.connections.values()))
            assert len(it.node.events) < total
            answers = await client.reader.readexactly(16 * total)
            # size, correlation id, no tags, throttle time, error code, no tags
            assert answers == b"".join(pack(">iixihx", 12, n, n, 0) for n in range(total))

    run(scenario)


def test_close_lets_out_what_is_already_answered() -> None:
    async def scenario() -> None:
        async with rig() as it:
            client = await it.client()
            client.send(1)
            await client.answer()
            it.node.then = [Close(it.node.events[0].to.connection, "enough")]
            client.send(2)
            assert await client.answer() == (1, 2)
            assert await client.is_closed()

    run(scenario)


def test_a_silent_connection_is_closed_and_a_waiting_one_is_not() -> None:
    async def scenario() -> None:
        async with rig(NetConfig(idle_ms_max=40)) as it:
            silent, waiting = await it.client(), await it.client()
            waiting.send(1, "hold")
            assert await silent.is_closed()
            other = await it.client()
            other.send(2, "release")
            assert await waiting.answer() == (0, 1)

    run(scenario)
