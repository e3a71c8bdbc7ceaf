"""What the transaction coordinator asked other brokers for."""

from strandline.base.ids import NodeId
from strandline.base.value import Value


class TxnToken(Value, frozen=True):
    """Whatever bears one of these is the transaction coordinator's."""


class MarkersSent(TxnToken, frozen=True):
    node: NodeId
    sequence: int
