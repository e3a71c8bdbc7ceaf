"""Cleaned segments take the place of those that they were made from, in Kafka's steps, and by Kafka's names.

  1. `.cleaned`: the new segment is written, and made durable. A start removes it.
  2. `.swap`: from this one rename on it counts, and is waited for. A start goes on from here.
  3. The segments whose offsets it has too are deleted, and it gets the name of the first one.

Invariants:
  - whatever a loss of power leaves, each record that the new segment keeps is found once: in the old ones or in it;
  - the file of the records is the last one of three to be renamed, so that no index is believed beside other records.
"""

from collections.abc import Sequence

from strandline.base.ports import Disk
from strandline.log.segment import Segment, file_name

CLEANED = ".cleaned"
SWAP = ".swap"
INDEXES = (".index", ".timeindex", ".txnindex")


def new_cleaned(disk: Disk, directory: str, base_offset: int, interval_bytes: int) -> Segment:
    """An empty one; a leftover under its names is gone."""
    for suffix in (*INDEXES, ".log"):
        disk.remove(f"{directory}/{file_name(base_offset, suffix)}{CLEANED}")
    cleaned = Segment(disk, directory, base_offset, interval_bytes, CLEANED)
    assert cleaned.size == 0, "a leftover is still there"
    return cleaned


def drop_cleaned(cleaned: Segment) -> None:
    assert all(path.endswith(CLEANED) for path in cleaned.paths), "what counts already is not dropped"
    cleaned.release()
    for path in (*cleaned.paths, cleaned.aborted.path):
        cleaned.disk.remove(path)


def swap_files(disk: Disk, directory: str, group: Sequence[Segment], cleaned: Segment) -> None:
    """`cleaned`, sealed and durable, takes the place of `group`, which lie one behind another. The disk is waited for
    once: no order of names but this one is asked of a file system."""
    assert cleaned.base_offset == group[0].base_offset
    assert all(path.endswith(CLEANED) for path in cleaned.paths)
    cleaned.rename(CLEANED, SWAP)
    disk.sync([directory])
    for segment in reversed(group[1:]):
        segment.delete()
    group[0].close()  # before its names are another's: closing writes the indexes
    cleaned.rename(SWAP, "")
    assert cleaned.paths == group[0].paths
    cleaned.took_place_of(group[-1])


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
    assert list(bases) == sorted(bases)
    for base in reversed(bases):
        if base_offset < base < end:
            Segment(disk, directory, base, 1).delete()
    distrust_aborted(disk, directory, base_offset)
    for suffix in INDEXES:
        name = f"{directory}/{file_name(base_offset, suffix)}"
        if disk.exists(f"{name}{SWAP}"):
            disk.rename(f"{name}{SWAP}", name)
        else:
            disk.remove(name)  # of the records before, or the new one already: it is built again
    disk.rename(f"{directory}/{file_name(base_offset, '.log')}{SWAP}", f"{directory}/{file_name(base_offset, '.log')}")


def distrust_aborted(disk: Disk, directory: str, base_offset: int) -> None:
    """The index of aborted transactions may be that of the old records, or the new one, or missing. It is built again
    with the producers' state, behind the last snapshot. So later snapshots are removed, and the disk is waited for."""
    names = disk.list(directory)
    if not any(".txnindex" in name for name in names):
        return
    for name in names:
        stem = name.removesuffix(".snapshot")
        if stem != name and stem.isdigit() and int(stem) > base_offset:
            disk.remove(f"{directory}/{name}")
    disk.sync([directory])
