"""The secret of a cluster: who knows it is one of its nodes.

A node proves it at the beginning of each connection to another node, by SASL with a mechanism of our own: SCRAM-SHA-256
(RFC 7677), with the secret for a password. The secret itself is never sent, each side proves it to the other, and what
is overheard of one exchange is worth nothing in the next. It protects against strangers who can open connections, not
against those who can change what is on the wire: for that there is TLS.

A proof is for one node, whose id is in the salt. So whoever listens where a node once was, and is connected to in its
place, cannot pass the proof on to another node, nor back to the one that gives it.
"""

import hashlib
from functools import lru_cache

from strandline.base.ids import NOBODY, NodeId
from strandline.base.value import Value
from strandline.security.scram import HASHES, ScramCredential, salted_credential

SECRET_MECHANISM = "STRANDLINE-SECRET"
HASH_MECHANISM = "SCRAM-SHA-256"
SECRET_BYTES_MIN = 16
# A random secret needs no slow hash; this is the least that SCRAM's client accepts.
ITERATIONS = 4096


class ClusterSecret(Value, frozen=True):
    """At least `SECRET_BYTES_MIN` random bytes, as text."""

    text: str
    node: NodeId = NOBODY  # whose it is

    def __post_init__(self) -> None:
        assert len(self.text) >= SECRET_BYTES_MIN

    def __repr__(self) -> str:
        return "ClusterSecret(…)"

    __str__ = __repr__

    def credential(self) -> ScramCredential:
        """What the side that is asked for it needs."""
        return salted_credential(HASH_MECHANISM, salted(self.text, self.node), salt_of(self.node), ITERATIONS)

    def salted_for(self, node: NodeId) -> bytes:
        """What the side that proves it to this node needs."""
        return salted(self.text, node)


@lru_cache(maxsize=1000)
def salted(secret: str, node: NodeId) -> bytes:
    """Costs a millisecond or two, the first time: nodes connect to one another often after failures."""
    return hashlib.pbkdf2_hmac(HASHES[HASH_MECHANISM], secret.encode(), salt_of(node), ITERATIONS)


def salt_of(node: NodeId) -> bytes:
    """Of the proof that this node wants."""
    return hashlib.sha256(f"strandline cluster secret, node {node}".encode()).digest()
