"""What the quorum asked a driver for: one type for each kind of question, which comes back with its answer."""

from strandline.base.ids import NodeId
from strandline.base.value import Value


class QuorumToken(Value, frozen=True):
    """Whatever bears one of these is the quorum's."""


class FetchSent(QuorumToken, frozen=True):
    peer: NodeId
    number: int  # of the request


class SnapshotFetchSent(FetchSent, frozen=True):
    pass


class VoteSent(QuorumToken, frozen=True):
    voter: NodeId
    round: int


class BeginSent(QuorumToken, frozen=True):
    voter: NodeId
    epoch: int


class EndSent(QuorumToken, frozen=True):
    voter: NodeId
    epoch: int


class CensusSent(QuorumToken, frozen=True):
    voter: NodeId


class ElectionSaved(QuorumToken, frozen=True):
    pass


class LogSynced(QuorumToken, frozen=True):
    pass


class PartSynced(QuorumToken, frozen=True):
    number: int  # of the request whose place the Sync takes
