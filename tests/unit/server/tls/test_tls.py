"""Listeners with TLS, over real loopback sockets: who is let in, as whom, and what is logged about the others."""

import asyncio
import logging
import os
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each
from tests.unit.server.network.echo import heartbeat, produce, rig, run
from tests.unit.server.tls.listening import HOST, listener, trusting

from strandline.base.effects import Answered, Endpoint, Failed, Received, Send
from strandline.base.ids import NOBODY
from strandline.broker.config import NodeConfig
from strandline.server.network.limits import LimitsConfig
from strandline.server.network.net import NetConfig
from strandline.server.network.peers import Peers
from strandline.server.tls import handshakes
from strandline.server.tls.listener_tls import ListenerTls, Tls
from strandline.server.tls.of_node import is_loopback, unprotected
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_requests_large_and_small_are_answered_over_both_versions(made: Path, version: str) -> None:
    async def scenario() -> None:
        async with rig(tls=listener(made, ssl_enabled_protocols=version)) as it:
            client = await it.client("SSL", context=trusting(made))
            assert client.writer.get_extra_info("ssl_object").version() == version
            for number in range(50):
                client.send(number, "hold")
            client.send(50, "release")
            assert [await client.answer() for _ in range(51)] == [(n, n) for n in range(51)]
            client.writer.write(produce(51, 3_000_000))
            await client.frame()
            last = it.node.events[-1]
            assert isinstance(last, Received)
            assert bytes(last.message.topic_data[0].partition_data[0].records) == b"x" * 3_000_000
            assert last.caller.principal == "User:ANONYMOUS"

    run(scenario)


@each(
    ("own", "auth", "rules", "principal"),
    [
        ("client", "required", "DEFAULT", "User:CN=client,OU=Streams,O=Example"),
        ("client", "requested", "RULE:^CN=(.*?),.*$/$1/U", "User:CLIENT"),
        ("", "requested", "DEFAULT", "User:ANONYMOUS"),
        ("client", "none", "DEFAULT", "User:ANONYMOUS"),  # nobody asked for it
    ],
)
def test_a_client_is_whom_its_certificate_names(made: Path, own: str, auth: str, rules: str, principal: str) -> None:
    async def scenario() -> None:
        tls = listener(made, ssl_client_auth=auth, ssl_principal_mapping_rules=rules)
        async with rig(tls=tls) as it:
            client = await it.client("SSL", context=trusting(made, own))
            client.send(1)
            client.send(2)
            assert [await client.answer(), await client.answer()] == [(0, 1), (1, 2)]
            assert {(e.caller.principal, e.caller.client_id) for e in it.node.events} == {(principal, "tester")}

    run(scenario)


def refused(port: int, context: ssl.SSLContext | None) -> str:
    """What OpenSSL, as librdkafka and others have it, says when it is not let in; empty: the connection is closed."""
    with socket.create_connection((HOST, port)) as plain:
        try:
            if context is None:
                plain.send(heartbeat(0, 1))
                return "closed" if plain.recv(1)[:1] in (b"", b"\x15") else "answered"
            with context.wrap_socket(plain, server_hostname=HOST) as client:
                client.send(heartbeat(0, 1))
                return f"answered {client.recv(1)!r}"
        except ssl.SSLError as error:
            return error.reason or str(error)
        except ConnectionError:
            return "closed"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def refusal(
    tls: ListenerTls, context: ssl.SSLContext | None, caplog: pytest.LogCaptureFixture, why: str, alert: str
) -> None:
    async def scenario() -> None:
        async with rig(tls=tls) as it:
            good = await it.client("PLAINTEXT")  # with the first connection libuv opens a file of its own
            good.send(1)
            assert await good.answer() == (0, 1)
            heard, before = len(it.node.events), open_files()
            reported = await asyncio.to_thread(refused, it.where["SSL"].port, context)
            await it.until(lambda: caplog.records)
            assert alert in reported
            assert len(it.node.events) == heard, "the node hears of nobody who was not let in"
            assert len(it.net.connections) == 1
            await it.until(lambda: open_files() == before)
            good.send(1)
            assert await good.answer() == (1, 1)

    caplog.clear()
    with caplog.at_level(logging.INFO, "strandline"):
        run(scenario)
    assert len(caplog.records) == 1
    assert f"no TLS with 127.0.0.1 on SSL: {why}" in caplog.text


