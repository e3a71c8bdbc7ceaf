"""The topic as it is now: what a new plan notes of it, and what an old one is compared with."""

from strandline.base.errors import ErrorCode
from strandline.client.cluster import EARLIEST, LATEST, Cluster, TopicView
from strandline.client.config import READ_UNCOMMITTED
from strandline.client.errors import KafkaError
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit.plan import Plan, Target, TopicNow

TOPIC_RESOURCE = 2
POLICY = "cleanup.policy"


def topic_view(cluster: Cluster, topic: str) -> TopicView:
    """Raises StrandlineError if there is no such topic."""
    found = cluster.topics([topic]).get(topic)
    if found is None:
        raise StrandlineError(
            f"topic '{topic}' does not exist",
            f"create it first: `strandline topics create {topic} --partitions …`",
        )
    return found


def targets_of(cluster: Cluster, view: TopicView) -> tuple[Target, ...]:
    """Where each partition ends now."""
    asked = {(view.name, partition): LATEST for partition in sorted(view.partitions)}
    found = cluster.list_offsets(asked, READ_UNCOMMITTED)
    return tuple(Target(at[1], end.offset, end.leader_epoch) for at, end in found.items())


def topic_now(cluster: Cluster, plan: Plan) -> TopicNow | None:
    """None: it does not exist."""
    view = cluster.topics([plan.topic]).get(plan.topic)
    if view is None:
        return None
    asked = sorted((plan.topic, partition) for partition in view.partitions)
    starts = cluster.list_offsets(dict.fromkeys(asked, EARLIEST), READ_UNCOMMITTED)
    epochs = {target.partition: target.leader_epoch for target in plan.targets}
    ends = {at[1]: end_of(cluster, at[0], at[1], epochs.get(at[1], -1)) for at in asked}
    return TopicNow(view.topic_id, {at[1]: starts[at].offset for at in asked}, ends)


def end_of(cluster: Cluster, topic: str, partition: int, leader_epoch: int) -> int:
    """The end of what the log has of this epoch: a new leader's high watermark may be behind, this is not."""
    end = cluster.epoch_end(topic, partition, leader_epoch)[1] if leader_epoch >= 0 else -1
    if end >= 0:
        return end
    at = (topic, partition)
    return cluster.list_offsets({at: LATEST}, READ_UNCOMMITTED)[at].offset


def is_compacted(cluster: Cluster, topic: str) -> bool:
    """May batches vanish from the topic that are not at its beginning? False if the cluster does not report it."""
    asked = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=(POLICY,))
    try:
        answer = cluster.ask_any(DescribeConfigsRequest(resources=(asked,)))[0]
    except KafkaError as error:
        if error.code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            return False
        raise
    return any("compact" in (entry.value or "") for result in answer.results for entry in result.configs)
