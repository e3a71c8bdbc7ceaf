"""What the replicas asked a driver for: one type for each kind of question, which comes back with its answer.

They can do without a log directory: a failure to write is an answer to them, and the end of the node for others.
"""

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.base.value import Value
from strandline.replica.config import LogDir


class ReplicaToken(Value, frozen=True):
    """Whatever bears one of these is the replicas'."""


class ColdRead(ReplicaToken, frozen=True):
    at: TopicIdPartition
    offset: int


class ColdStep(ReplicaToken, frozen=True):
    """Of a reader that knows a position, and comes back by itself."""

    path: str
    position: int


ColdPlace = ColdRead | ColdStep


class FetchSent(ReplicaToken, frozen=True):
    leader: NodeId
    sequence: int


class IsrChangeSent(ReplicaToken, frozen=True):
    sequence: int


class AssignmentSent(ReplicaToken, frozen=True):
    sequence: int


class VerificationSent(ReplicaToken, frozen=True):
    leader: NodeId  # who was asked: the coordinator
    sequence: int


class HangingAsked(ReplicaToken, frozen=True):
    sequence: int


class RepairSent(ReplicaToken, frozen=True):
    sequence: int


class RepairSynced(ReplicaToken, frozen=True):
    directory: LogDir


class CheckpointSaved(ReplicaToken, frozen=True):
    directory: LogDir


class LogFlushed(ReplicaToken, frozen=True):
    at: TopicIdPartition
    end: int
    moves: int  # of the replica, when the flush began
    directory: LogDir


class FutureSynced(ReplicaToken, frozen=True):
    at: TopicIdPartition
    end: int
    directory: LogDir


class CleanedSynced(ReplicaToken, frozen=True):
    run: int  # which pass of the cleaner
    directory: LogDir
