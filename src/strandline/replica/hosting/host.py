"""What the parts of `Replicas` share: the hosted partitions, the cluster as metadata has it, the log directories and
those that failed, what is known of losses, timers.

Each of them is a small machine with state of its own. `Host` itself only decides what follows at once where a directory
fails, and which error a client gets for a partition that is not led here.
"""

from collections.abc import Mapping

from strandline.base.answer_memory import AnswerMemory
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.timers import Timers
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.dynamic_configs import dynamic_value
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.image import Image
from strandline.replica.config import LogDir, ReplicaConfig
from strandline.replica.hosting.directories import Directories
from strandline.replica.hosting.hosted import Hosted, leader_epoch_error
from strandline.replica.hosting.hosted_partitions import HostedPartitions
from strandline.replica.hosting.leader import Cluster
from strandline.replica.hosting.ledger import Ledger
from strandline.replica.hosting.suspects import Suspects
from strandline.replica.hosting.wholeness import WholeLogs
from strandline.replica.hosting.withdrawals import Withdrawals


class Host:
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
        self.whole = WholeLogs(ledger.disk)
        self.partitions = HostedPartitions()
        # Replicas of this broker in directories that are offline, and the ids of these.
        self.absent: dict[TopicIdPartition, Uuid] = {}
        self.config = config
        self.static = static
        self.image = Image()
        self.cluster = Cluster(me)
        self.timers = Timers()
        self.answers = AnswerMemory(config.queued_answer_bytes_max)
        self.suspects = Suspects()
        self.replicated_in = self.replicated_out = 0  # bytes, from leaders and to followers

    def number(self, name: str) -> int | float:
        """A setting of this node, as it is now."""
        value = dynamic_value(self.image.configs, str(self.me), name)
        if value is None:
            value = self.static.get(name, NODE_CONFIGS[name].default)
        assert isinstance(value, int | float), name
        return value

    def drop(self, hosted: Hosted) -> None:
        """It is hosted no longer."""
        hosted.leave()
        self.partitions.remove(hosted)
        self.whole.forget(hosted.at)
        assert self.partitions.find(hosted.at) is not hosted, hosted.name

    def fail(self, log_dir: LogDir, error: DiskError) -> None:
        """An operation in this directory failed: no replica there has a role from now on. What else follows, for
        requests that wait, `Replicas.take_offline` does."""
        # First, since the next line raises where the broker cannot go on without this directory.
        self.whole.end()
        if not self.directories.fail(log_dir, error):
            return
        for hosted in self.partitions.all():
            if hosted.directory.path == log_dir.path:
                hosted.lose_role()
                self.absent[hosted.at] = self.directories.reported_id(log_dir)
        assert not self.directories.is_live(log_dir), log_dir.path

    def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> Read | Refused:
        """Up to the log's end."""
        assert offset >= 0
        assert max_bytes > 0
        hosted = self.partitions.named(topic, partition)
        if hosted is None:
            return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the partition is not hosted here")
        try:
            return hosted.log.read(offset, max_bytes, upto=hosted.log.log_end_offset, min_one=True)
        except DiskError as error:
            self.fail(hosted.directory, error)
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the log directory is offline")

    def close_logs(self) -> None:
        for hosted in self.partitions.all():
            try:
                if self.directories.is_live(hosted.directory):
                    hosted.log.close()
            except DiskError as error:
                self.fail(hosted.directory, error)

    def is_registered_in(self, image: Image) -> bool:
        """Has this metadata the registration of this incarnation?"""
        return self.me in image.brokers and image.brokers[self.me].epoch == self.cluster.broker_epoch

    def why_not_leader(
        self, topic_name: str, topic_id: Uuid | None, index: int, current_leader_epoch: int = -1
    ) -> ErrorCode:
        """The error for a partition that is not led here. Whose leader epoch is the older one says more than that."""
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
        hosted = self.partitions.named(topic.name, index)
        error = None
        if hosted is not None and hosted.role is not None:
            error = leader_epoch_error(hosted.role, current_leader_epoch)
        return error or ErrorCode.NOT_LEADER_OR_FOLLOWER
