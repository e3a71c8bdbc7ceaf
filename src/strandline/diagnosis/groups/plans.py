"""What resetting or deleting a group's offsets would do: which records the group skips, and which it reads again.

Offsets are counted, so after compaction, and where there are transaction markers, there are fewer records.
"""

from enum import Enum
from typing import Any

from strandline.base.value import Value
from strandline.client.admin.groups.described import GroupState
from strandline.client.admin.groups.offsets import Ends, Position
from strandline.client.admin.partitions import Place


class Target(Enum):
    """Where offsets are reset to, by the options of kafka-consumer-groups."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    OFFSET = "to-offset"
    SHIFT = "shift-by"
    DATETIME = "to-datetime"
    DURATION = "by-duration"
    FILE = "from-file"


class Reset(Value, frozen=True):
    """The offset of one partition. `old` is None if the group has committed none there. `note`: why `new` is another
    offset than the one that was asked for."""

    group_id: str
    at: Place
    old: int | None
    new: int
    ends: Ends
    note: str = ""

    @property
    def skipped(self) -> int:
        """Offsets that the group has not read, and will not. Without an old offset all that there are count."""
        begin = self.ends.start if self.old is None else max(self.old, self.ends.start)
        return max(self.new - begin, 0)

    @property
    def repeated(self) -> int:
        """Offsets that the group reads again."""
        return 0 if self.old is None else max(min(self.old, self.ends.end) - self.new, 0)


def plan_reset(group_id: str, position: Position, target: Target, wanted: int | None) -> Reset | str:
    """`wanted`: the offset, the shift, or the first offset of the time; None: no record is that late. Text: why it
    cannot be planned."""
    ends, committed = position.ends, position.committed
    if isinstance(ends, str):
        return f"{position.at}: {ends}"
    old = None if committed is None else committed.offset
    note = ""
    if target is Target.EARLIEST:
        new = ends.start
    elif target is Target.LATEST:
        new = ends.end
    elif target is Target.CURRENT:
        new, note = (ends.end, "it has no offset, so it begins at the end") if old is None else (old, "")
    elif target is Target.SHIFT:
        if old is None:
            return f"{position.at}: it has no offset that could be shifted"
        assert wanted is not None, "an option has a value"
        new = old + wanted
    elif wanted is None:
        new, note = ends.end, "no record is that late, so it begins at the end"
    else:
        new = wanted
    if new < ends.start:
        new, note = ends.start, f"{new} is below the log's start"
    elif new > ends.end:
        new, note = ends.end, f"{new} is above the log's end"
    assert ends.start <= new <= ends.end, "a group that begins outside the log begins wherever its clients decide"
    return Reset(group_id, position.at, old, new, ends, note)


def reset_json(reset: Reset, outcome: str = "planned", error: str | None = None) -> dict[str, Any]:
    return {
        "group": reset.group_id,
        "topic": reset.at.topic,
        "partition": reset.at.partition,
        "old_offset": reset.old,
        "new_offset": reset.new,
        "log_start_offset": reset.ends.start,
        "log_end_offset": reset.ends.end,
        "skipped": reset.skipped,
        "repeated": reset.repeated,
        "note": reset.note,
        "outcome": outcome,
        "error": error,
    }


def consequence(reset: Reset) -> str:
    """In words."""
    words = []
    if reset.old is None:
        words.append(f"begins at {reset.new}")
    if reset.skipped:
        words.append(f"skips {offsets(reset.skipped)}")
    if reset.repeated:
        words.append(f"reads {offsets(reset.repeated)} again")
    if not words:
        words.append("stays" if reset.new == reset.old else f"moves to {reset.new}")
    return ", ".join(words) + (f"; {reset.note}" if reset.note else "")


def offsets(count: int) -> str:
    return f"{count} offset{'' if count == 1 else 's'}"


# --- who is in the way


def why_not_inactive(state: GroupState) -> tuple[str, str] | None:
    """Why offsets of the group cannot be reset, or the group deleted: problem and advice. None: it has no members."""
    if not state.members:
        return None
    named = "; ".join(member.named for member in state.members[:5])
    more = f"; and {len(state.members) - 5} more" if len(state.members) > 5 else ""
    count = len(state.members)
    return (
        f"group '{state.group_id}' is {state.state}, and has {count} member{'' if count == 1 else 's'}: {named}{more}",
        "stop these consumers, wait until the group is Empty (if one was killed, for session.timeout.ms), and repeat",
    )


def readers_of(state: GroupState, topic: str) -> list[str]:
    """The members that read this topic, or subscribe to it."""
    return [
        member.named
        for member in state.members
        if topic in member.subscribed or any(at.topic == topic for at in member.assigned)
    ]
