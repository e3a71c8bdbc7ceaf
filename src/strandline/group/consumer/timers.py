"""When a member of a consumer group has been silent too long, and when it should have given its partitions back.

A member that speaks the classic protocol must also join within its rebalance timeout when it is told to, and send its
SyncGroup within that time when it has joined.

Nothing of this is replicated. A coordinator that has loaded a group gives each member a whole session, and a whole
rebalance timeout if it must give something back.
"""

from heapq import heappop, heappush

from strandline.base.time import NEVER, Instant, after
from strandline.base.timers import Deadline
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import Held, Member, MemberState

SESSION, REBALANCE, JOIN, SYNC = range(4)  # the last two: of members that speak the classic protocol
Key = tuple[int, str, str]  # which of them, the group's id, the member's id


class Timers:
    """Of the groups of one shard. `ends` has the deadlines. Each has one entry in the heap that is not later, and that
    `queued` knows, so that a heartbeat, which only moves a deadline, costs no more than that. `alarm` rings for the
    first entry."""

    def __init__(self, alarm: Deadline) -> None:
        self.alarm = alarm
        self.resumes: Instant = Instant(0)  # with what `due` has left over
        self.ends: dict[Key, Instant] = {}
        self.heap: list[tuple[Instant, Key]] = []
        self.queued: dict[Key, Instant] = {}
        self.revoking: dict[tuple[str, str], tuple[int, Held]] = {}  # what the deadline of a rebalance is about

    def heard(self, group_id: str, member_id: str, ends: Instant) -> None:
        self.set((SESSION, group_id, member_id), ends)

    def follow(self, group: ConsumerGroup, member_id: str, session_ms: int, now: Instant) -> None:
        """The member has changed, or is new, or is gone."""
        at = (group.group_id, member_id)
        member = group.members.get(member_id)
        if member is None:
            self.forget(*at)
            return
        if (SESSION, *at) not in self.ends:
            self.heard(*at, after(now, session_of(member, session_ms)))
        if member.classic is None:
            self.stop(JOIN, *at)
            self.stop(SYNC, *at)
        if not must_give_back(member):
            self.stop_rebalance(at)
        elif self.revoking.get(at) != (member.epoch, member.revoking):  # guard: rebalance-timeout-forgotten
            self.revoking[at] = (member.epoch, member.revoking)
            self.set((REBALANCE, *at), after(now, max(member.rebalance_timeout_ms, 0)))

    def forget(self, group_id: str, member_id: str) -> None:
        assert group_id and member_id
        for kind in (SESSION, JOIN, SYNC):
            self.stop(kind, group_id, member_id)
        self.stop_rebalance((group_id, member_id))

    def begin_if_absent(self, kind: int, group_id: str, member: Member, now: Instant) -> None:
        assert kind in (JOIN, SYNC) and member.classic is not None, "others have no such deadline"
        if (kind, group_id, member.member_id) not in self.ends:
            self.set((kind, group_id, member.member_id), after(now, max(member.rebalance_timeout_ms, 0)))

    def stop(self, kind: int, group_id: str, member_id: str) -> None:
        self.ends.pop((kind, group_id, member_id), None)

    def stop_rebalance(self, at: tuple[str, str]) -> None:
        self.revoking.pop(at, None)
        self.ends.pop((REBALANCE, *at), None)

    def begin(self, group: ConsumerGroup, session_ms: int, now: Instant) -> None:
        """The group was loaded."""
        for member_id in group.members:
            self.follow(group, member_id, session_ms, now)  # guard: loaded-member-has-no-session

    def set(self, key: Key, ends: Instant) -> None:
        self.ends[key] = ends
        queued = self.queued.get(key)
        if queued is None or ends < queued:
            self.queued[key] = ends
            heappush(self.heap, (ends, key))
            self.alarm.set(ends)

    def deadline(self) -> Instant:
        """Not later than the first deadline."""
        return self.heap[0][0] if self.heap else NEVER

    def due(self, now: Instant, entries_max: int) -> tuple[dict[str, list[Key]], int]:
        """Whose time is up, by group, and how many entries of the heap were looked at: `entries_max` at most. The
        others have their turn a millisecond later. The caller removes the members, or gives them another deadline."""
        found: dict[str, list[Key]] = {}
        left = entries_max
        while self.heap and self.heap[0][0] <= now and left > 0:
            left -= 1
            at, key = heappop(self.heap)
            if self.queued.get(key) != at:
                continue  # there was an earlier entry
            del self.queued[key]
            ends = self.ends.get(key)
            if ends is not None and ends > now:
                self.set(key, ends)
            elif ends is not None:
                del self.ends[key]
                found.setdefault(key[1], []).append(key)
        self.resumes = after(now, 1)
        self.alarm.set(max(self.deadline(), self.resumes))
        assert self.resumes > now, "the rest is looked at later, not at once"
        return found, entries_max - left

    def end(self) -> None:
        """Another broker coordinates these groups from now on."""
        self.alarm.end()

    def check(self, groups: dict[str, ConsumerGroup]) -> None:
        assert self.alarm.when <= max(self.deadline(), self.resumes), "it is looked at in time"
        entries = {(key, at) for at, key in self.heap}
        assert all((key, at) in entries for key, at in self.queued.items())
        assert all(self.queued[key] <= ends for key, ends in self.ends.items()), "each is waited for"
        members = {
            (group_id, member_id): member.classic is not None
            for group_id, group in groups.items()
            for member_id, member in group.members.items()
        }
        assert {key[1:] for key in self.ends if key[0] == SESSION} == members.keys(), "each member has a session"
        assert {key[1:] for key in self.ends if key[0] == REBALANCE} == self.revoking.keys()
        assert all(members[key[1:]] for key in self.ends if key[0] in (JOIN, SYNC)), "of classic members alone"


def must_give_back(member: Member) -> bool:
    return member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch >= 0


def why_removed(member: Member, kind: int, session_ms: int) -> str:
    """It continues a sentence about the member."""
    patience = f"within {member.rebalance_timeout_ms} ms (max.poll.interval.ms)"
    if kind == SESSION:
        key = "group.consumer.session.timeout.ms" if member.classic is None else "session.timeout.ms"
        return f"sent no heartbeat for {session_of(member, session_ms)} ms ({key})"
    return {
        REBALANCE: f"did not revoke its partitions {patience}",
        JOIN: f"did not rejoin {patience}",
        SYNC: f"joined, and did not come for its assignment {patience}",
    }[kind]


def session_of(member: Member, session_ms: int) -> int:
    """`session_ms`: the group's. A member that speaks the classic protocol brings its own."""
    return session_ms if member.classic is None else member.classic.session_timeout_ms
