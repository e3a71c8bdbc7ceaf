"""How long rebalances of a group take, with real connections to one cluster.

    python -m tests.cluster.rebalance --members 500                                # one node of this tree
    python -m tests.cluster.rebalance --members 500 --protocol consumer            # KIP-848
    python -m tests.cluster.rebalance --members 500 --bootstrap 127.0.0.1:9092     # any cluster that speaks Kafka

One process speaks the protocol for all members, each with a connection of its own, as consumers do: heartbeats at an
interval, and a new JoinGroup when one of them says that the group rebalances. A rebalance has ended when every member
has its assignment. The figures: "form": from the first JoinGroup of an empty group, without `--delay-ms` for which the
coordinator waits for more members (group.initial.rebalance.delay.ms, 3000 unless a broker says otherwise); "grow": one
more member comes; "shrink": it leaves; "again": the leader joins again, as with another subscription.

Of "grow", "shrink" and "again" most is the time until the last member's next heartbeat. What the coordinator's own work
takes is in "busy": from the last JoinGroup that it waited for to the last assignment.

With `--protocol consumer` the topic has one partition more than the group has members when it is formed. The members
send heartbeats at the interval that the answers have. A rebalance has ended when all members have one epoch, and all
partitions between them. There is no "again", and "slowest" is the longest time that a heartbeat waited for its answer.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.testing.local_cluster import HOST, LocalCluster
from strandline.wire.api import API_BY_KEY
from strandline.wire.frame import decode_response, encode_request
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest
from strandline.wire.schema import Message

SUBSCRIPTION, ASSIGNMENT = bytes(200), bytes(100)
VERSIONS: dict[type[Message], int] = {
    FindCoordinatorRequest: 3,
    JoinGroupRequest: 5,
    SyncGroupRequest: 3,
    HeartbeatRequest: 3,
    LeaveGroupRequest: 3,
    ConsumerGroupHeartbeatRequest: 0,
    CreateTopicsRequest: 5,
    DeleteTopicsRequest: 5,
}
GROUP = f"rebalance-{time.time_ns()}"
AGAIN_S = 0.05


class Client:
    """One connection, one request at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(*self.address)

    async def ask(self, message: Message) -> Any:
        version = VERSIONS[type(message)]
        self.writer.writelines(encode_request(message, version, 1, "rebalance"))
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        frame = memoryview(await self.reader.readexactly(size))
        return decode_response(API_BY_KEY[message.api_key].response, version, frame)[1]


class Members:
    """The group, as its members see it."""

    def __init__(self, address: tuple[str, int], heartbeat_s: float) -> None:
        self.address = address
        self.heartbeat_s = heartbeat_s
        self.all: list[Any] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.leader_id = ""
        self.last_join = 0.0  # when the last JoinGroup was sent
        self.last_assignment = 0.0

    async def wait_assigned(self, since: int) -> int:
        """Wait until all have their assignments in one generation behind `since`."""
        while True:
            for task in self.tasks:
                if task.done() and task.exception():
                    await task  # raises what its member did not expect
            if (generation := self.generation()) > since:
                return generation
            await asyncio.sleep(0.002)

    def generation(self) -> int:
        """In which all have their assignments; -1: in none."""
        found = {member.generation if member.is_assigned else -1 for member in self.all}
        return min(found) if len(found) == 1 else -1

    def member(self) -> "Member | Consumer":
        return Member(self)

    async def measured(self, since: int, begun: float) -> tuple[int, dict[str, float]]:
        generation = await self.wait_assigned(since)
        busy = self.last_assignment - self.last_join
        return generation, {"s": round(self.last_assignment - begun, 3), "busy_s": round(busy, 3)}


class Member:
    def __init__(self, members: Members) -> None:
        self.members = members
        self.client = Client(members.address)
        self.member_id = ""
        self.generation = -1
        self.is_assigned = False
        self.must_join = True
        self.leaves = False

    async def run(self) -> None:
        await self.client.open()
        while not self.leaves:
            if self.must_join:
                await self.join()
            else:
                await asyncio.sleep(self.members.heartbeat_s)
                request = HeartbeatRequest(group_id=GROUP, member_id=self.member_id, generation_id=self.generation)
                error = ErrorCode((await self.client.ask(request)).error_code)
                assert error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS), error
                self.must_join |= error is not ErrorCode.NONE
        request = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=self.member_id),))
        assert (await self.client.ask(request)).error_code == 0

    async def join(self) -> None:
        self.is_assigned = self.must_join = False
        protocols = (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        self.members.last_join = time.monotonic()
        joined = await self.client.ask(request)
        if joined.error_code:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED, ErrorCode(joined.error_code)
            self.member_id, self.must_join = joined.member_id, True
            return
        self.member_id, self.generation, self.members.leader_id = joined.member_id, joined.generation_id, joined.leader
        rows = tuple(SyncGroupRequestAssignment(member_id=m.member_id, assignment=ASSIGNMENT) for m in joined.members)
        sync = SyncGroupRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.member_id, assignments=rows
        )
        synced = await self.client.ask(sync)
        self.must_join = synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert self.must_join or synced.error_code == 0, ErrorCode(synced.error_code)
        self.is_assigned = not self.must_join
        self.members.last_assignment = time.monotonic()


class Consumers(Members):
    """A group of the consumer protocol. Its generation is the epoch of all members."""

    def __init__(self, address: tuple[str, int], partitions: int) -> None:
        super().__init__(address, 0)
        self.partitions = partitions
        self.slowest = 0.0

    def generation(self) -> int:
        if len({member.epoch for member in self.all}) != 1:
            return -1
        owned = [at for member in self.all for at in member.owned]
        assert len(set(owned)) == len(owned), "no partition has two owners in one epoch"
        return int(self.all[0].epoch) if len(owned) == self.partitions else -1

    def member(self) -> "Member | Consumer":
        return Consumer(self)

    async def measured(self, since: int, begun: float) -> tuple[int, dict[str, float]]:
        self.slowest = 0.0
        epoch = await self.wait_assigned(since)
        return epoch, {"s": round(time.monotonic() - begun, 3), "slowest_s": round(self.slowest, 3)}


