"""How far are replicas out of sync behind their leaders? Their leaders know it, from the followers' fetches."""

from collections.abc import Iterable

from strandline.base.ids import by_topic
from strandline.base.value import Value
from strandline.client.ask import Servers, ask, ask_any, config_of
from strandline.client.brokers import BrokerAt
from strandline.wire.frame import Malformed
from strandline.wire.messages.cluster.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TIMEOUT_S = 5.0


METADATA_VERSION, DESCRIBE_VERSION = 12, 4


Place = tuple[str, int]  # topic and partition


class Behind(Value, frozen=True):
    """What a replica lacks of its leader's log, in offsets and bytes. None: not known, for the reason `why`."""

    replica: int
    records: int | None = None
    size_bytes: int | None = None
    why: str = ""


def out_of_sync(bootstrap: Servers, places: Iterable[Place]) -> dict[Place, dict[int, Behind] | str]:
    """The out-of-sync followers of each of these partitions, or why they are unknown."""
    indexes = by_topic(places)
    config = config_of(bootstrap)
    metadata: MetadataResponse = ask_any(
        config,
        MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in indexes), allow_auto_topic_creation=False
        ),
        METADATA_VERSION,
    )
    leaders = {
        (str(topic.name), partition.partition_index): partition.leader_id
        for topic in metadata.topics
        for partition in topic.partitions
    }
    brokers = {row.node_id: BrokerAt(row.node_id, row.host, row.port, config=config) for row in metadata.brokers}
    wanted = [(name, index) for name, found in indexes.items() for index in found]
    reported: dict[Place, dict[int, Behind] | str] = dict.fromkeys(wanted, "it has no leader")
    for leader in sorted({leaders.get(place, -1) for place in wanted}):
        if leader in brokers:
            mine = [place for place in wanted if leaders.get(place) == leader]
            reported |= asked_of(brokers[leader], mine)
    return reported


def asked_of(leader: BrokerAt, places: list[Place]) -> dict[Place, dict[int, Behind] | str]:
    reported: dict[Place, dict[int, Behind] | str] = {}
    request = DescribeLogDirsRequest(
        topics=tuple(
            DescribableLogDirTopic(topic=name, partitions=tuple(index for other, index in places if other == name))
            for name in dict.fromkeys(name for name, _ in places)
        ),
        with_followers=True,
    )
    try:
        answer: DescribeLogDirsResponse = ask(
            leader.host, leader.port, request, DESCRIBE_VERSION, TIMEOUT_S, leader.config
        )
    except (OSError, Malformed) as error:
        return dict.fromkeys(places, f"its leader {leader.node} does not answer ({error})")
    reported |= dict.fromkeys(places, f"{leader.node} does not lead it any more")
    never = f"it has fetched nothing from {leader.node} since that leads"
    for result in answer.results:
        for topic in result.topics:
            for row in topic.partitions:
                if row.followers is not None:
                    reported[topic.name, row.partition_index] = {
                        follower.replica_id: Behind(follower.replica_id, why=never)
                        if follower.lag_records < 0
                        else Behind(
                            follower.replica_id,
                            follower.lag_records,
                            None if follower.lag_bytes < 0 else follower.lag_bytes,
                        )
                        for follower in row.followers
                    }
    return reported
