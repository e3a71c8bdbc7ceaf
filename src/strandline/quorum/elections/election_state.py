"""What a node must not forget: its epoch, whom it voted for in it, and who leads it. The file `quorum-state`.

Kafka's JSON format, data_version 0 (static voters). Unlike Kafka, the vote is kept when the leader becomes known, and
`appliedOffset` has a meaning: see `impaired`.
"""

from collections.abc import Iterable

from msgspec import DecodeError, Struct, field, json

from strandline.base.ids import NOBODY, OFFSET_MAX, NodeId
from strandline.base.value import Value

NODE_ID_MAX = (1 << 31) - 1

# In place of the applied offset, for a voter that lost what it promised and is not whole again:
VOTES_LOST = -1  # its votes too
SHORT = int(OFFSET_MAX)  # metadata alone


class DamagedFileError(ValueError):
    """Nobody wrote such a file."""


class ElectionState(Value, frozen=True):
    epoch: int = 0
    leader: NodeId = NOBODY  # of this epoch, as soon as known; it may have been lost since
    voted: NodeId = NOBODY  # in this epoch


class CurrentVoter(Struct, frozen=True):
    voter_id: int = field(name="voterId")


class QuorumStateFile(Struct, frozen=True, rename="camel"):
    cluster_id: str
    leader_id: int
    leader_epoch: int
    voted_id: int
    applied_offset: int
    current_voters: list[CurrentVoter] | None
    data_version: int = field(name="data_version")


def encode_election(state: ElectionState, cluster_id: str, voters: Iterable[NodeId], applied_offset: int = 0) -> bytes:
    return json.encode(
        QuorumStateFile(
            cluster_id=cluster_id,
            leader_id=state.leader,
            leader_epoch=state.epoch,
            voted_id=state.voted,
            applied_offset=applied_offset,
            current_voters=[CurrentVoter(voter) for voter in voters],
            data_version=0,
        )
    )


def decode_quorum_state(content: bytes | None, path: str) -> tuple[ElectionState, int]:
    """The election, and the applied offset or what stands in its place. Raises ValueError: without a readable vote the
    node must not vote. An epoch that is too large to be true is for `epochs.repaired`; a voted node that is not a voter
    stays, since it keeps this node from voting again."""
    if content is None:
        return ElectionState(), 0
    try:
        stored = json.decode(content, type=QuorumStateFile)
    except DecodeError as error:
        raise DamagedFileError(f"{path} is not a quorum-state file: {error}") from None
    if stored.data_version != 0:
        raise ValueError(f"{path} has data_version {stored.data_version}; only 0 (static voters) is known here")
    for node in (stored.leader_id, stored.voted_id):
        if not NOBODY <= node <= NODE_ID_MAX:
            raise DamagedFileError(f"{path} names a node {node}: no node has such an id")
    if stored.leader_epoch < -1:
        raise DamagedFileError(f"{path} has the epoch {stored.leader_epoch}: epochs are never negative")
    if not VOTES_LOST <= stored.applied_offset <= SHORT:
        raise DamagedFileError(f"{path} has the applied offset {stored.applied_offset}: no log has such an offset")
    # guard: vote-forgotten-at-restart
    election = ElectionState(max(stored.leader_epoch, 0), NodeId(stored.leader_id), NodeId(stored.voted_id))
    return election, stored.applied_offset
