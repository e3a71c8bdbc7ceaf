"""The classic protocol with many groups, or many members: requests go to a coordinator, and each is one step."""

from collections.abc import Iterator
from typing import Any

from tests.steps.stopwatch import Stopwatch
from tests.unit.group.coordination import Coordination, join_request

from strandline.base.effects import Caller, Effect, Received, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.group.coordinator import Groups
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_MS = 45_000
HEARTBEAT_MS = 3_000
SUBSCRIPTION = bytes(200)
ASSIGNMENT = bytes(100)


class Driver:
    """A coordinator whose writes are committed at once. A step is what a node does with one event: the request is
    decoded, the answers are encoded, and it is asked when time counts next."""

    def __init__(self) -> None:
        self.world = Coordination(delay_ms=3_000, offsets_retention_ms=3_600_000)
        self.groups: Groups = self.world.groups
        self.now = self.world.now
        self.sequence = 0
        self.answers: dict[int, Any] = {}

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Reply)
            encode_bytes(effect.message, effect.to.api_version)
            self.answers[effect.to.sequence] = effect.message
        self.groups.deadline()

    def send(self, watch: Stopwatch, message: Any, version: int) -> int:
        self.sequence += 1
        packed = encode_bytes(message, version)
        to = ReplyTo(1, self.sequence, self.sequence, type(message).key, version)

        def step() -> None:
            received = Received(to, Caller("app", "10.0.0.1", "PLAINTEXT"), decode_all(type(message), version, packed))
            self.take(self.groups.answer(received, Instant(self.now)))

        watch.step(step)
        while self.world.log.under_way:
            watch.step(self.commit)
        return self.sequence

    def commit(self) -> None:
        batch, done = self.world.log.under_way.pop(0)
        self.take(done(ErrorCode.NONE, self.world.log.written(batch), Instant(self.now)))

    def wait(self, watch: Stopwatch, span_ms: int) -> None:
        end = self.now + span_ms
        while (due := self.groups.deadline()) <= end:
            self.now = max(self.now, due)
            watch.step(lambda: self.take(self.groups.expire(Instant(self.now))))
            while self.world.log.under_way:
                watch.step(self.commit)
        self.now = end


def joins(driver: Driver, group_id: str, count: int, watch: Stopwatch) -> list[str]:
    """Members come one after another, as clients do: for an id first. Returns their ids."""
    request = join_request(group_id=group_id, session=SESSION_MS, protocols=offered())
    ids = [driver.answers[driver.send(watch, request, 9)].member_id for _ in range(count)]
    driver.answers.clear()
    rejoin(driver, group_id, ids, watch)
    return ids


def offered() -> dict[str, bytes]:
    return {"range": SUBSCRIPTION, "cooperative-sticky": SUBSCRIPTION}


def rejoin(driver: Driver, group_id: str, ids: list[str], watch: Stopwatch) -> None:
    for member_id in ids:
        driver.send(watch, join_request(member_id, group_id=group_id, session=SESSION_MS, protocols=offered()), 9)


def syncs(driver: Driver, group_id: str, ids: list[str], watch: Stopwatch) -> None:
    group = driver.world.shard.groups[group_id]
    for member_id in sorted(ids, key=lambda one: one == group.leader):  # the leader last
        rows = tuple(SyncGroupRequestAssignment(member_id=one, assignment=ASSIGNMENT) for one in ids)
        request = SyncGroupRequest(
            group_id=group_id,
            member_id=member_id,
            generation_id=group.generation,
            assignments=rows if member_id == group.leader else (),
        )
        driver.send(watch, request, 5)


def heartbeats(driver: Driver, members: dict[str, list[str]], rounds: int, watch: Stopwatch, late: Stopwatch) -> None:
    for _ in range(rounds):
        for group_id, ids in members.items():
            generation = driver.world.shard.groups[group_id].generation
            for member_id in ids:
                request = HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=generation)
                driver.send(watch, request, 4)
            driver.answers.clear()  # clients keep nothing, and the collector has nothing of them to look at
        driver.wait(late, HEARTBEAT_MS)


def one_large(members: int) -> Iterator[Stopwatch]:
    driver = Driver()
    yield (joining := Stopwatch(f"a group of {members} members: they join"))
    ids = joins(driver, "g", members, joining)
    driver.wait(joining, 10_000)
    yield (syncing := Stopwatch(f"a group of {members} members: they sync"))
    syncs(driver, "g", ids, syncing)
    yield (beating := Stopwatch(f"a group of {members} members: 20 heartbeats of each"))
    yield (timing := Stopwatch(f"a group of {members} members: time passes meanwhile"))
    heartbeats(driver, {"g": ids}, 20, beating, timing)
    yield (again := Stopwatch(f"a group of {members} members: one more, so that all join and sync again"))
    request = join_request(group_id="g", session=SESSION_MS, protocols=offered())
    ids.append(driver.answers[driver.send(again, request, 9)].member_id)
    rejoin(driver, "g", ids[::-1], again)
    syncs(driver, "g", ids, again)
    yield (ending := Stopwatch(f"a group of {members} members: all sessions end"))
    driver.wait(ending, 2 * SESSION_MS)
    assert not driver.world.shard.groups["g"].members


def many(count: int, members: int) -> Iterator[Stopwatch]:
    driver = Driver()
    name = f"{count:,} groups of {members} members"
    yield (forming := Stopwatch(f"{name}: they are formed"))
    groups = {f"g{number}": joins(driver, f"g{number}", members, forming) for number in range(count)}
    driver.wait(forming, 10_000)
    for group_id, ids in groups.items():
        syncs(driver, group_id, ids, forming)
    yield (beating := Stopwatch(f"{name}: 20 heartbeats of each"))
    yield (timing := Stopwatch(f"{name}: time passes meanwhile"))
    heartbeats(driver, groups, 20, beating, timing)
    yield (committing := Stopwatch(f"{name}: each commits 4 offsets"))
    for group_id, ids in groups.items():
        generation = driver.world.shard.groups[group_id].generation
        driver.send(committing, commit(group_id, ids[0], generation), 8)
    yield (listing := Stopwatch(f"{name}: ListGroups"))
    for _ in range(3):
        driver.send(listing, ListGroupsRequest(), 4)
    yield (loading := Stopwatch(f"{name}: their coordinator fails over"))
    driver.world.log.epoch = LeaderEpoch(1)
    loading.step(lambda: driver.take(driver.groups.follow_leadership(Instant(driver.now))))
    driver.wait(loading, 1_000)
    yield (ending := Stopwatch(f"{name}: all sessions end"))
    driver.wait(ending, 2 * SESSION_MS)
    yield (forgetting := Stopwatch(f"{name}: their offsets are forgotten"))
    driver.wait(forgetting, driver.world.config.offsets_retention_ms + 600_000)
    assert not driver.world.shard.groups and not driver.world.shard.offsets


def commit(group_id: str, member_id: str, generation: int) -> OffsetCommitRequest:
    rows = tuple(OffsetCommitRequestPartition(partition_index=at, committed_offset=at) for at in range(2))
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(
            OffsetCommitRequestTopic(name="t", partitions=rows),
            OffsetCommitRequestTopic(name="u", partitions=rows),
        ),
    )


def main(groups: int, members: int) -> None:
    for rows in (one_large(members), many(groups, 10)):
        for watch in list(rows):
            print(watch, flush=True)
