"""The partitions that metadata assigns to this broker: each gets its log, then its role, and loses both again.

New logs are created a few in a step: a topic may have thousands, and a node that is deaf for seconds misses its
heartbeats and the quorum's elections. Logs that a start has found get their first roles in steps, too. What waits here
is as if metadata had not named it yet, which lags on every broker: it is neither led nor followed, and clients ask for
it again. Its turn goes by what metadata says then.

Invariant (executed by `check`): what waits is this broker's, and has no role yet.
"""

from collections.abc import Iterable, Mapping
from itertools import islice

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS, TopicIdPartition, TopicPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.metadata.image import Partition, directory_of
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.losses.losing import expect_beginnings
from strandline.replica.offline import OfflineReplicas
from strandline.replica.roles import Roles
from strandline.replica.storage.moving.adopting import adopted_or_new
from strandline.replica.storage.moving.futures import Futures
from strandline.replica.storage.opening.owners import has_misread_id
from strandline.replica.storage.storage import Storage
from strandline.replica.withdrawing import Withdrawing

LOGS_PER_STEP = 10
ROLES_PER_STEP = 200  # for logs that are there
PAUSE_MS = 1  # requests that have come meanwhile are served first


class Room:
    """How much of a step is left."""

    def __init__(self) -> None:
        self.left = {False: LOGS_PER_STEP, True: ROLES_PER_STEP}

    def take(self, *, has_log: bool) -> bool:
        self.left[has_log] -= 1
        return self.left[has_log] >= 0


