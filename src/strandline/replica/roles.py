"""Who leads and who follows: the hosted partitions get the roles that metadata gives them, and what moves with a role.

Invariants (executed by `Hosted.check` and `Replicas.check`):
  - a leadership begins once in an epoch: metadata of the same epoch changes the leader that there is
  - whatever waited for a role is answered when that role ends
  - after any change of the ISR, of the replicas or of a broker, the high watermark is computed anew (T20)
"""

from collections.abc import Iterable

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId
from strandline.base.time import Instant
from strandline.metadata.image import Partition, Topic
from strandline.replica.following.fetchers import Fetchers
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.losses.hanging_transactions import HangingTransactions
from strandline.replica.losses.losing import Notes, begins
from strandline.replica.serving.fetching import Fetching
from strandline.replica.serving.producing import Producing
from strandline.replica.storage.epoch_files import EpochFiles


class Roles:
    def __init__(
        self,
        host: Host,
        fetchers: Fetchers,
        producing: Producing,
        epoch_files: EpochFiles,
        hanging_transactions: HangingTransactions,
    ) -> None:
        self.host = host
        self.fetchers = fetchers
        self.fetching: Fetching = producing.fetching
        self.producing = producing
        self.epoch_files = epoch_files
        self.hanging_transactions = hanging_transactions

    # --- a role begins

    def lead(self, hosted: Hosted, topic: Topic, partition: Partition, now: Instant) -> list[Effect]:
        """Raises DiskError, with nothing changed, if what may be lost cannot be noted."""
        assert partition.leader == self.host.me, hosted.name
        assert not hosted.gone, hosted.name
        role = hosted.role
        min_isr = self.host.image.effective_min_isr(topic, partition)  # guard: min-isr-of-the-own-file
        if type(role) is Leader and role.epoch == partition.leader_epoch:  # guard: leader-begins-anew-in-its-own-epoch
            role.reassigned(partition, min_isr)
            return self.recompute(hosted, role, now)
        is_unclean, effects = begins(self.host, hosted, partition, now)
        if is_unclean:
            self.hanging_transactions.suspect(hosted, now)
        self.fetchers.leave(hosted)
        leader = Leader(
            self.host.cluster,
            hosted.log,
            partition,
            high_watermark=hosted.high_watermark,  # guard: new-leader-commits-its-whole-log
            min_isr=min_isr,
            lag_time_max_ms=self.host.config.lag_time_max_ms,
            now=now,
        )
        hosted.take_role(leader)
        hosted.trust()
        self.epoch_files.add(hosted)
        effects += self.fetching.role_changed(hosted, now)
        self.fetching.leads_anew(leader, now)
        if hosted.role is not leader:
            return effects  # a read for one of those who waited has failed, and its directory with it
        return effects + self.recompute(hosted, leader, now)

    def follow(self, hosted: Hosted, partition: Partition, now: Instant) -> list[Effect]:
        assert partition.leader != self.host.me, hosted.name
        role = hosted.role
        if type(role) is Follower and role.epoch == partition.leader_epoch and role.leader == partition.leader:
            role.reassigned(partition)
            return []
        high_watermark = hosted.high_watermark
        self.fetchers.leave(hosted)
        notes = Notes(self.host, hosted)  # guard: deposed-coordinator-writes-on
        hosted.take_role(Follower(str(hosted.name), hosted.log, partition, high_watermark, notes))
        # Only now: who hears that a coordinator's record was refused may want to write another one.
        effects = hosted.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
        if partition.leader != NOBODY:
            hosted.trust()
        effects += self.fetching.role_changed(hosted, now)
        if partition.leader != NOBODY and hosted.role is not None:
            self.fetchers.follow(hosted)
        return effects

    def end(self, hosted: Hosted, error: ErrorCode, now: Instant) -> list[Effect]:
        """The partition is hosted no longer; `error` for those who wait for it."""
        self.fetchers.leave(hosted)
        self.host.drop(hosted)
        effects = hosted.fail_waiting(error, now) + self.fetching.role_changed(hosted, now)
        assert not hosted.waiting and not hosted.deletions and not hosted.watchers, hosted.name
        return effects

    # --- what a leader's decisions rest on has changed

    def recompute(self, hosted: Hosted, leader: Leader, now: Instant) -> list[Effect]:
        """After any change of what the high or the low watermark depends on (T20)."""
        assert hosted.role is leader, hosted.name
        effects: list[Effect] = []
        self.fetching.note_out_of_sync(hosted, leader)
        if leader.advance(now):  # guard: isr-change-moves-nothing
            self.fetching.high_watermark_moved(hosted, leader, effects, now)
        elif hosted.waiting and leader.is_under_min_isr():
            effects += self.producing.fail_under_min_isr(hosted, now)
        if hosted.deletions and hosted.role is leader:
            effects += hosted.complete_deletions(leader, now)
        return effects

    def recompute_all(self, changed: Iterable[Hosted], now: Instant) -> list[Effect]:
        """For partitions that this broker leads. A directory may fail while earlier ones are answered."""
        effects: list[Effect] = []
        for hosted in changed:
            if type(hosted.role) is Leader:
                effects += self.recompute(hosted, hosted.role, now)
        return effects

    def min_isr_changed(self, hosted: Hosted, now: Instant) -> list[Effect]:
        """The topic's or the cluster's configuration has changed."""
        leader = hosted.role
        if type(leader) is not Leader:
            return []
        topic = self.host.image.topics[hosted.at.topic_id]
        leader.configure(self.host.image.effective_min_isr(topic, topic.partitions[hosted.at.partition]))
        return self.recompute(hosted, leader, now)

    def brokers_changed(self, nodes: Iterable[NodeId], now: Instant) -> list[Effect]:
        """Eligibility decides who holds the high watermark back; a new registration may be a leader that is back."""
        effects: list[Effect] = []
        for node in nodes:
            self.fetchers.broker_registered(node)
            for at in self.host.image.hosted.get(node, ()):
                hosted = self.host.partitions.find(at)
                if hosted is not None and type(hosted.role) is Leader:
                    effects += self.recompute(hosted, hosted.role, now)
        return effects

    def may_shrink(self) -> bool:
        """Might `shrink` change anything? Not while all followers have all, and nothing waits."""
        for hosted, leader in self.host.partitions.leaders():
            end = leader.log.log_end_offset
            if leader.high_watermark != end or hosted.waiting or hosted.deletions:
                return True
            if any(state.log_end_offset != end for state in leader.followers.values()):
                return True
        return False

    def shrink(self, now: Instant) -> list[Effect]:
        """Propose to drop who lags. A replica that is in no ISR may have stopped to hold the high watermark back."""
        effects: list[Effect] = []
        for hosted, leader in self.host.partitions.leaders():
            if leader.propose_shrink(now) is not None:
                self.fetching.alterations.propose(hosted)
            effects += self.recompute(hosted, leader, now)
        return effects
