"""Topics and live brokers of a cluster: list, create and delete, asked of any node of Strandline or Kafka."""

from collections.abc import Iterable, Mapping

from strandline.base.errors import ErrorCode, error_of, message_of
from strandline.client.ask import Servers, ask_any, config_of
from strandline.client.brokers import BrokerAt
from strandline.client.errors import StrandlineError, refused
from strandline.metadata.image import TOPIC_RESOURCE
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

TIMEOUT_S = 5.0  # that the controller has
DEFAULT = -1  # the cluster's own number
Refusals = dict[str, str | None]  # by topic: why it was refused, None if it was not


def topic_names(bootstrap: Servers) -> list[str]:
    answer = ask_any(bootstrap, MetadataRequest(topics=None), None)
    return sorted(topic.name for topic in answer.topics)


def partitions_of(bootstrap: Servers, topic: str) -> list[int]:
    """None if there is no such topic. It is not created by being asked for. Raises StrandlineError if we may not see
    it."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    (found,) = ask_any(bootstrap, request, None).topics
    if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise refused(found.error_code, f"topic '{topic}'")
    return sorted(row.partition_index for row in found.partitions)


def topic_configs(bootstrap: Servers, key: str) -> dict[str, str]:
    """What all topics have for this key, by topic."""
    resources = tuple(
        DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=(key,))
        for name in topic_names(bootstrap)
    )
    results = ask_any(bootstrap, DescribeConfigsRequest(resources=resources), None).results
    return {result.resource_name: config.value or "" for result in results for config in result.configs}


def live_brokers(bootstrap: Servers) -> dict[int, BrokerAt]:
    """Those that are not fenced, by id."""
    config = config_of(bootstrap)
    rows = ask_any(config, MetadataRequest(topics=()), None).brokers
    return {
        row.node_id: BrokerAt(row.node_id, row.host, row.port, config=config)
        for row in sorted(rows, key=lambda row: row.node_id)
    }


def create_topic(
    bootstrap: Servers,
    name: str,
    partitions: int = DEFAULT,
    replication_factor: int = DEFAULT,
    configs: Mapping[str, str] | None = None,
    assignment: Iterable[tuple[int, ...]] = (),
) -> None:
    """With an `assignment`, the replicas of each partition, both numbers stay -1. Raises `StrandlineError`."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in enumerate(assignment)
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=int(TIMEOUT_S * 1000))
    (result,) = ask_any(bootstrap, request, None).topics
    why = refusal(result.error_code, result.error_message)
    if why is not None:
        raise StrandlineError(f"{name}: {why}")


def delete_topics(bootstrap: Servers, names: Iterable[str]) -> Refusals:
    names = tuple(names)
    request = DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name) for name in names),
        topic_names=names,  # in versions below 6
        timeout_ms=int(TIMEOUT_S * 1000),
    )
    results = ask_any(bootstrap, request, None).responses
    return {result.name: refusal(result.error_code, result.error_message) for result in results}


def refusal(error_code: int, message: str | None) -> str | None:
    return None if error_code == ErrorCode.NONE else message or message_of(error_of(error_code))
