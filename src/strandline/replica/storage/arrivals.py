"""New partitions get their logs a few in a step: a topic may have thousands, and a node that is deaf for seconds misses
its heartbeats and the quorum's elections.

What waits here is as if metadata had not named it yet, which lags on every broker: it is neither led nor followed, and
who asks for it asks again. It is made with what metadata says when its turn has come.

Invariant (executed by `check`): what waits is this broker's, and has no log yet.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from strandline.base.effects import Effect
from strandline.base.ids import OFFSETS_TOPIC, TopicIdPartition, TopicPartition
from strandline.base.time import Instant
from strandline.metadata.image import Partition
from strandline.replica.losses.losing import expect_beginnings
from strandline.replica.losses.withdrawing import released
from strandline.replica.storage.owners import has_misread_id
from strandline.replica.timers import Alarm

if TYPE_CHECKING:
    from strandline.replica.replicas import Replicas

LOGS_PER_STEP = 100
PAUSE_MS = 1  # whoever has asked meanwhile is heard first


class Arrivals:
    def __init__(self, replicas: "Replicas") -> None:
        self.replicas = replicas
        self.waiting: dict[TopicIdPartition, bool] = {}  # is it new to this broker?
        self.turn = Alarm(replicas.host.timers, self.go_on)  # of the next ones

    def meet(
        self,
        changed: Iterable[TopicIdPartition],
        old: Mapping[TopicIdPartition, Partition | None],
        effects: list[Effect],
        now: Instant,
    ) -> None:
        """Take over what metadata now says of these partitions, as far as they are this broker's."""
        self.forget_lost()
        expect_beginnings(self.replicas.host, changed, now)
        replicas, me = self.replicas, self.replicas.me
        made = 0
        for at in changed:
            if not replicas.is_mine(at) or not released(replicas, at, effects, now):
                continue
            before = old.get(at)
            is_new = at in old and (before is None or me not in before.replicas)
            if self.needs_log(at):
                made += 1
                if made > LOGS_PER_STEP or at in self.waiting:
                    self.waiting[at] = is_new or self.waiting.get(at, False)
                    self.clear_name(at, effects, now)
                    continue
            replicas.become(at, is_new, effects, now)
        replicas.epoch_files.go_on(now)
        self.arm(now)

    def needs_log(self, at: TopicIdPartition) -> bool:
        """The group coordinator loads what it leads at once; its topic is small."""
        host = self.replicas.host
        return host.find(at) is None and at not in host.absent and host.image.topics[at.topic_id].name != OFFSETS_TOPIC

    def clear_name(self, at: TopicIdPartition, effects: list[Effect], now: Instant) -> TopicPartition:
        """Delete other topics' logs under the partition's name (T39), also while it waits: who asks by that name must
        not find them. Unless one is its own (`has_misread_id`): then the partition is absent."""
        replicas = self.replicas
        name = TopicPartition(replicas.host.image.topics[at.topic_id].name, at.partition)
        namesakes = replicas.storage.namesakes_of(None, name)
        if has_misread_id(replicas.host, namesakes, at):
            return name
        for namesake in namesakes:
            replicas.delete(namesake, effects, now)
        return name

    def go_on(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for at in list(self.waiting)[:LOGS_PER_STEP]:
            is_new = self.waiting.pop(at)
            if released(self.replicas, at, effects, now):
                self.replicas.become(at, is_new, effects, now)
        self.replicas.epoch_files.go_on(now)
        self.arm(now)
        return effects

    def delete_strays(self, now: Instant) -> list[Effect]:
        """Logs that were found, and that metadata gives to nobody here: their names are free for those that come."""
        effects: list[Effect] = []
        for hosted in list(self.replicas.host.all()):
            if hosted.role is None and not self.replicas.is_mine(hosted.at):
                self.replicas.delete(hosted, effects, now)
        return effects

    def forget_lost(self) -> None:
        """What replicas lost that are others' by now, or nobody's, need not be told."""
        withdrawals = self.replicas.host.withdrawals
        for at in list(withdrawals.held):
            if not self.replicas.is_mine(at):
                withdrawals.forget(at)

    def arm(self, now: Instant) -> None:
        if self.waiting:
            self.turn.set(now + PAUSE_MS)

    def check(self) -> None:
        for at in self.waiting:
            assert self.replicas.is_mine(at) and self.replicas.host.find(at) is None, at
