"""Listeners with TLS, over real loopback sockets: who is let in, as whom, and what is logged about the others."""

import asyncio
import logging
import os
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rows import each
from tests.unit.client.certificates import make_authority, make_certificate, openssl
from tests.unit.server.network.echo import heartbeat, produce, rig, run

from strandline.base.effects import Answered, Endpoint, Failed, Received, Send
from strandline.base.ids import NOBODY
from strandline.broker.config import NodeConfig
from strandline.broker.listeners.settings import ListenerSettings
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.server.network.limits import LimitsConfig
from strandline.server.network.net import NetConfig
from strandline.server.network.peers import Peers
from strandline.server.tls import handshakes
from strandline.server.tls.contexts import read_contexts
from strandline.server.tls.listener_tls import ListenerTls, Tls
from strandline.server.tls.of_node import is_loopback, unprotected
from strandline.server.tls.stores import BadStore
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder)
    make_authority(folder, "stranger")
    make_certificate(folder, "server")
    make_certificate(folder, "other")
    make_certificate(folder, "elsewhere", "DNS:elsewhere.example")
    make_certificate(folder, "expired", days=-1)
    make_certificate(folder, "soon", days=13)
    make_certificate(folder, "client", subject="/O=Example/OU=Streams/CN=client")
    make_certificate(folder, "unknown", authority="stranger")
    return folder


def settings(folder: Path, name: str = "server", **changes: str) -> ListenerSettings:
    given = {"ssl.keystore.location": str(folder / f"{name}.store"), "ssl.truststore.location": str(folder / "ca.pem")}
    given |= {key.replace("_", "."): value for key, value in changes.items()}
    own = {key: NODE_CONFIGS[key].parse(value) for key, value in given.items()}
    return ListenerSettings("SSL", "SSL", {name: key.default for name, key in NODE_CONFIGS.items()}, own, {})


def listener(folder: Path, name: str = "server", **changes: str) -> ListenerTls:
    return ListenerTls(settings(folder, name, **changes), is_served=True, is_for_nodes=False)


def trusting(folder: Path, name: str = "", authority: str = "ca") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / f"{authority}.pem"))
    if name:
        context.load_cert_chain(folder / f"{name}.store")
    return context


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


# --- other certificates


def serial(client: Any) -> str:
    return str(client.writer.get_extra_info("ssl_object").getpeercert()["serialNumber"])


