"""SASL: the exchanges of RFC 5802 and 7677, and a broker that speaks them."""

import hashlib
import hmac
import secrets
import time
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.scripted import ScriptedBroker, Session

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.connection import Connection
from strandline.client.errors import AuthenticationFailed, BadOption
from strandline.client.security.sasl_options import TOKEN_URL, credentials_in
from strandline.security.scram import HASHES, Scram
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.wire.messages.topics.metadata import MetadataRequest

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
PROOF = f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram() -> Scram:
    return Scram("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_exchange_of_rfc_7677() -> None:
    client = scram()
    assert client.first() == f"n,,n=user,r={NONCE}".encode()
    assert client.final(SERVER_FIRST) == PROOF
    client.verify(SERVER_FINAL)


def test_the_exchange_of_rfc_5802(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 5, with SHA-1, which Kafka does not use; all else is the same."""
    monkeypatch.setitem(HASHES, "SCRAM-SHA-1", "sha1")
    client = Scram("SCRAM-SHA-1", "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL")
    assert client.first() == b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"
    nonce = "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
    final = client.final(f"r={nonce},s=QSXCR+Q6sek8bf92,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=".encode()
    client.verify(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (SERVER_FIRST.replace(b"r=rOpr", b"r=xOpr"), "nonce does not continue ours"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(), "nonce does not continue ours"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "4096 are the least"),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999"), "iterations"),
        (SERVER_FIRST.replace(b"s=W2", b"s=!2"), "not base64"),
        (b"m=x," + SERVER_FIRST, "extension"),
        (b"hello", "does not speak SCRAM"),
    ],
)
def test_a_server_that_does_not_keep_to_the_protocol(answer: bytes, why: str) -> None:
    client = scram()
    client.first()
    with pytest.raises(ValueError, match=why):
        client.final(answer)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client = scram()
    client.first()
    client.final(SERVER_FIRST)
    with pytest.raises(ValueError, match="does not know our password"):
        client.verify(SERVER_FINAL.replace(b"6rri", b"7rri"))
    with pytest.raises(ValueError, match="invalid-proof"):
        client.verify(b"e=invalid-proof")


def test_names_with_commas_and_equals_signs_are_written_down_safely() -> None:
    assert Scram("SCRAM-SHA-512", "a=b,c", "p", "n").first() == b"n,,n=a=3Db=2Cc,r=n"


# --- a broker that asks who is there


class ScramServer:
    """The other side, by RFC 5802, which knows one user."""

    def __init__(self, name: str, user: str, password: str) -> None:
        self.hash = name
        self.user = user
        self.salt = secrets.token_bytes(16)
        salted = hashlib.pbkdf2_hmac(name, password.encode(), self.salt, 4096)
        client_key = hmac.digest(salted, b"Client Key", name)
        self.stored_key = hashlib.new(name, client_key).digest()
        self.server_key = hmac.digest(salted, b"Server Key", name)
        self.said: list[str] = []

    def answer(self, message: str) -> str | None:
        """None: not authenticated."""
        if not self.said:
            bare = message.removeprefix("n,,")
            user, nonce = (part[2:] for part in bare.split(","))
            self.nonce = nonce + secrets.token_hex(8)
            first = f"r={self.nonce},s={b64encode(self.salt).decode()},i=4096"
            self.said = [bare, first]
            return first if user == self.user else None
        without, _, proof = message.rpartition(",p=")
        everything = ",".join([*self.said, without]).encode()
        signature = hmac.digest(self.stored_key, everything, self.hash)
        client_key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
        if hashlib.new(self.hash, client_key).digest() != self.stored_key:
            return None
        return "v=" + b64encode(hmac.digest(self.server_key, everything, self.hash)).decode()


def asking(mechanism: str, lifetime_ms: int = 0) -> ScriptedBroker:
    """A broker that knows alice, by this mechanism alone."""

    def handshake(session: Session, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        code = ErrorCode.NONE if request.mechanism == mechanism else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=code, mechanisms=(mechanism,))

    def authenticate(session: Session, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        said = bytes(request.auth_bytes).decode()
        if mechanism == "OAUTHBEARER" and said != "n,,\x01auth=Bearer alice.token\x01\x01":
            if said != "\x01":
                return SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
            answer = None
        elif mechanism == "OAUTHBEARER":
            answer = ""
        elif mechanism == "PLAIN":
            answer = "" if said == "\0alice\0s3cret,=ü" else None
        else:
            session.scram = session.scram or ScramServer(mechanism[6:].lower().replace("-", ""), "alice", "s3cret,=ü")
            answer = session.scram.answer(said)
        if answer is None:
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            return SaslAuthenticateResponse(error_code=code, error_message="invalid credentials")
        return SaslAuthenticateResponse(auth_bytes=answer.encode(), session_lifetime_ms=lifetime_ms)

    def metadata(session: Session, request: Any) -> Any:
        assert any(isinstance(said, SaslAuthenticateRequest) for said in session.said), "nobody has been authenticated"
        return broker.metadata(session, request)

    broker = ScriptedBroker({17: handshake, 36: authenticate, 3: metadata})
    return broker


def options(broker: ScriptedBroker, mechanism: str, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": f"127.0.0.1:{broker.port}",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": mechanism,
        **{f"kafka.{key.replace('_', '.')}": value for key, value in more.items()},
    }


def jaas(module: str, user: str = "alice", password: str = "s3cret,=ü") -> str:
    return f'org.apache.kafka.common.security.x.{module} required username="{user}" password="{password}";'


MECHANISMS = pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "PlainLoginModule"), ("SCRAM-SHA-256", "ScramLoginModule"), ("SCRAM-SHA-512", "ScramLoginModule")],
)


@MECHANISMS
def test_a_known_user_is_let_in(mechanism: str, module: str) -> None:
    with asking(mechanism) as broker:
        for chosen in (
            options(broker, mechanism, sasl_jaas_config=jaas(module)),
            options(broker, mechanism, sasl_username="alice", sasl_password="s3cret,=ü"),
        ):
            with Cluster(ClientConfig.of(chosen)) as cluster:
                assert list(cluster.brokers()) == [1]


@MECHANISMS
def test_an_unknown_user_is_rejected_at_once_and_no_secret_is_printed(mechanism: str, module: str) -> None:
    for user, password in (("alice", "wrong-pass"), ("bob", "wrong-pass")):
        with asking(mechanism) as broker:
            config = ClientConfig.of(options(broker, mechanism, sasl_jaas_config=jaas(module, user, password)))
            with Cluster(config) as cluster, pytest.raises(AuthenticationFailed) as caught:
                cluster.topics(["t"])
        assert f"refuses user {user} ({mechanism}): invalid credentials" in str(caught.value)
        assert "wrong-pass" not in str(caught.value) + repr(caught.value) + repr(config)
        assert len(broker.sessions) == 1  # wrong passwords are not tried again: accounts are locked for less


def test_a_token_is_read_from_its_file_for_each_connection(tmp_path: Path) -> None:
    path = tmp_path / "my token"
    with asking("OAUTHBEARER") as broker:
        url = path.as_uri()
        config = ClientConfig.of(options(broker, "OAUTHBEARER", **{TOKEN_URL.replace(".", "_"): url}))
        for content, error, why in (
            (None, BadOption, "No such file"),
            ("two words", BadOption, "one word"),
            ("forged", AuthenticationFailed, r"refuses the token in .*my token \(OAUTHBEARER\): invalid credentials"),
        ):
            if content is not None:
                path.write_text(content)
            with Cluster(config) as cluster, pytest.raises(error, match=why) as caught:
                cluster.brokers()
            assert "forged" not in str(caught.value)
        path.write_text("alice.token\n")
        with Cluster(config) as cluster:
            assert list(cluster.brokers()) == [1]


def test_where_no_token_can_come_from_is_said() -> None:
    with ScriptedBroker() as broker:
        for url, why in (("", "is missing"), ("https://host/token", "is not the file: URL")):
            with pytest.raises(BadOption, match=why):
                ClientConfig.of(options(broker, "OAUTHBEARER", **{TOKEN_URL.replace(".", "_"): url}))


def test_a_session_is_renewed_before_the_broker_insists_and_answers_stay_what_they_are() -> None:
    with asking("PLAIN", lifetime_ms=1000) as broker:
        config = ClientConfig.of(options(broker, "PLAIN", sasl_username="alice", sasl_password="s3cret,=ü"))
        connection = Connection("127.0.0.1", broker.port, config)
        said = broker.sessions[0].said
        connection.ask(MetadataRequest())
        assert [type(message) for message in said[1:]] == [
            SaslHandshakeRequest,
            SaslAuthenticateRequest,
            MetadataRequest,
        ]
        assert 0.8 < connection.log_in_at - time.monotonic() <= 0.85
        before, shown = connection.buffer, bytes(connection.buffer)
        connection.log_in_at = time.monotonic()
        connection.ask(MetadataRequest())
        assert [type(message) for message in said[4:]] == [
            SaslHandshakeRequest,
            SaslAuthenticateRequest,
            MetadataRequest,
        ]
        assert bytes(before) == shown, "somebody may still look at the last answer"
        connection.send(MetadataRequest(), 1)
        connection.log_in_at = time.monotonic()
        connection.send(MetadataRequest(), 1)
        assert len(connection.in_flight) == 2, "not while an answer is awaited"
        connection.close()


def test_another_mechanism_and_none() -> None:
    with (
        asking("PLAIN") as broker,
        Cluster(ClientConfig.of(options(broker, "SCRAM-SHA-256", sasl_username="a", sasl_password="b"))) as cluster,
        pytest.raises(AuthenticationFailed, match="does not take SCRAM-SHA-256; it offers PLAIN"),
    ):
        cluster.brokers()
    with (
        ScriptedBroker() as broker,
        Cluster(ClientConfig.of(options(broker, "PLAIN", sasl_username="a", sasl_password="b"))) as cluster,
        pytest.raises(AuthenticationFailed, match="does not speak SASL"),
    ):
        cluster.brokers()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (jaas("PlainLoginModule", "a", r"q\"uote\\d;"), ("a", r'q"uote\d;')),
        ("PlainLoginModule required username='a' password=b;", ("a", "b")),
        ('PlainLoginModule REQUIRED\n  password="p"\n  username="u" ;', ("u", "p")),
    ],
)
def test_login_modules_are_read_as_java_reads_them(text: str, found: tuple[str, str]) -> None:
    assert credentials_in(text, "PLAIN") == found


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sasl_username": "a"}, "SASL needs a user name and a password"),
        ({"sasl_jaas_config": "nonsense with s3cret"}, "is not of the form: LoginModule required"),
        ({"sasl_jaas_config": jaas("ScramLoginModule")}, "login module ScramLoginModule does not speak PLAIN"),
    ],
)
def test_credentials_that_are_invalid(more: dict[str, str], message: str) -> None:
    with ScriptedBroker() as broker, pytest.raises(BadOption, match=message) as caught:
        ClientConfig.of(options(broker, "PLAIN", **more))
    assert "s3cret" not in str(caught.value)


def test_mechanisms_that_we_do_not_speak() -> None:
    with ScriptedBroker() as broker:
        with pytest.raises(BadOption, match="'GSSAPI' is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
            ClientConfig.of(options(broker, "GSSAPI"))
        with pytest.raises(BadOption, match=r"sasl\.mechanism is missing"):
            ClientConfig.of({**options(broker, ""), "kafka.sasl.mechanism": ""})
