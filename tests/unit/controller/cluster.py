"""A controller, its metadata log, and brokers that speak to it: what the tests of the controller play with."""

from collections.abc import Mapping
from random import Random
from typing import Any

from strandline.base.effects import (
    Caller,
    Disconnected,
    Effect,
    Failure,
    Probe,
    Probed,
    Received,
    Reply,
    ReplyTo,
)
from strandline.base.ids import BrokerEpoch, NodeId, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.controller.basis import ControllerConfig
from strandline.controller.controller import Controller
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.features import SUPPORTED_FEATURES, initial_levels, ranges
from strandline.metadata.image import Image, Partition
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest, Listener
from strandline.wire.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

CALLER = Caller("test", "127.0.0.1", "CONTROLLER", is_node=True)
CLUSTER_ID = "cluster"
START = Instant(1_000_000)


class Log:
    """The metadata log: a list. Some records stand before the first one, as after a snapshot."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.batches: list[list[Any]] = []  # the same, as they were written
        self.start = 100

    @property
    def next_offset(self) -> int:
        return self.start + len(self.records)

    def append(self, records: list[Any], now: Instant) -> int:
        assert records
        self.records += records
        self.batches.append(records)
        return self.next_offset - 1


def incarnation(node: int, life: int) -> Uuid:
    return Uuid(bytes([node, life] * 8))


class Cluster:
    """Requests go in, answers come out as soon as everything is committed, unless `holds_commits`."""

    def __init__(
        self,
        brokers: int = 0,
        static: Mapping[str, ConfigValue] | None = None,
        racks: Mapping[int, str] | None = None,
        *,
        elr: bool = True,  # Eligible Leader Replicas, which a new cluster has
        **settings: Any,
    ) -> None:
        self.log = Log()
        self.now = START
        self.holds_commits = False
        self.racks = racks or {}
        self.sequence = 0
        self.effects: list[Effect] = []
        self.epochs: dict[int, int] = {}
        self.lives: dict[int, int] = {}
        levels = initial_levels({}, is_elr_enabled=elr)
        config = ControllerConfig(cluster_id=CLUSTER_ID, initial_features=levels, **settings)
        self.controller = Controller(NodeId(100), config, static or {}, Random(1), self.log)
        self.take(self.controller.activate(Image(), 1, self.now))
        for node in range(1, brokers + 1):
            self.join(node)

    @property
    def image(self) -> Image:
        return self.controller.image

    # --- driving

    def take(self, effects: list[Effect]) -> None:
        self.effects += effects
        if not self.holds_commits:
            self.effects += self.controller.committed(self.log.next_offset, self.now)
        self.controller.check()

    def commit(self) -> None:
        self.take(self.controller.committed(self.log.next_offset, self.now))

    def ask(self, request: Any, version: int = 0, connection: int = 1) -> Any:
        """Send a request; return its answer, or None if it has none yet."""
        self.sequence += 1
        to = ReplyTo(connection, self.sequence, self.sequence, 0, version)
        self.take(self.controller.step(Received(to, CALLER, request), self.now))
        return self.answer_to(self.sequence)

    def answer_to(self, sequence: int) -> Any:
        for effect in self.effects:
            if isinstance(effect, Reply) and effect.to.sequence == sequence:
                return effect.message
        return None

    def wait(self, span_ms: int) -> None:
        """Let time pass, from one deadline to the next."""
        end = self.now + span_ms
        while (due := self.controller.deadline()) <= end:
            self.now = max(self.now, due)
            self.take(self.controller.expire(self.now))
            assert self.controller.deadline() > self.now, "a deadline that does not move on"
        self.now = Instant(end)

    def disconnect(self, connection: int) -> None:
        self.take(self.controller.step(Disconnected(connection), self.now))

    def probes(self) -> list[Probe]:
        """The probes that were asked for and not yet looked at."""
        found = [effect for effect in self.effects if isinstance(effect, Probe)]
        self.effects = [effect for effect in self.effects if not isinstance(effect, Probe)]
        return found

    def probed(self, probe: Probe, why: Failure | None) -> None:
        self.take(self.controller.step(Probed(probe.token, why), self.now))

    # --- brokers

    def registration(self, node: int, life: int = 1, previous: int = -1, **fields: Any) -> BrokerRegistrationRequest:
        values: dict[str, Any] = {
            "broker_id": node,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": incarnation(node, life),
            "listeners": (Listener(name="PLAINTEXT", host=f"host{node}", port=9092, security_protocol=0),),
            "features": ranges(SUPPORTED_FEATURES),
            "rack": self.racks.get(node),
            "log_dirs": (Uuid(bytes([node]) * 16),),
            "previous_broker_epoch": previous,
        }
        return BrokerRegistrationRequest(**{**values, **fields})

    def register(self, node: int, previous: int = -1, life: int | None = None) -> Any:
        """Register a new life of the broker; remember its epoch."""
        life = self.lives.get(node, 0) + 1 if life is None else life
        answer = self.ask(self.registration(node, life, previous), version=4, connection=1000 * life + node)
        if answer is not None and answer.error_code == 0:
            self.lives[node], self.epochs[node] = life, answer.broker_epoch
        return answer

    def beat(self, node: int, want_fence: bool = False, want_shut_down: bool = False, offset: int | None = None) -> Any:
        request = BrokerHeartbeatRequest(
            broker_id=node,
            broker_epoch=self.epochs[node],
            current_metadata_offset=self.log.next_offset - 1 if offset is None else offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
        )
        return self.ask(request, version=1, connection=self.connection(node))

    def connection(self, node: int) -> int:
        return 1000 * self.lives[node] + node

    def join(self, node: int) -> None:
        """Register and unfence."""
        assert self.register(node).error_code == 0
        assert not self.beat(node).is_fenced

    def fence(self, node: int) -> None:
        assert self.beat(node, want_fence=True).is_fenced

    # --- topics

    def create(self, name: str, *assignment: tuple[int, ...]) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=tuple(
                CreatableReplicaAssignment(partition_index=i, broker_ids=nodes) for i, nodes in enumerate(assignment)
            ),
        )
        (result,) = self.ask(CreateTopicsRequest(topics=(topic,)), version=7).topics
        assert result.error_code == 0, result

    def at(self, name: str, index: int = 0) -> TopicIdPartition:
        return TopicIdPartition(self.image.topic_ids[name], index)

    def partition(self, name: str, index: int = 0) -> Partition:
        found = self.image.partition(self.at(name, index))
        assert found is not None
        return found

    def proposal(self, name: str, isr: tuple[int, ...], index: int = 0, **fields: Any) -> AlterPartitionRequest:
        """What the leader of a partition would send to have this ISR; `fields` change what it says."""
        old = self.partition(name, index)
        leader = fields.pop("broker_id", old.leader)
        epoch = fields.pop("broker_epoch", self.epochs.get(leader, -1))
        at = fields.pop("at", self.at(name, index))
        values: dict[str, Any] = {
            "partition_index": at.partition,
            "leader_epoch": old.leader_epoch,
            "partition_epoch": old.partition_epoch,
            "new_isr_with_epochs": tuple(BrokerState(broker_id=n, broker_epoch=self.epochs[n]) for n in isr),
            "new_isr": isr,
        }
        topic = TopicData(topic_id=at.topic_id, partitions=(PartitionData(**{**values, **fields}),))
        return AlterPartitionRequest(broker_id=leader, broker_epoch=BrokerEpoch(epoch), topics=(topic,))

    def alter(self, name: str, isr: tuple[int, ...], index: int = 0, version: int = 3, **fields: Any) -> Any:
        """Propose an ISR; return the answer for the partition."""
        answer = self.ask(self.proposal(name, isr, index, **fields), version)
        return answer.topics[0].partitions[0]
