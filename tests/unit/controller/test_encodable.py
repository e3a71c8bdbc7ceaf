"""Whatever the controller writes or answers, the codecs can say, in every version that the request may have."""

from typing import Any

from tests.unit.controller.cluster import Cluster
from tests.unit.controller.test_acls import WITH_ACLS, anything, creation

from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.security.acls import TEXT_MAX
from strandline.wire.api import response_of
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.security.create_acls import CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsRequest
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState


def requests(cluster: Cluster) -> list[Any]:
    """One that succeeds and one that is refused, of each API."""
    good = CreatableTopic(
        name="new",
        num_partitions=2,
        replication_factor=2,
        configs=(CreatableTopicConfig(name="retention.ms", value="1"),),
    )
    retention = AlterableConfig(name="retention.ms", config_operation=0, value="5")
    return [
        CreateTopicsRequest(topics=(good, CreatableTopic(name="", num_partitions=1, replication_factor=1))),
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="t", count=2), CreatePartitionsTopic(name="x", count=2))
        ),
        IncrementalAlterConfigsRequest(
            resources=tuple(
                AlterConfigsResource(resource_type=2, resource_name=name, configs=(retention,)) for name in ("t", "x")
            )
        ),
        cluster.proposal("t", (1,)),
        cluster.proposal("t", (1, 2), leader_epoch=7),
        AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.epochs[1]),
        AllocateProducerIdsRequest(broker_id=1, broker_epoch=0),
        UnregisterBrokerRequest(broker_id=2),
        UnregisterBrokerRequest(broker_id=9),
        DeleteTopicsRequest(topics=(DeleteTopicState(name="t"), DeleteTopicState(name="x")), topic_names=("t", "x")),
        CreateAclsRequest(creations=(creation(), creation(host="h" * TEXT_MAX), creation(principal="x" * TEXT_MAX))),
        DeleteAclsRequest(filters=(anything(), anything(operation=0))),
    ]


def test_answers_and_records_can_be_encoded() -> None:
    for position in range(len(requests(ready()))):
        versions = type(requests(ready())[position]).versions
        for version in versions:
            cluster = ready()
            request = requests(cluster)[position]
            answer = cluster.ask(request, version)
            cls = response_of(request.key)
            assert type(answer) is cls
            decoded = decode_all(cls, version, encode_bytes(answer, version))
            assert version < versions[-1] or decoded == answer
            for record in cluster.log.records:
                assert decode_record(encode_record(record)) == record


def ready() -> Cluster:
    cluster = Cluster(brokers=2, racks={1: "a", 2: "b"}, static=WITH_ACLS)
    cluster.create("t", (1, 2))
    assert cluster.ask(CreateAclsRequest(creations=(creation(),))).results[0].error_code == 0
    return cluster


def test_a_broker_s_life_can_be_encoded() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    answers = [cluster.beat(1), cluster.beat(1, want_shut_down=True), cluster.beat(1, want_shut_down=True)]
    answers.append(cluster.register(1))
    for answer in answers:
        for version in type(answer).versions:
            assert decode_all(type(answer), version, encode_bytes(answer, version)) == answer
    for record in cluster.log.records:
        assert decode_record(encode_record(record)) == record
