"""The consumer protocol with many groups, or many members: heartbeats go to a coordinator, and each is one step."""

from collections.abc import Iterator
from typing import Any

from tests.steps.groups import Driver
from tests.steps.stopwatch import Stopwatch

from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch, Uuid
from strandline.base.time import Instant
from strandline.group.config import GroupConfig
from strandline.group.consumer.group import ConsumerGroupState
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

HEARTBEAT_MS = GroupConfig().consumer_heartbeat_interval_ms
SESSION_MS = GroupConfig().consumer_session_timeout_ms
PARTITIONS = 1_000  # of the topic of the large group
VERSION = 1


class Consumers:
    """Clients that do what they are told, as far as a coordinator sees that."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.epochs: dict[tuple[str, str], int] = {}  # by group and member
        self.has: dict[tuple[str, str], Any] = {}

    def join(self, group_id: str, member_id: str, topic: str, watch: Stopwatch) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(topic,),
            topic_partitions=(),
        )
        self.took((group_id, member_id), self.driver.send(watch, request, VERSION))

    def beat(self, at: tuple[str, str], watch: Stopwatch) -> None:
        """What the member has it reports if that has changed."""
        has = self.has.pop(at, None)
        request = ConsumerGroupHeartbeatRequest(
            group_id=at[0], member_id=at[1], member_epoch=self.epochs[at], topic_partitions=has
        )
        self.took(at, self.driver.send(watch, request, VERSION))

    def took(self, at: tuple[str, str], number: int) -> None:
        answer = self.driver.answers.pop(number)
        assert answer.error_code == ErrorCode.NONE, (at, answer)
        self.epochs[at] = answer.member_epoch
        if answer.assignment is not None:
            self.has[at] = tuple(
                TopicPartitions(topic_id=Uuid(bytes(row.topic_id)), partitions=row.partitions)
                for row in answer.assignment.topic_partitions
            )

    def round(self, watch: Stopwatch, late: Stopwatch) -> None:
        for at in self.epochs:
            self.beat(at, watch)
        self.driver.wait(late, HEARTBEAT_MS)

    def await_stable(self, watch: Stopwatch) -> None:
        """Heartbeats until every group is stable, and everybody has reported what it has."""
        for _ in range(10):
            self.round(watch, watch)
            states = {group.state for group in self.driver.world.shard.groups.values()}
            if states == {ConsumerGroupState.STABLE} and not self.has:
                return
        raise AssertionError(f"not stable: {states}")


def fail_over(driver: Driver, watch: Stopwatch) -> None:
    driver.world.log.epoch = LeaderEpoch((driver.world.log.epoch or 0) + 1)
    watch.step(lambda: driver.take(driver.groups.follow_leadership(Instant(driver.now))))
    driver.wait(watch, 1_000)


def scenario(name: str, groups: dict[str, list[str]], topic: str, rounds: int) -> Iterator[Stopwatch]:
    driver = Driver()
    driver.world.create("large", PARTITIONS)
    consumers = Consumers(driver)
    yield (forming := Stopwatch(f"{name}: they join, and reach their assignments"))
    for group_id, ids in groups.items():
        for member_id in ids:
            consumers.join(group_id, member_id, topic, forming)
    consumers.await_stable(forming)
    yield (beating := Stopwatch(f"{name}: {rounds} heartbeats of each"))
    yield (timing := Stopwatch(f"{name}: time passes meanwhile"))
    for _ in range(rounds):
        consumers.round(beating, timing)
    yield (growing := Stopwatch(f"{name}: the topic gets more partitions"))
    driver.world.add_partitions(topic, PARTITIONS + 8 if topic == "large" else 4)
    delta = driver.world.image.take_delta()
    growing.step(lambda: driver.take(driver.groups.apply(driver.world.image, delta, Instant(driver.now))))
    consumers.await_stable(growing)
    yield (loading := Stopwatch(f"{name}: their coordinator fails over"))
    fail_over(driver, loading)
    consumers.await_stable(loading)
    yield (ending := Stopwatch(f"{name}: all sessions end"))
    driver.wait(ending, 2 * SESSION_MS)
    assert not any(group.members for group in driver.world.shard.groups.values())


def main(groups: int, members: int) -> None:
    large = scenario(
        f"a consumer group of {members} members", {"g": [f"m{at}" for at in range(members)]}, "large", rounds=12
    )
    many = scenario(
        f"{groups:,} consumer groups of 2 members", {f"g{at}": ["a", "b"] for at in range(groups)}, "t", rounds=12
    )
    for rows in (large, many):
        for watch in list(rows):
            print(watch, flush=True)
