"""How nodes prove to one another that they know the cluster's secret."""

from base64 import b64encode
from random import Random

import pytest

from strandline.base.effects import Authenticated, Caller, Received, Refuse, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.broker.authenticating import Authenticating
from strandline.security.sasl.node_secret import Introduction
from strandline.security.secret import SECRET_MECHANISM, ClusterSecret, salt_of
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

ME, ANOTHER = NodeId(1), NodeId(3)
SECRET = ClusterSecret("a secret of the cluster", ME)
OTHER = ClusterSecret("the secret of another one", ME)
NOW = Instant(0)
CONNECTION = 7


class Server:
    """A node that is connected to."""

    def __init__(self, secret: ClusterSecret | None) -> None:
        self.machine = Authenticating(secret, Random(1), {}, lambda user, mechanism: None)
        self.others: list[object] = []  # effects beyond replies

    def ask(self, message: object, listener: str = "PLAINTEXT") -> SaslHandshakeResponse | SaslAuthenticateResponse:
        received = Received(ReplyTo(CONNECTION, 0, 0, 0, 2), Caller("c", "127.0.0.1", listener), message)
        if isinstance(message, SaslHandshakeRequest):
            reply, *others = self.machine.handshake(received, NOW)
        else:
            reply, *others = self.machine.authenticate(received, NOW)
        self.others += others
        assert isinstance(reply, Reply | Refuse)
        if isinstance(reply, Refuse):
            self.others.append(reply)
        answer: SaslHandshakeResponse | SaslAuthenticateResponse = reply.message
        return answer


def introduce(client: Introduction, server: Server) -> None:
    waiting = list(client.begin())
    while waiting:
        further = client.answered(server.ask(waiting.pop(0)))
        waiting += [] if further is None else [further]


def test_a_node_that_knows_the_secret_is_a_node() -> None:
    client, server = Introduction(SECRET, "strandline-2", "n" * 32, ME), Server(SECRET)
    introduce(client, server)
    assert client.is_over
    assert server.others == [Authenticated(CONNECTION, "Node:strandline-2", is_node=True)]
    assert not server.machine.attempts


def test_a_node_of_another_cluster_is_rejected() -> None:
    client, server = Introduction(OTHER, "strandline-2", "n" * 32, ME), Server(SECRET)
    with pytest.raises(ValueError, match="invalid credentials with SASL mechanism STRANDLINE-SECRET"):
        introduce(client, server)
    (closed,) = server.others
    assert isinstance(closed, Refuse)
    assert SECRET.text not in closed.why


def test_a_peer_that_does_not_know_the_secret_is_found_out() -> None:
    """It passes every proof, and cannot give one."""
    client = Introduction(SECRET, "strandline-2", "n" * 32, ME)
    nonce, salt = challenged(client).rpartition("r=")[2], b64encode(salt_of(ME)).decode()
    client.answered(SaslAuthenticateResponse(auth_bytes=f"r={nonce}xyz,s={salt},i=4096".encode()))
    with pytest.raises(ValueError, match="does not know our password"):
        client.answered(SaslAuthenticateResponse(auth_bytes=b"v=YWJjZA=="))
    assert not client.is_over


def challenged(client: Introduction) -> str:
    """The first message, and the nonce in it: the answer to its SaslHandshake has come."""
    _, first = client.begin()
    client.answered(SaslHandshakeResponse(mechanisms=(SECRET_MECHANISM,)))
    return first.auth_bytes.decode()  # type: ignore[attr-defined, no-any-return]


