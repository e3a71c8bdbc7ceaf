"""Cleaned segments take the place of those that they were made from, in Kafka's steps, and by Kafka's names.

  1. `.cleaned`: the new segment is written, and made durable. A start removes it.
  2. `.swap`: from this one rename on it counts, and is waited for. A start goes on from here.
  3. The segments whose offsets it has too are deleted, and it gets the name of the first one.

Invariants:
  - whatever a loss of power leaves, each record that the new segment keeps is found once: in the old ones or in it;
  - the file of the records is the last one of three to be renamed, so that no index is believed beside other records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.ports import Disk
from strandline.log.producers import producer_snapshot
from strandline.log.segment import Segment, file_name

if TYPE_CHECKING:
    from strandline.log.log import Log

CLEANED = ".cleaned"
SWAP = ".swap"
INDEXES = (".index", ".timeindex")


def new_cleaned(log: Log, base_offset: int) -> Segment:
    """An empty one; a leftover under its names is gone."""
    for suffix in (*INDEXES, ".log"):
        log.disk.remove(f"{log.directory}/{file_name(base_offset, suffix)}{CLEANED}")
    return Segment(log.disk, log.directory, base_offset, log.config.index_interval_bytes, CLEANED)


def drop_cleaned(cleaned: Segment) -> None:
    cleaned.release()
    for path in cleaned.paths:
        cleaned.disk.remove(path)


def swap(log: Log, group: Sequence[Segment], cleaned: Segment) -> None:
    """`cleaned`, sealed and durable, takes the place of `group`, which lie one behind another in the log. The disk is
    waited for once: no order of names but this one is asked of a file system."""
    at = log.segments.index(group[0])
    assert log.segments[at : at + len(group)] == list(group)
    assert group[-1] is not log.active
    cleaned.rename(CLEANED, SWAP)
    log.disk.sync([log.directory])
    for segment in reversed(group[1:]):
        segment.delete()
    group[0].close()  # before its names are another's: closing writes the indexes
    cleaned.rename(SWAP, "")
    cleaned.next_offset = group[-1].next_offset
    cleaned.first_append = group[-1].first_append
    log.segments[at : at + len(group)] = [cleaned]
    log.bases = [segment.base_offset for segment in log.segments]
    if log.warm in group:
        log.warm = None
    log.tail.forget_below(cleaned.next_offset)
    log.unsynced_others[log.directory] = None
    gone = {segment.base_offset for segment in group[1:]}
    producer_snapshot.keep(log, [offset for offset in log.snapshots if offset not in gone])


def finish_swaps(disk: Disk, directory: str) -> bool:
    """At start: go on with the swaps that had begun to count, and undo the others. Was there anything to do?"""
    names = disk.list(directory)
    begun = [name for name in names if name.endswith((CLEANED, SWAP))]
    for name in begun:
        if name.endswith(CLEANED) or f"{name.split('.')[0]}.log{SWAP}" not in names:
            disk.remove(f"{directory}/{name}")
    bases = sorted(int(name.split(".")[0]) for name in names if name.endswith(".log") and name[:-4].isdigit())
    for base in sorted(int(name.split(".")[0]) for name in begun if name.endswith(f".log{SWAP}")):
        finish_swap(disk, directory, base, bases)
    return bool(begun)


def finish_swap(disk: Disk, directory: str, base_offset: int, bases: Sequence[int]) -> None:
    swapped = Segment(disk, directory, base_offset, 1, SWAP)
    end = base_offset
    for header in swapped.headers(0):
        end = header.next_offset
    swapped.release()
    for base in reversed(bases):
        if base_offset < base < end:
            Segment(disk, directory, base, 1).delete()
    for suffix in INDEXES:
        name = f"{directory}/{file_name(base_offset, suffix)}"
        if disk.exists(f"{name}{SWAP}"):
            disk.rename(f"{name}{SWAP}", name)
        else:
            disk.remove(name)  # of the records before, or the new one already: it is built again
    disk.rename(f"{directory}/{file_name(base_offset, '.log')}{SWAP}", f"{directory}/{file_name(base_offset, '.log')}")
