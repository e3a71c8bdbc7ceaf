"""The options of `strandline groups reset-offsets` that say where offsets are reset to, as kafka-consumer-groups has
them."""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from strandline.cli.connect import misuse
from strandline.client.admin.partitions import Place
from strandline.client.errors import BadOption
from strandline.diagnosis.groups.plans import Target
from strandline.diagnosis.groups.resetting import Goal
from strandline.diagnosis.groups.times import parsed_duration, parsed_time, to_ms


def flag(text: str) -> Any:
    return Parameter(negative="", help=text)


def value(text: str) -> Any:
    return Parameter(help=text, allow_leading_hyphen=True)


@dataclass(frozen=True)
class To:
    to_earliest: Annotated[bool, flag("to the log's start")] = False
    to_latest: Annotated[bool, flag("to the log's end")] = False
    to_current: Annotated[bool, flag("to the committed offset; without one, to the log's end")] = False
    to_offset: Annotated[int | None, value("to this offset")] = None
    shift_by: Annotated[int | None, value("forward by so many offsets; back if negative")] = None
    to_datetime: Annotated[str | None, value("to the first record from 2026-01-31T12:00:00.000 on; UTC")] = None
    by_duration: Annotated[str | None, value("to the first record of the last PnDTnHnMnS, such as PT1H")] = None
    from_file: Annotated[Path | None, value("to the offsets of a CSV file, as --export prints them")] = None

    @property
    def target(self) -> Target:
        """Raises BadOption unless there is exactly one."""
        given = {target: getattr(self, target.value.replace("-", "_")) for target in Target}
        named = [target for target, value in given.items() if value is not None and value is not False]  # 0 is a value
        if len(named) != 1:
            options = ", ".join(f"--{target.value}" for target in Target)
            raise BadOption(f"{len(named)} targets are named for the offsets", f"name one of {options}")
        return named[0]

    def goal(self, groups: list[str]) -> Goal:
        """`groups`: those that a file may name. Raises BadOption."""
        target = self.target
        if self.from_file is not None:
            return Goal(target, files=read_offsets(self.from_file, groups))
        if target in (Target.DATETIME, Target.DURATION):
            return Goal(target, self.timestamp_ms(datetime.now(UTC)))
        return Goal(target, self.to_offset if target is Target.OFFSET else self.shift_by)

    def timestamp_ms(self, now: datetime) -> int:
        """Of --to-datetime or --by-duration. Raises BadOption."""
        if self.to_datetime is not None:
            return to_ms(parsed_time(self.to_datetime))
        assert self.by_duration is not None
        return to_ms(now - parsed_duration(self.by_duration))


FORM = "`strandline groups reset-offsets --export` prints a file of this form"
OfTarget = Annotated[To, Parameter(name="*")]


def read_offsets(path: Path, groups: list[str]) -> dict[str, dict[Place, int]]:
    """Rows of topic,partition,offset, or with several groups of group,topic,partition,offset. Ends the command if the
    file is of no such form."""
    found: dict[str, dict[Place, int]] = {group: {} for group in groups}
    try:
        with path.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        misuse(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", FORM)
    for row in rows:
        cells = [cell.strip().strip('"') for cell in row]
        group = cells.pop(0) if len(cells) == 4 else groups[0] if len(groups) == 1 else ""
        if len(cells) != 3 or not cells[0] or not cells[1].isdecimal() or not cells[2].isdecimal():
            misuse(f"{path}: {','.join(row)!r} is not topic,partition,offset, or group,topic,partition,offset", FORM)
        if group not in found:
            misuse(f"{path}: {','.join(row)!r} is not about a group that was named", "name it with --group")
        at = Place(cells[0], int(cells[1]))
        if at in found[group]:
            misuse(f"{path}: {at} is named twice", "leave one row out")
        found[group][at] = int(cells[2])
    if not rows:
        misuse(f"{path} has no rows", FORM)
    return found
