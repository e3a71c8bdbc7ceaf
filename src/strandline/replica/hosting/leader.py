"""The leader of one partition: how far is it committed, and who is in sync?

Invariants (executed by `check`):
  - log start ≤ high watermark ≤ log end, and the high watermark never moves back
  - the leader is in the committed ISR; the committed ISR is within the maximal ISR, which is within the replicas
  - there is at most one change of the ISR under way
  - gate: the high watermark moves only while the *committed* ISR has `min_isr` members
  - minimum: it never passes the log end of a member of the *maximal* ISR, nor of a caught-up replica that may join
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch, Uuid
from strandline.base.time import Instant
from strandline.log.log import Log
from strandline.metadata.image import Broker, Partition
from strandline.metadata.registrations import SHARED
from strandline.replica.hosting.isr import (
    UNKNOWN_BROKER_EPOCH,
    Committed,
    IsrState,
    Pending,
    PendingExpand,
    PendingShrink,
    Proposal,
)

LONG_AGO = Instant(-(1 << 62))
UNKNOWN = Offset(-1)
PARTITION_EPOCH_STEPS_MAX = 1 << 20  # more changes than a controller makes before its metadata or its answer comes
BROKER_EPOCH_STEPS_MAX = 1 << 20  # likewise records, before its metadata names a registration
CLAIM_MS = 30_000  # so long an incarnation counts that fetches, and that metadata does not name
MANY_BYTES = 1 << 62


class ReplicaState(Struct, frozen=True, gc=False):
    """What one follower's last fetch said. Replaced as a whole, and read once per decision (T15)."""

    log_end_offset: int
    log_start_offset: int
    last_caught_up: int  # the latest instant at which the follower had all that the leader had
    leader_end_at_fetch: int
    fetched_at: int
    broker_epoch: int


# guard: unknown-follower-counts-as-complete
NEVER_FETCHED = ReplicaState(-1, -1, LONG_AGO, -1, LONG_AGO, UNKNOWN_BROKER_EPOCH)


class Cluster:
    """What the leaders of this broker know about brokers: registrations, and when each one last fetched from here."""

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.brokers: Mapping[NodeId, Broker] = {}
        self.fetched_at: dict[NodeId, Instant] = {}
        self.metadata_end = 0
        self.now = LONG_AGO  # when a broker fetched last

    def is_eligible(self, node: NodeId, broker_epoch: int) -> bool:
        """May this incarnation of a broker be in an ISR (KIP-841, KIP-903)?"""
        broker = self.brokers.get(node)
        if broker is None or not broker.is_active:
            return False
        return broker_epoch in (broker.epoch, UNKNOWN_BROKER_EPOCH)

    def heard_of(self, node: NodeId, broker_epoch: int, now: Instant) -> None:
        """A broker fetches from here, or a client that says so. What an earlier incarnation left in the network says
        nothing of this one."""
        self.now = now
        if not self.is_replaced(node, broker_epoch) and self.can_be(broker_epoch):
            self.fetched_at[node] = now

    def can_be(self, broker_epoch: int) -> bool:
        """Can a broker have this epoch, which is the offset of its registration?"""
        return broker_epoch <= self.metadata_end + BROKER_EPOCH_STEPS_MAX

    def is_replaced(self, node: NodeId, broker_epoch: int) -> bool:
        """Has the broker registered anew since this incarnation of it? The controller knows before anybody else, so
        metadata may say so before the new incarnation fetches."""
        return UNKNOWN_BROKER_EPOCH < broker_epoch < self.epoch_of(node)

    def epoch_of(self, node: NodeId) -> int:
        """The broker epoch that metadata names."""
        broker = self.brokers.get(node)
        return UNKNOWN_BROKER_EPOCH if broker is None else broker.epoch


