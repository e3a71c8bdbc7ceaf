"""All partitions of one broker: who leads, who follows, what is served, copied, kept and deleted.

`apply` follows the metadata, the request methods serve clients and followers, `step` takes the answers to what was
asked of leaders and of the controller. Deletions come first in every delta, so that a topic that was deleted and
created anew under its name never meets its old log (T39).

Invariants: those of the parts, and
  - nothing is done by metadata from before this incarnation's own registration
  - a partition with a role is one that metadata assigns to this broker, and its log directory lives
  - a follower of a leader that exists is in that leader's fetcher, and in no other
"""

from collections.abc import Iterable, Mapping

from strandline.base.effects import Answered, Caller, Effect, Failed, ReplyTo, Synced, SyncFailed, Warmed
from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import Disk, Rng
from strandline.base.time import Instant
from strandline.base.timers import Every
from strandline.coordination.internal_log import Done
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.evidence.inventory import Left
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    Delta,
    Image,
)
from strandline.replica.assigned import AssignedPartitions
from strandline.replica.cold import ColdReads
from strandline.replica.config import ReplicaConfig
from strandline.replica.following.fetchers import Fetchers
from strandline.replica.hosting.directories import Directories
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.leader import Leader
from strandline.replica.hosting.ledger import Ledger
from strandline.replica.losses.hanging_transactions import HangingTransactions
from strandline.replica.offline import OfflineReplicas
from strandline.replica.retention import retain
from strandline.replica.roles import Roles
from strandline.replica.scrubbing.scrubber import FIRST_MS, Scrubber
from strandline.replica.serving.alterations import Alterations
from strandline.replica.serving.contexts import ParkedFetch
from strandline.replica.serving.fetching import Fetching
from strandline.replica.serving.hints import LeaderHints
from strandline.replica.serving.offsets import Offsets, ParkedListing
from strandline.replica.serving.producing import Producing
from strandline.replica.serving.transactions.hanging import HangingCheck
from strandline.replica.serving.transactions.markers import Markers
from strandline.replica.storage.cleaning import Cleaner
from strandline.replica.storage.epoch_files import EpochFiles
from strandline.replica.storage.moving.assignments import Assignments
from strandline.replica.storage.moving.futures import Futures
from strandline.replica.storage.opening.owners import part_with_misnamed
from strandline.replica.storage.storage import Storage
from strandline.replica.tokens import (
    AssignmentSent,
    CleanedSynced,
    ColdPlace,
    ColdRead,
    ColdStep,
    FetchSent,
    FutureSynced,
    HangingAsked,
    IsrChangeSent,
    LogFlushed,
    RepairSent,
    RepairSynced,
    VerificationSent,
)
from strandline.replica.withdrawing import Withdrawing
from strandline.wire.messages.records.delete_records import DeleteRecordsRequest
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.messages.records.list_offsets import ListOffsetsRequest
from strandline.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from strandline.wire.messages.records.produce import ProduceRequest

TOGETHER_MAX = 1_000  # partitions, with which all tasks that are due are done in one step


