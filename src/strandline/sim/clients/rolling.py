"""A consumer that is started again as a member of the other protocol, while its group goes on; and an operator who
rolls such consumers of a group one after the other, sometimes only half-way (KIP-848, "Upgrade" and "Downgrade").
"""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.sim.clients.classical import Classical
from strandline.sim.clients.client import Client, Life, Request, Stage
from strandline.sim.clients.committer import Coordinated
from strandline.sim.clients.heartbeating import BE_BACK, LEAVES, Habits, Heartbeating
from strandline.wire.messages.groups.list_groups import ListGroupsRequest

AT_ONCE_MS, LATER_MS = (2, 20), (20, 400)
AMID_MAX_MS = 2000  # eager members give back everything before they join: nobody is amid that
Asking = Generator[Any, Any, Any]


class Rolling(Client):
    def __init__(
        self, stage: Stage, name: str, group: str, topic: str, habits: Habits, committed: dict[int, int], strategy: str
    ) -> None:
        super().__init__(stage, name)
        self.newer = Heartbeating(stage, f"{name}-newer", group, topic, habits, committed)
        self.older = Classical(stage, f"{name}-older", group, topic, habits, committed, strategy)
        self.now: Heartbeating | Classical = self.older
        self.next: Heartbeating | Classical = self.older
        self.is_killed = False  # when it is to be the other one
        self.is_retired = False  # it leaves, and nothing comes in its place until it is to come back
        self.must_restart = False  # with the protocol that it has, at once
        self.others: list[Rolling] = []  # in its group
        self.rolls = 0

    @property
    def is_newer(self) -> bool:
        return self.now is self.newer

    @property
    def acked(self) -> int:
        return self.newer.acked + self.older.acked

    def roll(self, *, is_newer: bool) -> None:
        self.next = self.newer if is_newer else self.older
        self.is_killed = self.rng.randrange(3) == 0

    def retire(self) -> None:
        self.is_retired, self.is_killed = True, False

    def come_back(self) -> None:
        assert self.is_retired, f"{self.name} is there"
        self.is_retired = False

    def restart(self) -> None:
        self.must_restart, self.is_killed = True, False

    def become_steady(self) -> None:
        self.newer.is_steady = self.older.is_steady = True

    def live(self) -> Life:
        while not self.is_stopped:
            self.now = self.next
            self.now.is_stopped = False
            yield from self.run(self.now)
            if not self.is_stopped:
                yield from self.end(self.now)
            if self.is_retired:
                yield from self.come_amid_a_rebalance()
        self.report(f"has changed its protocol {self.rolls} times, and was told of {self.acked} commits")

    def run(self, member: Heartbeating | Classical) -> Asking:
        """Until it is to be the other one. Perhaps its process is killed then, in the middle of anything."""
        life, answer = member.live(), None
        while True:
            must_end = self.next is not member or self.is_retired or self.must_restart
            if must_end and self.is_killed:
                life.close()
                return
            member.is_stopped = self.is_stopped or must_end
            try:
                wish = life.send(answer)
            except StopIteration:
                return
            answer = yield wish

    def end(self, member: Heartbeating | Classical) -> Asking:
        if self.next is member:
            what = "gone" if self.is_retired else "started again"
        else:
            self.rolls += 1
            what = "older" if self.is_newer else "newer"
        self.report(f"{'is killed' if self.is_killed else 'ends'}, to be {what}")
        if not self.is_killed and isinstance(member, Heartbeating):
            yield from member.leave(BE_BACK if member.habits.instance_id else LEAVES)
        elif not self.is_killed and isinstance(member, Classical):
            yield from member.leave()
        member.die()
        self.next.subscribe(member.subscription)
        yield self.pause(*(AT_ONCE_MS if self.must_restart else LATER_MS))
        self.must_restart = False

    def come_amid_a_rebalance(self) -> Asking:
        """When it is to come back, it does so as soon as another one has something to give back."""
        while self.is_retired and not self.is_stopped:
            yield self.pause(*AT_ONCE_MS)
        since_ms = self.stage.now_ms()
        while (
            not self.is_stopped
            and not any(other.now.owned - other.now.target for other in self.others)
            and self.stage.now_ms() - since_ms < AMID_MAX_MS
        ):
            yield self.pause(*AT_ONCE_MS)


class Operator(Coordinated):
    """Rolls consumers to the other protocol. When all is calm it looks which type the group has."""

    def __init__(self, stage: Stage, name: str, group: str, topic: str, consumers: Sequence[Rolling]) -> None:
        super().__init__(stage, name, group, topic)
        self.consumers = consumers
        self.is_steady = False
        self.type = ""

    def live(self) -> Life:
        is_newer = True
        while not self.is_stopped:
            if self.is_steady:
                yield from self.look()
                yield self.pause(100, 200)
                continue
            yield self.pause(300, 1500)
            half_way = self.rng.randrange(1, len(self.consumers)) if self.rng.randrange(3) == 0 else len(self.consumers)
            for consumer in self.rng.sample(list(self.consumers), half_way):
                if not self.is_stopped and not self.is_steady:
                    consumer.roll(is_newer=is_newer)
                    yield self.pause(100, 900)
            is_newer = not is_newer

    def look(self) -> Life:
        coordinator = yield from self.find_coordinator()
        answer = None if coordinator is None else (yield Request(coordinator, ListGroupsRequest(), 5, 1000))
        if answer is None or answer.error_code:
            self.coordinator = None
            return
        types = [row.group_type for row in answer.groups if row.group_id == self.group]
        self.type = types[0] if types else ""
        if not types:
            self.coordinator = None

    def why_other_type(self) -> str | None:
        wanted = "consumer" if any(one.is_newer and not one.is_retired for one in self.consumers) else "classic"
        return None if self.type == wanted else f"{self.group} is of type {self.type!r}, not {wanted}"
