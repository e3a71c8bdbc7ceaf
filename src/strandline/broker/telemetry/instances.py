"""The client instances that a broker knows, each with what it is asked for and when it was last heard (KIP-714).

A broker forgets an instance when its connection ends, and when it was not heard for a minute and for three push
intervals. Beyond `INSTANCES_MAX` it forgets the one that it has not heard for longest. A client that was forgotten is
a new one: it may ask at once, and its subscription id is the same.

Invariants (executed by `check`):
  - there are at most `INSTANCES_MAX`;
  - an instance is indexed by its connection, and by no other.
"""

from collections.abc import Mapping

from msgspec import Struct

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid, uuid_text
from strandline.base.time import NEVER, Instant, after
from strandline.broker.telemetry.subscriptions import Interest

INSTANCES_MAX = 16384  # as in Kafka
FORGET_MS = 60_000
LONG_AGO = Instant(-1)  # it never did
# After these a client asks again at once, for what it is asked for now (KIP-714).
ASK_AGAIN = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class Instance(Struct):
    instance_id: Uuid
    connection: int
    attributes: Mapping[str, str]  # what subscriptions match
    interest: Interest
    subscription_id: int
    version: int  # of the subscriptions
    heard_at: Instant
    asked_at: Instant = LONG_AGO
    pushed_at: Instant = LONG_AGO
    has_asked: bool = False  # since its last push
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    @property
    def name(self) -> str:
        return uuid_text(self.instance_id)

    @property
    def forget_at(self) -> Instant:
        return after(self.heard_at, max(FORGET_MS, 3 * self.interest.interval_ms))

    def may_ask(self, now: Instant) -> bool:
        last = max(self.asked_at, self.pushed_at)
        return last == LONG_AGO or now - last >= self.interest.interval_ms or self.last_error in ASK_AGAIN

    def may_push(self, now: Instant) -> bool:
        """The first push after a question may come early: clients draw its time from half an interval to one and a
        half, or they would all push at once."""
        return self.has_asked or self.pushed_at == LONG_AGO or now - self.pushed_at >= self.interest.interval_ms

    def asked(self, now: Instant) -> None:
        assert now >= max(self.asked_at, self.pushed_at), "time does not go back"
        self.asked_at, self.has_asked, self.last_error = now, True, ErrorCode.NONE

    def pushed(self, now: Instant) -> None:
        assert now >= max(self.asked_at, self.pushed_at), "time does not go back"
        self.pushed_at, self.has_asked = now, False


class Instances:
    def __init__(self) -> None:
        self.by_id: dict[Uuid, Instance] = {}  # the one that was not heard for longest comes first
        self.by_connection: dict[int, dict[Uuid, None]] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    def heard(self, instance_id: Uuid, now: Instant) -> Instance | None:
        instance = self.by_id.pop(instance_id, None)
        if instance is not None:
            self.by_id[instance_id] = instance
            assert now >= instance.heard_at, "time does not go back"
            instance.heard_at = now
        return instance

    def put(self, instance: Instance) -> None:
        """In the place of one with the same id."""
        assert instance.heard_at >= 0 and instance.interest.interval_ms > 0
        self.remove(instance.instance_id)
        if len(self.by_id) >= INSTANCES_MAX:
            self.remove(next(iter(self.by_id)))
        self.by_id[instance.instance_id] = instance
        self.by_connection.setdefault(instance.connection, {})[instance.instance_id] = None

    def remove(self, instance_id: Uuid) -> None:
        instance = self.by_id.pop(instance_id, None)
        if instance is None:
            return
        of_connection = self.by_connection[instance.connection]
        del of_connection[instance_id]
        if not of_connection:
            del self.by_connection[instance.connection]

    def disconnected(self, connection: int) -> None:
        for instance_id in list(self.by_connection.get(connection, ())):
            self.remove(instance_id)

    def forget_silent(self, now: Instant) -> None:
        for instance in list(self.by_id.values()):
            if instance.forget_at <= now:
                self.remove(instance.instance_id)

    def next_silent(self) -> Instant:
        """When the next one is forgotten if it stays silent."""
        return min((instance.forget_at for instance in self.by_id.values()), default=NEVER)

    def check(self) -> None:
        assert len(self.by_id) <= INSTANCES_MAX
        indexed = [(connection, one) for connection, ids in self.by_connection.items() for one in ids]
        assert sorted(indexed) == sorted((one.connection, one.instance_id) for one in self.by_id.values())
        assert all(self.by_connection.values()), "a connection without instances is not there"
