"""What one Fetch is about: its partitions, where each is read, what its client knows, and the request that waits.

A `Context` is a session's, or that of a full fetch without one. Each of its partitions is an `Interest`, and watches
the partition. What may have something new is `dirty`; an incremental fetch looks at nothing else, so that a thousand
idle partitions cost nothing.
"""

from collections.abc import Callable

from strandline.base.effects import Caller, Effect, ReplyTo
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.replica.hosting.hosted import Hosted
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic

NO_SESSION = 0
CLOSEST_REPLICA_SINCE = 11
READ_COMMITTED = 1
UNBOUNDED = 1 << 62
HIGH_WATERMARK_NOT_SENT = (1 << 63) - 1

Key = tuple[object, int]  # topic name or topic id, and partition


class Interest:
    """One partition of one context: where it reads, and what its client has."""

    __slots__ = (
        "context",
        "hosted",
        "index",
        "known_high_watermark",
        "known_log_start_offset",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "offset",
        "topic",
        "topic_id",
    )

    def __init__(self, context: "Context", topic: FetchTopic, asked: FetchPartition) -> None:
        self.context = context
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.index = asked.partition
        self.hosted: Hosted | None = None
        self.known_high_watermark = -1
        self.known_log_start_offset = -1
        self.update(asked)

    def update(self, asked: FetchPartition) -> None:
        self.offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset
        if asked.high_watermark != HIGH_WATERMARK_NOT_SENT:
            self.known_high_watermark = asked.high_watermark

    def watch(self, hosted: Hosted) -> None:
        self.unwatch()
        self.hosted = hosted
        hosted.watch(self)

    def unwatch(self) -> None:
        if self.hosted is not None:
            self.hosted.unwatch(self)


class Context:
    __slots__ = (
        "broker_epoch",
        "by_id",
        "created_at",
        "dirty",
        "epoch",
        "interests",
        "is_incremental",
        "outgrown",
        "parked",
        "replica",
        "reserved",
        "session_id",
        "used_at",
    )

    def __init__(
        self,
        *,
        session_id: int,
        replica: NodeId,
        by_id: bool,
        now: Instant,
        reserved: int = UNBOUNDED,
        outgrown: "Outgrown | None" = None,
    ) -> None:
        """`reserved`: how many interests it may have; `outgrown` is called when it has more."""
        self.session_id = session_id
        self.reserved = reserved
        self.outgrown = outgrown
        self.epoch = 1  # the one that the next incremental fetch must have
        self.replica = replica  # −1: a consumer
        self.broker_epoch = -1
        self.by_id = by_id
        self.created_at = now
        self.used_at = now
        self.interests: dict[Key, Interest] = {}
        self.dirty: dict[Interest, None] = {}
        self.parked: ParkedFetch | None = None
        self.is_incremental = False  # is the fetch now being answered an incremental one?

    def take(self, request: FetchRequest) -> list[Interest]:
        """Bring the interests up to date; return those that the request names."""
        by_id = self.by_id
        interests = self.interests
        named: list[Interest] = []
        for topic in request.topics:
            name: object = topic.topic_id if by_id else topic.topic
            for asked in topic.partitions:
                key = (name, asked.partition)
                interest = interests.get(key)
                if interest is None:
                    interest = interests[key] = Interest(self, topic, asked)
                    if len(interests) > self.reserved:
                        assert self.outgrown is not None, "a session is bounded by the others"
                        self.outgrown(self)
                else:
                    interest.update(asked)
                self.dirty[interest] = None
                named.append(interest)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                gone = interests.pop((name, index), None)
                if gone is not None:
                    gone.unwatch()
                    self.dirty.pop(gone, None)
        return named

    def worth(self) -> tuple[bool, int, int]:
        """The least is evicted first."""
        return self.replica >= 0, len(self.interests), self.session_id

    def close(self) -> None:
        for interest in self.interests.values():
            interest.unwatch()


class ParkedFetch:
    """A Fetch, and if need be one that waits for records, for its time, or for a change of role."""

    __slots__ = (
        "answer",
        "context",
        "done",
        "is_answered_soon",
        "is_cold",
        "listener",
        "max_bytes",
        "min_bytes",
        "rack",
        "read_committed",
        "reads_followers",
        "size",
        "to",
    )

    def __init__(
        self, to: ReplyTo, caller: Caller, request: FetchRequest, context: Context, bytes_max: int, answer: "Answer"
    ) -> None:
        self.answer = answer
        self.to = to
        self.listener = caller.listener
        self.context = context
        self.min_bytes = request.min_bytes if request.min_bytes < bytes_max else bytes_max
        self.max_bytes = request.max_bytes if request.max_bytes < bytes_max else bytes_max
        self.rack = request.rack_id
        # Consumers that know of closer replicas may also read from any.
        self.reads_followers = context.replica < 0 and to.api_version >= CLOSEST_REPLICA_SINCE
        self.read_committed = request.isolation_level == READ_COMMITTED
        self.size = 0  # what was there, and what has been appended since: the answer may have less
        self.is_answered_soon = False
        self.is_cold = False  # some of what it asks for is not cached, and is being read
        self.done = False

    def cut_to(self, bytes_max: int) -> int:
        """There is not more memory for it now, and may not be before its time is over: it waits for any records."""
        if self.min_bytes > bytes_max:
            self.min_bytes = 1
        return bytes_max

    def expire(self, now: Instant) -> list[Effect]:
        assert not self.done
        return self.answer(self, now)


Answer = Callable[[ParkedFetch, Instant], list[Effect]]
Outgrown = Callable[[Context], None]
