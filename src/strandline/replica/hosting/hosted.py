"""A hosted partition: its log on this broker, and the role that metadata gives it.

A `Hosted` outlives its roles: the log, the requests that wait, and the high watermark pass from one role to the next.
All changes of its state are methods here, so that what they keep is said once.

States: opened, without a role, until its metadata is known; `Leader` or `Follower`; gone, for good. A replica loses its
role and stays where records of it were found to be lost, or where its log directory has failed.

Invariants (executed by `check`, and where a state begins):
  - a partition that is gone takes no role any more
  - a role works on the log that is hosted
  - requests wait in the order of the offsets that they require
"""

from typing import Protocol

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicIdPartition, TopicPartition
from strandline.base.time import Instant
from strandline.log.log import Log
from strandline.replica.config import LogDir
from strandline.replica.counters import TopicCounters
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.leader import Leader

Role = Leader | Follower


class Waiter(Protocol):
    """A request that waits until the high watermark reaches `required`, or for the end of this leadership."""

    required: int
    done: bool

    def complete(self, error: ErrorCode, now: Instant) -> list[Effect]: ...


class Hosted:
    """One partition's log on this broker, and the role that metadata gives it."""

    __slots__ = (
        "at",
        "counters",
        "deletions",
        "directory",
        "gone",
        "held",
        "is_doubtful",
        "log",
        "moves",
        "name",
        "role",
        "start",
        "waiting",
        "watchers",
    )

    def __init__(self, at: TopicIdPartition, name: TopicPartition, log: Log, directory: LogDir, start: int) -> None:
        self.at = at
        self.name = name
        self.log = log
        self.directory = directory
        self.start = start  # the high watermark before any role, from the checkpoint
        self.role: Role | None = None  # None: its metadata is not known yet
        self.waiting: list[Waiter] = []  # by required offset; an empty deque would take 760 bytes
        self.deletions: list[Waiter] = []
        self.held: dict[Waiter, None] = {}  # what must be known of a transaction before it may be written here
        self.watchers: dict[object, None] = {}
        self.counters = TopicCounters()  # those of its topic, as soon as it is put among the others
        self.gone = False
        self.is_doubtful = False  # opened after an unclean stop, and there was no leader since
        self.moves = 0  # from one log directory to another

    @property
    def high_watermark(self) -> int:
        return self.start if self.role is None else self.role.high_watermark

    # --- states

    def take_role(self, role: Role) -> None:
        assert not self.gone, self.name
        assert role.log is self.log, self.name
        self.role = role

    def lose_role(self) -> None:
        """It neither leads nor follows from now on, but its log stays."""
        assert not self.gone, self.name
        self.start = self.high_watermark
        self.role = None

    def leave(self) -> None:
        """It is hosted no longer, for good."""
        assert not self.gone, self.name
        self.gone = True

    def move(self, log: Log, directory: LogDir) -> None:
        """It has the same records in another log directory from now on."""
        assert self.role is not None, self.name
        assert directory.path != self.directory.path, self.name
        assert log.log_end_offset == self.log.log_end_offset, f"{self.name} was not copied as a whole"
        self.log = self.role.log = log
        self.directory = directory
        self.moves += 1

    def doubt(self) -> None:
        """Its log may lack what was committed. That is known to be otherwise as soon as there is a leader."""
        self.is_doubtful = True

    def trust(self) -> None:
        self.is_doubtful = False

    def share(self, counters: TopicCounters) -> None:
        """It counts with the other partitions of its topic from now on."""
        assert not self.gone, self.name
        self.counters = counters

    # --- requests that wait

    def watch(self, watcher: object) -> None:
        assert not self.gone, self.name
        self.watchers[watcher] = None

    def unwatch(self, watcher: object) -> None:
        self.watchers.pop(watcher, None)

    def unwatch_all(self) -> None:
        assert self.gone, self.name
        self.watchers.clear()

    def wait(self, waiter: Waiter) -> None:
        """Keep the queue sorted. Only a duplicate's answer waits for less than its predecessors."""
        assert not waiter.done, self.name
        assert not self.gone, self.name
        waiting = self.waiting
        if waiting and waiting[0].done:  # timed out, while the high watermark stands
            del waiting[: next((at for at, other in enumerate(waiting) if not other.done), len(waiting))]
        if not waiting or waiting[-1].required <= waiter.required:
            waiting.append(waiter)
            return
        at = len(waiting) - 1
        while at > 0 and waiting[at - 1].required > waiter.required:
            at -= 1
        waiting.insert(at, waiter)

    def complete_waiting(self, leader: Leader, now: Instant) -> list[Effect]:
        """After the high watermark has moved. Costs what completes, not what waits."""
        assert leader is self.role, self.name
        assert not leader.is_under_min_isr(), "the high watermark does not move then"
        effects: list[Effect] = []
        waiting, done, most = self.waiting, 0, len(self.waiting)
        while done < most and waiting[done].required <= leader.high_watermark:  # guard: waits-for-one-record-less
            done += 1
        completed = waiting[:done]
        del waiting[:done]
        assert not waiting or waiting[0].required > leader.high_watermark, "all whose time has come are answered"
        for waiter in completed:
            if not waiter.done:
                effects += waiter.complete(ErrorCode.NONE, now)
        return effects

    def wait_for_deletion(self, waiter: Waiter) -> None:
        assert not waiter.done, self.name
        assert not self.gone, self.name
        self.deletions = [*(other for other in self.deletions if not other.done), waiter]

    def complete_deletions(self, leader: Leader, now: Instant) -> list[Effect]:
        """DeleteRecords is done where all live replicas' logs start at its offset or later."""
        assert leader is self.role, self.name
        effects: list[Effect] = []
        low = leader.low_watermark()
        for waiter in [w for w in self.deletions if w.required <= low]:
            self.deletions.remove(waiter)
            if not waiter.done:
                effects += waiter.complete(ErrorCode.NONE, now)
        return effects

    def fail_those(self, kind: type[Waiter], error: ErrorCode, now: Instant) -> list[Effect]:
        """This leadership goes on, and other requests wait on."""
        assert error is not ErrorCode.NONE, "what waits may be committed yet"
        effects: list[Effect] = []
        failing = [waiter for waiter in self.waiting if type(waiter) is kind]
        if failing:
            self.waiting = [waiter for waiter in self.waiting if type(waiter) is not kind]
        for waiter in failing:
            if not waiter.done:
                effects += waiter.complete(error, now)
        return effects

    def fail_waiting(self, error: ErrorCode, now: Instant) -> list[Effect]:
        """This leadership ended."""
        assert error is not ErrorCode.NONE, "what waited may not be committed"
        effects: list[Effect] = []
        waiting = [*self.waiting, *self.deletions, *self.held]
        self.held.clear()
        self.waiting.clear()
        self.deletions.clear()
        for waiter in waiting:
            if not waiter.done:
                effects += waiter.complete(error, now)
        return effects

    def check(self) -> None:
        if self.role is not None:
            assert not self.gone, self.name
            assert self.role.log is self.log, self.name
            self.role.check()
        assert self.moves >= 0
        required = [waiter.required for waiter in self.waiting]
        assert required == sorted(required)


def leader_epoch_error(role: Role, current_leader_epoch: int) -> ErrorCode | None:
    """Does the asker know the leadership that we know (KIP-320)? −1 does not say."""
    if current_leader_epoch < 0 or current_leader_epoch == role.epoch:
        return None
    if current_leader_epoch < role.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH  # guard: fetch-in-an-older-epoch
    return ErrorCode.UNKNOWN_LEADER_EPOCH
