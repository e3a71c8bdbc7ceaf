"""What is always true of the quorum machine, whatever it was sent and whatever was on its disk."""

from strandline.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Observing,
    Prospective,
    Resigned,
    Seeking,
    Unattached,
    Voted,
)
from strandline.quorum.state import QuorumState


def check(quorum: QuorumState) -> None:
    quorum.promises.check()
    quorum.durability.check()
    assert quorum.log.last_epoch <= quorum.epoch
    assert quorum.high_watermark <= quorum.log.log_end_offset
    assert quorum.committed_end <= quorum.log.log_end_offset
    assert not quorum.out
    match quorum.role:
        case Leader():
            assert quorum.has_a_say
            assert quorum.election.leader == quorum.me
            assert quorum.election.voted == quorum.me
            assert quorum.log.last_epoch == quorum.election.epoch
            assert len(quorum.role.parked) <= len(quorum.role.progress)
        case Candidate():
            assert quorum.has_a_say
            assert quorum.election.voted == quorum.me
            quorum.role.tally.check()
        case Prospective():
            assert quorum.has_a_say
            quorum.role.tally.check()
        case Follower():
            assert quorum.has_a_say
            assert quorum.role.leader != quorum.me
            assert quorum.election.leader == quorum.role.leader
        case Observing():
            assert not quorum.has_a_say
            assert quorum.election.leader == quorum.role.leader
        case Voted():
            assert quorum.election.voted == quorum.role.candidate
        case Unattached() | Resigned():
            assert quorum.has_a_say
        case Seeking():
            assert not quorum.has_a_say
