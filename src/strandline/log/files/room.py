"""How much of a file system must be free before a node that ran out of room goes on.

More than the write that did not fit: or the next one would end it again, and each time its log is checked, and others
have to lead and copy.
"""

ROOM_BYTES = 64 << 20
PART_OF_LARGE = 100  # 1 %
PART_OF_SMALL = 4  # a file system that has less than 256 MiB will never have so much free


def needed_room(total: int) -> int:
    """`total`: the size of the file system, in bytes."""
    assert total >= 0
    return min(max(ROOM_BYTES, total // PART_OF_LARGE), total // PART_OF_SMALL)


def mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
