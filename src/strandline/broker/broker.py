"""The broker's part of a node: its replicas, the groups and transactions that it coordinates, its standing with the
controller."""

from collections.abc import Mapping

from strandline.base.effects import Answered, Disconnected, Effect, Failed, Failure, Report, Synced, SyncFailed, Warmed
from strandline.base.ids import BrokerEpoch, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.broker.coordinators.internal_topics import InternalTopics
from strandline.broker.coordinators.producer_ids import ProducerIds
from strandline.broker.lifecycle import Lifecycle, LifecycleSent
from strandline.broker.parts import Parts
from strandline.broker.suspects import Suspects
from strandline.broker.telemetry.telemetry import Telemetry
from strandline.group.coordinator import Groups
from strandline.log.evidence.clean_shutdown import Place, write_clean_shutdown
from strandline.log.evidence.inventory import Left
from strandline.metadata.image import Delta, Image
from strandline.replica.hosting.directories import Directories
from strandline.replica.replicas import Replicas
from strandline.replica.storage.cordoned import cordoned_ids
from strandline.replica.tokens import FetchSent, ReplicaToken
from strandline.replica.withdrawing import left_in
from strandline.txn.coordinator import Transactions
from strandline.txn.tokens import TxnToken


class Broker:
    def __init__(self, parts: Parts) -> None:
        config = parts.config
        self.disk = parts.disk
        self.directories = Directories(parts.directories, parts.dead_directories, config.metadata_log_dir)
        self.clean_start = parts.clean_start
        self.left = parts.left
        self.place, self.vouched = parts.place, parts.vouched
        self.replicas = Replicas(
            config.node_id, parts.disk, self.directories, parts.replica_config, config.explicit, parts.rng
        )
        internal_topics = InternalTopics(self.replicas)
        self.groups = Groups(parts.group_config, internal_topics, parts.rng)
        self.replicas.markers.ended = self.groups.transaction_ended
        self.lifecycle = Lifecycle(parts.identity, parts.lifecycle_config)
        self.producer_ids = ProducerIds(config.node_id, lambda: self.lifecycle.epoch)
        self.transactions = Transactions(parts.txn_config, internal_topics, self.producer_ids)
        self.suspects = Suspects()
        self.telemetry = Telemetry(config.integer("telemetry.max.bytes"), parts.rng, parts.stopwatch)
        self.strays_deleted = False

    def load(self, now: Instant) -> list[Effect]:
        assert self.lifecycle.epoch == -1, "who registers knows what it has lost"
        self.replicas.host.whole.begin(self.place, self.vouched)
        effects = self.replicas.load(now, self.clean_start, self.left)
        self.lifecycle.replicas_lost(self.replicas.host.withdrawals.take_news(), now)
        return effects

    def apply(self, image: Image, delta: Delta, end: int, now: Instant) -> list[Effect]:
        """Committed metadata below `end` is applied; `delta` is what it changed."""
        assert end >= self.replicas.host.cluster.metadata_end, "metadata is applied in order"
        effects: list[Effect] = []
        self.replicas.host.cluster.metadata_end = end
        if not self.replicas.has_caught_up and self.replicas.host.is_registered_in(image):
            self.replicas.host.withdrawals.registered(self.lifecycle.lost)
        if delta:
            effects += self.replicas.apply(image, delta, now)
            effects += self.groups.apply(image, delta, now)
            effects += self.transactions.apply(image, delta, now)
            effects += self.telemetry.apply(image, delta)
        self.lifecycle.metadata_moved(end, now)
        self.lifecycle.directories_cordoned(cordoned_ids(self.replicas.host), now)
        return effects

    def disconnected(self, event: Disconnected) -> list[Effect]:
        self.telemetry.disconnected(event.connection)
        return []

    def notice(self, now: Instant) -> list[Effect]:
        """After every step: a log directory that failed in it, and replicas that were found to have lost records, are
        passed to every machine that uses it."""
        effects: list[Effect] = []
        if self.replicas.host.withdrawals.news:
            self.lifecycle.replicas_lost(self.replicas.host.withdrawals.take_news(), now)
            effects += self.follow_leadership(now)
        assert not self.replicas.host.withdrawals.news
        while self.directories.news:
            effects += self.replicas.take_offline(now)
            effects += self.follow_leadership(now)
            self.lifecycle.directories_failed(self.directories.offline_ids, now)
        return effects

    def follow_leadership(self, now: Instant) -> list[Effect]:
        """This broker may lead less of the coordinators' topics than before."""
        return self.groups.follow_leadership(now) + self.transactions.follow_leadership(now)

    def answered(self, event: Answered | Failed | Synced | SyncFailed | Warmed, now: Instant) -> list[Effect]:
        if isinstance(event.token, ReplicaToken):
            if type(event.token) is FetchSent:
                self.judge_leader(event, now)
            return self.replicas.step(event, now)
        assert not isinstance(event, Synced | SyncFailed | Warmed)
        if isinstance(event.token, TxnToken):
            return self.transactions.step(event, now)
        if type(event.token) is not LifecycleSent:
            return self.producer_ids.step(event, now)
        effects = self.lifecycle.step(event, now)
        # Replicas go on copying while the process ends. Without an epoch leaders could not tell what they had from what
        # the next incarnation has.
        self.replicas.broker_epoch = BrokerEpoch(self.lifecycle.last_epoch)
        # guard: deletes-what-metadata-has-not-named-yet
        if not self.strays_deleted and self.lifecycle.is_unfenced and self.replicas.has_caught_up:
            # By now whatever metadata names as ours has its role, and is noticed if it ceases to be.
            self.strays_deleted = True
            effects += self.replicas.delete_strays(now)
        return effects

    def judge_leader(self, event: Answered | Failed | Synced | SyncFailed | Warmed, now: Instant) -> None:
        leader = event.token.leader
        if isinstance(event, Failed) and event.why in (Failure.CLOSED, Failure.REFUSED):
            self.suspects.lost(leader, now)
        elif self.suspects.until:
            self.suspects.heard(leader)

    def deadline(self) -> Instant:
        return min(
            self.replicas.deadline(),
            self.suspects.deadline(),
            self.groups.deadline(),
            self.transactions.deadline(),
            self.lifecycle.deadline(),
            self.producer_ids.deadline(),
            self.telemetry.purge_at,
        )

    def is_due(self, now: Instant) -> bool:
        """Would `expire` do anything?"""
        return (
            self.replicas.is_due(now)
            or self.telemetry.purge_at <= now
            or self.suspects.deadline() <= now
            or self.groups.deadline() <= now
            or self.transactions.deadline() <= now
            or self.lifecycle.deadline() <= now
            or self.producer_ids.deadline() <= now
        )

    def expire(self, now: Instant) -> list[Effect]:
        effects = self.replicas.expire(now)
        effects += self.groups.expire(now)
        effects += self.transactions.expire(now)
        effects += self.lifecycle.expire(now)
        effects += self.producer_ids.expire(now)
        effects += self.telemetry.expire(now)
        return effects

    def stop(self, now: Instant) -> list[Effect]:
        """Make everything durable, then say so on disk (KIP-966); without a registration, in epoch −1: the next start
        trusts its logs, and the controller does not."""
        effects = self.replicas.shutdown(now)
        self.replicas.close()
        left = {}
        for log_dir in list(self.directories.live):
            try:
                left[log_dir.path] = left_in(self.replicas.host, self.disk, log_dir)
            except DiskError as error:
                self.replicas.host.fail(log_dir, error)
        while (failed := self.write_markers(left)) is not None:  # the others stop without that directory
            directory_id, why = failed
            log_dir = next(one for one in self.directories.live if one.directory_id == directory_id)
            self.replicas.host.fail(log_dir, why)
            effects.append(Report("error", f"the clean stop cannot be recorded in {log_dir.path}: {why}"))
        return effects

    def write_markers(self, left: Mapping[str, tuple[Left, ...]]) -> tuple[Uuid, DiskError] | None:
        live = tuple((log_dir.path, log_dir.directory_id) for log_dir in self.directories.live)
        assert left.keys() >= {path for path, _ in live}, "what is left in each of them is known"
        who, dead = self.lifecycle.identity, len(self.directories.offline)
        place = Place(who.cluster_id, who.node_id, live, dead)
        return write_clean_shutdown(self.disk, place, self.lifecycle.last_epoch, left, self.replicas.left_offline())

    @property
    def has_news(self) -> bool:
        """Of directories that failed, and of what was lost."""
        return bool(self.directories.news or self.replicas.host.withdrawals.news)

    def check(self) -> None:
        self.replicas.check()
        self.groups.check()
        self.transactions.check()
        assert self.lifecycle.metadata_end <= self.replicas.host.cluster.metadata_end
        assert self.replicas.broker_epoch in (-1, self.lifecycle.last_epoch)
        self.lifecycle.check()
        self.producer_ids.check()
        self.suspects.check()
        self.telemetry.check()
