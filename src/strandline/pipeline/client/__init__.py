"""A synchronous client of Kafka's protocol over our own wire code; what it decides is in its modules' first lines."""

from strandline.pipeline.client.cluster import EARLIEST, LATEST, Broker, Cluster, PartitionView, TopicView
from strandline.pipeline.client.config import READ_COMMITTED, READ_UNCOMMITTED, ClientConfig
from strandline.pipeline.client.errors import (
    AuthenticationFailed,
    CorruptRecords,
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    ProduceFailed,
    TimedOut,
    TopicIdChanged,
    UnknownTopic,
    Unreachable,
    Unsupported,
)
from strandline.pipeline.client.fetching import Fetched, Reader
from strandline.pipeline.client.groups import Committed
from strandline.pipeline.client.lanes import Pending
from strandline.pipeline.client.offsets import Found
from strandline.pipeline.client.producing import Produced, Producer
from strandline.pipeline.client.secret import Secret

__all__ = [
    "EARLIEST",
    "LATEST",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "AuthenticationFailed",
    "Broker",
    "ClientConfig",
    "Cluster",
    "Committed",
    "CorruptRecords",
    "Fetched",
    "Found",
    "KafkaError",
    "LogTruncated",
    "OffsetOutOfRange",
    "PartitionView",
    "Pending",
    "ProduceFailed",
    "Produced",
    "Producer",
    "Reader",
    "Secret",
    "TimedOut",
    "TopicIdChanged",
    "TopicView",
    "UnknownTopic",
    "Unreachable",
    "Unsupported",
]
