"""Groups of both protocols whose members come and go, over topics that grow, go and come again."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from strandline.base.ids import Uuid
from strandline.sim.clients.admin import ERRANDS_MAX, Admin
from strandline.sim.clients.classical import COOPERATIVE, EAGER, SESSION_MS, Classical
from strandline.sim.clients.client import Client, Life, Stage
from strandline.sim.clients.heartbeating import At, Habits, Heartbeating
from strandline.sim.clients.member import Member
from strandline.sim.clients.rolling import Operator, Rolling
from strandline.sim.clients.turning import Turning
from strandline.sim.workloads.workload import Workload

GROWING, CHANGING, EXTRA = "growing", "changing", "extra"
FIRST_SIZE, LAST_SIZE = 3, 8  # of the growing topic
BOTH = (GROWING, CHANGING)
REGEX = "(gr|ch|ex).*"
LATE = "extra-late"  # there is none before faults have ended
LAST_CHANGES = 12
QUIET_MS = SESSION_MS + 200  # longer than a session of any member
EVEN, MIXED = "even", "mixed"  # groups of the consumer protocol
MOVING = "moving"  # a group between both protocols


class Reshaper(Client):
    """Somebody gives topics more partitions, deletes them, and creates them again."""

    def __init__(self, stage: Stage, name: str, admin: Admin) -> None:
        super().__init__(stage, name)
        self.admin = admin
        self.size = FIRST_SIZE
        self.has_extra = True

    def live(self) -> Life:
        while not self.is_stopped:
            yield self.pause(200, 1800)
            if not self.is_stopped and len(self.admin.errands) < ERRANDS_MAX:  # else the admin would not do it
                self.reshape(self.rng.randrange(4), self.rng.randrange(1, 4))

    def reshape(self, how: int, count: int) -> None:
        admin = self.admin
        if how < 2:
            self.size = min(self.size + 1, LAST_SIZE)
            admin.wish(lambda: admin.add_partitions(GROWING, self.size))
        elif how == 2:
            admin.wish(lambda: admin.delete(CHANGING), lambda: admin.create(CHANGING, count))
        else:
            admin.wish((lambda: admin.delete(EXTRA)) if self.has_extra else (lambda: admin.create(EXTRA, 2)))
            self.has_extra = not self.has_extra


class Rebalancing(Workload):
    """Two groups of the consumer protocol, one of members that all want the same and are assigned uniformly, and one in
    which they differ; a classic one; one of a single member that changes its protocol; and one that moves from one
    protocol to the other and back while its members consume."""

    def setup(self) -> None:
        for name, count in ((GROWING, FIRST_SIZE), (CHANGING, 2), (EXTRA, 2)):
            self.admin.errands.append(self.admin.create(name, count))

    def start(self) -> None:
        committed: dict[str, dict[int, int]] = {EVEN: {}, MIXED: {}}
        same = Habits(interests=(BOTH,))
        other = (BOTH, (GROWING,), (CHANGING, EXTRA), REGEX)
        self.members = [
            Heartbeating(self.stage, name, group, GROWING, habits, committed[group])
            for name, group, habits in (
                ("xa", EVEN, same),
                ("xb", EVEN, same),
                ("xc", EVEN, Habits(interests=(BOTH,), instance_id="one")),
                ("ya", MIXED, Habits(interests=other, is_stubborn=True)),
                ("yb", MIXED, Habits(interests=(REGEX,), instance_id="two", assignor="range")),
                ("yc", MIXED, Habits(interests=other[::-1], instance_id="three")),
            )
        ]
        self.reshaper = Reshaper(self.stage, "xz", self.admin)
        self.changes = 0
        self.quiet_until_ms = 0
        shared: dict[int, int] = {}
        classic = [Member(self.stage, name, "classic", GROWING, shared) for name in ("za", "zb")]
        self.turning = Turning(self.stage, "xt", "turning", GROWING)
        self.rng = self.stage.random(MOVING)
        self.rolling = self.make_rolling()
        self.operator = Operator(self.stage, "wz", MOVING, GROWING, self.rolling)
        self.writers += [self.reshaper, *self.members, *classic, self.turning, *self.rolling, self.operator]

    def make_rolling(self) -> list[Rolling]:
        committed: dict[int, int] = {}
        strategy = self.rng.choice((EAGER, COOPERATIVE))
        rolling = [
            Rolling(self.stage, name, MOVING, GROWING, habits, committed, strategy)
            for name, habits in (
                ("wa", Habits(interests=(BOTH,))),
                ("wb", Habits(interests=(BOTH, (GROWING,), (CHANGING, EXTRA)))),
                ("wc", Habits(interests=((GROWING,),), instance_id="four")),
            )
        ]
        for one in rolling:
            one.others = [other for other in rolling if other is not one]
        return rolling

    def progress(self) -> dict[str, int]:
        moved = sum(one.acked for one in self.rolling)
        return super().progress() | {self.turning.name: self.turning.turns, MOVING: moved}

    def become_steady(self) -> None:
        self.reshaper.is_stopped = True
        self.operator.is_steady = True
        for member in self.members:
            member.is_steady = True
        for one in self.rolling:
            one.become_steady()

    def why_not_stable(self, topics: Mapping[str, tuple[Uuid, int]]) -> str | None:
        """They are at their targets."""
        if not self.reshaper.is_done or self.admin.errands:
            return "topics are still changed"
        groups: dict[str, list[Heartbeating | Classical]] = {
            MOVING: [one.now for one in self.rolling if not one.is_retired]
        }
        for member in self.members:
            groups.setdefault(member.group, []).append(member)
        for group, members in groups.items():
            why = why_not_at_target(members, topics)
            if why is not None:
                return f"{group}: {why}, after {self.changes} of the last changes"
        why = self.why_not_moved()
        if why is not None:
            return f"{why}, after {self.changes} of the last changes"
        counts = [len(member.owned) for member in self.members if member.group == EVEN]
        if max(counts) - min(counts) > 1:
            return f"{EVEN}: its members have {counts} partitions"
        return "a session is not over" if self.stage.now_ms() < self.quiet_until_ms else None

    def changes_once_more(self, topics: Mapping[str, tuple[Uuid, int]]) -> bool:
        """Nobody else comes or goes meanwhile, which would make a group look at everything."""
        if self.changes == LAST_CHANGES:
            return False
        self.change(self.changes, topics)
        self.changes += 1
        return True

    def why_not_moved(self) -> str | None:
        for one in self.rolling:
            if (one.now is not one.next or one.must_restart) and not one.is_retired:
                return f"{one.name} does not change its protocol"
        return self.operator.why_other_type()

    def change(self, number: int, topics: Mapping[str, tuple[Uuid, int]]) -> None:
        admin = self.admin
        if number == 0:
            admin.errands += [admin.delete(CHANGING), admin.create(CHANGING, topics[CHANGING][1])]
        elif number == 1:
            admin.errands.append(admin.create(LATE, 2))
        elif number == 2:
            admin.errands.append(admin.add_partitions(GROWING, topics[GROWING][1] + 1))
        elif number == 3:
            self.roll(0)
        elif number == 4:
            self.roll(1)  # the others give it what they consume
        elif number == 5:  # whoever sends heartbeats is a member all that time
            self.quiet_until_ms = self.stage.now_ms() + QUIET_MS
        elif number == 6:  # the group is classic for a moment, and its members have not noticed
            self.rolling[0].restart()
        elif number == 7:
            self.roll(len(self.rolling))
        elif number == 8:
            self.roll(1)  # the others wait for what it gives them
        elif number == 9:
            self.rolling[0].retire()  # the last one of the consumer protocol: the others have its partitions now
            for member in self.members:
                if member.group == MIXED:
                    member.subscribe(BOTH if member.subscription == REGEX else REGEX)
        elif number == 10:  # the third one is to have the whole topic
            self.rolling[1].older.subscribe((CHANGING, EXTRA))
            self.lose_interest()
        else:  # it is to give some of that back, and the group is upgraded before it does
            self.rolling[2].older.is_slow = True
            self.rolling[1].older.subscribe((GROWING,))
            self.rolling[0].come_back()

    def lose_interest(self) -> None:
        """One member alone, and nobody is fenced meanwhile, which would make its group look at everything once more."""
        for member in self.members:
            member.habits = replace(member.habits, is_stubborn=False)
        self.members[-1].subscribe((CHANGING, EXTRA))

    def roll(self, newer: int) -> None:
        """So many are to be of the consumer protocol, the others of the classic one."""
        for place, one in enumerate(self.rolling):
            one.roll(is_newer=place < newer)


def why_not_at_target(
    members: Sequence[Heartbeating | Classical], topics: Mapping[str, tuple[Uuid, int]]
) -> str | None:
    """By what the members believe: each partition that somebody subscribes to has one owner, and the right one."""
    owners: dict[At, Heartbeating | Classical] = {}
    for member in members:
        if member.epoch <= 0:
            return f"{member.name} is not a member"
        if member.owned != member.target:
            return f"{member.name} owns {len(member.owned)} partitions, and is assigned {len(member.target)}"
        wanted = {topics[name][0] for name in topics if member.is_subscribed_to(name)}
        for at in member.owned:
            if at in owners:
                return f"{at} is owned by {owners[at].name} and {member.name}"
            if at[0] not in wanted:
                return f"{member.name} owns {at}, and is not subscribed to that"
            owners[at] = member
    all_of_them = {
        (topic_id, partition)
        for name, (topic_id, count) in topics.items()
        if any(member.is_subscribed_to(name) for member in members)
        for partition in range(count)
    }
    missing = all_of_them - owners.keys()
    return f"nobody owns {sorted(missing)}" if missing else None