class Replicas:
    def __init__(
        self,
        me: NodeId,
        disk: Disk,
        directories: Directories,
        config: ReplicaConfig,
        static: Mapping[str, ConfigValue],
        rng: Rng,
    ) -> None:
        self.me = me
        self.config = config
        self.host = Host(me, config, static, directories, Ledger(disk))
        self.hints = LeaderHints(self.host)
        self.alterations = Alterations(self.host)
        self.cold = ColdReads(self.host.timers)
        self.fetching = Fetching(self.host, self.alterations, self.hints, rng, self.cold)
        self.producing = Producing(self.host, self.fetching, self.hints)
        self.markers = Markers(self.host, self.fetching, self.producing.verifying)
        self.offsets = Offsets(self.host, self.fetching, self.cold)
        self.storage = Storage(self.host, disk)
        self.assignments = Assignments(self.host)
        self.futures = Futures(self.host, self.storage, self.assignments)
        self.cleaner = Cleaner(self.host, self.storage, self.futures, self.cold)
        self.fetchers = Fetchers(self.host)
        self.withdrawing = Withdrawing(self.host, self.storage, self.fetchers, self.fetching)
        self.scrubber = Scrubber(self.host, self.cleaner.uncleanable, self.withdrawing.withdraw, self.cold)
        self.offline = OfflineReplicas(self.host, self.storage, self.futures, self.fetchers, self.fetching)
        self.hanging_transactions = HangingTransactions(self.host)
        self.hanging = HangingCheck(self.host, self.markers)
        self.hanging_transactions.opened = self.hanging.suspect
        self.epoch_files = EpochFiles(self.host)
        self.roles = Roles(self.host, self.fetchers, self.producing, self.epoch_files, self.hanging_transactions)
        self.assigned = AssignedPartitions(
            self.host, self.storage, self.futures, self.offline, self.withdrawing, self.roles
        )
        self.has_caught_up = False  # with metadata, at least up to this incarnation's registration
        self.shrinking = Every(config.lag_time_max_ms // 2, self.roles.shrink)
        self.tasks = [
            self.shrinking,
            *self.storage.tasks(),
            Every(config.retention_check_interval_ms, self.retain),
        ]
        self.next_task = min(task.next for task in self.tasks)

    @property
    def broker_epoch(self) -> BrokerEpoch:
        return self.host.cluster.broker_epoch

    @broker_epoch.setter
    def broker_epoch(self, epoch: BrokerEpoch) -> None:
        self.host.cluster.broker_epoch = epoch

    # --- start and stop

    def load(self, now: Instant, clean: bool, left: LogsLeft | None = None) -> list[Effect]:
        """Open the logs that lie on disk, and the last stop `left`. They get their roles from `apply`."""
        assert not self.has_caught_up
        for task in self.tasks:
            task.next = Instant(now + task.span_ms)
        self.scrubber.rest(now, FIRST_MS)
        self.next_task = min(task.next for task in self.tasks)
        self.cleaner.rest(now)
        return self.storage.load(now, clean, left) + self.futures.resume(now)

    def delete_strays(self, now: Instant) -> list[Effect]:
        """Delete the logs that metadata does not assign to this broker. Only once metadata has been caught up with."""
        assert self.has_caught_up
        return self.futures.delete_strays() + self.assigned.delete_strays(now)

    def shutdown(self, now: Instant) -> list[Effect]:
        """Answer the requests that wait, and make everything durable, so that the next start needs no recovery."""
        not_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
        effects = [effect for hosted in self.host.partitions.all() for effect in hosted.fail_waiting(not_leader, now)]
        self.cleaner.stop()
        assert self.cleaner.run is None
        self.storage.flush_now(now)  # guard: marker-before-logs-are-durable
        self.futures.close()
        return effects

    def close(self) -> None:
        self.host.close_logs()

    # --- directories

    def take_offline(self, now: Instant) -> list[Effect]:
        """To be called after every step in which a directory failed, for as long as there is news of one."""
        effects = self.offline.take_offline(now)
        if self.has_caught_up:
            self.offline.report_absent()
        return effects + self.flush(now)

    def left_offline(self) -> dict[Uuid, tuple[Left, ...]]:
        """See `OfflineReplicas.left`. Before there is metadata, and every replica in it was looked for, not all of
        it is known."""
        if not self.has_caught_up or self.assigned.waiting:
            return {}
        return self.offline.left()

    # --- metadata

    def apply(self, image: Image, delta: Delta, now: Instant) -> list[Effect]:
        self.host.image = image
        self.storage.configs.metadata_changed()
        self.host.cluster.brokers = image.brokers
        anew = delta.reloaded
        effects: list[Effect] = []
        if not self.has_caught_up:
            # What is replayed before this incarnation's own registration is history. To act on it could delete a log
            # that was reassigned away and back, or lead in an epoch that is long over.
            if not self.host.is_registered_in(image):  # guard: acts-on-history
                return []
            assert not any(hosted.role for hosted in self.host.partitions.all())
            self.has_caught_up = anew = True
            registered = image.brokers[self.me]
            self.host.whole.registered(registered.incarnation_id, follows_on=registered.follows_on)
            effects += part_with_misnamed(self.host, self.storage.disk, self.storage.findings)
        if anew:
            self.offline.report_absent()
        changed = self.all_that_may_have_changed(image) if anew else delta.partitions
        effects += self.assigned.apply(changed, {} if anew else delta.partitions, now)
        effects += self.reconfigure(delta, anew, now)
        effects += self.roles.brokers_changed(delta.brokers, now)
        return effects + self.flush(now)

    def all_that_may_have_changed(self, image: Image) -> Iterable[TopicIdPartition]:
        with_role = (hosted.at for hosted in self.host.partitions.all() if hosted.role is not None)
        return dict.fromkeys([*with_role, *self.assigned.waiting, *image.hosted.get(self.me, ())])

    def reconfigure(self, delta: Delta, anew: bool, now: Instant) -> list[Effect]:
        of_brokers = ((BROKER_RESOURCE, CLUSTER_DEFAULT), (BROKER_RESOURCE, str(self.me)))
        everything = anew or any(resource in delta.configs for resource in of_brokers)
        image, partitions = self.host.image, self.host.partitions
        resources = image.configs if anew else delta.configs
        self.fetching.quota.configure(image, resources, anew)
        self.fetchers.configure(image, resources, anew, now)
        if everything:
            affected = list(partitions.all())
        else:
            names = [name for kind, name in delta.configs if kind == TOPIC_RESOURCE]
            affected = [hosted for name in names for hosted in partitions.by_name.get(name, {}).values()]
        effects: list[Effect] = []
        for hosted in affected:
            if hosted.role is not None:
                self.storage.reconfigure(hosted)
                effects += self.roles.min_isr_changed(hosted, now)
        return effects

    # --- requests

    def produce(self, to: ReplyTo, caller: Caller, request: ProduceRequest, now: Instant) -> list[Effect]:
        return self.producing.produce(to, caller, request, now)

    def fetch(self, to: ReplyTo, caller: Caller, request: FetchRequest, now: Instant) -> list[Effect]:
        effects = self.fetching.fetch(to, caller, request, now)
        if self.alterations.waiting:
            effects += self.alterations.flush()
        return effects

    def list_offsets(self, to: ReplyTo, caller: Caller, request: ListOffsetsRequest, now: Instant) -> list[Effect]:
        return self.offsets.list_offsets(to, caller, request, now)

    def offsets_for_leader_epoch(
        self, to: ReplyTo, caller: Caller, request: OffsetForLeaderEpochRequest, now: Instant
    ) -> list[Effect]:
        return self.offsets.offsets_for_leader_epoch(to, caller, request, now)

    def delete_records(self, to: ReplyTo, caller: Caller, request: DeleteRecordsRequest, now: Instant) -> list[Effect]:
        return self.offsets.delete_records(to, caller, request, now)

    # --- the broker's own topics

    def append_internal(
        self,
        topic: str,
        partition: int,
        batch: bytearray,
        now: Instant,
        done: Done,
        timeout_ms: int | None = None,
        *,
        transaction: str = "",
        adds: bool = False,
    ) -> list[Effect]:
        """Append with acks=−1. `done(error, base_offset)` is called when the batch is committed, or certainly or
        possibly (REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER after the append) is not. `transaction`, `adds`: the
        transactional id of the batch, which is verified first (`serving.verifying`)."""
        assert batch
        span = self.config.internal_append_timeout_ms if timeout_ms is None else timeout_ms
        assert span > 0
        return self.producing.append_internal(
            topic, partition, batch, now, done, span, transaction=transaction, adds=adds
        )

    def read_internal(self, topic: str, partition: int, offset: int, max_bytes: int) -> Read | Refused:
        """Read a hosted partition up to its log end: a new coordinator loads what it leads, committed or not yet."""
        return self.host.read(topic, partition, offset, max_bytes)

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        hosted = self.host.partitions.named(topic, partition)
        return hosted.role.epoch if hosted is not None and type(hosted.role) is Leader else None

    def high_watermark(self, topic: str, partition: int) -> int:
        """−1 if the partition is not hosted here."""
        hosted = self.host.partitions.named(topic, partition)
        return -1 if hosted is None else hosted.high_watermark

    # --- answers and time

    def step(self, event: Answered | Failed | Synced | SyncFailed | Warmed, now: Instant) -> list[Effect]:
        match event.token, event:
            case FetchSent(), Answered() | Failed():
                return self.fetched(event, now)
            case IsrChangeSent(), Answered() | Failed():
                return self.isr_answered(event, now)
            case AssignmentSent(), Answered() | Failed():
                return self.directories_answered(event, now)
            case VerificationSent(), Answered() | Failed():
                return self.producing.verifying.step(event, now)
            case HangingAsked(), Answered() | Failed():
                return self.hanging.step(event, now)
            case RepairSent() | RepairSynced(), Answered() | Failed() | Synced() | SyncFailed():
                return self.scrubber.repairs.step(event, now)
            case FutureSynced(), Synced() | SyncFailed():
                self.futures.synced(event)
            case CleanedSynced(), Synced() | SyncFailed():
                return self.cleaner.synced(event, now)
            case LogFlushed() as flushed, Synced():
                return self.storage.flushing.flushed(flushed)
            case ColdRead() | ColdStep() as place, Warmed():
                return self.warmed(place, now)
            case _, SyncFailed():
                self.storage.flushing.sync_failed(event)
        return []

    def warmed(self, place: ColdPlace, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for waiter in self.cold.done(place):
            if isinstance(waiter, ParkedFetch):
                effects += self.fetching.warmed(waiter, now)
            elif isinstance(waiter, ParkedListing):
                self.cold.found(place)  # it reads there with the last of what it waits for, and asks no more
                effects += self.offsets.warmed(waiter, now)
        return effects

    def fetched(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        token: FetchSent = event.token
        fetcher = self.fetchers.by_leader[token.leader]
        assert token.sequence <= fetcher.sequence
        if token.sequence != fetcher.sequence:
            return []
        if isinstance(event, Failed):
            return fetcher.failed(event.why, now) + fetcher.flush(now)
        effects = fetcher.answered(event.message, now)
        for hosted in fetcher.take_moved():
            self.fetching.copied(hosted, effects, now)
        if fetcher.take_cut():
            effects += self.storage.checkpoints.truncated()
        return effects + fetcher.flush(now)

    def isr_answered(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        assert event.token.sequence <= self.alterations.outbox.sequence
        if event.token.sequence != self.alterations.outbox.sequence:
            return []
        effects: list[Effect] = []
        if isinstance(event, Failed):
            self.alterations.failed(now)
        else:
            effects += self.roles.recompute_all(self.alterations.answered(event.message, now), now)
        return effects + self.alterations.flush()

    def directories_answered(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        assert event.token.sequence <= self.assignments.outbox.sequence
        if event.token.sequence != self.assignments.outbox.sequence:
            return []
        if isinstance(event, Failed):
            self.assignments.failed(now)
        else:
            self.assignments.answered(event.message, now)
        return self.assignments.flush()

    def flush(self, now: Instant) -> list[Effect]:
        """What the fetchers and the controller are to be asked next, what has been deleted, and what may get gaps."""
        self.storage.checkpoints.save_compacted()
        effects = self.storage.deleted.remove() + self.alterations.flush() + self.assignments.flush()
        return effects + self.fetchers.flush(now)

    def deadline(self) -> Instant:
        first = self.host.timers.deadline()
        return first if first < self.next_task else self.next_task

    def is_due(self, now: Instant) -> bool:
        """Would `expire` do anything? With a very short `replica.lag.time.max.ms` laggards are looked for all the time,
        mostly without need."""
        if self.host.timers.deadline() <= now:
            return True
        if self.next_task > now:
            return False
        if self.shrinking.span_ms or any(task.next <= now for task in self.tasks if task is not self.shrinking):
            return True
        return self.roles.may_shrink()

    def due(self, now: Instant) -> list[str]:
        """What `expire` would do first of what is timed, and the tasks that it would do."""
        first = self.host.timers.first(now)
        tasks = [task.task.__qualname__ for task in self.tasks if task.next <= now]
        return tasks if first is None else [first, *tasks]

    def retain(self, now: Instant) -> list[Effect]:
        return retain(self.host, self.fetching, now)

    def expire(self, now: Instant) -> list[Effect]:
        effects = self.host.timers.expire(now)
        if self.next_task <= now:
            for task in self.due_tasks(now):
                task.next = Instant(now + task.span_ms)
                effects += task.task(now)
            self.next_task = min(task.next for task in self.tasks)
        return effects + self.flush(now)

    def due_tasks(self, now: Instant) -> list[Every]:
        """Each looks at all partitions, or at many. Where there are thousands, one has its turn, and the others a
        millisecond later."""
        due = [task for task in self.tasks if task.next <= now]
        assert due, "the first of them is"
        return due if self.host.partitions.count <= TOGETHER_MAX else [min(due, key=lambda task: task.next)]

    def check(self) -> None:
        self.producing.verifying.check()
        host = self.host
        host.partitions.check()
        host.ledger.check()
        host.withdrawals.check()
        host.directories.check()
        self.fetching.check()
        self.cold.check()
        self.assigned.check()
        self.alterations.outbox.check()
        self.assignments.outbox.check()
        self.storage.flushing.check()
        self.scrubber.repairs.check()
        self.fetchers.check()
        self.futures.check()
        followed = dict.fromkeys(self.fetchers.by_leader, 0)
        for hosted in host.partitions.all():
            if (role := hosted.role) is None:
                continue
            assert self.assigned.is_mine(hosted.at), hosted.name
            assert host.image.topics[hosted.at.topic_id].name == hosted.name.topic, hosted.name
            assert host.directories.is_live(hosted.directory), hosted.name
            hosted.check()
            if isinstance(role, Follower) and role.leader in followed:
                assert hosted.at in self.fetchers.by_leader[role.leader].partitions, hosted.name
                followed[role.leader] += 1
        for node, count in followed.items():
            assert len(self.fetchers.by_leader[node].partitions) == count, (
                f"it fetches more from {node} than it follows"
            )
