"""What one simulated file holds, and what a loss of power leaves of it.

The bytes are kept once, as they were written last. For what was not synced yet there is a list of changes that says
what was there before, so that a sync costs nothing and a loss of power can take changes back, the newest first.

After a sync that failed the system believes what it wrote to be clean, as Linux does: no later sync writes it again,
and only the next loss of power shows how much of it was on the medium. These bytes are in doubt.

A cut is a change of metadata and goes through the same journal as names: one that was made before a name that survives
survives too, though nobody synced the file. (With a file system that does not order the two, old records can come back
in front of a segment that was begun after they were cut.)

Invariants:
  - what was synced survives, but where it was overwritten or cut since, and there the old bytes or the new are found;
  - the changes that survive are a first part of them in order; the last of these may be torn, with one bit wrong;
  - bytes in doubt lie below the size; lost, they read as what was there before, or as zeros.
"""

from collections.abc import Sequence

from strandline.base.ports import Buffer, Rng

CHANGES_MAX = 64  # a system writes back by itself sooner or later


class Change:
    """`size` bytes now lie at `at` where `old` lay. Bytes are only inserted or removed at the end of the file."""

    __slots__ = ("at", "is_journaled", "old", "size")

    def __init__(self, at: int, size: int, old: bytes) -> None:
        self.at = at
        self.size = size
        self.old = old
        self.is_journaled = False  # a cut that survives

    def without(self, start: int, end: int) -> "list[Change]":
        """What is left, as two pieces at most, when [start, end) is taken out."""
        own_end = self.at + self.size
        if end <= self.at or own_end <= start:
            return [self]
        pieces = []
        if self.at < start:
            pieces.append(Change(self.at, start - self.at, self.old[: start - self.at]))
        if end < own_end:
            pieces.append(Change(end, own_end - end, self.old[end - self.at :]))
        return pieces


class Content:
    """The bytes of one file, whatever its name is."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.changes: list[Change] = []  # since the last sync, oldest first
        self.is_linked = True  # it has a name, so it counts in what the disk holds
        self.is_small = False  # written at once, in one sector: it is never garbled, only missing
        self.doubts: list[Change] = []  # written before a sync that failed, and not since; disjoint, sorted

    @property
    def lossy(self) -> bool:
        """May a loss of power change it?"""
        return bool(self.changes or self.doubts)

    @property
    def synced_size(self) -> int:
        """How many bytes at the beginning are on the medium as they are here."""
        return min((change.at for change in (*self.changes, *self.doubts)), default=len(self.data))

    def is_lossy_in(self, start: int, end: int) -> bool:
        """May a loss of power change what lies there? (A cut changes what lay behind the file's end.)"""
        return any(change.at < end and start < change.at + change.size for change in (*self.changes, *self.doubts))

    # --- writing

    def append(self, buffers: Sequence[Buffer]) -> None:
        data = self.data
        at = len(data)
        for buffer in buffers:
            data += buffer
        self.grown(at)

    def grown(self, at: int) -> None:
        """Bytes from `at` on are new."""
        size = len(self.data) - at
        if not size:
            return
        self.is_small = False
        last = self.changes[-1] if self.changes else None
        if last is not None and not last.old and last.at + last.size == at:
            last.size += size
        else:
            self.note(Change(at, size, b""))

    def write_at(self, position: int, content: bytes) -> None:
        """Behind the end: zeros fill the gap."""
        data = self.data
        before = len(data)
        inside = min(len(content), max(0, before - position))
        if inside:
            self.forget_doubts(position, position + inside)
            self.note(Change(position, inside, bytes(data[position : position + inside])))
            data[position : position + inside] = content[:inside]
        if inside < len(content):
            data += bytes(max(0, position - before))
            data += content[inside:]
            self.grown(before)

    def truncate(self, size: int) -> Change | None:
        """Zeros fill it up if it was shorter. A cut is returned, for the journal."""
        data = self.data
        before = len(data)
        if size < before:
            self.forget_doubts(size, before)
            cut = Change(size, 0, bytes(data[size:]))
            self.note(cut)
            del data[size:]
            return cut
        data += bytes(size - before)
        self.grown(before)
        return None

    def note(self, change: Change) -> None:
        self.changes.append(change)
        if len(self.changes) > CHANGES_MAX:
            del self.changes[0]

    # --- durability

    def sync(self) -> None:
        self.changes.clear()

    def fail_sync(self) -> None:
        """All that was to be synced counts as written; whether it was, `crash` draws. Cuts are the journal's: done."""
        changes, self.changes = self.changes, []
        for change in changes:
            if change.size:
                self.forget_doubts(change.at, change.at + change.size)
                self.doubts.append(change)
                self.doubts.sort(key=lambda doubt: doubt.at)
            else:
                self.forget_doubts(change.at, change.at + len(change.old))

    def forget_doubts(self, start: int, end: int) -> None:
        """These bytes are written anew, or gone: the next sync is about them again."""
        if self.doubts:
            self.doubts = [piece for doubt in self.doubts for piece in doubt.without(start, end)]

    def flip(self, position: int, bit: int) -> None:
        """A bit rots on the medium, and nothing reports it."""
        self.data[position] ^= 1 << bit

    # --- loss of power

    def crash(self, rng: Rng) -> None:
        self.keep_journaled()
        if self.changes:
            self.lose_changes(rng)
        for doubt in reversed(self.doubts):
            fate = rng.randrange(0, 3)
            if fate < 2:
                self.lose_doubt(doubt, 0 if fate == 0 else rng.randrange(0, doubt.size + 1))
        self.changes, self.doubts = [], []

    def keep_journaled(self) -> None:
        """A cut that survives can not be undone; what was appended below it may be lost as ever."""
        last = max((at for at, change in enumerate(self.changes) if change.is_journaled), default=-1)
        if last < 0:
            return
        cut = self.changes[last].at
        start = min(change.at for change in self.changes[: last + 1] if not (change.old and change.size))
        grown = [Change(start, cut - start, b"")] if start < cut else []
        self.changes = grown + self.changes[last + 1 :]

    def lose_changes(self, rng: Rng) -> None:
        """All of them, or what lies behind some byte of some change; then the last byte may be wrong. (It is the last
        one since everything behind it is gone: so a checksum over whole records must find it.)"""
        changes = self.changes
        fate = rng.randrange(0, 4)
        if fate == 0:
            for change in reversed(changes):
                self.undo(change, 0)
            return
        whole = rng.randrange(0, len(changes) + 1)
        end = changes[whole - 1].at + changes[whole - 1].size if whole and changes[whole - 1].size else 0
        for change in reversed(changes[whole + 1 :]):
            self.undo(change, 0)
        if whole < len(changes):
            part = rng.randrange(0, changes[whole].size + 1)
            self.undo(changes[whole], part)
            end = changes[whole].at + part if part else end
        if fate == 1 and not self.is_small and 0 < end <= len(self.data):
            self.flip(end - 1, rng.randrange(0, 8))

    def undo(self, change: Change, part: int) -> None:
        """The first `part` bytes of a change stay; what it did behind them is taken back."""
        self.data[change.at + part : change.at + change.size] = change.old[part:]

    def lose_doubt(self, doubt: Change, part: int) -> None:
        """What was never on the medium is not found there; the file's size may have been."""
        start, end = doubt.at + part, doubt.at + doubt.size
        if doubt.old:
            self.data[start:end] = doubt.old[part:]
        elif end >= len(self.data):
            del self.data[start:]
        else:
            self.data[start:end] = bytes(end - start)
