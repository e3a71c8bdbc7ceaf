"""A group of one that commits growing offsets; the last acknowledged one must never be lost."""

from collections.abc import Generator
from typing import Any

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC
from strandline.sim.clients.client import REFUSED, Client, Life, Request, Stage
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

E = ErrorCode
ELSEWHERE = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)
LATE_MAX = 3  # commits that had no answer and may still be on their way


class Coordinated(Client):
    """Who speaks to a group's coordinator, and looks for it again where it is not."""

    def __init__(self, stage: Stage, name: str, group: str, topic: str) -> None:
        super().__init__(stage, name)
        self.group = group
        self.topic = topic
        self.coordinator: Endpoint | None = None

    def find_coordinator(self) -> Generator[Any, Any, Endpoint | None]:
        if self.coordinator is None:
            request = FindCoordinatorRequest(coordinator_keys=(self.group,))
            answer = yield Request(self.any_node(), request, 4, 2000)
            if answer is None or answer.coordinators[0].error_code:
                yield 100
            else:
                self.coordinator = Endpoint(answer.coordinators[0].host, answer.coordinators[0].port)
        return self.coordinator

    def ask(self, message: Any, version: int = 1, timeout_ms: int = 1500) -> Generator[Any, Any, Any]:
        """An answer of the coordinator, or None: then it is looked for again."""
        coordinator = yield from self.find_coordinator()
        answer = None if coordinator is None else (yield Request(coordinator, message, version, timeout_ms))
        if answer is None or getattr(answer, "error_code", 0) in ELSEWHERE:
            self.coordinator = None
        return answer

    def commit(
        self, partition: int, offset: int, generation: int = -1, member_id: str = "", instance_id: str | None = None
    ) -> Generator[Any, Any, ErrorCode | None]:
        """None: there was no answer, and it may still be on its way."""
        coordinator = self.coordinator
        if coordinator is None:
            return E.COORDINATOR_NOT_AVAILABLE
        rows = (OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset),)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=(OffsetCommitRequestTopic(name=self.topic, partitions=rows),),
        )
        answer = yield Request(coordinator, request, 8, 2000)
        error = None if answer is None else E(answer.topics[0].partitions[0].error_code)
        if error is not E.NONE:
            self.coordinator = None
        return error

    def fetch(self, partition: int, *, is_stable: bool = False) -> Generator[Any, Any, int | None]:
        """What is committed. None: nobody could say, or if it is to be stable, a transaction may change it."""
        coordinator = yield from self.find_coordinator()
        if coordinator is None:
            return None
        wanted = (OffsetFetchRequestTopics(name=self.topic, partition_indexes=(partition,)),)
        groups = (OffsetFetchRequestGroup(group_id=self.group, topics=wanted),)
        request = OffsetFetchRequest(groups=groups, require_stable=is_stable)
        answer = yield Request(coordinator, request, 8, 2000)
        if answer is None or answer.groups[0].error_code:
            self.coordinator = None
            yield 100
            return None
        row = answer.groups[0].topics[0].partitions[0]
        if row.error_code in REFUSED or (is_stable and row.error_code == E.UNSTABLE_OFFSET_COMMIT):
            yield 40
            return None
        assert E(row.error_code) is E.NONE, E(row.error_code)
        return int(row.committed_offset)


class Committer(Coordinated):
    def __init__(self, stage: Stage, name: str, topic: str) -> None:
        super().__init__(stage, name, name, topic)
        self.tried = 0
        self.acked = 0
        self.lowest = 0  # what must be committed at least: an unanswered commit may arrive late, and set it back

    def live(self) -> Life:
        unanswered: list[int] = []
        while not self.is_stopped:
            if (yield from self.find_coordinator()) is None:
                continue
            self.tried += 1
            error = yield from self.commit(0, self.tried)
            if error is E.NONE:
                self.acked = self.tried
            elif error not in (E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, *REFUSED):
                unanswered.append(self.tried)
            yield self.pause(20, 120)
        self.lowest = min([self.acked, *unanswered[-LATE_MAX:]])
        yield from self.verify()

    def verify(self) -> Life:
        committed = None
        while committed is None:
            committed = yield from self.fetch(0)
        if self.stage.is_exceeded(OFFSETS_TOPIC):
            return
        may_be_gone = not self.acked or self.stage.was_removed(self.group, self.topic, 0)
        assert self.lowest <= committed <= self.tried or (may_be_gone and committed == -1), (
            f"{self.name}: offset {committed} is committed, {self.acked} was acknowledged"
        )


class CommittedOnce(Coordinated):
    """A group that commits once, and is gone: now and then somebody looks whether its offset is still there."""

    def __init__(self, stage: Stage, name: str, topic: str) -> None:
        super().__init__(stage, name, name, topic)
        self.acked = 0

    def live(self) -> Life:
        while not self.is_stopped and not self.acked:
            if (yield from self.find_coordinator()) is not None:
                self.acked += (yield from self.commit(0, 7)) is E.NONE
        while not self.is_stopped:
            yield from self.fetch(0)
            yield self.pause(100, 400)
