"""All partitions of one broker: who leads, who follows, what is served, copied, kept and deleted.

`apply` follows the metadata, the request methods serve clients and followers, `step` takes the answers to what was
asked of leaders and of the controller. Deletions come first in every delta, so that a topic that was deleted and
created anew under its name never meets its old log (T39).

Invariants: those of the parts, and
  - nothing is done by metadata from before this incarnation's own registration
  - a partition with a role is one that metadata assigns to this broker, and its log directory lives
  - a follower of a leader that exists is in that leader's fetcher, and in no other
"""

from collections.abc import Mapping
from functools import partial

from strandline.base.effects import Answered, Caller, Effect, Failed, ReplyTo, Synced, SyncFailed
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, BrokerEpoch, LeaderEpoch, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import Disk, DiskError, Rng
from strandline.base.time import Instant
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    Delta,
    Image,
    Partition,
    Topic,
    directory_of,
)
from strandline.replica.config import ReplicaConfig
from strandline.replica.following.fetcher import Fetcher, configure_quotas
from strandline.replica.following.follower import Follower
from strandline.replica.hosted import Host, Hosted, Status, status_of
from strandline.replica.losses.hanging import Hanging
from strandline.replica.losses.ledger import Ledger
from strandline.replica.losses.losing import Notes, begins
from strandline.replica.losses.withdrawing import withdraw
from strandline.replica.quota import quota_of
from strandline.replica.scrubbing.scrubber import FIRST_MS, Scrubber
from strandline.replica.serving.alterations import Alterations
from strandline.replica.serving.fetching import Fetching, complete_deletions
from strandline.replica.serving.hints import LeaderHints
from strandline.replica.serving.leader import Leader
from strandline.replica.serving.offsets import Offsets
from strandline.replica.serving.producing import Done, Producing
from strandline.replica.storage.adopting import adopted_or_new
from strandline.replica.storage.arrivals import Arrivals
from strandline.replica.storage.assignments import Assignments
from strandline.replica.storage.cleaning import Cleaner
from strandline.replica.storage.directories import Directories
from strandline.replica.storage.double import chosen as chosen_of
from strandline.replica.storage.epoch_files import EpochFiles
from strandline.replica.storage.future import Futures
from strandline.replica.storage.offline import is_absent, take_offline, tell_absent
from strandline.replica.storage.owners import part_with_misnamed
from strandline.replica.storage.retention import retain
from strandline.replica.storage.storage import Storage
from strandline.replica.timers import Every
from strandline.wire.messages.records.delete_records import DeleteRecordsRequest
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.messages.records.list_offsets import ListOffsetsRequest
from strandline.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from strandline.wire.messages.records.produce import ProduceRequest


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
        self.fetching = Fetching(self.host, self.alterations, self.hints, rng)
        self.producing = Producing(self.host, self.fetching, self.hints)
        self.offsets = Offsets(self.host, self.fetching)
        self.follower_quota = quota_of(me, "follower", config)
        self.storage = Storage(self.host, disk)
        self.assignments = Assignments(self.host)
        self.futures = Futures(self.host, self.storage, self.assignments)
        self.cleaner = Cleaner(self.host, self.storage, self.futures)
        self.hanging = Hanging(self.host)
        self.scrubber = Scrubber(self.host, self.cleaner.uncleanable, partial(withdraw, self))
        self.arrivals = Arrivals(self)
        self.epoch_files = EpochFiles(self.host)
        self.fetchers: dict[NodeId, Fetcher] = {}
        self.has_caught_up = False  # with metadata, at least up to this incarnation's registration
        self.tasks = [
            Every(config.lag_time_max_ms // 2, self.shrink),
            *self.storage.tasks(),
            Every(config.retention_check_interval_ms, lambda now: retain(self.host, self.fetching, now)),
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
        for task in self.tasks:
            task.next = Instant(now + task.span_ms)
        self.scrubber.rest(now, FIRST_MS)
        self.next_task = min(task.next for task in self.tasks)
        self.cleaner.rest(now)
        return self.storage.load(now, clean, left) + self.futures.resume(now)

    def delete_strays(self, now: Instant) -> list[Effect]:
        """Delete the logs that metadata does not assign to this broker. Only once metadata has been caught up with."""
        return self.futures.bury_strays() + self.arrivals.delete_strays(now)

    def shutdown(self, now: Instant) -> list[Effect]:
        """Answer whoever waits, and make everything durable, so that the next start needs no recovery."""
        not_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
        effects = [effect for hosted in self.host.all() for effect in hosted.fail_waiting(not_leader, now)]
        self.cleaner.stop()
        self.storage.flush_now(now)
        self.futures.settle()
        return effects

    def close(self) -> None:
        self.host.close_logs()

    # --- directories

    def take_offline(self, now: Instant) -> list[Effect]:
        """To be called after every step in which a directory failed."""
        return take_offline(self, now) + self.flush(now)

    # --- metadata

    def apply(self, image: Image, delta: Delta, now: Instant) -> list[Effect]:
        self.host.image = image
        self.storage.configs.clear()
        self.host.cluster.brokers = image.brokers
        anew = delta.reloaded
        effects: list[Effect] = []
        if not self.has_caught_up:
            # What is replayed before this incarnation's own registration is history. To act on it could delete a log
            # that was reassigned away and back, or lead in an epoch that is long over.
            if not self.host.is_registered_in(image):
                return []
            self.has_caught_up = anew = True
            registered = image.brokers[self.me]
            self.host.whole.registered(registered.incarnation_id, follows_on=registered.follows_on)
            part_with_misnamed(self.storage, effects)
        old = {} if anew else delta.partitions
        if anew:
            tell_absent(self)
        changed = (
            dict.fromkeys([*(h.at for h in self.host.all() if h.role is not None), *self.arrivals.waiting])
            | image.hosted.get(self.me, {})
            if anew
            else delta.partitions
        )
        for at in changed:
            hosted = self.host.find(at)
            if not self.is_mine(at):
                self.host.absent.pop(at, None)
                self.arrivals.waiting.pop(at, None)
                self.assignments.forget(at)
                if hosted is not None and hosted.role is not None:
                    self.delete(hosted, effects, now)
        self.arrivals.meet(changed, old, effects, now)
        self.reconfigure(delta, anew, effects, now)
        self.brokers_changed(delta, effects, now)
        return effects + self.flush(now)

    def is_mine(self, at: TopicIdPartition) -> bool:
        partition = self.host.image.partition(at)
        return partition is not None and self.me in partition.replicas

    def become(self, at: TopicIdPartition, is_new: bool, effects: list[Effect], now: Instant) -> None:
        topic = self.host.image.topics[at.topic_id]
        partition = topic.partitions[at.partition]
        directory = directory_of(partition, self.me)
        hosted = self.host.find(at)
        if is_absent(self, at, directory, is_new=is_new):
            self.assignments.lies(at, self.host.absent[at], directory)
            return
        if hosted is None:
            hosted = self.create(at, directory, is_new, effects, now)
        elif hosted.role is None:
            hosted = self.opened(hosted, directory, effects, now)
        if hosted is None:
            return
        self.futures.told(hosted, directory)
        try:
            if partition.leader == self.me:
                self.lead(hosted, topic, partition, effects, now)
            else:
                self.follow(hosted, partition, effects, now)
            self.host.whole.told(self.me, at, partition, hosted.directory.path)
        except DiskError as error:
            self.host.fail(hosted.directory, error)

    def opened(self, hosted: Hosted, directory: Uuid, effects: list[Effect], now: Instant) -> Hosted | None:
        """A log that was found on disk is wanted: it alone of all that bear its name."""
        for namesake in self.storage.namesakes_of(hosted, hosted.name):
            self.delete(namesake, effects, now)
        chosen = chosen_of(self.storage, hosted, directory, now)
        if chosen is not None:
            self.host.put(chosen)
            self.storage.reconfigure(chosen)
        return chosen

    def create(
        self, at: TopicIdPartition, directory: Uuid, is_new: bool, effects: list[Effect], now: Instant
    ) -> Hosted | None:
        name = self.arrivals.clear_name(at, effects, now)
        effects += self.storage.findings.begun_anew(at, name, is_new=is_new, now=now)
        self.storage.forget(name)
        hosted = adopted_or_new(self.futures, at, name, directory, effects, now)
        if hosted is not None:
            hosted.is_doubtful = hosted.is_doubtful or not (is_new or self.storage.findings.is_clean)
            self.host.put(hosted)
        return hosted

    def lead(self, hosted: Hosted, topic: Topic, partition: Partition, effects: list[Effect], now: Instant) -> None:
        role = hosted.role
        min_isr = self.host.image.effective_min_isr(topic, partition)
        if type(role) is Leader and role.epoch == partition.leader_epoch:
            role.reassigned(partition, min_isr)
            leader = role
        else:
            if begins(self.host, hosted, partition, effects, now):
                self.hanging.suspect(hosted, now)
            if type(role) is Follower:
                self.unfollow(hosted, role)
            leader = Leader(
                self.host.cluster,
                hosted.log,
                partition,
                high_watermark=hosted.high_watermark,
                min_isr=min_isr,
                lag_time_max_ms=self.config.lag_time_max_ms,
                now=now,
            )
            hosted.role = leader
            hosted.is_doubtful = False
            self.epoch_files.waiting[hosted] = None
            self.fetching.role_changed(hosted, effects, now)
            self.fetching.leads_anew(leader, now)
        self.recompute(hosted, leader, effects, now)

    def recompute(self, hosted: Hosted, leader: Leader, effects: list[Effect], now: Instant) -> None:
        """After any change of what the high or the low watermark depends on (T20)."""
        self.fetching.note_outsiders(hosted, leader)
        if leader.advance(now):
            self.fetching.high_watermark_moved(hosted, leader, effects, now)
        elif hosted.waiting and leader.is_under_min_isr():
            effects += self.producing.fail_under_min_isr(hosted, now)
        if hosted.deletions:
            effects += complete_deletions(hosted, leader, now)

    def follow(self, hosted: Hosted, partition: Partition, effects: list[Effect], now: Instant) -> None:
        role = hosted.role
        if type(role) is Follower and role.epoch == partition.leader_epoch and role.leader == partition.leader:
            role.isr = partition.isr
            return
        high_watermark = hosted.high_watermark
        if type(role) is Follower:
            self.unfollow(hosted, role)
        effects += hosted.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
        hosted.role = Follower(str(hosted.name), hosted.log, partition, high_watermark, Notes(self.host, hosted))
        hosted.is_doubtful = hosted.is_doubtful and partition.leader == NOBODY
        self.fetching.role_changed(hosted, effects, now)
        if partition.leader != NOBODY and hosted.role is not None:
            fetcher = self.fetchers.get(partition.leader)
            if fetcher is None:
                fetcher = self.fetchers[partition.leader] = Fetcher(self.host, partition.leader, self.follower_quota)
            fetcher.follow(hosted)

    def unfollow(self, hosted: Hosted, role: Follower) -> None:
        fetcher = self.fetchers.get(role.leader)
        if fetcher is not None:
            fetcher.leave(hosted.at)

    def delete(self, hosted: Hosted, effects: list[Effect], now: Instant) -> None:
        if type(hosted.role) is Follower:
            self.unfollow(hosted, hosted.role)
        self.futures.drop(hosted.at)
        self.assignments.forget(hosted.at)
        hosted.gone = True
        self.host.drop(hosted)
        is_led_on = self.host.image.partition(hosted.at) is not None  # elsewhere, with what those who wait have written
        why = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_led_on else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        effects += hosted.fail_waiting(why, now)
        self.fetching.role_changed(hosted, effects, now)
        self.storage.delete(hosted)

    def reconfigure(self, delta: Delta, anew: bool, effects: list[Effect], now: Instant) -> None:
        of_brokers = ((BROKER_RESOURCE, CLUSTER_DEFAULT), (BROKER_RESOURCE, str(self.me)))
        everything = anew or any(resource in delta.configs for resource in of_brokers)
        configure_quotas((self.fetching.quota, self.follower_quota), self.fetchers, self.host.image, delta, anew, now)
        if everything:
            affected = list(self.host.all())
        else:
            names = [name for kind, name in delta.configs if kind == TOPIC_RESOURCE]
            affected = [hosted for name in names for hosted in self.host.by_name.get(name, {}).values()]
        for hosted in affected:
            if hosted.role is None:
                continue
            self.storage.reconfigure(hosted)
            if type(hosted.role) is Leader:
                topic = self.host.image.topics[hosted.at.topic_id]
                partition = topic.partitions[hosted.at.partition]
                hosted.role.min_isr = self.host.image.effective_min_isr(topic, partition)
                self.recompute(hosted, hosted.role, effects, now)

    def brokers_changed(self, delta: Delta, effects: list[Effect], now: Instant) -> None:
        """Eligibility decides who holds the high watermark back; a new registration may be a leader that is back."""
        for node in delta.brokers:
            fetcher = self.fetchers.get(node)
            if fetcher is not None:
                fetcher.leader_is_back()
            for at in self.host.image.hosted.get(node, ()):
                hosted = self.host.find(at)
                if hosted is not None and type(hosted.role) is Leader:
                    self.recompute(hosted, hosted.role, effects, now)

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
        self, topic: str, partition: int, batch: bytearray, now: Instant, done: Done, timeout_ms: int | None = None
    ) -> list[Effect]:
        """Append with acks=−1. `done(error, base_offset)` is called when the batch is committed, or certainly or
        possibly (REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER after the append) is not."""
        span = self.config.internal_append_timeout_ms if timeout_ms is None else timeout_ms
        return self.producing.append_internal(topic, partition, batch, now, done, span)

    def read_internal(self, topic: str, partition: int, offset: int, max_bytes: int) -> Read | Refused:
        """Read a hosted partition up to its log end: a new coordinator loads what it leads, committed or not yet."""
        return self.host.read(topic, partition, offset, max_bytes)

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        hosted = self.host.named(topic, partition)
        return hosted.role.epoch if hosted is not None and type(hosted.role) is Leader else None

    def high_watermark(self, topic: str, partition: int) -> int:
        """−1 if the partition is not hosted here."""
        hosted = self.host.named(topic, partition)
        return -1 if hosted is None else hosted.high_watermark

    # --- answers and time

    def step(self, event: Answered | Failed | Synced | SyncFailed, now: Instant) -> list[Effect]:
        match event.token[1], event:
            case "fetch", Answered() | Failed():
                return self.fetched(event, now)
            case "alter", Answered() | Failed():
                return self.altered(event, now)
            case "assign", Answered() | Failed():
                return self.assigned(event, now)
            case "repair", _:
                return self.scrubber.repairs.step(event, now)
            case "future", Synced() | SyncFailed():
                self.futures.synced(event)
            case "cleaned", Synced() | SyncFailed():
                return self.cleaner.synced(event, now)
            case "flushed", Synced():
                return self.storage.flushed(event.token[2:])
            case _, SyncFailed():
                self.storage.sync_failed(event)
        return []

    def fetched(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        _, _, leader, sequence = event.token
        fetcher = self.fetchers[leader]
        if sequence != fetcher.sequence:
            return []
        effects: list[Effect] = []
        if isinstance(event, Answered):
            effects += fetcher.answered(event.message, now)
            for hosted in fetcher.moved:
                self.fetching.copied(hosted, effects, now)
            fetcher.moved = []
            if fetcher.has_cut:
                fetcher.has_cut = False
                effects += self.storage.truncated()
        else:
            effects += fetcher.failed(event.why, now)
        return effects + fetcher.flush(now)

    def altered(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        if event.token[2] != self.alterations.outbox.sequence:
            return []
        effects: list[Effect] = []
        if isinstance(event, Failed):
            self.alterations.failed(now)
        else:
            for hosted in self.alterations.answered(event.message, now):
                if type(hosted.role) is Leader:  # or its directory failed over what the one before it woke
                    self.recompute(hosted, hosted.role, effects, now)
        return effects + self.alterations.flush()

    def assigned(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        if event.token[2] != self.assignments.outbox.sequence:
            return []
        if isinstance(event, Failed):
            self.assignments.failed(now)
        else:
            self.assignments.answered(event.message, now)
        return self.assignments.flush()

    def flush(self, now: Instant) -> list[Effect]:
        """What the fetchers and the controller are to be asked next, what has been deleted, and what may get gaps."""
        self.storage.save_compacted()
        effects = self.storage.clear_graves() + self.alterations.flush() + self.assignments.flush()
        for fetcher in self.fetchers.values():
            effects += fetcher.flush(now)
        return effects

    def deadline(self) -> Instant:
        first = self.host.timers.deadline()
        return first if first < self.next_task else self.next_task

    def expire(self, now: Instant) -> list[Effect]:
        effects = self.host.timers.expire(now)
        if self.next_task <= now:
            for task in self.tasks:
                if task.next <= now:
                    task.next = Instant(now + task.span_ms)
                    effects += task.task(now)
            self.next_task = min(task.next for task in self.tasks)
        return effects + self.flush(now)

    def shrink(self, now: Instant) -> list[Effect]:
        """Propose to drop who lags. A replica that is in no ISR may have stopped to hold the high watermark back."""
        effects: list[Effect] = []
        for hosted, leader in self.host.leaders():
            if leader.propose_shrink(now) is not None:
                self.alterations.propose(hosted)
            self.recompute(hosted, leader, effects, now)
        return effects

    # --- views

    def status(self) -> list[Status]:
        return [status_of(hosted) for hosted in self.host.all()]

    def check(self) -> None:
        self.fetching.sessions.check()
        self.arrivals.check()
        self.scrubber.repairs.check()
        self.host.ledger.check()
        for fetcher in self.fetchers.values():
            fetcher.check()
        for hosted in self.host.all():
            if (role := hosted.role) is None:
                continue
            assert self.is_mine(hosted.at), hosted.name
            assert self.host.image.topics[hosted.at.topic_id].name == hosted.name.topic, hosted.name
            assert self.host.directories.is_live(hosted.directory), hosted.name
            hosted.check()
            for node, fetcher in self.fetchers.items():
                follows = isinstance(role, Follower) and role.leader == node
                assert (hosted.at in fetcher.partitions) == follows, hosted.name
