"""The mechanism by which nodes know one another (`security.secret`): both sides of it."""

from base64 import b64encode

from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.security.sasl.exchange import Accepted, Challenge, Rejected, Verdict
from strandline.security.scram import Scram, ScramCredential, ScramServer, attributes
from strandline.security.secret import HASH_MECHANISM, ITERATIONS, SECRET_MECHANISM, ClusterSecret, salt_of
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.wire.schema import Message

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 2
FAILED = (
    f"Authentication failed during authentication due to invalid credentials with SASL mechanism {SECRET_MECHANISM}"
)


class NodeExchange:
    """The side that is connected to."""

    def __init__(self, credential: ScramCredential, nonce: str) -> None:
        self.credential = credential
        self.scram = ScramServer(nonce)

    def step(self, token: bytes, now: Instant) -> Verdict:
        try:
            if not self.scram.bare:
                self.scram.begin(token)
                return Challenge(self.scram.first(self.credential))
            answer = self.scram.final(token)
        except ValueError as error:
            return Rejected(FAILED, str(error))
        return Accepted(answer, f"Node:{self.scram.username}", is_node=True)


class Introduction:
    """The side that connects. It sends what `begin` returns, and what each answer calls for, until it is over."""

    def __init__(self, secret: ClusterSecret, name: str, nonce: str, node: NodeId) -> None:
        """`node`: whom it connects to. Nobody else gets a proof."""
        self.node = node
        self.secret = secret
        self.scram = Scram(HASH_MECHANISM, name, secret.text, nonce)
        self.answers = 0
        self.is_over = False

    def begin(self) -> tuple[Message, Message]:
        """Both at once: the second needs no answer to the first."""
        return (
            SaslHandshakeRequest(mechanism=SECRET_MECHANISM),
            SaslAuthenticateRequest(auth_bytes=self.scram.first()),
        )

    @property
    def awaits(self) -> type[SaslHandshakeResponse | SaslAuthenticateResponse]:
        """Which answer comes next."""
        return SaslAuthenticateResponse if self.answers else SaslHandshakeResponse

    def answered(self, message: SaslHandshakeResponse | SaslAuthenticateResponse) -> SaslAuthenticateRequest | None:
        """What to send next, if anything. Raises `ValueError` if the other side is not a node of this cluster, or says
        that we are not."""
        assert not self.is_over
        self.answers += 1
        if isinstance(message, SaslHandshakeResponse):
            if message.error_code != ErrorCode.NONE:
                raise ValueError(f"it does not take {SECRET_MECHANISM}: {error_of(message.error_code).name}")
            return None
        if message.error_code != ErrorCode.NONE:
            raise ValueError(message.error_message or error_of(message.error_code).name)
        if self.answers == 2:
            return SaslAuthenticateRequest(auth_bytes=self.prove(bytes(message.auth_bytes)))
        self.scram.verify(bytes(message.auth_bytes))
        self.is_over = True
        return None

    def prove(self, challenge: bytes) -> bytes:
        """Salt and iterations are known before. So a stranger can neither have it prove what another node asks for, nor
        make it hash for seconds while the node's loop stands still."""
        sent = attributes(challenge)
        if sent.get("i") != str(ITERATIONS) or sent.get("s") != b64encode(salt_of(self.node)).decode():
            raise ValueError(f"it is not node {self.node}")
        return self.scram.final(challenge, self.secret.salted_for(self.node))


def version_of(message: type[Message]) -> int:
    """In which version both sides speak it."""
    return HANDSHAKE_VERSION if message.api_key == SaslHandshakeRequest.api_key else AUTHENTICATE_VERSION
