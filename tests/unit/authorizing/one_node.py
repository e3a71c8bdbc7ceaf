"""One node with an authorizer: broker and controller, on a disk in memory, with its effects performed at once."""

from random import Random
from typing import Any

from strandline.base.effects import (
    Caller,
    Close,
    Disconnected,
    Effect,
    Endpoint,
    Halt,
    Received,
    Refuse,
    Reply,
    ReplyTo,
    Save,
    Sync,
    Synced,
)
from strandline.base.ids import Uuid
from strandline.base.time import Instant
from strandline.broker.authorizing.guarded import GuardedNode, node_of
from strandline.broker.config import NodeConfig
from strandline.broker.parts import prepare
from strandline.log.directory import DirectoryMeta, write_meta
from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.metadata.security.acls import CLUSTER_NAME, Acl, AclOperation, AclPermission, PatternType, ResourceType
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import build
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest

WHERE = {"PLAINTEXT": Endpoint("here", 9092), "CONTROLLER": Endpoint("here", 9093)}
ROOT, ANN, HOST = "User:root", "User:ann", "10.0.0.1"
SETTINGS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://here:9092,CONTROLLER://here:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@here:9093",
    "log.dirs": "/d",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": ROOT,
}


class OneNode:
    def __init__(self, disk: SimDisk | None = None, **settings: str) -> None:
        """`disk`: what an earlier life has left."""
        own = {name.replace("_", "."): value for name, value in settings.items()}
        config = NodeConfig.from_properties(SETTINGS | own)
        self.disk = disk or SimDisk(("/d",))
        write_meta(self.disk, "/d", DirectoryMeta("cluster", 1, Uuid(b"d" * 16)))
        self.now = Instant(1_000)
        node = node_of(prepare(config, self.disk, Random(1), WHERE, self.now), self.now)
        assert isinstance(node, GuardedNode)
        self.node = node
        self.sequence = 0
        self.answers: dict[tuple[int, int], Any] = {}
        self.closed: list[int] = []
        self.refused: list[int] = []  # answered, and closed later
        self.perform(self.node.start(self.now))
        while self.node.early is not None:
            self.wait()

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Sync(paths=paths, token=token):
                    self.disk.sync(paths)
                    self.perform(self.node.step(Synced(token), self.now))
                case Save(path=path, content=content, since=since, token=token):
                    self.disk.save_since(path, content, since)
                    self.perform(self.node.step(Synced(token), self.now))
                case Reply(to=to, message=message):
                    assert (to.connection, to.sequence) not in self.answers, "answered once"
                    self.answers[to.connection, to.sequence] = message
                case Refuse(to=to, message=message):
                    self.answers[to.connection, to.sequence] = message
                    self.refused.append(to.connection)
                case Close(connection=connection):
                    self.closed.append(connection)
                case Halt(why=why):
                    raise AssertionError(why)
        self.node.check()

    def wait(self, upto: int | None = None) -> None:
        """Until the next deadline, or for so many ms."""
        until = Instant(max(self.node.deadline(), self.now) if upto is None else self.now + upto)
        while (due := self.node.deadline()) <= until:
            self.now = Instant(max(self.now, due))
            self.perform(self.node.expire(self.now))
        self.now = until

    def send(
        self,
        message: Any,
        version: int | None = None,
        principal: str = ANN,
        *,
        connection: int = 1,
        listener: str = "PLAINTEXT",
        host: str = HOST,
    ) -> tuple[int, int]:
        version = type(message).versions[-1] if version is None else version
        sent = decode_all(type(message), version, encode_bytes(message, version))
        self.sequence += 1
        to = ReplyTo(connection, self.sequence, 0, type(message).api_key, version)
        caller = Caller("test", host, listener, principal)
        self.perform(self.node.step(Received(to, caller, sent), self.now))
        return connection, self.sequence

    def ask(self, message: Any, version: int | None = None, principal: str = ANN, **more: Any) -> Any:
        """The answer, as the client reads it."""
        version = type(message).versions[-1] if version is None else version
        at = self.send(message, version, principal, **more)
        for _ in range(200):
            if at in self.answers:
                break
            self.wait()
        answer = self.answers.pop(at)
        return None if answer is None else decode_all(type(answer), version, encode_bytes(answer, version))

    def disconnect(self, connection: int) -> None:
        self.perform(self.node.step(Disconnected(connection), self.now))

    # --- what tests begin with

    def create(self, *names: str) -> None:
        topics = tuple(CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names)
        answer = self.ask(CreateTopicsRequest(topics=topics), 7, ROOT)
        assert [row.error_code for row in answer.topics] == [0] * len(names)

    def topic_id(self, name: str) -> Uuid:
        return self.node.image.topic_ids[name]

    def allow(self, *acls: Acl) -> None:
        creations = tuple(
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        )
        answer = self.ask(CreateAclsRequest(creations=creations), 3, ROOT)
        assert [row.error_code for row in answer.results] == [0] * len(acls)

    def revoke_all(self) -> None:
        everything = DeleteAclsFilter(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
        answer = self.ask(DeleteAclsRequest(filters=(everything,)), 3, ROOT)
        assert answer.filter_results[0].error_code == 0
        assert not self.node.image.acls

    def produce(self, topic: str, **more: Any) -> Any:
        return self.ask(produce_request(topic), 9, **more)


def acl(
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    *,
    who: str = ANN,
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    permission: AclPermission = AclPermission.ALLOW,
) -> Acl:
    return Acl(resource_type, name, pattern, who, host, operation, permission)


def on_topic(operation: AclOperation, name: str, **more: Any) -> Acl:
    return acl(operation, ResourceType.TOPIC, name, **more)


def on_group(operation: AclOperation, name: str, **more: Any) -> Acl:
    return acl(operation, ResourceType.GROUP, name, **more)


def on_cluster(operation: AclOperation, **more: Any) -> Acl:
    return acl(operation, ResourceType.CLUSTER, CLUSTER_NAME, **more)


def on_transaction(operation: AclOperation, name: str, **more: Any) -> Acl:
    return acl(operation, ResourceType.TRANSACTIONAL_ID, name, **more)


def produce_request(*topics: str, acks: int = -1, transactional_id: str | None = None) -> ProduceRequest:
    batch = build([(0, None, b"v", ())])
    rows = tuple(
        TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=batch),)) for name in topics
    )
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=rows)


def fetch_request(*topics: str, session: tuple[int, int] = (0, -1), wait_ms: int = 0) -> FetchRequest:
    """`session`: id and epoch."""
    rows = tuple(
        FetchTopic(topic=name, partitions=(FetchPartition(partition=0, partition_max_bytes=1000),)) for name in topics
    )
    return FetchRequest(session_id=session[0], session_epoch=session[1], topics=rows, max_wait_ms=wait_ms, min_bytes=1)
