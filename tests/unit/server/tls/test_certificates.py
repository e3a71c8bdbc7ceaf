"""Certificates: what cannot be used, and what is used instead while a node runs."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rows import each
from tests.unit.client.certificates import openssl
from tests.unit.server.network.echo import rig, run
from tests.unit.server.tls.listening import HOST, listener, settings, trusting

from strandline.base.effects import Endpoint
from strandline.server.tls.contexts import read_contexts
from strandline.server.tls.listener_tls import ListenerTls, Tls
from strandline.server.tls.stores import BadStore

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