def test_a_proof_is_for_one_node_and_cannot_be_passed_on_to_another_or_back() -> None:
    """A stranger listens where node 3 was. It asks node 1, or the connecting node itself, what to answer."""
    for target in (ClusterSecret(SECRET.text, NodeId(1)), ClusterSecret(SECRET.text, NodeId(2))):
        for is_salt_changed in (False, True):
            client, server = Introduction(SECRET, "strandline-2", "n" * 32, ANOTHER), Server(target)
            first = challenged(client)
            server.ask(SaslHandshakeRequest(mechanism=SECRET_MECHANISM))
            challenge = bytes(server.ask(SaslAuthenticateRequest(auth_bytes=first.encode())).auth_bytes)  # type: ignore[union-attr]
            if is_salt_changed:
                own, wanted = (b64encode(salt_of(node)) for node in (target.node, ANOTHER))
                challenge = challenge.replace(own, wanted)
                proof = client.answered(SaslAuthenticateResponse(auth_bytes=challenge))
                assert proof is not None
                assert server.ask(proof).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            else:
                with pytest.raises(ValueError, match="it is not node 3"):
                    client.answered(SaslAuthenticateResponse(auth_bytes=challenge))
            assert not any(isinstance(effect, Authenticated) for effect in server.others)


def test_a_stranger_does_not_decide_how_long_a_node_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Introduction(SECRET, "strandline-2", "n" * 32, ME)
    nonce = challenged(client).rpartition("r=")[2]
    monkeypatch.setattr("hashlib.pbkdf2_hmac", lambda *_: pytest.fail("it hashes"))
    salt = b64encode(salt_of(ME)).decode()
    with pytest.raises(ValueError, match="it is not node 1"):
        client.answered(SaslAuthenticateResponse(auth_bytes=f"r={nonce}xyz,s={salt},i=9999999".encode()))


def test_a_node_hashes_once_for_each_other_node_however_often_they_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of iterations: after a failure all connections are made anew, in the one thread."""
    secret = ClusterSecret("a secret that no other test hashes", ME)
    introduce(Introduction(secret, "strandline-2", "n" * 32, ME), Server(secret))
    monkeypatch.setattr("hashlib.pbkdf2_hmac", lambda *_: pytest.fail("it hashes"))
    again = Introduction(secret, "strandline-2", "m" * 32, ME)
    introduce(again, Server(secret))
    assert again.is_over


def test_what_was_overheard_proves_nothing_later() -> None:
    server, overheard = Server(SECRET), []
    client = Introduction(SECRET, "strandline-2", "n" * 32, ME)
    waiting = list(client.begin())
    while waiting:
        overheard.append(waiting.pop(0))
        further = client.answered(server.ask(overheard[-1]))
        waiting += [] if further is None else [further]
    server.others.clear()
    server.machine.forget(CONNECTION)
    answers = [server.ask(message) for message in overheard]
    assert answers[-1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert [type(effect) for effect in server.others] == [Refuse]


@pytest.mark.parametrize(
    "token", [b"", b"n,,", b"p=tls,,n=x,r=y", b"n,,n=,r=y", b"n,,m=1,n=x,r=y", b"n,,n=x=,r=y", b"\xff"]
)
def test_a_token_that_is_not_scram_costs_the_connection(token: bytes) -> None:
    server = Server(SECRET)
    server.ask(SaslHandshakeRequest(mechanism=SECRET_MECHANISM))
    assert server.ask(SaslAuthenticateRequest(auth_bytes=token)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert [type(effect) for effect in server.others] == [Refuse]


def test_a_client_that_authenticates_learns_that_the_listener_does_not() -> None:
    """Kafka's answers on a PLAINTEXT listener, of brokers and of controllers."""
    for secret in (None, SECRET):
        server = Server(secret)
        assert server.ask(SaslHandshakeRequest(mechanism="PLAIN")) == SaslHandshakeResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE
        )
        answer = server.ask(SaslAuthenticateRequest(auth_bytes=b"\0me\0secret"))
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert Server(None).ask(SaslHandshakeRequest(mechanism=SECRET_MECHANISM)).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_connection_that_ends_in_the_middle_is_forgotten() -> None:
    server = Server(SECRET)
    server.ask(SaslHandshakeRequest(mechanism=SECRET_MECHANISM))
    server.machine.forget(CONNECTION)
    assert not server.machine.attempts


def test_secrets_do_not_show() -> None:
    assert SECRET.text not in f"{SECRET} {SECRET!r} {SECRET.credential()!r}"
