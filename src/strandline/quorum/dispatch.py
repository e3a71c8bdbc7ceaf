"""Which part of the quorum machine handles which request, and which answer."""

from strandline.base.effects import Answered, Failed, Received
from strandline.base.time import Instant
from strandline.quorum import describing, following, leading, voting
from strandline.quorum.damage import impaired
from strandline.quorum.state import QuorumState
from strandline.quorum.tokens import BeginSent, CensusSent, EndSent, FetchSent, SnapshotFetchSent, VoteSent
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest
from strandline.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from strandline.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from strandline.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from strandline.wire.messages.quorum.vote import VoteRequest
from strandline.wire.messages.records.fetch import FetchRequest


def received(quorum: QuorumState, event: Received, now: Instant) -> None:
    match event.message:
        case FetchRequest():
            leading.fetch(quorum, event, now)
        case VoteRequest():
            voting.vote(quorum, event, now)
        case BeginQuorumEpochRequest():
            voting.begin_epoch(quorum, event, now)
        case EndQuorumEpochRequest():
            voting.end_epoch(quorum, event, now)
        case FetchSnapshotRequest():
            leading.fetch_snapshot(quorum, event, now)
        case DescribeQuorumRequest():
            quorum.reply(event, describing.answer(quorum, event.message, now))
        case other:
            raise AssertionError(f"not for the quorum: {type(other).__name__}")


def answered(quorum: QuorumState, event: Answered | Failed, now: Instant) -> None:
    match event.token:
        case SnapshotFetchSent():
            following.answered(quorum, event, following.snapshot_response, now)
        case FetchSent():
            following.answered(quorum, event, following.fetch_response, now)
        case VoteSent():
            voting.vote_answered(quorum, event, now)
        case BeginSent():
            voting.begin_answered(quorum, event, now)
        case EndSent():
            voting.end_answered(quorum, event, now)
        case CensusSent():
            impaired.census_answered(quorum, event, now)
        case other:
            raise AssertionError(f"an answer to nothing: {other}")