class AssignedPartitions:
    def __init__(
        self,
        host: Host,
        storage: Storage,
        futures: Futures,
        offline: OfflineReplicas,
        withdrawing: Withdrawing,
        roles: Roles,
    ) -> None:
        self.host = host
        self.storage = storage
        self.futures = futures
        self.assignments = futures.assignments
        self.offline = offline
        self.withdrawing = withdrawing
        self.roles = roles
        self.waiting: dict[TopicIdPartition, bool] = {}  # is it new to this broker?
        self.turn = Alarm(host.timers, self.take_turns)

    def is_mine(self, at: TopicIdPartition) -> bool:
        partition = self.host.image.partition(at)
        return partition is not None and self.host.me in partition.replicas

    # --- metadata has changed

    def apply(
        self,
        changed: Iterable[TopicIdPartition],
        old: Mapping[TopicIdPartition, Partition | None],
        now: Instant,
    ) -> list[Effect]:
        """Do what metadata now says of these partitions. Deletions come first, so that a topic that was deleted and
        created anew under its name never meets its old log (T39)."""
        effects = self.unassign(changed, now)
        assert all(self.is_mine(at) for at in self.waiting)
        self.forget_lost()
        expect_beginnings(self.host, changed, now)
        room = Room()
        for at in changed:
            released = self.withdrawing.release(at, now) if self.is_mine(at) else None
            if released is None:
                continue
            effects += released
            before = old.get(at)
            is_new = at in old and (before is None or self.host.me not in before.replicas)
            if self.takes_turns(at):
                has_log = self.host.partitions.find(at) is not None
                if at in self.waiting or not room.take(has_log=has_log):
                    self.waiting[at] = is_new or self.waiting.get(at, False)
                    if not has_log:
                        effects += self.clear_name(at, now)
                    continue
            effects += self.take_role(at, is_new, now)
        self.roles.epoch_files.go_on(now)
        self.arm(now)
        return effects

    def unassign(self, changed: Iterable[TopicIdPartition], now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for at in changed:
            if not self.is_mine(at):
                self.host.absent.pop(at, None)
                was_named = self.waiting.pop(at, None) is not None
                self.assignments.forget(at)
                hosted = self.host.partitions.find(at)
                if hosted is not None and (was_named or hosted.role is not None):
                    effects += self.delete(hosted, now)
        return effects

    def forget_lost(self) -> None:
        """What replicas lost that are other brokers' by now, or nobody's, is not reported any more."""
        withdrawals = self.host.withdrawals
        for at in list(withdrawals.held):
            if not self.is_mine(at):
                withdrawals.forget(at)

    def take_role(self, at: TopicIdPartition, is_new: bool, now: Instant) -> list[Effect]:
        host = self.host
        topic = host.image.topics[at.topic_id]
        partition = topic.partitions[at.partition]
        assert host.me in partition.replicas, at
        directory = directory_of(partition, host.me)
        if self.offline.is_absent(at, directory, is_new=is_new):
            self.assignments.lies(at, host.absent[at], directory)
            return []
        effects: list[Effect] = []
        hosted = host.partitions.find(at)
        if hosted is None:
            hosted, effects = self.create(at, directory, is_new, now)
        elif hosted.role is None:
            hosted, effects = self.choose(hosted, directory, now)
        if hosted is None:
            return effects
        self.futures.report_directory(hosted, directory)
        try:
            if partition.leader == host.me:
                effects += self.roles.lead(hosted, topic, partition, now)
            else:
                effects += self.roles.follow(hosted, partition, now)
        except DiskError as error:
            host.fail(hosted.directory, error)
        else:
            host.whole.has_role(host.me, at, partition, hosted.directory.path)
        return effects

    # --- logs

    def takes_turns(self, at: TopicIdPartition) -> bool:
        """It has no role yet. Coordinators load what they lead at once; their topics are small."""
        host = self.host
        hosted = host.partitions.find(at)
        has_role = hosted is not None and hosted.role is not None
        return not has_role and at not in host.absent and host.image.topics[at.topic_id].name not in INTERNAL_TOPICS

    def take_turns(self, now: Instant) -> list[Effect]:
        assert self.turn.done
        effects: list[Effect] = []
        room = Room()
        for at in list(islice(self.waiting, ROLES_PER_STEP)):
            hosted = self.host.partitions.find(at)
            assert hosted is None or hosted.role is None, at
            if not room.take(has_log=hosted is not None):
                break
            is_new = self.waiting.pop(at)
            released = self.withdrawing.release(at, now)
            if released is not None:
                effects += released + self.take_role(at, is_new, now)
        self.roles.epoch_files.go_on(now)
        self.arm(now)
        return effects

    def arm(self, now: Instant) -> None:
        self.host.whole.more_come = bool(self.waiting)
        if self.waiting:
            self.turn.set(now + PAUSE_MS)

    def create(
        self, at: TopicIdPartition, directory: Uuid, is_new: bool, now: Instant
    ) -> tuple[Hosted | None, list[Effect]]:
        """No log was found. None: the directory has failed in which it may lie, or is to lie."""
        effects = self.clear_name(at, now)
        name = self.name_of(at)
        effects += self.storage.findings.begun_anew(at, name, is_new=is_new, now=now)
        self.storage.checkpoints.forget(name)
        hosted, more = adopted_or_new(self.futures, at, name, directory, now)
        if hosted is not None:
            assert hosted.at == at
            assert hosted.role is None, hosted.name
            if not (is_new or self.storage.findings.is_clean):
                hosted.doubt()
            self.host.partitions.put(hosted)
        return hosted, effects + more

    def choose(self, hosted: Hosted, directory: Uuid, now: Instant) -> tuple[Hosted | None, list[Effect]]:
        """A log that was found on disk is wanted: it alone of all that bear its name. None: it cannot be read."""
        assert hosted.role is None, hosted.name
        effects: list[Effect] = []
        for namesake in self.storage.loading.namesakes_of(hosted, hosted.name):
            assert namesake is not hosted, hosted.name
            effects += self.delete(namesake, now)
        chosen = self.storage.choose(hosted, directory, now)
        if chosen is not None:
            self.host.partitions.put(chosen)
            self.storage.reconfigure(chosen)
        return chosen, effects

    def name_of(self, at: TopicIdPartition) -> TopicPartition:
        return TopicPartition(self.host.image.topics[at.topic_id].name, at.partition)

    def clear_name(self, at: TopicIdPartition, now: Instant) -> list[Effect]:
        """Delete other topics' logs under the partition's name (T39), also while it waits: requests by that
        name must not find them. Unless one is its own (`has_misread_id`): then the partition is absent."""
        assert self.is_mine(at), at
        namesakes = self.storage.loading.namesakes_of(None, self.name_of(at))
        if has_misread_id(self.host, namesakes, at):
            return []
        return [effect for namesake in namesakes for effect in self.delete(namesake, now)]

    # --- deletions

    def delete_strays(self, now: Instant) -> list[Effect]:
        """Logs that were found, and that metadata assigns to no broker or to others: their names become free."""
        effects: list[Effect] = []
        for hosted in list(self.host.partitions.all()):
            if hosted.role is None and not self.is_mine(hosted.at):
                effects += self.delete(hosted, now)
        return effects

    def delete(self, hosted: Hosted, now: Instant) -> list[Effect]:
        self.roles.fetchers.leave(hosted)  # first: what is done next may cost the replica its role
        self.futures.drop(hosted.at)
        self.assignments.forget(hosted.at)
        # Where it is led on elsewhere, the new leader has what those who wait have written.
        is_led_on = self.host.image.partition(hosted.at) is not None
        why = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_led_on else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        effects = self.roles.end(hosted, why, now)
        self.storage.delete(hosted)
        assert hosted.gone, hosted.name
        assert hosted.at not in self.futures.moving, hosted.name
        assert hosted.at not in self.assignments.wanted, hosted.name
        return effects

    def check(self) -> None:
        for at in self.waiting:
            assert self.is_mine(at), at
            hosted = self.host.partitions.find(at)
            assert hosted is None or hosted.role is None, at
        assert not self.waiting or not self.turn.done, "the next ones are created by themselves"