def test_a_changed_file_is_used_for_new_connections_and_old_ones_stay(
    made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "server.store"
    store.write_bytes((made / "server.store").read_bytes())

    async def scenario() -> None:
        tls = listener(made, ssl_keystore_location=str(store))
        every = Tls([tls], frozenset(), "", "SSL")
        async with rig(tls=tls) as it:
            old = await it.client("SSL", context=trusting(made))
            first = tls.contexts
            await every.renew(tls, {})
            assert tls.contexts is first, "nothing has changed"
            store.write_text("half of a file")
            await every.renew(tls, {})
            await every.renew(tls, {})
            assert tls.contexts is first, "what cannot be used is not used"
            still = await it.client("SSL", context=trusting(made))
            store.write_bytes((made / "other.store").read_bytes())
            await every.renew(tls, {})
            new = await it.client("SSL", context=trusting(made))
            assert serial(old) == serial(still) != serial(new)
            for client in (old, new):
                client.send(5)
                assert await client.answer() == (0, 5)
            again = {"listener.name.ssl.ssl.keystore.location": str(made / "server.store")}
            await every.renew(tls, again)
            assert serial(await it.client("SSL", context=trusting(made))) == serial(old)
            assert every.to(Endpoint(HOST, 1)) is tls.contexts.client

    with caplog.at_level(logging.INFO, "strandline"):
        run(scenario)
    said = [record.message for record in caplog.records if "expires" not in record.message]
    assert [text.partition(":")[0] for text in said if text.startswith("new")] == [
        "new certificates of listener SSL cannot be used, the old ones stay"
    ], "once"
    assert said.count("listener SSL uses new certificates for new connections") == 2


def test_what_a_running_node_is_given_must_make_sense_too(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    tls = listener(made, ssl_client_auth="required")
    first = tls.contexts
    every, own = Tls([tls], frozenset(), "", "SSL"), "listener.name.ssl.ssl."
    for given, why in (
        ({"truststore.location": ""}, "trusts nobody"),
        ({"keystore.location": ""}, "has no certificate"),
        ({"keystore.key": "K"}, "certificate chain is not specified"),
        ({"keystore.type": "PKCS12"}, "is not a PKCS12 store"),
    ):
        caplog.clear()
        asyncio.run(every.renew(tls, {own + key: value for key, value in given.items()}))
        assert tls.contexts is first
        assert why in caplog.text
    asyncio.run(every.renew(tls, {}))
    assert tls.contexts is not first, "the file counts again"


def test_clients_of_sasl_are_not_whom_their_certificates_name(made: Path) -> None:
    of_sasl = replace(settings(made), protocol="SASL_SSL")
    certificate = ssl.PEM_cert_to_DER_cert((made / "client.pem").read_text())
    tls = ListenerTls(of_sasl, is_served=True, is_for_nodes=False)
    assert tls.principal_of(certificate) == "User:ANONYMOUS"


def test_nobody_comes_back_with_a_session_of_before(made: Path, tmp_path: Path) -> None:
    """Whom a resumed session would let in was verified against a trust store that is no more."""
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes((made / "ca.pem").read_bytes())
    tls = listener(
        made, ssl_client_auth="required", ssl_truststore_location=str(trusted), ssl_enabled_protocols="TLSv1.2"
    )
    context = trusting(made, "client")

    def connect(session: ssl.SSLSession | None) -> ssl.SSLSession:
        assert tls.contexts.server is not None
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(to_client, to_server, server_hostname=HOST, session=session)
        server = tls.contexts.server.wrap_bio(to_server, to_client, server_side=True)
        for side in (client, server) * 3:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        assert client.session is not None
        return client.session

    session = connect(None)
    trusted.write_bytes((made / "stranger.pem").read_bytes())
    found = tls.look({})
    assert found is not None
    tls.contexts = found
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(session)


# --- key stores and trust stores


@each(
    ("changes", "why"),
    [
        (
            {"ssl_keystore_location": "/no/such"},
            "ssl.keystore.location: cannot read /no/such: No such file or directory",
        ),
        ({"ssl_keystore_location": "{ca.pem}"}, "must have both a private key and its certificate chain"),
        ({"ssl_keystore_location": "{jks}"}, "is a JKS store, which only Java reads"),
        ({"ssl_keystore_location": "{p12}"}, "is not PEM; for PKCS12 set ssl.keystore.type=PKCS12"),
        ({"ssl_keystore_location": "{mixed.store}"}, "the private key does not belong to the certificate"),
        ({"ssl_keystore_location": "{locked.store}"}, "the private key is encrypted, and ssl.key.password is missing"),
        ({"ssl_keystore_location": "{locked.store}", "ssl_key_password": "wr0ng"}, "missing or wrong"),
        ({"ssl_truststore_location": "{server.key}"}, "server.key has no certificates"),
        ({"ssl_cipher_suites": "NONE-SUCH"}, "OpenSSL has none of NONE-SUCH"),
        ({"ssl_truststore_location": "{stranger.pem}"}, "other nodes would not believe this node's certificate"),
    ],
)
def test_what_cannot_be_used_ends_the_start_with_the_reason(made: Path, changes: dict[str, str], why: str) -> None:
    (made / "jks").write_bytes(b"\xfe\xed\xfe\xed\0\0")
    (made / "p12").write_bytes(b"\x30\x82")
    (made / "mixed.store").write_text((made / "other.key").read_text() + (made / "server.pem").read_text())
    if not (made / "locked.store").exists():
        locked = openssl("pkcs8", "-topk8", "-in", str(made / "server.key"), "-passout", "pass:secret")
        (made / "locked.store").write_text(locked + (made / "server.pem").read_text())
    given = {k: str(made / v[1:-1]) if v.startswith("{") else v for k, v in changes.items()}
    with pytest.raises(BadStore) as caught:
        read_contexts(settings(made, **given), is_served=True, is_for_nodes=True)
    assert why in str(caught.value).replace("listener.name.ssl.", "")
    assert "wr0ng" not in str(caught.value)


def test_certificates_may_stand_in_the_configuration_also_with_an_encrypted_key(made: Path) -> None:
    locked = openssl("pkcs8", "-topk8", "-in", str(made / "server.key"), "-passout", "pass:secret")
    inline = settings(
        made,
        ssl_keystore_location="",
        ssl_keystore_key=locked.replace("\n", "\\n"),
        ssl_keystore_certificate_chain=(made / "server.pem").read_text(),
        ssl_key_password="secret",
        ssl_truststore_location="",
        ssl_truststore_certificates=(made / "ca.pem").read_text(),
    )
    assert read_contexts(inline, is_served=True, is_for_nodes=True).not_after > "2020"


def test_pkcs12_is_read_with_its_password(made: Path) -> None:
    pytest.importorskip("cryptography")
    store, trusted = str(made / "server.p12"), str(made / "trusted.p12")
    files = ("-in", str(made / "server.pem"), "-inkey", str(made / "server.key"), "-certfile", str(made / "ca.pem"))
    openssl("pkcs12", "-export", *files, "-passout", "pass:secret", "-out", store)
    openssl("pkcs12", "-export", "-nokeys", "-in", str(made / "ca.pem"), "-passout", "pass:trust", "-out", trusted)
    given = {
        "ssl_keystore_type": "PKCS12",
        "ssl_keystore_location": store,
        "ssl_keystore_password": "secret",
        "ssl_truststore_type": "pkcs12",
        "ssl_truststore_location": trusted,
        "ssl_truststore_password": "trust",
    }
    assert read_contexts(settings(made, **given), is_served=True, is_for_nodes=True).not_after > "2020"
    for wrong in ({"ssl_keystore_password": "wr0ng"}, {"ssl_keystore_password": ""}):
        with pytest.raises(BadStore, match="its password is missing or wrong") as caught:
            read_contexts(settings(made, **given | wrong), is_served=True, is_for_nodes=True)
        assert "wr0ng" not in str(caught.value)


def test_a_key_that_everybody_may_read_and_a_certificate_that_ends_soon_are_reported(
    made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "open.store"
    store.write_bytes((made / "server.store").read_bytes())
    store.chmod(0o644)
    with caplog.at_level(logging.INFO, "strandline"):
        listener(made, ssl_keystore_location=str(store))
        listener(made, "soon")
        listener(made, "expired")
    said = [record.message for record in caplog.records]
    assert said[0] == f"the key store {store} (mode 0644) is readable by every user of this machine: chmod 600 it"
    assert said[1].startswith("the certificate of listener SSL expires at 2")
    assert said[2].startswith("the certificate of listener SSL has expired at 2")
    assert len(said) == 3


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
