"""What the tests of the protocol's texts look at and play with: logs, their epochs, power that fails, a controller."""

import random
from collections.abc import Sequence
from typing import Any

from tests.unit.replica.conftest import AT, World

from strandline.base.ids import NodeId, Uuid
from strandline.controller.basis import Basis, ControllerConfig
from strandline.controller.brokers.brokers import plan_fencing, plan_heartbeat, plan_registration
from strandline.controller.partitions.isr import plan_alter_partition
from strandline.log.checkpoints import parse_epochs
from strandline.log.log import Log
from strandline.metadata.features import ELR_FEATURE, METADATA_LEVEL, METADATA_VERSION, SUPPORTED_FEATURES, ranges
from strandline.metadata.image import Partition
from strandline.metadata.records import FeatureLevelRecord
from strandline.replica.config import ReplicaConfig
from strandline.replica.hosting.leader import Leader
from strandline.wire.batch import Codec, batches, build
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionDataResponse,
    TopicData,
)
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest, Listener

FIRST_OFFSET = 1_000  # of the metadata log: above the broker epochs with which the world begins
SEGMENT = "00000000000000000000.log"


def log_of(world: World, node: int) -> Log:
    hosted = world.nodes[NodeId(node)].host.partitions.named("t", 0)
    assert hosted is not None
    return hosted.log


def leading(world: World, node: int) -> Leader:
    hosted = world.nodes[NodeId(node)].host.partitions.named("t", 0)
    assert hosted is not None and type(hosted.role) is Leader
    return hosted.role


def content(world: World, node: int) -> list[tuple[int, int, int]]:
    """Base offset, leader epoch and checksum of every batch."""
    log = log_of(world, node)
    return [(h.base_offset, h.partition_leader_epoch, h.crc) for h in log.headers(log.log_start_offset)]


def epochs(world: World, node: int) -> list[tuple[int, int]]:
    """Epoch and start offset, as the broker knows them."""
    return [tuple(entry) for entry in log_of(world, node).epochs.entries]


def epochs_on_disk(world: World, node: int) -> list[tuple[int, int]]:
    found = world.disks[NodeId(node)].read_file(f"/data{node}/t-0/leader-epoch-checkpoint")
    assert found is not None
    return [tuple(entry) for entry in parse_epochs(found)]


def lose_power(world: World, node: int, keep: int) -> None:
    """The process is gone, and of its log all batches from offset `keep` on."""
    world.kill(NodeId(node))
    segment = world.disks[NodeId(node)].files[f"/data{node}/t-0/{SEGMENT}"]
    kept = [header for header in batches(bytes(segment.content)) if header.base_offset < keep]
    segment.truncate(kept[-1].end if kept else 0)


def restart(world: World, node: int) -> None:
    """As after a power loss: the log is checked."""
    world.start(NodeId(node), clean=False)


def a_compressed_batch(values: int) -> bytes:
    return build([(0, None, b"value %d" % n, ()) for n in range(values)], codec=Codec.LZ4)


def distinct(text: bytes) -> bytes:
    return build([(0, None, text, ())])


class Governed(World):
    """The brokers' `Replicas` under the rules of the real controller: its plans make the metadata.

    Who is in `deaf` hears of nothing until `catch_up`. Answers wait while `controller_answers` is false.
    """

    def __init__(self, *, elr: bool = False, config: ReplicaConfig | None = None) -> None:
        self.deaf: tuple[int, ...] = ()
        super().__init__(config=config)
        self.commit(FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_LEVEL))
        if elr:
            self.commit(FeatureLevelRecord(name=ELR_FEATURE, feature_level=1))

    @property
    def basis(self) -> Basis:
        return Basis(self.image, ControllerConfig(), {}, random.Random(1), FIRST_OFFSET + len(self.records), self.now)

    @property
    def partition(self) -> Partition:
        found = self.image.partition(AT)
        assert found is not None
        return found

    def decide(self, records: Sequence[Any]) -> None:
        if records:
            self.commit(*records, skip=self.deaf)

    def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        plan = plan_alter_partition(request, self.basis, 3)
        self.decide(plan.records)
        assert isinstance(plan.response, AlterPartitionResponse)
        return plan.response

    def fence(self, node: int) -> None:
        self.decide(plan_fencing(self.image.brokers[NodeId(node)], self.basis)[0])

    def beat(self, node: int, *, want_shut_down: bool = False) -> None:
        """A heartbeat: it unfences who has caught up, or begins a controlled shutdown."""
        request = BrokerHeartbeatRequest(
            broker_id=node,
            broker_epoch=self.image.brokers[NodeId(node)].epoch,
            current_metadata_offset=FIRST_OFFSET + len(self.records),
            want_shut_down=want_shut_down,
        )
        self.decide(plan_heartbeat(request, self.basis).records)

    def register(self, node: int, *, clean: bool) -> int:
        """A new incarnation of a broker; it is fenced until it beats. Returns its epoch."""
        old = self.image.brokers[NodeId(node)]
        request = BrokerRegistrationRequest(
            broker_id=node,
            incarnation_id=Uuid(bytes([node, len(self.records) % 256] * 8)),
            listeners=(Listener(name="PLAINTEXT", host="h", port=node, security_protocol=0),),
            features=ranges(SUPPORTED_FEATURES),
            log_dirs=old.log_dirs,
            previous_broker_epoch=old.epoch if clean else -1,
        )
        plan = plan_registration(request, self.basis, False)
        assert plan.response.error_code == 0, plan.response
        self.decide(plan.records)
        return int(self.image.brokers[NodeId(node)].epoch)

    def ask(self, isr: Sequence[int], **fields: Any) -> PartitionDataResponse:
        """A proposal as it would come from the leader; `fields` say what else it says. Returns what is answered."""
        partition = self.partition
        broker = fields.pop("broker_id", partition.leader)
        epochs = fields.pop("broker_epochs", {})
        states = tuple(
            BrokerState(broker_id=n, broker_epoch=epochs.get(n, self.image.brokers[NodeId(n)].epoch)) for n in isr
        )
        row = PartitionData(
            **{
                "partition_index": 0,
                "leader_epoch": partition.leader_epoch,
                "partition_epoch": partition.partition_epoch,
                "new_isr_with_epochs": states,
                **fields,
            }
        )
        request = AlterPartitionRequest(
            broker_id=broker,
            broker_epoch=self.image.brokers[NodeId(broker)].epoch,
            topics=(TopicData(topic_id=AT.topic_id, partitions=(row,)),),
        )
        response = self.alter(request)
        assert response.error_code == 0
        return response.topics[0].partitions[0]
