"""Connections of listeners with SASL: what strangers may ask, how failures are answered, and when a session ends."""

import time

import pytest
from tests.unit.server.network.echo import STRANGER_BYTES_MAX, Client, EchoNode, Rig, answer, heartbeat, rig, run

from strandline.base.effects import Authenticated, Effect, Event, Received, Refuse, Reply
from strandline.base.time import Instant
from strandline.server.network.net import NetConfig
from strandline.server.network.refusals import LINES_MAX
from strandline.wire.frame import decode_response, encode_request
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.wire.schema import Message

DELAY_MS = 20


class Doorman(EchoNode):
    """The token is the verdict: the milliseconds that the session lasts, or `no`."""

    def step(self, event: Event, now: Instant) -> list[Effect]:
        if not isinstance(event, Received):
            return []
        if isinstance(event.message, ApiVersionsRequest):
            return [Reply(event.to, ApiVersionsResponse())]
        if isinstance(event.message, SaslHandshakeRequest):
            return [Reply(event.to, SaslHandshakeResponse())]
        if not isinstance(event.message, SaslAuthenticateRequest):
            return super().step(event, now)
        token = bytes(event.message.auth_bytes)
        if token == b"no":
            return [Refuse(event.to, SaslAuthenticateResponse(error_code=58), "it was told no", DELAY_MS)]
        accepted = Reply(event.to, SaslAuthenticateResponse(auth_bytes=token))
        return [accepted, Authenticated(event.to.connection, "User:alice", False, int(token))]


async def ask(client: Client, message: Message, response: type[Message], version: int = 1) -> Message:
    client.writer.write(b"".join(encode_request(message, version, 7, "tester")))
    return decode_response(response, version, memoryview(await client.frame()))[1]


async def log_in(client: Client, token: bytes) -> Message:
    return await ask(client, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)


def doorman(it: Rig) -> Doorman:
    node = it.pump.node = Doorman()
    return node