def test_who_is_not_let_in_is_named_with_the_reason(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    required = listener(made, ssl_client_auth="required")
    expired = "its certificate is not accepted: certificate has expired"
    refusal(required, trusting(made, "expired"), caplog, expired, "CERTIFICATE_EXPIRED")
    unknown = "its certificate is not accepted: unable to get local issuer certificate"
    refusal(required, trusting(made, "unknown"), caplog, unknown, "UNKNOWN_CA")
    refusal(
        required,
        trusting(made),
        caplog,
        "it sent no certificate, and ssl.client.auth is required",
        "CERTIFICATE_REQUIRED",
    )
    plain = listener(made)
    refusal(plain, None, caplog, "it does not speak TLS: check its security.protocol", "closed")
    refusal(
        plain,
        trusting(made, authority="stranger"),
        caplog,
        "it does not trust the authority that signed",
        "CERTIFICATE_VERIFY_FAILED",
    )
    with caplog.at_level(logging.CRITICAL):
        old = listener(made, "expired")
    refusal(old, trusting(made), caplog, "this node's certificate has expired", "CERTIFICATE_VERIFY_FAILED")
    older = trusting(made)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    newest = listener(made, ssl_enabled_protocols="TLSv1.3")
    refusal(
        newest,
        older,
        caplog,
        "it shares no version or cipher suite with this node (UNSUPPORTED_PROTOCOL)",
        "ALERT_PROTOCOL_VERSION",
    )


def test_a_certificate_that_no_rule_maps_is_let_in_nowhere(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        tls = listener(made, ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=admin.*$/admin/")
        async with rig(tls=tls) as it:
            client = await it.client("SSL", context=trusting(made, "client"))
            client.send(1)
            assert await client.is_closed()
            assert not any(isinstance(event, Received) for event in it.node.events)

    with caplog.at_level(logging.INFO, "strandline"):
        run(scenario)
    assert "no rule of ssl.principal.mapping.rules matches its certificate's subject CN=client,OU=" in caplog.text


def test_a_handshake_that_takes_too_long_ends(
    made: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", 0.1)

    async def scenario() -> None:
        async with rig(tls=listener(made)) as it:
            client = await it.client("SSL")
            assert await client.is_closed()
            silent = await it.client("SSL")
            silent.writer.close()  # as somebody who only looks whether the port is open

    with caplog.at_level(logging.INFO, "strandline"):
        run(scenario)
    assert [record.message for record in caplog.records] == [
        "no TLS with 127.0.0.1 on SSL: the handshake took too long"
    ]


def test_no_more_handshakes_are_on_their_way_than_the_bound(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", 2)

    async def scenario() -> None:
        async with rig(tls=listener(made)) as it:
            silent = [await it.client("SSL") for _ in range(2)]
            await it.until(lambda: len(it.net.coming) == 2)
            over = await it.client("SSL")
            assert await over.is_closed()
            for one in silent:
                one.writer.close()
            await it.until(lambda: not it.net.coming)
            client = await it.client("SSL", context=trusting(made))
            client.send(7)
            assert await client.answer() == (0, 7)

    run(scenario)


def test_clients_that_shake_no_hands_leave_places_for_nodes(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a listener of nodes more may be on their way than all other listeners together can have."""
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", 2)
    config = NetConfig(limits=LimitsConfig(node_listeners=frozenset({"SSL"})))

    async def scenario() -> None:
        async with rig(config, tls=listener(made)) as it:
            silent = [await it.client("SSL") for _ in range(2)]
            await it.until(lambda: len(it.net.coming) == 2)
            node = await it.client("SSL", context=trusting(made))
            node.send(7)
            assert await node.answer() == (0, 7)
            for one in silent:
                one.writer.close()

    run(scenario)


def test_what_a_client_does_not_read_waits_unencrypted_and_counted_and_arrives_in_order(made: Path) -> None:
    large = [bytes([n]) * 8_000_000 for n in range(4)]
    small = [b"%d;" % n for n in range(2000)]

    async def scenario() -> None:
        async with rig(tls=listener(made)) as it:
            client = await it.client("SSL", context=trusting(made), receive_buffer=4096)
            client.send(1)
            await client.answer()
            (connection,) = it.net.connections.values()
            for piece in large:
                connection.write([b"<", piece, b">"])
            for short in small:
                connection.write([short[:1], short[1:]])
            expected = b"".join(b"<" + piece + b">" for piece in large) + b"".join(small)
            assert connection.transport.get_write_buffer_size() > len(expected) - 4_000_000
            assert not connection.writable
            connection.close()  # what is written still goes out
            assert await client.reader.readexactly(len(expected)) == expected
            assert await client.is_closed()
            await it.until(lambda: not it.net.connections)

    run(scenario)


def test_a_client_that_reads_again_is_read_from_again(made: Path) -> None:
    async def scenario() -> None:
        async with rig(tls=listener(made)) as it:
            client = await it.client("SSL", context=trusting(made))
            client.send(1)
            await client.answer()
            (connection,) = it.net.connections.values()
            connection.write([bytes(20_000_000)])
            assert not connection.writable
            client.send(2)
            await client.reader.readexactly(20_000_000)
            assert await client.answer() == (1, 2)
            assert connection.writable
            assert connection.transport.get_write_buffer_size() == 0

    run(scenario)


# --- connections to other nodes


def asked(tls: ListenerTls, context: ssl.SSLContext, caplog: pytest.LogCaptureFixture) -> tuple[type, str, str]:
    """What a node hears that asks another one: the event, the principal that the other saw, and the log."""
    seen: list[Any] = []

    async def scenario() -> None:
        async with rig(tls=tls) as it:
            peers = Peers(it.loop, "me", seen.append, lambda _: context)
            where = Endpoint(HOST, it.where["SSL"].port)
            peers.send(Send(where, "c", HeartbeatRequest(generation_id=3), 4, 5000, "token", NOBODY))
            await it.until(lambda: seen)
            peers.close()
            seen.extend(event.caller.principal for event in it.node.events if isinstance(event, Received))

    caplog.clear()
    run(scenario)
    return type(seen[0]), "".join(seen[1:]), " / ".join(r.message for r in caplog.records)


def test_nodes_verify_each_other_and_the_host(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    required = {"ssl_client_auth": "required"}
    with caplog.at_level(logging.CRITICAL):
        server, elsewhere = listener(made, **required), listener(made, "elsewhere", **required)
        old, unknown = listener(made, "expired"), listener(made, "unknown", **required)
        lenient = listener(made, ssl_endpoint_identification_algorithm="")
    ours = server.contexts.client
    assert asked(server, ours, caplog) == (Answered, "User:CN=server", "")
    assert asked(elsewhere, lenient.contexts.client, caplog)[0] is Answered
    for tls, context, why in (
        (elsewhere, ours, "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        (old, ours, "its certificate is not accepted: certificate has expired"),
        (unknown, ours, "its certificate is not accepted: unable to get local issuer certificate"),
    ):
        event, principal, said = asked(tls, context, caplog)
        assert (event, principal) == (Failed, "")
        assert "no TLS with 127.0.0.1" in said and why in said


def test_each_endpoint_is_reached_as_its_listener_is_configured(made: Path) -> None:
    brokers = listener(made)
    every = Tls([brokers], frozenset({Endpoint("c", 1)}), "CONTROLLER", "SSL")
    assert every.to(Endpoint("c", 1)) is None, "controllers listen without TLS"
    assert every.to(Endpoint("c", 2)) is brokers.contexts.client
    assert (every.of("SSL"), every.of("CONTROLLER")) == (brokers, None)


def test_listeners_that_are_plain_and_not_on_loopback_are_named() -> None:
    config = NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://0.0.0.0:1,SSL://0.0.0.0:2,INSIDE://:3,CONTROLLER://10.0.0.1:4",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@h:4",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "ssl.keystore.location": "/k",
        }
    )
    where = [(at.name, Endpoint(at.host or HOST, at.port)) for at in config.listeners]
    assert unprotected(config, where) == ["PLAINTEXT://0.0.0.0:1", "CONTROLLER://10.0.0.1:4"]


@each(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_loopback_is_where_only_this_machine_comes_in(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