class Consumer:
    """As clients do, it reports what it owns at once if that has changed, and says nothing that has not."""

    def __init__(self, members: Consumers) -> None:
        self.members = members
        self.client = Client(members.address)
        self.member_id = ""
        self.epoch = 0
        self.owned: frozenset[tuple[bytes, int]] = frozenset()
        self.leaves = False

    async def run(self) -> None:
        await self.client.open()
        heartbeat_s = await self.beat(
            rebalance_timeout_ms=300_000, subscribed_topic_names=(GROUP,), topic_partitions=()
        )
        while not self.leaves:
            await asyncio.sleep(heartbeat_s)
            await self.beat()
        await self.ask(member_epoch=-1)

    async def beat(self, **fields: Any) -> float:
        """The interval until the next one."""
        while True:
            answer = await self.ask(**{"member_epoch": self.epoch, **fields})
            self.member_id, self.epoch = answer.member_id, answer.member_epoch
            rows = () if answer.assignment is None else answer.assignment.topic_partitions
            owned = frozenset((bytes(row.topic_id), p) for row in rows for p in row.partitions)
            if answer.assignment is None or owned == self.owned:
                return float(answer.heartbeat_interval_ms / 1000)
            self.owned = owned
            by_topic = {topic: tuple(p for t, p in owned if t == topic) for topic, _ in owned}
            fields = {"topic_partitions": tuple(TopicPartitions(topic_id=t, partitions=p) for t, p in by_topic.items())}

    async def ask(self, **fields: Any) -> Any:
        begun = time.monotonic()
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=self.member_id, **fields)
        answer = await self.client.ask(request)
        assert answer.error_code == 0, (ErrorCode(answer.error_code), answer.error_message)
        self.members.slowest = max(self.members.slowest, time.monotonic() - begun)
        return answer


async def coordinator(address: tuple[str, int]) -> tuple[str, int]:
    client = Client(address)
    await client.open()
    while True:  # it creates its topic
        found = await client.ask(FindCoordinatorRequest(key=GROUP))
        if not found.error_code:
            return found.host, found.port
        await asyncio.sleep(AGAIN_S)


async def measure_classic(bootstrap: tuple[str, int], count: int, heartbeat_s: float, delay_s: float) -> dict[str, Any]:
    members = Members(await coordinator(bootstrap), heartbeat_s)
    figures, generation = await measure(members, count, delay_s)
    begun = time.monotonic()
    next(member for member in members.all if member.member_id == members.leader_id).must_join = True
    generation, figures["again"] = await members.measured(generation, begun)
    await end(members)
    return figures


async def measure_consumer(bootstrap: tuple[str, int], count: int) -> dict[str, Any]:
    admin = Client(bootstrap)
    await admin.open()
    topic = CreatableTopic(name=GROUP, num_partitions=count + 1, replication_factor=1)
    created = (await admin.ask(CreateTopicsRequest(topics=(topic,)))).topics[0]
    assert created.error_code == 0, (ErrorCode(created.error_code), created.error_message)
    members = Consumers(await coordinator(bootstrap), count + 1)
    figures, _ = await measure(members, count, 0)
    await end(members)
    await admin.ask(DeleteTopicsRequest(topic_names=(GROUP,)))
    return figures


async def measure(members: Members, count: int, delay_s: float) -> tuple[dict[str, Any], int]:
    """The figures that both protocols have, and the generation at their end."""
    await asyncio.sleep(1)  # until the coordinator has loaded
    members.all = [members.member() for _ in range(count)]
    begun = time.monotonic()
    members.tasks = [asyncio.create_task(member.run()) for member in members.all]
    figures: dict[str, Any] = {"members": count}
    generation, formed = await members.measured(0, begun)
    formed.pop("busy_s", None)  # it has the delay in it
    figures["form"] = {**formed, "s": round(formed["s"] - delay_s, 3)}

    begun = time.monotonic()
    newcomer = members.member()
    members.all.append(newcomer)
    members.tasks.append(task := asyncio.create_task(newcomer.run()))
    generation, figures["grow"] = await members.measured(generation, begun)

    members.all.remove(newcomer)
    newcomer.leaves = True
    await task
    begun = time.monotonic()
    generation, figures["shrink"] = await members.measured(generation, begun)
    return figures, generation


async def end(members: Members) -> None:
    for task in members.tasks:
        task.cancel()
    await asyncio.gather(*members.tasks, return_exceptions=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port; a node of this tree if it is not given")
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--heartbeat-ms", type=int, default=3_000, help="of the classic protocol")
    parser.add_argument("--delay-ms", type=int, default=3_000, help="group.initial.rebalance.delay.ms of the cluster")
    options = parser.parse_args()

    def run(host: str, port: int) -> None:
        if options.protocol == "consumer":
            work = measure_consumer((host, port), options.members)
        else:
            work = measure_classic((host, port), options.members, options.heartbeat_ms / 1000, options.delay_ms / 1000)
        print(json.dumps(asyncio.run(work)))

    if options.bootstrap:
        host, _, port = options.bootstrap.rpartition(":")
        run(host, int(port))
        return 0
    properties = {"group.initial.rebalance.delay.ms": str(options.delay_ms)}
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder), 1, properties=properties) as cluster:
        run(HOST, cluster.nodes[0].port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
