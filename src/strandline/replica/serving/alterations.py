"""AlterPartition: the leaders' proposals on their way to the controller.

One request in flight per broker, with the proposals that wait; but not with so many that the controller has nothing
else to do for long. It is retried until the controller has answered or metadata has overtaken the proposal. An answer
counts only for the very proposal that it was asked about.

What an error means (KIP-497, KIP-841):
  - INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED: certainly not done; the leader falls back to the committed ISR
  - FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST, UNKNOWN_TOPIC_*, NEW_LEADER_ELECTED: it may have been
    done, or something else was; the proposal stays pending until metadata says what is. That metadata is on its way: a
    refusal too leaves the controller only when everything that it rests on is committed
  - anything else: ask again
"""

from itertools import islice

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.isr import Committed, Pending, PendingExpand
from strandline.replica.hosting.leader import Leader
from strandline.replica.hosting.outbox import Outbox
from strandline.replica.tokens import IsrChangeSent
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionDataResponse,
    TopicData,
)

VERSION = 3
PROPOSALS_MAX = 250  # in one request
NOT_DONE = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
AWAIT_METADATA = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class Alterations:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.waiting: dict[TopicIdPartition, None] = {}
        self.outbox = Outbox[Pending](host, IsrChangeSent, VERSION)
        self.expands = self.shrinks = self.refusals = 0  # what answers said; for the metrics

    def propose(self, hosted: Hosted) -> None:
        """The partition's leader has a new pending change."""
        assert type(hosted.role) is Leader, hosted.name
        assert not isinstance(hosted.role.isr, Committed), hosted.name
        self.waiting[hosted.at] = None

    def flush(self) -> list[Effect]:
        """Ask the controller, if there is something to ask and nothing on its way."""
        if not self.waiting or not self.outbox.is_free:
            return []
        topics: dict[Uuid, list[PartitionData]] = {}
        asked: dict[TopicIdPartition, Pending] = {}
        for at in list(islice(self.waiting, PROPOSALS_MAX)):
            del self.waiting[at]
            leader = self.leader_at(at)
            if leader is None or isinstance(leader.isr, Committed):
                continue  # metadata has overtaken the proposal
            asked[at] = leader.isr
            topics.setdefault(at.topic_id, []).append(proposal_of(at, leader, leader.isr))
        assert len(asked) == sum(map(len, topics.values()))
        if not topics:
            return self.flush()
        request = AlterPartitionRequest(
            broker_id=self.host.me,
            broker_epoch=self.host.cluster.broker_epoch,
            topics=tuple(TopicData(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in topics.items()),
        )
        return self.outbox.ask(request, asked)

    def leader_at(self, at: TopicIdPartition) -> Leader | None:
        hosted = self.host.partitions.find(at)
        role = None if hosted is None else hosted.role
        return role if isinstance(role, Leader) else None

    def failed(self, now: Instant) -> None:
        """No answer: whether it was done is unknown. Ask again what is still pending."""
        for at in self.outbox.take():
            self.waiting[at] = None
        self.outbox.back_off(now)

    def answered(self, response: AlterPartitionResponse, now: Instant) -> list[Hosted]:
        """Returns the partitions whose committed ISR may be another now."""
        if response.error_code != ErrorCode.NONE:
            self.failed(now)
            return []
        asked = self.outbox.take()
        changed: list[Hosted] = []
        for topic in response.topics:
            for row in topic.partitions:
                at = TopicIdPartition(topic.topic_id, row.partition_index)
                pending = asked.pop(at, None)
                if pending is not None:
                    self.count(pending, row)
                leader = self.leader_at(at)
                if pending is None or leader is None or leader.isr is not pending:
                    continue
                if self.takes_effect(at, leader, pending, row, now):
                    hosted = self.host.partitions.find(at)
                    assert hosted is not None
                    changed.append(hosted)
        for at in asked:  # not in the answer at all
            self.waiting[at] = None
            self.outbox.back_off(now)
        return changed

    def count(self, pending: Pending, row: PartitionDataResponse) -> None:
        """Also where metadata was faster than the answer, as it is on the controller's own machine."""
        if error_of(row.error_code) is not ErrorCode.NONE:
            self.refusals += 1
        elif isinstance(pending, PendingExpand):
            self.expands += 1
        else:
            self.shrinks += 1

    def takes_effect(
        self, at: TopicIdPartition, leader: Leader, pending: Pending, row: PartitionDataResponse, now: Instant
    ) -> bool:
        assert leader.isr is pending, at
        error = error_of(row.error_code)
        if error is ErrorCode.NONE:
            if row.leader_epoch != leader.epoch:
                return False
            isr = tuple(NodeId(node) for node in row.isr)
            if leader.can_be_committed(isr, row.partition_epoch):
                return leader.committed(isr, PartitionEpoch(row.partition_epoch))
            error = ErrorCode.UNKNOWN_SERVER_ERROR  # no controller of ours: ask again
        if error in NOT_DONE:
            leader.refused(pending)
            return True
        if error not in AWAIT_METADATA:
            self.waiting[at] = None
            self.outbox.back_off(now)
        return False


def proposal_of(at: TopicIdPartition, leader: Leader, pending: Pending) -> PartitionData:
    # This process may have registered again since the proposal was made: it speaks for itself as what it is now.
    assert any(node == leader.cluster.me for node, _ in pending.proposal), at
    present = dict(pending.proposal) | {leader.cluster.me: leader.cluster.broker_epoch}
    return PartitionData(
        partition_index=at.partition,
        leader_epoch=leader.epoch,
        new_isr_with_epochs=tuple(BrokerState(broker_id=node, broker_epoch=epoch) for node, epoch in present.items()),
        # There is no recovery of a log beyond what opening it did: a leader that serves is recovered.
        leader_recovery_state=0,
        partition_epoch=leader.partition_epoch,
    )
