"""A group of one that changes its protocol all the time: it is a member of the consumer protocol for a while, leaves,
and comes back as one of the classic protocol. Its positions go on."""

from collections.abc import Generator
from typing import Any

from strandline.sim.clients.client import Client, Life, Stage
from strandline.sim.clients.heartbeating import LEAVES, Habits, Heartbeating
from strandline.sim.clients.member import Member

TRIES, ROUNDS = 40, (2, 8)


class Turning(Client):
    def __init__(self, stage: Stage, name: str, group: str, topic: str) -> None:
        super().__init__(stage, name)
        committed: dict[int, int] = {}
        self.newer = Heartbeating(stage, f"{name}-newer", group, topic, Habits(interests=((topic,),)), committed)
        self.older = Member(stage, f"{name}-older", group, topic, committed)
        self.turns = 0  # how often it has committed in a protocol, and left

    def live(self) -> Life:
        while not self.is_stopped:
            if (yield from self.is_newer()) and not self.is_stopped and (yield from self.is_older()):
                self.turns += 1
        self.report(f"has changed its protocol and back {self.turns} times")

    def is_newer(self) -> Generator[Any, Any, bool]:
        member, before = self.newer, self.newer.acked
        enough = before + self.rng.randrange(*ROUNDS)
        yield from member.learn_topic()
        for _ in range(TRIES):
            if self.is_stopped or member.acked >= enough:
                break
            if (yield from member.beat()):
                member.reconcile()
                yield from member.work()
            yield self.pause(20, 100)
        yield from member.leave(LEAVES)
        return member.acked > before

    def is_older(self) -> Generator[Any, Any, bool]:
        member, before = self.older, self.older.acked
        rounds = self.rng.randrange(*ROUNDS)
        for _ in range(TRIES):
            if self.is_stopped or member.acked > before:
                break
            if (yield from member.join()) and (yield from member.read()):
                for _ in range(rounds):
                    for partition in member.positions:
                        if not (yield from member.advance(partition)):
                            break
                    if not (yield from member.beat()):
                        break
                    yield self.pause(20, 100)
            yield self.pause(20, 100)
        yield from member.leave()
        return member.acked > before
