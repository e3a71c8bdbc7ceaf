"""What `strandline up --secure` makes in the cluster's folder, without any node."""

import ssl
from pathlib import Path

import pytest

from strandline.broker.config import NodeConfig, parse_properties
from strandline.cli.nodes import up as command
from strandline.cli.nodes.client_settings import greeting
from strandline.client.ask import config_of
from strandline.testing import certificates
from strandline.testing.certificates import NoCertificate
from strandline.testing.local_cluster import LocalCluster
from strandline.testing.secured import ADMIN, ALICE, SecuredFolder

SECRETS = ("ca.key", "admin.password", "admin.properties", "alice.password", "alice.properties", "cluster-secret")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def shaken(server: Path, authority: Path, host: str) -> None:
    """A TLS handshake in memory, by which a client checks the server's name. Raises SSLError."""
    contexts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=authority)
    contexts[0].load_cert_chain(server)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        contexts[0].wrap_bio(there, back, server_side=True),
        contexts[1].wrap_bio(back, there, server_hostname=host),
    )
    left = {*ends}
    for _ in range(10):
        for end in (*left,):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            left.discard(end)
    assert not left


def test_everything_is_made_once_and_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 1, ports=(20000, 20001), is_secure=True)
    cluster.lay_out()
    secured = SecuredFolder(tmp_path)
    for name in (*SECRETS, "node-1.store"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600, name
    assert secured.authority.stat().st_mode & 0o777 == 0o644
    for host in ("localhost", "127.0.0.1", "::1"):
        shaken(secured.store(1), secured.authority, host)
    with pytest.raises(ssl.SSLError, match="Hostname mismatch"):
        shaken(secured.store(1), secured.authority, "elsewhere")
    for user in (ADMIN, ALICE):
        config = config_of("127.0.0.1:1", secured.client(user))
        assert config.tls is not None and config.sasl is not None
        assert (config.sasl.username, config.sasl.password.reveal) == (user, secured.password(user))
    node = NodeConfig.from_properties(parse_properties((tmp_path / "node-1" / "server.properties").read_text()))
    assert set(node.protocols.values()) == {"SASL_SSL"} and node.text("super.users") == f"User:{ADMIN}"
    before = contents(tmp_path)
    LocalCluster(tmp_path, 1, ports=(20000, 20001), is_secure=True).lay_out()
    assert contents(tmp_path) == before


def test_a_certificate_that_is_about_to_expire_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secured = SecuredFolder(tmp_path)
    monkeypatch.setattr(certificates, "NODE_DAYS", 29)
    secured.make(range(1, 2))
    old = secured.store(1).read_bytes()
    monkeypatch.setattr(certificates, "NODE_DAYS", 31)
    secured.make(range(1, 2))
    new = secured.store(1).read_bytes()
    secured.make(range(1, 2))
    assert old != new == secured.store(1).read_bytes()


def test_without_openssl_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCertificate, match="need the program `openssl`, which is not installed"):
        SecuredFolder(tmp_path).make(range(1, 2))


def test_what_is_printed_has_no_password(tmp_path: Path) -> None:
    secured = SecuredFolder(tmp_path)
    secured.make(range(1, 2))
    text = greeting(secured, "127.0.0.1:9092") + "".join(command.hints("127.0.0.1:9092", secured))
    assert str(secured.properties_path(ADMIN)) in text and str(secured.password_path(ALICE)) in text
    assert not [user for user in (ADMIN, ALICE) if secured.password(user) in text]


def test_a_cluster_stays_what_it_was_made_as(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, secure = tmp_path / "plain", tmp_path / "secure"
    LocalCluster(plain, 1).lay_out()
    LocalCluster(secure, 1, is_secure=True).lay_out()
    assert not command.wants_security(False, plain)
    assert command.wants_security(False, secure) and command.wants_security(True, secure)
    assert command.wants_security(True, tmp_path / "new") and not command.wants_security(False, tmp_path / "new")
    with pytest.raises(SystemExit):
        command.wants_security(True, plain)
    assert f"the cluster in {plain} was made without --secure" in capsys.readouterr().err
