"""What a broker's replicas have written, refused and sent, per topic, since it started: Kafka's BrokerTopicMetrics.

Counted where it happens, by whole batches and answers; a topic that is no longer hosted is no longer counted.
"""

from strandline.base.errors import ErrorCode

E = ErrorCode
# Refusals that are a client's mistake or a matter of who leads: as in Kafka, no failed requests.
EXPECTED = frozenset(
    {
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.NOT_LEADER_OR_FOLLOWER,
        E.MESSAGE_TOO_LARGE,
        E.RECORD_LIST_TOO_LARGE,
        E.CORRUPT_MESSAGE,
        E.KAFKA_STORAGE_ERROR,
    }
)
TOO_LARGE = frozenset({E.MESSAGE_TOO_LARGE, E.RECORD_LIST_TOO_LARGE})


class TopicCounters:
    """The counters of one topic. `bytes_out`: the bytes that consumers got."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "messages_in",
        "produces",
    )

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = self.bytes_rejected = 0
        self.produces = self.failed_produces = self.failed_fetches = 0

    def refused(self, error: ErrorCode, size: int) -> None:
        assert error is not E.NONE
        assert size >= 0
        if error in TOO_LARGE:
            self.bytes_rejected += size
        if error not in EXPECTED:
            self.failed_produces += 1
