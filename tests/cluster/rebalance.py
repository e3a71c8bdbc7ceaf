"""How long rebalances of a classic group take, with real connections to one cluster.

    python -m tests.cluster.rebalance --members 500                                # one node of this tree
    python -m tests.cluster.rebalance --members 500 --bootstrap 127.0.0.1:9092     # any cluster that speaks Kafka

One process speaks the protocol for all members, each with a connection of its own, as consumers do: heartbeats at an
interval, and a new JoinGroup when one of them says that the group rebalances. A rebalance has ended when every member
has its assignment. The figures: "form": from the first JoinGroup of an empty group, without `--delay-ms` for which the
coordinator waits for more members (group.initial.rebalance.delay.ms, 3000 unless a broker says otherwise); "grow": one
more member comes; "shrink": it leaves; "again": the leader joins again, as with another subscription.

Of "grow", "shrink" and "again" most is the time until the last member's next heartbeat. What the coordinator's own work
takes is in "busy": from the last JoinGroup that it waited for to the last assignment.
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
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from strandline.wire.schema import Message

SUBSCRIPTION, ASSIGNMENT = bytes(200), bytes(100)
VERSIONS: dict[type[Message], int] = {
    FindCoordinatorRequest: 3,
    JoinGroupRequest: 5,
    SyncGroupRequest: 3,
    HeartbeatRequest: 3,
    LeaveGroupRequest: 3,
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
        self.all: list[Member] = []
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
            generations = {member.generation if member.is_assigned else -1 for member in self.all}
            if len(generations) == 1 and min(generations) > since:
                return min(generations)
            await asyncio.sleep(0.002)

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


async def coordinator(address: tuple[str, int]) -> tuple[str, int]:
    client = Client(address)
    await client.open()
    while True:  # it creates its topic
        found = await client.ask(FindCoordinatorRequest(key=GROUP))
        if not found.error_code:
            return found.host, found.port
        await asyncio.sleep(AGAIN_S)


async def measure(bootstrap: tuple[str, int], count: int, heartbeat_s: float, delay_s: float) -> dict[str, Any]:
    members = Members(await coordinator(bootstrap), heartbeat_s)
    await asyncio.sleep(1)  # until it has loaded
    members.all = [Member(members) for _ in range(count)]
    begun = time.monotonic()
    members.tasks = [asyncio.create_task(member.run()) for member in members.all]
    figures: dict[str, Any] = {"members": count}
    generation, formed = await members.measured(0, begun)
    figures["form"] = {"s": round(formed["s"] - delay_s, 3)}

    begun = time.monotonic()
    newcomer = Member(members)
    members.all.append(newcomer)
    members.tasks.append(task := asyncio.create_task(newcomer.run()))
    generation, figures["grow"] = await members.measured(generation, begun)

    members.all.remove(newcomer)
    newcomer.leaves = True
    await task
    begun = time.monotonic()
    generation, figures["shrink"] = await members.measured(generation, begun)

    begun = time.monotonic()
    next(member for member in members.all if member.member_id == members.leader_id).must_join = True
    generation, figures["again"] = await members.measured(generation, begun)
    for task in members.tasks:
        task.cancel()
    await asyncio.gather(*members.tasks, return_exceptions=True)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port; a node of this tree if it is not given")
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--heartbeat-ms", type=int, default=3_000)
    parser.add_argument("--delay-ms", type=int, default=3_000, help="group.initial.rebalance.delay.ms of the cluster")
    options = parser.parse_args()

    def run(host: str, port: int) -> None:
        timing = options.heartbeat_ms / 1000, options.delay_ms / 1000
        print(json.dumps(asyncio.run(measure((host, port), options.members, *timing))))

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
