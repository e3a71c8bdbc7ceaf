"""The index of a segment's aborted transactions, in Kafka's format (`.txnindex`, KIP-98).

An entry stands in the index of the segment that has the transaction's marker: (int16 version, int64 producer id, first
offset, offset of the marker, last stable offset when it was written). There is no file until there is an entry.

Invariant (executed by `check`): the offsets of markers grow.
"""

from bisect import bisect_left
from itertools import pairwise
from struct import Struct

from strandline.base.ports import Disk
from strandline.base.value import Value
from strandline.log.indexes.sparse import cut_file

SUFFIX = ".txnindex"
VERSION = 0
ENTRY = Struct(">hqqqq")


class AbortedTransaction(Value, frozen=True):
    """[first_offset, last_offset] in this partition; the marker is at `last_offset`. `last_stable_offset`: below it
    every transaction was decided when the marker was written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.loaded: list[AbortedTransaction] | None = None  # None: the file was not read yet
        self.is_whole = True

    @property
    def entries(self) -> list[AbortedTransaction]:
        return self.load()

    def load(self) -> list[AbortedTransaction]:
        if self.loaded is None:
            self.loaded, self.is_whole = decode(self.disk.read_file(self.path) or b"")
        return self.loaded

    @property
    def is_damaged(self) -> bool:
        """Has the file anything but entries?"""
        self.load()
        return not self.is_whole

    def ended_from(self, offset: int) -> list[AbortedTransaction]:
        """The transactions whose markers lie at `offset` or behind it."""
        entries = self.entries
        return entries[bisect_left(entries, offset, key=lambda entry: entry.last_offset) :]

    def append(self, entry: AbortedTransaction) -> None:
        entries = self.entries
        assert not entries or entries[-1].last_offset < entry.last_offset, self.path
        entries.append(entry)
        file = self.disk.open(self.path)
        file.append([encode([entry])])
        file.close()

    def truncate(self, offset: int) -> bool:
        """Forget the transactions whose markers lie at `offset` or behind it. Returns whether the file was changed.

        Damage is cut only with an entry in front of it: else it may have been an entry of before `offset`."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if len(kept) == len(self.entries):
            return False
        if not kept:
            return self.clear()
        self.loaded, self.is_whole = kept, True
        cut_file(self.disk, self.path, len(kept) * ENTRY.size)
        return True

    def clear(self) -> bool:
        """Forget all, damage too. Returns whether there was a file."""
        was_there = bool(self.entries) or not self.is_whole
        self.loaded, self.is_whole = [], True
        if was_there:
            self.disk.remove(self.path)
        return was_there

    def check(self) -> None:
        assert all(one.last_offset < two.last_offset for one, two in pairwise(self.loaded or ())), self.path


def encode(entries: list[AbortedTransaction]) -> bytes:
    rows = ((VERSION, e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset) for e in entries)
    return b"".join(ENTRY.pack(*row) for row in rows)


def decode(content: bytes) -> tuple[list[AbortedTransaction], bool]:
    """The entries up to the first that cannot be one; and whether that is all."""
    entries: list[AbortedTransaction] = []
    last = -1
    whole = content[: len(content) // ENTRY.size * ENTRY.size]
    for version, producer_id, first, marker, stable in ENTRY.iter_unpack(whole):
        if version != VERSION or not 0 <= first < marker or marker <= last or producer_id < 0 or stable < 0:
            return entries, False
        entries.append(AbortedTransaction(producer_id, first, marker, stable))
        last = marker
    return entries, len(content) % ENTRY.size == 0
