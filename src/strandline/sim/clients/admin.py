"""A user of the admin interface: errands one after another, each until it has a definite answer."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition, Uuid
from strandline.sim.clients.client import Client, Life, Request, Stage
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.cluster.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from strandline.wire.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.topics.elect_leaders import OWN_VERSION, ElectLeadersRequest, TopicPartitions
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

E = ErrorCode
TOPIC = 2  # the resource type
ERRANDS_MAX = 2  # more than these wait for nobody: a user does not ask again while nothing happens


class Admin(Client):
    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name)
        self.errands: list[Life] = []
        self.gone: dict[Uuid, None] = {}  # topics that were deleted here

    def live(self) -> Life:
        while self.errands or not self.is_stopped:
            if self.errands:
                yield from self.errands.pop(0)
            else:
                yield 50

    def wish(self, *errands: Callable[[], Life]) -> None:
        if len(self.errands) < ERRANDS_MAX:
            self.errands += [errand() for errand in errands]

    def ask(self, what: str, message: Any, version: int) -> Generator[Any, Any, Any]:
        answer = yield Request(self.any_node(), message, version, 3000)
        self.report(f"{what}: {'no answer' if answer is None else 'answered'}")
        return answer

    def create(self, name: str, partitions: int = 1, replication_factor: int = -1, **configs: str) -> Life:
        rows = tuple(CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items())
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replication_factor, configs=rows
        )
        refusals = 0
        while True:
            answer = yield from self.ask(f"creates {name}", CreateTopicsRequest(topics=(topic,), timeout_ms=2000), 7)
            error = None if answer is None else E(answer.topics[0].error_code)
            # A controller that was just deposed, and does not know it yet, may still see a topic that is deleted.
            refusals = refusals + 1 if error is E.TOPIC_ALREADY_EXISTS else 0
            if error is E.NONE or refusals == 3:
                return
            yield 500 if refusals else 200

    def delete(self, name: str) -> Life:
        """By id: a request by name that arrives late would take the next topic of that name."""
        topic_id = None
        while topic_id is None:
            request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)
            answer = yield Request(self.any_node(), request, 12, 1000)
            if answer is not None and answer.topics and not answer.topics[0].error_code:
                topic_id = answer.topics[0].topic_id
                if topic_id in self.gone:
                    return  # this node does not know yet that it was deleted, and created again
            else:
                yield 100
        self.gone[topic_id] = None
        self.stage.deleted(topic_id)
        while True:
            deletion = DeleteTopicsRequest(topics=(DeleteTopicState(topic_id=topic_id),), timeout_ms=2000)
            answer = yield from self.ask(f"deletes {name}", deletion, 6)
            error = None if answer is None else E(answer.responses[0].error_code)
            if error in (E.NONE, E.UNKNOWN_TOPIC_ID):
                return
            yield 200

    def trim(self, name: str, offset: int) -> Life:
        """Delete the records below `offset` on the leader; −1: all that are committed. Never more than those."""
        route = yield from self.find_leader(TopicPartition(name, 0))
        if route is None:
            return
        rows = (DeleteRecordsPartition(partition_index=0, offset=offset),)
        topics = (DeleteRecordsTopic(name=name, partitions=rows),)
        answer = yield Request(route.leader, DeleteRecordsRequest(topics=topics, timeout_ms=2000), 2, 3000)
        row = None if answer is None else answer.topics[0].partitions[0]
        assert row is None or row.error_code or row.low_watermark >= 0
        self.report(f"trims {name}: {'no answer' if row is None else (E(row.error_code).name, row.low_watermark)}")

    def configure(self, name: str, key: str, value: str) -> Life:
        row = AlterableConfig(name=key, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=(row,))
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        yield from self.ask(f"sets {key}={value} of {name}", request, 1)

    def set_feature(self, name: str, level: int) -> Life:
        row = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=1 if level else 2)
        answer = yield from self.ask(f"sets {name} to {level}", UpdateFeaturesRequest(feature_updates=(row,)), 2)
        if answer is not None:
            self.report(f"sets {name} to {level}: {E(answer.error_code).name} {answer.error_message or ''}")

    def unregister(self, node: int) -> Life:
        answer = yield from self.ask(f"unregisters {node}", UnregisterBrokerRequest(broker_id=node), 0)
        if answer is not None:
            self.report(f"unregisters {node}: {E(answer.error_code).name} {answer.error_message or ''}")

    def add_partitions(self, name: str, count: int) -> Life:
        topic = CreatePartitionsTopic(name=name, count=count)
        request = CreatePartitionsRequest(topics=(topic,), timeout_ms=2000)
        yield from self.ask(f"gives {name} {count} partitions", request, 3)

    def reassign(self, name: str, partition: int, replicas: tuple[int, ...] | None) -> Life:
        row = ReassignablePartition(partition_index=partition, replicas=replicas)
        topics = (ReassignableTopic(name=name, partitions=(row,)),)
        request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=2000)
        what = (
            f"cancels the move of {name}-{partition}" if replicas is None else f"moves {name}-{partition} to {replicas}"
        )
        answer = yield from self.ask(what, request, 1)
        if answer is not None and answer.responses:
            result = answer.responses[0].partitions[0]
            self.report(f"{what}: {E(result.error_code).name} {result.error_message or ''}")

    def elect(self) -> Life:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=2000)
        yield from self.ask("elects the preferred leaders", request, 2)

    def elect_uncleanly(self, ats: Sequence[TopicPartition]) -> Life:
        topics = tuple(TopicPartitions(topic=at.topic, partitions=(at.partition,)) for at in ats)
        request = ElectLeadersRequest(election_type=1, topic_partitions=topics, timeout_ms=2000)
        yield from self.ask(f"elects leaders uncleanly: {', '.join(map(str, ats))}", request, 2)

    def designate(self, stuck: Sequence[tuple[str, int, int]], election_type: int) -> Life:
        """`stuck`: topic, partition, and the broker that will lead it."""
        by_topic: dict[str, list[tuple[int, int]]] = {}
        for topic, index, node in stuck:
            by_topic.setdefault(topic, []).append((index, node))
        topics = tuple(
            TopicPartitions(
                topic=topic,
                partitions=tuple(index for index, _ in rows),
                designated_leaders=tuple(node for _, node in rows),
            )
            for topic, rows in by_topic.items()
        )
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=topics, timeout_ms=2000)
        yield from self.ask("says who shall lead", request, OWN_VERSION)
