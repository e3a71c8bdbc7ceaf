"""One leader or one follower of a partition, over a log in memory: what the tests of traps play with."""

from typing import Any

from tests.unit.replica.disk import DictDisk
from tests.unit.replica.noted import Noted

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Log
from strandline.metadata.image import Broker, Partition
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.leader import Cluster, Leader
from strandline.wire.batch import build

NOW = Instant(1_000_000)
LAG_MS = 30_000


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def a_log(records: int = 0, epoch: int = 0) -> Log:
    disk = DictDisk()
    disk.make_directory("/log")
    log = Log.open(disk, "/log", LogConfig(), NOW, clean=True, recovery_point=0, log_start_offset=0)
    for base in range(records):
        log.append_as_follower(a_batch(1, base, epoch), LeaderEpoch(99), NOW)
    return log


def a_batch(count: int, base: int = 0, epoch: int = -1) -> memoryview:
    return memoryview(bytearray(build([(0, None, b"v", ())] * count, base_offset=base, leader_epoch=epoch)))


def partition(isr: tuple[int, ...], leader: int = 1, epoch: int = 0, partition_epoch: int = 0) -> Partition:
    return Partition(
        replicas=nodes(1, 2, 3),
        directories=(ZERO_UUID,) * 3,
        isr=nodes(*isr),
        leader=NodeId(leader),
        leader_epoch=LeaderEpoch(epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
    )


class Leading:
    """Broker 1 leads; brokers have the epochs 11, 12 and 13."""

    def __init__(self, *isr: int, min_isr: int = 1, records: int = 0, high_watermark: int = 0) -> None:
        self.brokers = Cluster(NodeId(1))
        self.brokers.broker_epoch = BrokerEpoch(11)
        self.registered = {NodeId(n): self.broker(n) for n in (1, 2, 3)}
        self.brokers.brokers = self.registered
        self.now = NOW
        self.leader = Leader(
            self.brokers,
            a_log(records),
            partition(isr, epoch=1),
            high_watermark=high_watermark,
            min_isr=min_isr,
            lag_time_max_ms=LAG_MS,
            now=NOW,
        )

    def broker(self, node: int, **fields: Any) -> Broker:
        at = {"PLAINTEXT": Endpoint("h", node)}
        values = {"epoch": BrokerEpoch(10 + node), "fenced": False, **fields}
        return Broker(node_id=NodeId(node), incarnation_id=ZERO_UUID, endpoints=at, **values)

    def append(self, records: int) -> None:
        self.leader.stamp_caught_up()
        self.leader.log.append_as_leader(a_batch(records), self.leader.epoch, self.now)
        self.leader.advance(self.now)

    def fetch(self, node: int, offset: int, broker_epoch: int | None = None) -> ErrorCode | None:
        epoch = 10 + node if broker_epoch is None else broker_epoch
        error = self.leader.fetched(NodeId(node), offset, 0, epoch, self.now)
        self.leader.advance(self.now)
        self.leader.check()
        return error

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark


def following(records: int, high_watermark: int, epoch: int = 5) -> Follower:
    return Follower("t-0", a_log(records), partition((1, 2), leader=2, epoch=epoch), high_watermark, Noted())
