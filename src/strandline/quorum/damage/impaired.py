"""Has this voter lost what it promised? The evidence in `quorum-state`, and a voter that waits until it is whole again.

A voter promises two things: that it has, durably, what its Fetches claimed, and that it votes once in an epoch. Records
are committed, and leaders elected, on the strength of that. A disk that was damaged while the process was down breaks
both. So `quorum-state` says how far the metadata log was committed and durable here when it was written (Kafka's field
`appliedOffset`, which Kafka writes as 0 and never reads). At a start there is evidence of a loss if
  - the log, with its snapshot, ends below that offset: metadata is lost;
  - there is a log, and no readable `quorum-state`, or one that is older than the log (an epoch is always saved before
    its records are written): metadata may be lost, and votes are.
Such a voter is impaired. It acts as an observer: it follows and fetches, grants no vote and no pre-vote, and never
stands. Its Fetches count for the leader's commit, since it has those records now. It is whole again when
  - a leader told it, in the epoch that it is in, of a high watermark behind the beginning of that epoch, and the log is
    durable here up to there. Nobody was elected with a vote of ours in the meantime, so this leader has everything that
    was committed before its epoch, whoever acknowledged it; and what it commits with us now, we have;
  - if votes are lost: every other voter has sent its epoch since the start, and none is later than ours. A
    candidate that had our vote is in that epoch, or in a later one. So the forgotten vote is of our epoch, which has a
    leader and needs no votes, or of an earlier one. (The epoch may be the one that the file had, for the same reason.)
The impairment outlives restarts: as long as it lasts, the file says so in place of the offset.

A voter without others cannot wait for anybody. It starts with what it has, and says what is gone.
"""

from strandline.base.effects import Answered, Failed, Failure, Report
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import METADATA_TOPIC, NOBODY, NodeId
from strandline.base.time import Instant
from strandline.quorum import messages
from strandline.quorum.roles import Observing
from strandline.quorum.state import QuorumState
from strandline.quorum.storage.evidence import Impairment
from strandline.quorum.tokens import CensusSent
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

CHANNEL = "raft-election"
DESCRIBE_QUORUM = 2


def report(quorum: QuorumState, now: Instant) -> None:
    loss = quorum.evidence.loss
    if loss and quorum.others and quorum.allowance.is_news(now):
        text = f"this voter has lost what it promised: {loss}. {waiting(quorum)}"
        quorum.out.append(Report("error", text))
    elif loss:
        text = "There is no other voter to copy it from: what is missing is gone, and this voter goes on without it"
        quorum.out.append(Report("error", f"this voter has lost what it promised: {loss}. {text}"))


def waiting(quorum: QuorumState) -> str:
    return (
        f"It grants no vote until it has copied from a leader what is committed. Start the other voters"
        f" ({', '.join(str(voter) for voter in quorum.others)}); do not empty this one's directory"
    )


# --- until it is whole


def drive(quorum: QuorumState, now: Instant) -> None:
    impairment = quorum.evidence.impairment
    if impairment is None:
        return
    match quorum.role:
        case Observing() as role if not impairment.census.due and holds_committed(quorum, impairment):
            quorum.evidence.becomes_whole()
            quorum.become_whole(role)
            text = f"this voter has what is committed again, up to {quorum.high_watermark}: it votes from now on"
            quorum.out.append(Report("info", text))
            return
        case Observing():
            pass
        case _:
            what = quorum.unfit.text if quorum.unfit is not None else "this voter has lost what it promised"
            quorum.report_error(f"{what}; it knows no leader. {waiting(quorum)}", now)
    for voter in impairment.census.take(now):
        topic = TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),))
        request = DescribeQuorumRequest(topics=(topic,))
        quorum.send(voter, request, DESCRIBE_QUORUM, CensusSent(voter), channel=CHANNEL)


def heard_high_watermark(quorum: QuorumState, high_watermark: int) -> None:
    """By the leader that we follow."""
    assert quorum.leader_id not in (NOBODY, quorum.me)
    if quorum.evidence.impairment is not None:
        quorum.evidence.impairment.heard = (quorum.epoch, high_watermark)


def holds_committed(quorum: QuorumState, impairment: Impairment) -> bool:
    assert quorum.evidence.impairment is impairment
    log, (epoch, high_watermark) = quorum.log, impairment.heard
    if epoch != quorum.epoch or high_watermark > quorum.durability.end:
        return False
    snapshot = log.latest_snapshot()
    if snapshot is not None and snapshot.epoch == epoch:
        return True
    return log.end_of_epoch(epoch - 1).end_offset < high_watermark


def census_answered(quorum: QuorumState, event: Answered | Failed, now: Instant) -> None:
    token: CensusSent = event.token
    impairment, voter = quorum.evidence.impairment, token.voter
    if impairment is None:
        return
    match event:
        case Failed():
            impairment.census.again(voter, quorum.retry_at(event.why, now))
        case Answered():
            answer = messages.only_partition(event.message.topics)
            errors = (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            impairment.census.again(voter, quorum.retry_at(Failure.MALFORMED, now))
            if answer is not None and error_of(answer.error_code) in errors:
                quorum.heard_of(answer.leader_epoch, NodeId(answer.leader_id), now)
                if answer.leader_epoch <= quorum.epoch:
                    impairment.census.done(voter)
