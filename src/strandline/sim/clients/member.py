"""A member of a classic group: it joins, is assigned partitions, and commits a position in each, always one further.

Now and then it stands still for longer than a rebalance takes, and goes on as if nothing had happened. All members of a
group share what it ever learned to be committed: no member that speaks for the group sets that back.
"""

from collections.abc import Generator
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC
from strandline.sim.clients.client import Life, Stage
from strandline.sim.clients.committer import Coordinated
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

E = ErrorCode
PARTITIONS = 3
SESSION_MS, REBALANCE_MS = 2500, 400
LONG_SESSION_MS = 300_000  # longer than any clock jumps
WAIT_MS = 2500  # longer than a rebalance
STILL_MS = (500, 1500)
Asking = Generator[Any, Any, Any]


class Member(Coordinated):
    def __init__(
        self,
        stage: Stage,
        name: str,
        group: str,
        topic: str,
        committed: dict[int, int],
        instance: str = "",
        session_ms: int = SESSION_MS,
    ) -> None:
        super().__init__(stage, name, group, topic)
        self.committed = committed  # by partition: what the group knows to be committed, by an answer or by a read
        self.instance_id = instance or None
        self.session_ms = session_ms
        self.member_id, self.generation = "", -1
        self.positions: dict[int, int] = {}
        self.acked = 0

    def live(self) -> Life:
        while not self.is_stopped:
            if (yield from self.join()) and (yield from self.read()):
                yield from self.work()
            yield self.pause(20, 100)
        self.report(f"was told {self.acked} times that a position is committed")

    def join(self) -> Asking:
        """Who leads assigns all partitions. Each assignment says of which generation it is."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b"orders"),),
        )
        joined = yield from self.ask(request, 9, WAIT_MS)
        if joined is None or joined.error_code:
            if joined is not None and joined.error_code == E.MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
            else:
                self.refused(None if joined is None else E(joined.error_code))
            return False
        generation, self.member_id = joined.generation_id, joined.member_id
        shares: dict[str, list[int]] = {member.member_id: [] for member in joined.members}
        for partition in range(PARTITIONS if shares else 0):
            shares[sorted(shares)[(generation + partition) % len(shares)]].append(partition)
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member, assignment=b"%d:%s" % (generation, bytes(share)))
                for member, share in ({} if joined.skip_assignment else shares).items()
            ),
        )
        synced = yield from self.ask(sync, 5, WAIT_MS)
        if synced is None or synced.error_code or not synced.assignment:
            return False
        number, _, share = bytes(synced.assignment).partition(b":")
        assert int(number) == generation, (
            f"{self.name} is given what was assigned in generation {int(number)} in {generation}"
        )
        if generation != self.generation:
            self.positions = {}
        self.generation = generation
        self.positions = {partition: self.positions.get(partition, -1) for partition in share}
        return True

    def read(self) -> Asking:
        """Where the group is. What an earlier coordinator says, that knows of no other, is as old as its generation."""
        for partition in self.positions:
            answer = yield from self.fetch(partition)
            if answer is None:
                return False
            if answer < 0 and self.stage.was_removed(self.group, self.topic, partition):
                self.committed.pop(partition, None)
            self.positions[partition] = max(self.positions[partition], answer)
            self.committed[partition] = max(self.committed.get(partition, -1), answer)
        return True

    def work(self) -> Asking:
        while not self.is_stopped:
            for partition in self.positions:
                if not (yield from self.advance(partition)):
                    return
            if self.rng.randrange(12) == 0:
                yield self.pause(*STILL_MS)
            elif self.rng.randrange(12) == 0:
                yield from self.leave()
                return
            elif not (yield from self.beat()):
                return
            yield self.pause(20, 120)

    def advance(self, partition: int) -> Asking:
        position, committed = self.positions[partition] + 1, self.committed.get(partition, -1)
        if (yield from self.find_coordinator()) is None:
            return False
        error = yield from self.commit(partition, position, self.generation, self.member_id, self.instance_id)
        if error is not E.NONE:
            self.refused(error)
            return False
        if not self.stage.is_exceeded(OFFSETS_TOPIC):
            what = f"{self.name} set {self.group}'s position in {partition} back from {committed} to {position}"
            assert position > committed, f"{what}, in generation {self.generation}"
        self.positions[partition] = position
        self.committed[partition] = max(self.committed.get(partition, -1), position)
        self.acked += 1
        return True

    def beat(self) -> Asking:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        answer = yield from self.ask(request, 4, WAIT_MS)
        error = None if answer is None else E(answer.error_code)
        self.refused(error or E.NONE)
        return error is E.NONE

    def refused(self, error: ErrorCode | None) -> None:
        """It is a member still, or joins as another: where there was no answer, too, for what was asked may come late,
        and shall be from a member that is none any more."""
        if error in (None, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
            self.member_id = ""

    def leave(self) -> Asking:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        yield from self.ask(LeaveGroupRequest(group_id=self.group, members=(identity,)), 5, WAIT_MS)
        self.member_id = ""
