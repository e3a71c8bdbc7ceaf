"""A whole node with a SASL listener: its users are metadata, and who has left leaves nothing behind."""

from tests.unit.authorizing.one_node import ANN, OneNode

from strandline.base.effects import Caller, Disconnected, Received, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.metadata.security.scram import SCRAM_SHA_512
from strandline.security.scram import Scram, credential_of
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest

SHA_512 = "SCRAM-SHA-512"


def begun() -> OneNode:
    return OneNode(
        listener_security_protocol_map="PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT", sasl_enabled_mechanisms=SHA_512
    )


def log_in(node: OneNode, user: str, password: str, connection: int) -> ErrorCode:
    assert node.ask(SaslHandshakeRequest(mechanism=SHA_512), 1, connection=connection).error_code == ErrorCode.NONE
    client = Scram(SHA_512, user, password, "a nonce of a client")
    first = node.ask(SaslAuthenticateRequest(auth_bytes=client.first()), 2, connection=connection)
    request = SaslAuthenticateRequest(auth_bytes=client.final(bytes(first.auth_bytes)))
    return ErrorCode(node.ask(request, 2, connection=connection).error_code)


def test_users_of_the_metadata_are_let_in_until_they_are_taken_away() -> None:
    node = begun()
    node.node.image.put_scram(("ann", SCRAM_SHA_512), credential_of(SHA_512, "hers", b"a salt of hers", 4096))
    assert log_in(node, "ann", "hers", 1) == ErrorCode.NONE
    assert node.node.authenticating.sessions[1].principal == ANN
    node.node.image.put_scram(("ann", SCRAM_SHA_512), None)
    assert log_in(node, "ann", "hers", 2) == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert node.refused == [2]


def test_who_leaves_before_the_broker_has_joined_leaves_nothing_behind() -> None:
    node = begun()
    node.node.early = []
    for connection in (1, 2):
        request = SaslHandshakeRequest(mechanism=SHA_512)
        to = ReplyTo(connection, 1_000, 0, request.api_key, 1)
        assert node.node.received(Received(to, Caller("c", "h", "PLAINTEXT"), request), node.now) == []
    node.perform(node.node.step(Disconnected(1), node.now))
    assert list(node.node.authenticating.attempts) == [2]
