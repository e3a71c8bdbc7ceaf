"""A cluster of `Replicas` in one process: a dictionary for a network, virtual time, and a controller that agrees."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.replica.disk import DictDisk

from strandline.base.effects import (
    Answered,
    Caller,
    Effect,
    Failed,
    Failure,
    Remove,
    Reply,
    ReplyTo,
    Report,
    Save,
    Send,
    Sync,
    Synced,
    SyncFailed,
    ToController,
    Warm,
    Warmed,
)
from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.metadata import records as r
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import TOPIC_RESOURCE, Image
from strandline.replica.config import LogDir, ReplicaConfig
from strandline.replica.hosting.directories import Directories
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.leader import Leader
from strandline.replica.replicas import Replicas
from strandline.wire.batch import build
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionDataResponse,
    TopicDataResponse,
)
from strandline.wire.messages.brokers.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryDataResponse,
)
from strandline.wire.messages.brokers.assign_replicas_to_dirs import PartitionDataResponse as AssignedPartition
from strandline.wire.messages.brokers.assign_replicas_to_dirs import TopicDataResponse as AssignedTopic
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

AT = TopicIdPartition(Uuid(b"id of topic t  ."), 0)
CALLER = Caller("client", "127.0.0.1", "PLAINTEXT", is_node=True)
START = Instant(1_700_000_000_000)


class World:
    def __init__(
        self, brokers: int = 3, config: ReplicaConfig | None = None, static: dict[str, ConfigValue] | None = None
    ) -> None:
        self.now = START
        self.config = config or ReplicaConfig()
        self.static = static or {}
        self.image = Image()
        self.records: list[Any] = []
        self.nodes: dict[NodeId, Replicas] = {}
        self.images: dict[NodeId, Image] = {}
        self.followed: dict[NodeId, int] = {}  # how many metadata records each broker knows
        self.disks: dict[NodeId, DictDisk] = {}
        self.answers: dict[int, Any] = {}  # to clients, by correlation id
        self.reports: list[str] = []
        self.cut: set[NodeId] = set()  # brokers that cannot be reached, but live
        self.asked_of_peers: dict[ReplyTo, tuple[NodeId, Any]] = {}
        self.sent_by: list[tuple[NodeId, Effect]] = []
        self.held: list[tuple[NodeId, ToController]] = []
        self.controller_answers = True
        self.refuse_with: ErrorCode | None = None
        self.sequence = 0
        for node in map(NodeId, range(1, brokers + 1)):
            self.disks[node] = DictDisk()
            self.start(node)
        for node in self.nodes:
            self.commit(registration(node))

    # --- nodes

    def start(self, node: NodeId, clean: bool = True, replay_each: bool = False, left: LogsLeft | None = None) -> None:
        replicas = Replicas(
            node, self.disks[node], self.directories(node), self.config, self.static, random.Random(node)
        )
        known = self.image.brokers.get(node)
        replicas.broker_epoch = BrokerEpoch(100 + node) if known is None else known.epoch
        self.nodes[node] = replicas
        self.perform(node, replicas.load(self.now, clean, left))
        image = self.images[node] = Image()
        self.followed[node] = len(self.records)
        if replay_each:
            replicas.broker_epoch = BrokerEpoch(
                1_000
            )  # a new incarnation, which registers anew after all that it replays
            for record in self.records:
                image.apply(record)
                self.perform(node, replicas.apply(image, image.take_delta(), self.now))
            self.commit(registration(node, broker_epoch=1_000))
            return
        image.apply_all(self.records)
        self.perform(node, replicas.apply(image, image.take_delta(), self.now))

    def directories(self, node: NodeId) -> Directories:
        return Directories([LogDir(f"/data{node}", Uuid(bytes([node]) * 16))])

    def kill(self, node: NodeId) -> None:
        del self.nodes[node]
        for to, (asker, token) in list(self.asked_of_peers.items()):
            if asker == node:
                del self.asked_of_peers[to]
            elif to.connection == node:
                del self.asked_of_peers[to]
                self.perform(asker, self.nodes[asker].step(Failed(token, Failure.CLOSED), self.now))

    # --- metadata

    def commit(self, *records: Any, skip: tuple[int, ...] = ()) -> None:
        """Append to the metadata log and let every live broker but `skip` follow."""
        self.records += records
        self.image.apply_all(list(records))
        for node in list(self.nodes):
            if node not in skip:
                self.catch_up(node)

    def catch_up(self, node: NodeId) -> None:
        image = self.images[node]
        image.apply_all(self.records[self.followed[node] :])
        self.followed[node] = len(self.records)
        self.perform(node, self.nodes[node].apply(image, image.take_delta(), self.now))

    def create(
        self,
        topic: str = "t",
        *,
        leader: int = 1,
        replicas: tuple[int, ...] = (1, 2, 3),
        directories: tuple[Uuid, ...] = (),
        **configs: str,
    ) -> None:
        self.commit(
            r.TopicRecord(name=topic, topic_id=AT.topic_id),
            *(
                r.ConfigRecord(
                    resource_type=TOPIC_RESOURCE, resource_name=topic, name=key.replace("_", "."), value=value
                )
                for key, value in configs.items()
            ),
            r.PartitionRecord(
                partition_id=0,
                topic_id=AT.topic_id,
                replicas=replicas,
                isr=replicas,
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=directories or tuple(Uuid(bytes([node]) * 16) for node in replicas),
            ),
        )

    def change(self, skip: tuple[int, ...] = (), **fields: Any) -> None:
        self.commit(r.PartitionChangeRecord(partition_id=0, topic_id=AT.topic_id, **fields), skip=skip)

    # --- effects

    def cold_reads(self, node: int) -> list[Warm]:
        """What its driver was asked to read, since it is not cached."""
        return [effect for by, effect in self.sent_by if by == node and isinstance(effect, Warm)]

    def warmed(self, node: int, effect: Warm) -> None:
        self.perform(NodeId(node), self.nodes[NodeId(node)].step(Warmed(effect.token), self.now))

    def perform(self, node: NodeId, effects: list[Effect]) -> None:
        while node in self.nodes and self.nodes[node].host.directories.news:
            effects = effects + self.nodes[node].take_offline(self.now)
        for effect in effects:
            self.sent_by.append((node, effect))
            match effect:
                case Send():
                    self.deliver(node, effect)
                case Reply(to, message):
                    self.route(to, message)
                case ToController():
                    self.held.append((node, effect))
                    if self.controller_answers:
                        self.answer_controller()
                case Sync() | Save():
                    self.flushed(node, effect)
                case Remove(paths):
                    for path in paths:
                        self.disks[node].remove_tree(path)
                case Report(_, text):
                    self.reports.append(text)
        if node in self.nodes:
            self.nodes[node].check()

    def flushed(self, node: NodeId, effect: Sync | Save) -> None:
        event: Synced | SyncFailed = Synced(effect.token)
        try:
            if isinstance(effect, Sync):
                self.disks[node].sync(effect.paths)
            else:
                self.disks[node].save_since(effect.path, effect.content, effect.since)
        except DiskError as error:
            event = SyncFailed(effect.token, str(error))
        self.perform(node, self.nodes[node].step(event, self.now))

    def deliver(self, sender: NodeId, effect: Send) -> None:
        target = NodeId(effect.endpoint.port)
        if target not in self.nodes or {sender, target} & self.cut:
            self.perform(sender, self.nodes[sender].step(Failed(effect.token, Failure.REFUSED), self.now))
            return
        self.sequence += 1
        to = ReplyTo(target, self.sequence, 0, 1, effect.version)
        self.asked_of_peers[to] = (sender, effect.token)
        request = carried(effect.message, effect.version)
        self.perform(target, self.nodes[target].fetch(to, CALLER, request, self.now))

    def route(self, to: ReplyTo, message: Any) -> None:
        if to.correlation_id:
            self.answers[to.correlation_id] = None if message is None else carried(message, to.api_version)
            return
        asker = self.asked_of_peers.pop(to, None)
        if asker is not None and asker[0] in self.nodes:
            node, token = asker
            lost = {node, NodeId(to.connection)} & self.cut
            event = Failed(token, Failure.CLOSED) if lost else Answered(token, carried(message, to.api_version))
            self.perform(node, self.nodes[node].step(event, self.now))

    def answer_controller(self) -> None:
        held, self.held = self.held, []
        for node, effect in held:
            is_alteration = isinstance(effect.message, AlterPartitionRequest)
            response = self.alter(effect.message) if is_alteration else self.assign(effect.message)
            if node in self.nodes:
                self.perform(node, self.nodes[node].step(Answered(effect.token, response), self.now))

    def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        (topic,) = request.topics
        (row,) = topic.partitions
        partition = self.image.partition(AT)
        assert partition is not None
        error = ErrorCode.NONE
        if row.partition_epoch != partition.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif self.refuse_with is not None:
            error = self.refuse_with
        else:
            self.change(isr=tuple(state.broker_id for state in row.new_isr_with_epochs))
            partition = self.image.partition(AT)
            assert partition is not None
        answer = PartitionDataResponse(
            partition_index=0,
            error_code=error,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            partition_epoch=partition.partition_epoch,
        )
        return AlterPartitionResponse(topics=(TopicDataResponse(topic_id=topic.topic_id, partitions=(answer,)),))

    def assign(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        """The controller takes what it is told, of the one partition that there is."""
        partition = self.image.partition(AT)
        for directory in request.directories:
            if partition is not None and request.broker_id in partition.replicas:
                known = dict(zip(partition.replicas, partition.directories, strict=True))
                known[NodeId(request.broker_id)] = directory.id
                self.change(directories=tuple(known.values()))
        return AssignReplicasToDirsResponse(
            directories=tuple(
                DirectoryDataResponse(
                    id=directory.id,
                    topics=tuple(
                        AssignedTopic(
                            topic_id=topic.topic_id,
                            partitions=tuple(
                                AssignedPartition(partition_index=row.partition_index) for row in topic.partitions
                            ),
                        )
                        for topic in directory.topics
                    ),
                )
                for directory in request.directories
            )
        )

    # --- time

    def run(self, span_ms: int) -> None:
        end = self.now + span_ms
        while True:
            when = min(replicas.deadline() for replicas in self.nodes.values())
            if when > end:
                break
            self.now = Instant(max(self.now, when))
            for node, replicas in list(self.nodes.items()):
                if replicas.deadline() <= self.now:
                    self.perform(node, replicas.expire(self.now))
        self.now = Instant(end)

    # --- clients

    def to(self, version: int = 12) -> ReplyTo:
        self.sequence += 1
        return ReplyTo(10_000 + self.sequence, 0, self.sequence, 0, version)

    def produce(
        self, node: int, values: int = 1, *, acks: int = -1, timeout_ms: int = 30_000, batch: bytes | None = None
    ) -> Callable[[], Any]:
        """Returns a function that gives the partition's answer, or None while there is none."""
        to = self.to()
        records = memoryview(bytearray(batch or a_batch(values)))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=(TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),)),),
        )
        self.perform(NodeId(node), self.nodes[NodeId(node)].produce(to, CALLER, request, self.now))

        def answer() -> Any:
            message = self.answers.get(to.correlation_id)
            return None if message is None else message.responses[0].partition_responses[0]

        return answer

    def consume(
        self,
        node: int,
        offset: int,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        epoch: int = -1,
        max_bytes: int = 1 << 20,
    ) -> Callable[[], Any]:
        to = self.to()
        asked = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
        )
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_epoch=-1,
            topics=(FetchTopic(topic="t", partitions=(asked,)),),
        )
        self.perform(NodeId(node), self.nodes[NodeId(node)].fetch(to, CALLER, request, self.now))

        def answer() -> Any:
            message = self.answers.get(to.correlation_id)
            return None if message is None else message.responses[0].partitions[0]

        return answer

    def row(self, node: int) -> tuple[str, int, int, int, tuple[int, ...]]:
        """Role, leader epoch, high watermark, log end, ISR of the partition on one broker."""
        (hosted,) = self.nodes[NodeId(node)].host.partitions.all()
        role, ends = hosted.role, (hosted.high_watermark, hosted.log.log_end_offset)
        if type(role) is Leader:
            return ("leader", role.epoch, *ends, role.isr.isr)
        if type(role) is Follower:
            return ("follower", role.epoch, *ends, role.isr)
        return ("stray", -1, *ends, ())

    def ends(self) -> list[int]:
        return [self.row(node)[3] for node in self.nodes]


def carried(message: Any, version: int) -> Any:
    """What the other side gets: the message as bytes and back."""
    return decode_all(type(message), version, memoryview(bytearray(encode_bytes(message, version))))


def a_batch(values: int = 1, **fields: Any) -> bytes:
    return build([(START, None, b"value", ()) for _ in range(values)], **fields)


def registration(node: NodeId, **changes: Any) -> r.RegisterBrokerRecord:
    fields = {
        "broker_id": node,
        "incarnation_id": bytes([node]) * 16,
        "broker_epoch": 100 + node,
        "end_points": (r.BrokerEndpoint(name="PLAINTEXT", host="h", port=node, security_protocol=0),),
        "fenced": False,
        "log_dirs": (bytes([node]) * 16,),
    }
    return r.RegisterBrokerRecord(**{**fields, **changes})


@pytest.fixture
def world() -> World:
    return World()
