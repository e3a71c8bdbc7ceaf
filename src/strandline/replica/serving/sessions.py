"""Fetch sessions (KIP-227): a client names only what changed, and is answered only what is new.

A session is a `Context` (`contexts.py`) that is kept from one Fetch to the next.

When all slots are taken, a new session takes the slot of another one (`has_room`): of one that is stale, else of
one that is worth less. A follower's session is worth more than a consumer's, and a larger one more than a smaller one;
a session is safe from larger ones while it is young, and a follower's from consumers'.

Clients choose how many partitions they name, also such as do not exist. So consumers' sessions reserve the room for
their partitions before they use it. If all of them would reserve too much, the one that has the most ends.

Invariants (executed by `check`):
  - consumers' sessions reserve at most `INTERESTS_MAX`, and none has more than it has reserved
  - at most `fetch_session_slots` sessions; an id belongs to one session; a follower has one at most
  - `dirty` ⊆ the session's interests
"""

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.replica.config import ReplicaConfig
from strandline.replica.serving.contexts import NO_SESSION, UNBOUNDED, Context
from strandline.wire.messages.records.fetch import FetchRequest

FULL_EPOCH, FINAL_EPOCH = 0, -1
EPOCH_MAX = 0x7FFF_FFFF
INTERESTS_MAX = 500_000  # of all consumers' sessions; half a kilobyte each
RESERVED_MIN = 8


class Sessions:
    def __init__(self, config: ReplicaConfig, rng: Rng) -> None:
        self.config = config
        self.rng = rng
        self.sessions: dict[int, Context] = {}

    def open(self, request: FetchRequest, replica: NodeId, by_id: bool, now: Instant) -> Context | ErrorCode:
        """The context of a request, or the error of the whole answer."""
        epoch = request.session_epoch
        if epoch in (FULL_EPOCH, FINAL_EPOCH):
            if (old := self.sessions.get(request.session_id)) is not None and old.replica == replica:
                self.close(request.session_id)
            if replica >= 0:
                self.close_all_of(replica)
            session_id = NO_SESSION
            if epoch == FULL_EPOCH and request.topics and self.has_room(size_of(request), replica, now):
                session_id = self.new_id()
            if session_id == NO_SESSION:
                return Context(session_id=session_id, replica=replica, by_id=by_id, now=now)
            context = self.sessions[session_id] = Context(
                session_id=session_id,
                replica=replica,
                by_id=by_id,
                now=now,
                reserved=UNBOUNDED if replica >= 0 else 0,
                outgrown=self.reserve,
            )
            return context
        session = self.sessions.get(request.session_id)
        if session is None or session.replica != replica:  # a consumer's, or another's
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.used_at = now
        session.is_incremental = True
        return session

    def close(self, session_id: int) -> None:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def close_all_of(self, replica: NodeId) -> None:
        """A follower has one session. If this is an old request that was late, its positions are old as well: then the
        true session must begin anew, or the leader would never learn again where it is."""
        assert replica >= 0
        for session in [session for session in self.sessions.values() if session.replica == replica]:
            self.close(session.session_id)

    def has_room(self, size: int, replica: NodeId, now: Instant) -> bool:
        """Is there a slot for a session of `size` partitions? Evict another session if need be."""
        if len(self.sessions) < self.config.fetch_session_slots:
            return True
        span = self.config.fetch_session_eviction_ms
        stalest: Context | None = None
        least: Context | None = None
        for session in self.sessions.values():
            if stalest is None or session.used_at < stalest.used_at:
                stalest = session
            # Young sessions are safe from their like, or two clients might evict one another in turn.
            is_evictable = now - session.created_at > span or replica >= 0 > session.replica
            if is_evictable and (least is None or session.worth() < least.worth()):
                least = session
        if stalest is not None and now - stalest.used_at > span:
            self.end(stalest)
        elif least is not None and (replica >= 0, size) > least.worth()[:2]:
            self.end(least)
        else:
            return False
        assert len(self.sessions) < self.config.fetch_session_slots
        return True

    def reserve(self, session: Context) -> None:
        """More room for a consumer's session: twice what it has, so that this is rare. It may be the one that ends."""
        assert session.replica < 0
        session.reserved = max(RESERVED_MIN, 2 * len(session.interests))
        consumers = [one for one in self.sessions.values() if one.replica < 0]
        total = sum(one.reserved for one in consumers)
        while total > INTERESTS_MAX:
            largest = max(consumers, key=lambda one: one.reserved)
            consumers.remove(largest)
            total -= largest.reserved
            self.end(largest)

    def end(self, session: Context) -> None:
        """A fetch that waits in it is still served; its next answer says that the session has ended."""
        assert self.sessions.get(session.session_id, session) is session
        self.sessions.pop(session.session_id, None)
        session.session_id = NO_SESSION
        session.reserved = UNBOUNDED  # its last fetch is served
        if session.parked is None:
            session.close()

    def new_id(self) -> int:
        while True:
            session_id = self.rng.randrange(1, EPOCH_MAX)
            if session_id not in self.sessions:
                assert session_id != NO_SESSION
                return session_id

    def check(self) -> None:
        assert len(self.sessions) <= self.config.fetch_session_slots
        followers = [session.replica for session in self.sessions.values() if session.replica >= 0]
        assert len(followers) == len(set(followers))
        consumers = [session for session in self.sessions.values() if session.replica < 0]
        assert sum(session.reserved for session in consumers) <= INTERESTS_MAX
        assert all(len(session.interests) <= session.reserved for session in consumers)
        for session_id, session in self.sessions.items():
            assert session.session_id == session_id != NO_SESSION
            assert 1 <= session.epoch <= EPOCH_MAX
            interests = set(session.interests.values())
            assert all(interest in interests for interest in session.dirty)
            assert session.parked is None or not session.parked.done, "a fetch that was answered waits"


def size_of(request: FetchRequest) -> int:
    return sum(len(topic.partitions) for topic in request.topics)
