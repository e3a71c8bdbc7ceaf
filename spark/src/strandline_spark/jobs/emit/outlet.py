"""A lane's way to its topic: one producer of the client, with the lane's id and no other.

The producer tries again what passes by itself. What does not comes back as a refusal; then the producer is given up,
with all that it had under way: nobody knows what becomes of that, so it counts as out of order, and its track looks.

A leader forgets a producer that was silent for producer.id.expiration.ms (a day), and would take anything for its first
batch then. So an outlet that was silent for an hour, in a process that was stopped, sends nothing more: a new run looks
what is there first. The client gives up what it has under way after delivery.timeout.ms.
"""

import time
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.errors import ProduceFailed
from strandline.client.producing import Produced, Producer
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit.lane import RUN_AGAIN, Acknowledged, Found, Refused, Searched
from strandline_spark.jobs.emit.plan import Lane, Plan, recreated
from strandline_spark.jobs.emit.searching import Where, batches_of

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
UNKNOWN_RESULT = "it is unknown whether it was written: another batch was rejected"
SILENCE_S = 3600.0  # far below producer.id.expiration.ms: what leaders forget, they take for new
Answer = tuple[int, Acknowledged | Refused]


class UnderWay(NamedTuple):
    partition: int
    first: int
    rows: int


class TopicOutlet:
    """See `writing.Outlet`."""

    def __init__(self, cluster: Cluster, plan: Plan, lane: Lane) -> None:
        self.cluster = cluster
        self.plan = plan
        self.lane = lane
        self.producer: Producer | None = None
        self.under_way: dict[UnderWay, None] = {}  # in the order in which they were sent
        self.heard: deque[Answer] = deque()
        self.heard_at = time.monotonic()

    def close(self) -> None:
        if self.producer is not None:
            self.producer.close()
            self.producer = None

    def send(self, partition: int, first: int, count: int, sequence: int, batch: bytearray) -> None:
        if time.monotonic() - self.heard_at > SILENCE_S:
            raise StrandlineError(f"lane {self.lane.number} was stopped for more than an hour", RUN_AGAIN)
        sent = UnderWay(partition, first, count)
        self.under_way[sent] = None
        if self.producer is None:
            identity = (self.lane.producer_id, self.lane.producer_epoch)
            self.producer = Producer(self.cluster, acknowledged=self.acknowledged, producer=identity, renews=False)
        at = (self.plan.topic, partition)
        self.producer.sequences.setdefault(at, sequence)
        self.check_topic()
        try:
            self.producer.send(*at, batch, tag=sent)
        except ProduceFailed as failure:
            self.failed(failure)

    def acknowledged(self, produced: Produced) -> None:
        sent: UnderWay = produced.tag
        self.heard_at = time.monotonic()
        if self.under_way.pop(sent, 0) is None:
            self.heard.append((sent.partition, Acknowledged(sent.first, sent.rows, produced.base_offset)))

    def failed(self, failure: ProduceFailed) -> None:
        """Everything that was under way is refused: the culprit for its reason, the rest because of it."""
        for sent in self.under_way:
            why = (failure.code, failure.problem) if sent == failure.tag else (OUT_OF_ORDER, UNKNOWN_RESULT)
            self.heard.append((sent.partition, Refused(sent.first, sent.rows, *why)))
        self.under_way.clear()
        self.close()

    def check_topic(self) -> None:
        """Raises StrandlineError if the topic is another one of the same name now."""
        view = self.cluster.known.get(self.plan.topic)
        if view is not None and view.topic_id != self.plan.topic_id:
            raise recreated(self.plan, view.topic_id)

    def answers(self) -> Iterable[Answer]:
        assert self.heard or self.under_way, "nothing is awaited"
        while not self.heard:
            assert self.producer is not None
            self.check_topic()
            try:
                self.producer.turn()
            except ProduceFailed as failure:
                self.failed(failure)
        heard, self.heard = self.heard, deque()
        return heard

    def search(self, partition: int, offset: int, leader_epoch: int) -> Iterable[Found | Searched]:
        self.heard_at = time.monotonic()
        where = Where(self.plan.topic, self.plan.topic_id, partition)
        for hit in batches_of(self.cluster, where, (self.lane.producer_id,), offset, leader_epoch):
            yield hit if isinstance(hit, Searched) else hit[1]
