"""A group of one that commits growing offsets; the last acknowledged one must never be lost."""

from collections.abc import Generator
from typing import Any

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC
from strandline.sim.clients.client import Client, Life, Request, Stage
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

E = ErrorCode
LATE_MAX = 3  # commits that had no answer and may still be on their way


class Committer(Client):
    def __init__(self, stage: Stage, name: str, topic: str) -> None:
        super().__init__(stage, name)
        self.topic = topic
        self.tried = 0
        self.acked = 0
        self.lowest = 0  # what must be committed at least: an unanswered commit may arrive late, and set it back
        self.coordinator: Endpoint | None = None

    def live(self) -> Life:
        unanswered: list[int] = []
        while not self.is_stopped:
            coordinator = yield from self.find_coordinator()
            if coordinator is None:
                continue
            self.tried += 1
            rows = (OffsetCommitRequestPartition(partition_index=0, committed_offset=self.tried),)
            topics = (OffsetCommitRequestTopic(name=self.topic, partitions=rows),)
            answer = yield Request(coordinator, OffsetCommitRequest(group_id=self.name, topics=topics), 8, 2000)
            error = None if answer is None else E(answer.topics[0].partitions[0].error_code)
            if error is E.NONE:
                self.acked = self.tried
            else:
                self.coordinator = None
                if error not in (E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS):
                    unanswered.append(self.tried)
            yield self.pause(20, 120)
        self.lowest = min([self.acked, *unanswered[-LATE_MAX:]])
        yield from self.verify()

    def find_coordinator(self) -> Generator[Any, Any, Endpoint | None]:
        if self.coordinator is None:
            request = FindCoordinatorRequest(coordinator_keys=(self.name,))
            answer = yield Request(self.any_node(), request, 4, 2000)
            if answer is None or answer.coordinators[0].error_code:
                yield 100
            else:
                self.coordinator = Endpoint(answer.coordinators[0].host, answer.coordinators[0].port)
        return self.coordinator

    def verify(self) -> Life:
        while True:
            coordinator = yield from self.find_coordinator()
            if coordinator is None:
                continue
            wanted = (OffsetFetchRequestTopics(name=self.topic, partition_indexes=(0,)),)
            groups = (OffsetFetchRequestGroup(group_id=self.name, topics=wanted),)
            answer = yield Request(coordinator, OffsetFetchRequest(groups=groups), 8, 2000)
            if answer is None or answer.groups[0].error_code:
                self.coordinator = None
                yield 100
                continue
            row = answer.groups[0].topics[0].partitions[0]
            assert E(row.error_code) is E.NONE, E(row.error_code)
            if self.stage.is_exceeded(OFFSETS_TOPIC):
                return
            assert self.lowest <= row.committed_offset <= self.tried or (
                not self.acked and row.committed_offset == -1
            ), f"{self.name}: offset {row.committed_offset} is committed, {self.acked} was acknowledged"
            return
