"""The group coordinator's transcripts: what each member is told, and when."""

from pathlib import Path
from typing import Any

import pytest
from tests.datadriven import run
from tests.unit.group.coordination import Coordination

from strandline.base.errors import ErrorCode
from strandline.wire.messages.groups.leave_group import MemberIdentity

SCRIPTS = Path(__file__).parents[2] / "scripts" / "group"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, rewrite: bool) -> None:
    run(path, Play().perform, rewrite)


class Play:
    """Members have short names here; the ids that the coordinator hands out are shown as those names."""

    def __init__(self) -> None:
        self.c = Coordination(delay_ms=3000)
        self.ids: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.shown: set[int] = set()

    def perform(self, verb: str, words: dict[str, str]) -> str:
        getattr(self, verb)(**words)
        fresh = [n for n in self.c.answers if n not in self.shown]
        self.shown.update(fresh)
        lines = [f"{self.names[n]} <- {self.show(self.c.answers[n])}" for n in fresh if n in self.names]
        group = self.c.shard.groups.get("g")
        if group is not None:
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

    def heartbeat(self, member: str, generation: str) -> None:
        self.c.heartbeat(self.ids[member], int(generation))
        self.names[len(self.c.asked) - 1] = member

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
            case "SyncGroup":
                return f"{kind} assignment={bytes(answer.assignment).decode()}"
            case _:
                return kind

    def name(self, member_id: str) -> str:
        return next((name for name, known in self.ids.items() if known == member_id), "?")