def test_a_stranger_may_ask_for_versions_and_authenticate_and_then_everything() -> None:
    async def scenario() -> None:
        async with rig() as it:
            node = doorman(it)
            client = await it.client("SASL")
            await ask(client, ApiVersionsRequest(), ApiVersionsResponse)
            await ask(client, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
            await log_in(client, b"0")
            client.send(5)
            assert await client.answer() == (0, 5)
            (event,) = node.events
            assert isinstance(event, Received)
            assert (event.caller.principal, event.caller.is_node, event.caller.listener) == (
                "User:alice",
                False,
                "SASL",
            )

    run(scenario)


def test_a_connection_is_set_up_when_it_has_authenticated() -> None:
    """Until then it may not take longer than a connection that says nothing."""

    async def scenario() -> None:
        async with rig() as it:
            doorman(it)
            client = await it.client("SASL")
            await ask(client, ApiVersionsRequest(), ApiVersionsResponse)
            (connection,) = it.net.connections.values()
            assert not connection.is_set_up
            await log_in(client, b"20")
            assert connection.is_set_up
            await it.until(lambda: connection.served is not connection.served_by_listener)
            assert connection.is_set_up, "it may authenticate again"

    run(scenario)


def test_whatever_else_a_stranger_asks_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it:
            node = doorman(it)
            client = await it.client("SASL")
            client.send(5)
            assert await client.is_closed()
            assert node.events == []

    run(scenario)
    (record,) = caplog.records
    assert "on SASL: Heartbeat before it has authenticated: check the client's security.protocol" in record.message


def test_a_strangers_request_is_bounded_until_it_is_known() -> None:
    async def scenario() -> None:
        async with rig(NetConfig(request_bytes_max=100_000)) as it:
            doorman(it)
            large = SaslAuthenticateRequest(auth_bytes=b"0" * STRANGER_BYTES_MAX)
            client = await it.client("SASL")
            client.writer.write(b"".join(encode_request(large, 1, 0, "tester")))
            assert await client.is_closed()
            client = await it.client("SASL")
            await log_in(client, b"0")
            assert await log_in(client, b"0" * STRANGER_BYTES_MAX)

    run(scenario)


def test_who_fails_is_answered_late_and_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it:
            node = doorman(it)
            client = await it.client("SASL")
            began = time.monotonic()
            later = SaslAuthenticateRequest(auth_bytes=b"0"), 1, 1, "tester"
            failed = SaslAuthenticateRequest(auth_bytes=b"no"), 1, 0, "tester"
            client.writer.write(b"".join([*encode_request(*failed), *encode_request(*later), heartbeat(2, 5)]))
            refusal = decode_response(SaslAuthenticateResponse, 1, memoryview(await client.frame()))[1]
            assert refusal.error_code == 58  # type: ignore[attr-defined]
            assert time.monotonic() - began >= (DELAY_MS - 1) / 1000, "a loop counts in whole milliseconds"
            assert await client.is_closed()
            assert node.events == [], "what came after it was not read"

    run(scenario)
    assert ["it was told no" in record.message for record in caplog.records] == [True]


def test_who_fails_is_not_read_from_even_if_earlier_requests_are_answered_meanwhile() -> None:
    async def scenario() -> None:
        async with rig() as it:
            node = doorman(it)
            client = await it.client("SASL")
            await log_in(client, b"0")
            failed = encode_request(SaslAuthenticateRequest(auth_bytes=b"no"), 1, 0, "tester")
            client.writer.write(heartbeat(0, 1, "hold") + b"".join(failed) + heartbeat(1, 2))
            await it.until(lambda: node.parked)
            it.net.reply(answer(node.parked[0]))
            assert await client.is_closed()
            assert len(node.events) == 1, "the last one was not read"

    run(scenario)


def test_failed_logins_are_counted_apart_and_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it:
            doorman(it)
            for _ in range(LINES_MAX + 2):
                await log_in(await it.client("SASL"), b"no")
            (await it.client("SASL")).send(5)
            await it.until(lambda: not it.net.connections)
            assert it.net.log_limit.left_out_ever["failed logins"] == 2

    run(scenario)
    assert len(caplog.records) == LINES_MAX + 1
    assert "before it has authenticated" in caplog.records[-1].message


def test_who_leaves_before_the_answer_is_forgotten() -> None:
    async def scenario() -> None:
        async with rig() as it:
            doorman(it)
            client = await it.client("SASL")
            client.writer.write(b"".join(encode_request(SaslAuthenticateRequest(auth_bytes=b"no"), 1, 0, "tester")))
            await it.until(lambda: any(connection.closed for connection in it.net.connections.values()))
            client.writer.transport.abort()
            await it.until(lambda: not it.net.connections)
            other = await it.client("SASL")
            await log_in(other, b"no")  # later than the answer that nobody waits for
            assert not it.stops

    run(scenario)


def test_after_its_session_a_connection_may_only_authenticate_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it:
            doorman(it)
            client = await it.client("SASL")
            (connection,) = it.net.connections.values()
            allowed = connection.served
            await log_in(client, b"30")
            client.send(5)
            assert await client.answer() == (0, 5)
            await it.until(lambda: connection.served is allowed)
            await log_in(client, b"60000")
            client.send(6)
            assert await client.answer() == (1, 6)
            await log_in(client, b"30")
            await it.until(lambda: connection.served is allowed)
            client.send(7)
            assert await client.is_closed()

    run(scenario)
    assert "Heartbeat after its session has expired: it did not authenticate again" in caplog.text


def test_a_new_session_outlives_the_old_ones_end() -> None:
    async def scenario() -> None:
        async with rig() as it:
            doorman(it)
            client = await it.client("SASL")
            (connection,) = it.net.connections.values()
            await log_in(client, b"50")
            first = connection.expiry
            await log_in(client, b"0")
            assert first is not None and first.cancelled()
            assert connection.expiry is None

    run(scenario)


def test_a_session_may_last_longer_than_a_timer_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.server.network.session.TIMER_MS_MAX", 10)

    async def scenario() -> None:
        async with rig() as it:
            doorman(it)
            client = await it.client("SASL")
            (connection,) = it.net.connections.values()
            allowed, began = connection.served, time.monotonic()
            await log_in(client, b"60")
            await it.until(lambda: connection.served is allowed)
            assert time.monotonic() - began >= 0.055

    run(scenario)
