"""What a mechanism of SASL is to a server: tokens in, tokens out, and a verdict."""

from typing import Protocol

from strandline.base.time import Instant
from strandline.base.value import Value


class Challenge(Value, frozen=True):
    """The client has to answer this first."""

    token: bytes


class Accepted(Value, frozen=True):
    """The client is who it says. `until`: when its credential expires (KIP-368); None: it does not."""

    token: bytes
    principal: str  # "User:alice"
    until: Instant | None = None
    is_node: bool = False


class Rejected(Value, frozen=True):
    """The client proved nothing. `why` is for this node's log; the client is told `text`, which gives nothing away."""

    text: str
    why: str

    def __post_init__(self) -> None:
        assert self.text and self.why


Verdict = Challenge | Accepted | Rejected


class Exchange(Protocol):
    """One authentication of one connection. After `Accepted` or `Rejected` it is over."""

    def step(self, token: bytes, now: Instant) -> Verdict: ...
