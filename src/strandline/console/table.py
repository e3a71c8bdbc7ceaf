"""Rows by key, and which of them have changed since a browser has seen them last."""

from collections.abc import Mapping
from typing import Any

from strandline.base.value import Value

Json = Any  # what msgspec encodes: dicts, lists, texts, numbers, None
Rows = Mapping[str, Json]
REMEMBERED_MAX = 10_000  # keys that are gone


class Changes(Value, frozen=True):
    version: int  # to which these changes lead
    is_whole: bool  # do the rows replace all that the browser has?
    rows: dict[str, Json]
    gone: tuple[str, ...] = ()


class Table:
    """The versions count from 1; whoever has seen nothing has version 0."""

    def __init__(self) -> None:
        self.version = 0
        self.rows: dict[str, tuple[int, Json]] = {}
        self.gone: dict[str, int] = {}
        self.forgotten = 0  # before this version nobody knows any more which keys are gone

    def put(self, rows: Rows) -> bool:
        """These are all rows now. Is any of them another one?"""
        version = self.version + 1
        changed = {key: row for key, row in rows.items() if key not in self.rows or self.rows[key][1] != row}
        gone = [key for key in self.rows if key not in rows]
        if not changed and not gone and self.version:
            return False
        for key in gone:
            del self.rows[key]
            self.gone[key] = version
        for key, row in changed.items():
            self.rows[key] = (version, row)
            self.gone.pop(key, None)
        if len(self.gone) > REMEMBERED_MAX:
            self.gone.clear()
            self.forgotten = version
        self.version = version
        assert len(self.rows) == len(rows)
        return True

    def since(self, version: int) -> Changes | None:
        """None: nothing has changed."""
        assert 0 <= version <= self.version
        if version == self.version:
            return None
        if version == 0 or version < self.forgotten:
            return Changes(self.version, True, {key: row for key, (_, row) in self.rows.items()})
        rows = {key: row for key, (at, row) in self.rows.items() if at > version}
        return Changes(self.version, False, rows, tuple(key for key, at in self.gone.items() if at > version))
