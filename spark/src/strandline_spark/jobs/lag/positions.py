"""The offsets that a source of a streaming query reports, as positions: the next offset to be read of each partition.

Three forms are understood: that of our topic source, that of Spark's Kafka connector, and that of a source whose
progress nests more deeply but names partitions by number. What belongs to no topic (files, rates) has none.
"""

from typing import Any

from msgspec import DecodeError, json

Positions = dict[tuple[str, int], int]


def positions_in(text: str | None) -> Positions:
    """The positions in a source's offset as Spark shows and keeps it; none if it is of another kind of source."""
    if not text:
        return {}
    try:
        tree = json.decode(text)
    except DecodeError:
        return {}
    return positions_of(tree)


def positions_of(tree: Any) -> Positions:
    if not isinstance(tree, dict):
        return {}
    if "version" in tree and isinstance(tree.get("topics"), dict):
        return {at: offset for topic, row in tree["topics"].items() for at, offset in ours(topic, row).items()}
    found: Positions = {}
    for topic, row in tree.items():
        if isinstance(row, dict):
            found |= {(topic, int(p)): o for p, o in row.items() if is_number(p) and is_offset(o)}
    return found


def ours(topic: str, row: Any) -> Positions:
    """{"id": …, "partitions": {"0": {"offset": …, "epoch": …}}}"""
    partitions = row.get("partitions") if isinstance(row, dict) else None
    if not isinstance(partitions, dict):
        return {}
    return {
        (topic, int(p)): at["offset"]
        for p, at in partitions.items()
        if is_number(p) and isinstance(at, dict) and is_offset(at.get("offset"))
    }


def is_number(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdigit()


def is_offset(value: Any) -> bool:
    """-2 and -1 stand for earliest and latest in what a user gives; progress never has them."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
