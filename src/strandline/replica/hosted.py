"""The partitions that this broker hosts, found by topic name or by topic id, and those whose directory is offline.

A `Hosted` outlives its roles: the log, who waits for it, and the high watermark pass from one role to the next.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Protocol

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, TopicPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.dynamic_configs import dynamic_value
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.image import Image
from strandline.replica.config import LogDir, ReplicaConfig
from strandline.replica.counters import TopicCounters
from strandline.replica.following.follower import Follower
from strandline.replica.losses.ledger import Ledger
from strandline.replica.losses.wholeness import Whole
from strandline.replica.losses.withdrawals import Withdrawals
from strandline.replica.scrubbing.suspects import Suspects
from strandline.replica.serving.leader import Cluster, Leader
from strandline.replica.storage.directories import Directories
from strandline.replica.timers import Timers

Status = tuple[str, int, str, int, int, int, tuple[NodeId, ...]]


class Waiter(Protocol):
    """Someone who waits until the high watermark reaches `required`, or for the end of this leadership."""

    required: int
    done: bool

    def complete(self, error: ErrorCode, now: Instant) -> list[Effect]: ...


class Hosted:
    """One partition's log on this broker, and the role that metadata gives it."""

    __slots__ = (
        "at",
        "counters",
        "deletions",
        "directory",
        "gone",
        "is_doubtful",
        "log",
        "moves",
        "name",
        "role",
        "start",
        "waiting",
        "watchers",
    )

    def __init__(self, at: TopicIdPartition, name: TopicPartition, log: Log, directory: LogDir, start: int) -> None:
        self.at = at
        self.name = name
        self.log = log
        self.directory = directory
        self.start = start  # the high watermark before any role, from the checkpoint
        self.role: Leader | Follower | None = None  # None: its metadata is not known yet
        self.waiting: deque[Waiter] = deque()  # by required offset
        self.deletions: list[Waiter] = []
        self.watchers: dict[object, None] = {}
        self.counters = TopicCounters()  # those of its topic, as soon as it is put among the others
        self.gone = False
        self.is_doubtful = False  # opened after an unclean stop, and no leader has been heard of since
        self.moves = 0  # from one log directory to another

    @property
    def high_watermark(self) -> int:
        return self.start if self.role is None else self.role.high_watermark

    def check(self) -> None:
        if self.role is not None:
            self.role.check()
        required = [waiter.required for waiter in self.waiting]
        assert required == sorted(required)

    def wait(self, waiter: Waiter) -> None:
        """Keep the queue sorted. Only a duplicate's answer waits for less than its predecessors."""
        waiting = self.waiting
        while waiting and waiting[0].done:  # timed out, while the high watermark stands
            waiting.popleft()
        if not waiting or waiting[-1].required <= waiter.required:
            waiting.append(waiter)
            return
        at = len(waiting) - 1
        while at > 0 and waiting[at - 1].required > waiter.required:
            at -= 1
        waiting.insert(at, waiter)

    def complete_waiting(self, leader: Leader, now: Instant) -> list[Effect]:
        """After the high watermark has moved. Costs what completes, not what waits."""
        assert not leader.is_under_min_isr(), "the high watermark does not move then"
        effects: list[Effect] = []
        waiting = self.waiting
        while waiting and waiting[0].required <= leader.high_watermark:
            waiter = waiting.popleft()
            if not waiter.done:
                effects += waiter.complete(ErrorCode.NONE, now)
        return effects

    def fail_waiting(self, error: ErrorCode, now: Instant) -> list[Effect]:
        """This leadership ended."""
        effects: list[Effect] = []
        waiting = [*self.waiting, *self.deletions]
        self.waiting.clear()
        self.deletions.clear()
        for waiter in waiting:
            if not waiter.done:
                effects += waiter.complete(error, now)
        return effects


