"""Consume, transform, produce: each record below the position of its group has one copy, no other record has any.

A copy's value ends with `:PARTITION@OFFSET` of the record that it is of. Copies and the position are committed
together, so the position says which copies there are.

- lost-transactional-write: a record below the position has no copy
- duplicated-transactional-write: one has two
- offset-without-output: there is a copy of a record at the position or behind it, or of one that was never committed
"""

from collections.abc import Iterable, Mapping

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Key, Operation, Read

Place = tuple[int, int]  # partition and offset of a source


def find(
    operations: Iterable[Operation],
    sources: Mapping[Key, str],
    targets: Mapping[Key, str],
    positions: Mapping[int, int],
) -> list[Anomaly]:
    """`sources` and `targets`: who has read all of each, after everything else was over. `positions`: by partition, the
    offset that the group has committed; those without are left out."""
    inputs: dict[Place, Read] = {}
    copies: dict[Place, list[tuple[Read, Operation]]] = {}
    for operation in operations:
        for read in operation.reads:
            if sources.get(read.key) == operation.process:
                inputs[read.key.partition, read.offset] = read
            elif targets.get(read.key) == operation.process:
                copies.setdefault(place_of(read.value), []).append((read, operation))
    found = []
    for (partition, offset), read in sorted(inputs.items()):
        if partition in positions and offset < positions[partition] and (partition, offset) not in copies:
            text = f"{read.value!r} at {offset} has no copy, and its group is at {positions[partition]}"
            found.append(Anomaly(name="lost-transactional-write", key=read.key, text=text, offsets=(offset,)))
    for (partition, offset), made in sorted(copies.items()):
        if partition not in positions:
            continue
        of = f"record {offset} of partition {partition}"
        if len(made) > 1:
            found.append(wrong("duplicated-transactional-write", f"{of} has {len(made)} copies", made))
        if offset >= positions[partition]:
            found.append(
                wrong("offset-without-output", f"{of} has a copy, and its group is at {positions[partition]}", made)
            )
        elif (partition, offset) not in inputs:
            found.append(wrong("offset-without-output", f"{of} has a copy, and was not committed", made))
    return found


def place_of(value: bytes) -> Place:
    partition, _, offset = value.rpartition(b":")[2].partition(b"@")
    return int(partition), int(offset)


def wrong(name: str, text: str, made: list[tuple[Read, Operation]]) -> Anomaly:
    first = made[0][0]
    return Anomaly(
        name=name,
        key=first.key,
        text=text,
        offsets=tuple(read.offset for read, _ in made),
        values=tuple(read.value for read, _ in made),
        readers=tuple(reader for _, reader in made),
        was_committed=True,
    )
