"""The group coordinator's transcripts: what each member is told, and when."""

from pathlib import Path
from typing import Any

import pytest
from tests.datadriven import run
from tests.unit.group.consuming import Consumers, Has

from strandline.base.errors import ErrorCode
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import Member
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.groups.leave_group import MemberIdentity

SCRIPTS = Path(__file__).parents[2] / "scripts" / "group"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, rewrite: bool) -> None:
    run(path, Play().perform, rewrite)


class Play:
    """Members have short names here; the ids that the coordinator hands out are shown as those names.

    A member of the consumer protocol makes its own id, and its heartbeats have an epoch. Their records are committed at
    once. Partitions are `t-0,t-1`, or `nothing`."""

    def __init__(self) -> None:
        self.c = Consumers(delay_ms=3000)
        self.ids: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.shown: set[int] = set()
        self.departures = 0  # that were shown

    def perform(self, verb: str, words: dict[str, str]) -> str:
        getattr(self, verb)(**words)
        if self.c.shard.consumer("g") is not None:
            self.c.commit()
        fresh = [n for n in self.c.answers if n not in self.shown]
        self.shown.update(fresh)
        lines = [f"{self.names[n]} <- {self.show(self.c.answers[n])}" for n in fresh if n in self.names]
        group = self.c.shard.groups.get("g")
        if isinstance(group, ConsumerGroup):
            lines += self.departed(group)
            lines += [f"{member_id}: {self.standing(member)}" for member_id, member in sorted(group.members.items())]
            lines.append(f"group {group.state.value} epoch={group.epoch} target={group.target_epoch}")
        elif group is not None:
            lines.append(f"group {group.state.value} generation={group.generation} writing={len(self.c.log.under_way)}")
        return "\n".join(lines)

    def join(self, member: str, instance: str | None = None) -> None:
        if member not in self.ids and instance is None:
            self.ids[member] = self.c.answers[self.c.join()].member_id
        number = self.c.join(self.ids.get(member, ""), group_instance_id=instance)
        self.names[number] = member

    def sync(self, member: str, generation: str, give: str = "") -> None:
        pairs = [pair.split(":") for pair in give.split(",") if pair]
        parts = {self.ids[name]: part.encode() for name, part in pairs}
        self.names[self.c.sync(self.ids[member], int(generation), parts)] = member

    def heartbeat(self, member: str, generation: str = "", **words: str) -> None:
        if generation:
            self.c.heartbeat(self.ids[member], int(generation))
        else:
            self.consumer_heartbeat(member, **words)
        self.names[len(self.c.asked) - 1] = member

    def consumer_heartbeat(
        self, member: str, epoch: str, owns: str = "", topics: str = "", rebalance_timeout_ms: str = "-1"
    ) -> None:
        """Without `owns` the member does not report what it owns."""
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member,
            member_epoch=int(epoch),
            rebalance_timeout_ms=int(rebalance_timeout_ms),
            subscribed_topic_names=tuple(topics.split(",")) if topics else None,
            topic_partitions=self.c.rows(partitions(owns)) if owns else None,
        )
        self.c.send(request)

    def grow(self, topic: str, partitions: str) -> None:
        self.c.grow(topic, int(partitions))

    def leave(self, member: str) -> None:
        self.c.leave(MemberIdentity(member_id=self.ids[member]))

    def written(self) -> None:
        self.c.commit()

    def failed(self, error: str) -> None:
        self.c.fail(ErrorCode[error])

    def wait(self, ms: str) -> None:
        self.c.wait(int(ms))

    def show(self, answer: Any) -> str:
        kind = type(answer).__name__.removesuffix("Response")
        if answer.error_code != ErrorCode.NONE:
            return f"{kind} {ErrorCode(answer.error_code).name}"
        match kind:
            case "JoinGroup":
                members = ",".join(self.name(m.member_id) for m in answer.members)
                leads = f" members={members}" if members else ""
                return f"{kind} generation={answer.generation_id} leader={self.name(answer.leader)}{leads}"
            case "ConsumerGroupHeartbeat":
                given = answer.assignment
                assigned = "as before" if given is None else shown(self.c.names(given.topic_partitions))
                return f"{kind} epoch={answer.member_epoch} assignment={assigned}"
            case "SyncGroup":
                return f"{kind} assignment={bytes(answer.assignment).decode()}"
            case _:
                return kind

    def standing(self, member: Member) -> str:
        """What the coordinator knows of it."""
        epochs = f"epoch={member.epoch} previous={member.previous_epoch}"
        gives_back = f" revoking={shown(self.c.held(member.revoking))}" if member.revoking else ""
        return f"{member.state.name} {epochs} assigned={shown(self.c.held(member.assigned))}{gives_back}"

    def departed(self, group: ConsumerGroup) -> list[str]:
        latest = list(group.history.departures.latest)
        fresh, self.departures = latest[self.departures :], len(latest)
        return [f"{departure.member_id}: removed, it {departure.why}" for departure in fresh]

    def name(self, member_id: str) -> str:
        return next((name for name, known in self.ids.items() if known == member_id), "?")


def partitions(text: str) -> Has:
    found: Has = set()
    for part in text.split(",") if text != "nothing" else ():
        topic, _, partition = part.rpartition("-")
        found.add((topic, int(partition)))
    return found


def shown(has: Has) -> str:
    return ",".join(f"{topic}-{partition}" for topic, partition in sorted(has)) or "nothing"