class Host:
    """What the parts of `Replicas` share: the hosted partitions, the cluster as last heard of, timers."""

    def __init__(
        self,
        me: NodeId,
        config: ReplicaConfig,
        static: Mapping[str, ConfigValue],
        directories: Directories,
        ledger: Ledger,
    ) -> None:
        self.me = me
        self.directories = directories
        self.ledger = ledger
        self.withdrawals = Withdrawals(me)
        self.whole = Whole(ledger.disk)
        # Replicas of this broker in directories that are offline, and the ids of these.
        self.absent: dict[TopicIdPartition, Uuid] = {}
        self.config = config
        self.static = static
        self.image = Image()
        self.cluster = Cluster(me)
        self.timers = Timers()
        self.suspects = Suspects()
        self.by_name: dict[str, dict[int, Hosted]] = {}
        self.by_id: dict[Uuid, dict[int, Hosted]] = {}
        self.counters: dict[str, TopicCounters] = {}
        self.replicated_in = self.replicated_out = 0  # bytes, from leaders and to followers

    def number(self, name: str) -> int | float:
        """A setting of this node, as it is now."""
        value = dynamic_value(self.image.configs, str(self.me), name)
        if value is None:
            value = self.static.get(name, NODE_CONFIGS[name].default)
        assert isinstance(value, int | float), name
        return value

    def put(self, hosted: Hosted) -> None:
        hosted.counters = self.counters.setdefault(hosted.name.topic, hosted.counters)
        self.by_name.setdefault(hosted.name.topic, {})[hosted.name.partition] = hosted
        self.by_id.setdefault(hosted.at.topic_id, {})[hosted.at.partition] = hosted

    def drop(self, hosted: Hosted) -> None:
        for index, key in ((self.by_name, hosted.name.topic), (self.by_id, hosted.at.topic_id)):
            group = index[key]  # type: ignore[index]
            if group.get(hosted.name.partition) is hosted:
                del group[hosted.name.partition]
            if not group:
                del index[key]  # type: ignore[arg-type]
        self.whole.forget(hosted.at)
        if hosted.name.topic not in self.by_name:
            self.counters.pop(hosted.name.topic, None)

    def fail(self, log_dir: LogDir, error: DiskError) -> None:
        """An operation in this directory failed: no replica there has a role from now on. What else follows, for those
        who wait and ask, `Replicas.take_offline` does."""
        # First, since the next line raises where the broker cannot go on without this directory.
        self.whole.end()
        if not self.directories.fail(log_dir, error):
            return
        for hosted in self.all():
            if hosted.directory.path == log_dir.path:
                hosted.start = hosted.high_watermark
                hosted.role = None
                self.absent[hosted.at] = self.directories.told_as(log_dir)

    def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> Read | Refused:
        """Up to the log's end."""
        hosted = self.named(topic, partition)
        if hosted is None:
            return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the partition is not hosted here")
        try:
            return hosted.log.read(offset, max_bytes, upto=hosted.log.log_end_offset, min_one=True)
        except DiskError as error:
            self.fail(hosted.directory, error)
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the log directory is offline")

    def close_logs(self) -> None:
        for hosted in self.all():
            try:
                if self.directories.is_live(hosted.directory):
                    hosted.log.close()
            except DiskError as error:
                self.fail(hosted.directory, error)

    def is_registered_in(self, image: Image) -> bool:
        """Has this metadata the registration of this incarnation?"""
        return self.me in image.brokers and image.brokers[self.me].epoch == self.cluster.broker_epoch

    def find(self, at: TopicIdPartition) -> Hosted | None:
        group = self.by_id.get(at.topic_id)
        return None if group is None else group.get(at.partition)

    def named(self, topic: str, partition: int) -> Hosted | None:
        group = self.by_name.get(topic)
        return None if group is None else group.get(partition)

    def all(self) -> Iterator[Hosted]:
        for group in self.by_id.values():
            yield from group.values()

    def leaders(self) -> Iterator[tuple[Hosted, Leader]]:
        for hosted in self.all():
            if type(hosted.role) is Leader:
                yield hosted, hosted.role

    def why_not_leader(
        self, topic_name: str, topic_id: Uuid | None, index: int, current_leader_epoch: int = -1
    ) -> ErrorCode:
        """The error for a partition that is not led here. Whose knowledge is the older one says more than that."""
        if topic_id is not None:
            topic = self.image.topics.get(topic_id)
            if topic is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = self.image.topic_named(topic_name)
        if topic is None or index not in topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if TopicIdPartition(topic.topic_id, index) in self.absent:
            return ErrorCode.KAFKA_STORAGE_ERROR
        hosted = self.named(topic.name, index)
        error = None
        if hosted is not None and hosted.role is not None:
            error = leader_epoch_error(hosted.role, current_leader_epoch)
        return error or ErrorCode.NOT_LEADER_OR_FOLLOWER


def leader_epoch_error(role: Leader | Follower, current_leader_epoch: int) -> ErrorCode | None:
    """Does the asker know the leadership that we know (KIP-320)? −1 does not say."""
    if current_leader_epoch < 0 or current_leader_epoch == role.epoch:
        return None
    if current_leader_epoch < role.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def status_of(hosted: Hosted) -> Status:
    role, log = hosted.role, hosted.log
    isr: tuple[NodeId, ...] = ()
    kind, epoch = "stray", -1
    if type(role) is Leader:
        kind, epoch, isr = "leader", role.epoch, role.isr.isr
    elif type(role) is Follower:
        kind, epoch, isr = "follower", role.epoch, role.isr
    return (*hosted.name, kind, epoch, hosted.high_watermark, log.log_end_offset, isr)