class Leader:
    def __init__(
        self,
        cluster: Cluster,
        log: Log,
        partition: Partition,
        *,
        high_watermark: int,
        min_isr: int,
        lag_time_max_ms: int,
        now: Instant,
    ) -> None:
        assert partition.leader == cluster.me
        assert partition.leader in partition.isr
        assert min_isr >= 1
        assert log.log_start_offset <= high_watermark <= log.log_end_offset
        self.cluster = cluster
        self.log = log
        self.epoch: LeaderEpoch = partition.leader_epoch
        self.partition_epoch: PartitionEpoch = partition.partition_epoch
        self.replicas = partition.replicas
        self.directories = located(partition.replicas, partition.directories)
        self.isr: IsrState = Committed(partition.isr)
        self.min_isr = min_isr
        self.lag_time_max_ms = lag_time_max_ms
        self.high_watermark = high_watermark
        self.epoch_start_offset = log.log_end_offset
        # Bytes that the next move of the high watermark may let consumers see. How many an earlier leader left there is
        # not counted: enough for every fetch that waits to look.
        self.unseen_bytes = 0 if high_watermark == log.log_end_offset else MANY_BYTES
        log.begin_epoch(self.epoch)
        # guard: new-leader-believes-followers-have-its-log
        in_sync = ReplicaState(-1, -1, now, -1, LONG_AGO, UNKNOWN_BROKER_EPOCH)
        self.followers: dict[NodeId, ReplicaState] = {
            node: in_sync if node in partition.isr else NEVER_FETCHED for node in self.others()
        }

    def others(self) -> list[NodeId]:
        return [node for node in self.replicas if node != self.cluster.me]

    # --- questions

    @property
    def last_stable_offset(self) -> int:
        """What a read_committed consumer may read up to (exclusive, despite its name). An answer takes it and the high
        watermark from one moment (T43)."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def is_end_unknown(self) -> bool:
        """An earlier leader may have shown consumers more than this one's high watermark: it has not committed what lay
        in its log when it was elected. To name an end now would send consumers back."""
        return self.high_watermark < self.epoch_start_offset

    def is_eligible(self, node: NodeId, broker_epoch: int) -> bool:
        """May it join, as far as broker and directory go? The high watermark waits for no replica whose directory is
        offline."""
        broker = self.cluster.brokers.get(node)
        is_online = broker is None or node not in self.directories or broker.is_online(self.directories[node])
        return is_online and self.cluster.is_eligible(node, broker_epoch)

    def is_under_min_isr(self) -> bool:
        return len(self.isr.isr) < self.min_isr

    def is_caught_up(self, state: ReplicaState, now: Instant) -> bool:
        return state.log_end_offset == self.log.log_end_offset or now - state.last_caught_up <= self.lag_time_max_ms

    def why_not_in_sync(self, node: NodeId, now: Instant) -> str | None:
        """Why may this follower not enter the ISR? None means it may."""
        state = self.followers[node]
        if node in self.isr.maximal:
            return "it is in the ISR"
        if type(self.isr) is not Committed:
            return "another change of the ISR is under way"
        if state.log_end_offset < self.high_watermark:  # guard: joins-below-high-watermark
            return "it lacks committed records"
        if state.log_end_offset < self.epoch_start_offset:  # guard: joins-below-epoch-start
            # Records between an old high watermark and the start of this epoch may be committed (T36).
            return "it has not reached the start of this leader epoch"
        if self.is_under_min_isr() and not self.is_caught_up(state, now):  # guard: laggard-joins-under-min-isr
            # The high watermark stands still, so that passing it proves little (T18).
            return "it is far behind while the high watermark is frozen"
        if not self.is_eligible(node, state.broker_epoch):
            return "the broker is fenced, shutting down, unknown, or another incarnation"
        return None

    def low_watermark(self) -> int:
        """The lowest log start of the replicas that are alive: what all of them have deleted. What an earlier
        incarnation had deleted says nothing of its successor, whose disk may be another."""
        lowest = self.log.log_start_offset
        for node, state in self.followers.items():
            if self.is_eligible(node, UNKNOWN_BROKER_EPOCH):
                is_known = not self.cluster.is_replaced(node, state.broker_epoch)
                lowest = min(lowest, state.log_start_offset if is_known else UNKNOWN)
        assert lowest <= self.log.log_start_offset
        return lowest

    # --- progress

    def stamp_caught_up(self) -> None:
        """Before an append: a follower that has everything now had it when it last fetched.

        Followers name only what changed in a fetch session, so an idle partition's last recorded fetch may be old.
        """
        end = self.log.log_end_offset
        for node, state in self.followers.items():
            if state.log_end_offset == end:
                at = self.cluster.fetched_at.get(node, LONG_AGO)
                if at > state.last_caught_up:
                    self.followers[node] = ReplicaState(end, state.log_start_offset, at, end, at, state.broker_epoch)

    def is_left_behind(self, node: NodeId, broker_epoch: int) -> bool:
        """Is it of an earlier incarnation than one that has fetched in this epoch (T15), or than metadata names; or of
        none that there can be?"""
        # guard: earlier-incarnation-overwrites-later
        return UNKNOWN_BROKER_EPOCH < broker_epoch < self.latest_of(node) or not self.cluster.can_be(broker_epoch)

    def latest_of(self, node: NodeId) -> int:
        """The epoch of the latest incarnation, as far as is known. Metadata may name it later than it fetches; what it
        never names was only a number that was sent, and counts no longer."""
        state, named = self.followers[node], self.cluster.epoch_of(node)
        if state.broker_epoch > named and self.cluster.now - state.fetched_at > CLAIM_MS:
            return named
        return max(state.broker_epoch, named)

    def fetched(
        self, node: NodeId, offset: int, log_start_offset: int, broker_epoch: int, now: Instant
    ) -> ErrorCode | None:
        """A follower asked for `offset`, so it has everything before. None if that was recorded."""
        old = self.followers.get(node)
        if old is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.is_left_behind(node, broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert node != self.cluster.me
        end = self.log.log_end_offset
        caught_up = old.last_caught_up
        if offset >= end:
            caught_up = now
        elif offset >= old.leader_end_at_fetch and old.fetched_at > caught_up:
            # It chronically trails a busy log by one fetch, but keeps closing the gap that there was.
            caught_up = old.fetched_at
        # One that is not registered yet, or no more, cannot be distinguished from the next incarnation.
        known = max(broker_epoch, min(old.broker_epoch, self.latest_of(node)))
        self.followers[node] = ReplicaState(offset, log_start_offset, caught_up, end, now, known)
        return None

    def advance(self, now: Instant) -> bool:
        """Recompute the high watermark: after an append, a fetch, and every change of the committed ISR (T20)."""
        isr = self.isr
        if len(isr.isr) < self.min_isr:  # guard: isr-has-min-isr
            return False
        new = self.log.log_end_offset
        old = self.high_watermark
        if new == old:
            return False
        maximal = isr.maximal  # guard: leaver-forgotten-before-agreed
        for node, state in self.followers.items():
            if state.log_end_offset < new and (
                # guard: counts-for-the-high-watermark
                node in maximal or (self.is_caught_up(state, now) and self.is_eligible(node, state.broker_epoch))
            ):
                new = state.log_end_offset
                if new <= old:
                    return False
        assert new > old, "the high watermark never moves back"
        self.high_watermark = new
        return True

    # --- the ISR

    def proposal(self, isr: tuple[NodeId, ...]) -> Proposal:
        """An ISR with the incarnations that it is about. A member that has not fetched in this epoch goes unchecked."""
        mine = self.cluster.broker_epoch
        return tuple(
            (node, mine if node == self.cluster.me else BrokerEpoch(self.followers[node].broker_epoch)) for node in isr
        )

    def propose_expansion(self, node: NodeId, now: Instant) -> Pending | None:
        if self.why_not_in_sync(node, now) is not None:
            return None
        assert node not in self.isr.isr
        maximal = (*self.isr.isr, node)
        self.isr = PendingExpand(self.isr.isr, maximal, self.proposal(maximal))
        return self.isr

    def propose_shrink(self, now: Instant) -> Pending | None:
        if type(self.isr) is not Committed:
            return None
        kept = tuple(
            node for node in self.isr.isr if node not in self.followers or self.is_caught_up(self.followers[node], now)
        )
        assert self.cluster.me in kept
        if len(kept) == len(self.isr.isr):
            return None
        self.isr = PendingShrink(self.isr.isr, self.proposal(kept))
        return self.isr

    def can_be_committed(self, isr: tuple[NodeId, ...], partition_epoch: int) -> bool:
        """Can a controller have said this of a partition that we lead?"""
        is_step = partition_epoch <= self.partition_epoch + PARTITION_EPOCH_STEPS_MAX
        return is_step and self.cluster.me in isr and set(isr) <= set(self.replicas)

    def committed(self, isr: tuple[NodeId, ...], partition_epoch: PartitionEpoch) -> bool:
        """The controller says what is committed. An older or equal partition epoch says nothing new."""
        if partition_epoch <= self.partition_epoch:  # guard: older-isr-taken-for-news
            return False
        assert self.cluster.me in isr
        self.partition_epoch = partition_epoch
        self.isr = Committed(isr)
        return True

    def refused(self, pending: Pending) -> None:
        """The controller certainly did not make the change."""
        assert self.cluster.me in pending.isr
        if self.isr is pending:
            self.isr = Committed(pending.isr)

    def reassigned(self, partition: Partition, min_isr: int) -> None:
        """Metadata of the same leader epoch."""
        assert self.cluster.me in partition.replicas
        assert min_isr >= 1
        assert partition.leader_epoch == self.epoch
        self.min_isr = min_isr
        if partition.partition_epoch >= self.partition_epoch:
            self.replicas = partition.replicas
            self.directories = located(partition.replicas, partition.directories)
            self.followers = {node: self.followers.get(node, NEVER_FETCHED) for node in self.others()}
        self.committed(partition.isr, partition.partition_epoch)

    def configure(self, min_isr: int) -> None:
        assert min_isr >= 1
        self.min_isr = min_isr

    def check(self) -> None:
        log = self.log
        assert log.log_start_offset <= self.high_watermark, (log.log_start_offset, self.high_watermark)
        assert self.high_watermark <= log.log_end_offset, (self.high_watermark, log.log_end_offset)
        assert self.cluster.me in self.isr.isr
        assert set(self.isr.isr) <= set(self.isr.maximal)
        assert set(self.isr.maximal) <= set(self.replicas)
        assert self.min_isr >= 1


@lru_cache(SHARED)
def located(replicas: tuple[NodeId, ...], directories: tuple[Uuid, ...]) -> Mapping[NodeId, Uuid]:
    """Where each replica is. Partitions with the same replicas share it, so nobody changes it."""
    assert len(set(replicas)) == len(replicas)
    return dict(zip(replicas, directories, strict=True))
