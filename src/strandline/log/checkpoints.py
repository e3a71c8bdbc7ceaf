"""Kafka's checkpoint files: a version, a count, and one line per entry. (That of topic ids is our own.)

Unreadable content is an error, never a guess.
"""

from collections.abc import Mapping
from itertools import pairwise

from strandline.base.ids import OFFSET_MAX, ZERO_UUID, TopicPartition, Uuid, parse_uuid, uuid_text
from strandline.log.epochs import EpochStart

VERSION = "0"


class Unreadable(ValueError):
    """A checkpoint whose content is not in Kafka's format."""


def parse_lines(content: bytes) -> list[list[str]]:
    lines = content.decode("utf-8", "replace").splitlines()
    whole = content.endswith(b"\n")  # or the last number may have lost digits
    if not whole or len(lines) < 2 or lines[0] != VERSION or lines[1] != str(len(lines) - 2):
        raise Unreadable(f"not a checkpoint of version {VERSION}: {content[:64]!r}")
    return [line.split(" ") for line in lines[2:]]


def format_lines(rows: list[str]) -> bytes:
    assert not any("\n" in row for row in rows), "one line an entry"
    return "".join(f"{line}\n" for line in [VERSION, str(len(rows)), *rows]).encode()


def parse_offsets(content: bytes) -> dict[TopicPartition, int]:
    try:
        offsets = {TopicPartition(t, int(p)): int(offset) for t, p, offset in parse_lines(content)}
    except ValueError as error:
        raise Unreadable(str(error)) from None
    for at, offset in offsets.items():
        if offset < 0:
            raise Unreadable(f"the offset {offset} of {at} is negative")
        if offset > OFFSET_MAX:
            raise Unreadable(f"the offset {offset} of {at} is more than a log can have")
    return offsets


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    assert all(0 <= offset <= OFFSET_MAX for offset in offsets.values()), "`parse_offsets` would not read it"
    return format_lines([f"{at.topic} {at.partition} {offset}" for at, offset in sorted(offsets.items())])


def parse_topic_ids(content: bytes) -> dict[TopicPartition, Uuid]:
    try:
        return {TopicPartition(t, int(p)): parse_uuid(text) for t, p, text in parse_lines(content)}
    except ValueError as error:
        raise Unreadable(str(error)) from None


def format_topic_ids(ids: Mapping[TopicPartition, Uuid]) -> bytes:
    assert ZERO_UUID not in ids.values(), "a topic has an id"
    return format_lines([f"{at.topic} {at.partition} {uuid_text(topic_id)}" for at, topic_id in sorted(ids.items())])


def parse_epochs(content: bytes) -> list[EpochStart]:
    try:
        entries = [EpochStart(int(epoch), int(start)) for epoch, start in parse_lines(content)]
    except ValueError as error:
        raise Unreadable(str(error)) from None
    for entry in entries:
        if not (0 <= entry.epoch < 1 << 31 and 0 <= entry.start_offset <= OFFSET_MAX):
            raise Unreadable(f"no log can have epoch {entry.epoch} from {entry.start_offset} on")
    return entries


def format_epochs(entries: list[EpochStart]) -> bytes:
    assert all(one.epoch < two.epoch for one, two in pairwise(entries)), "epochs grow"
    assert all(one.start_offset < two.start_offset for one, two in pairwise(entries)), "and what they begin at"
    return format_lines([f"{e.epoch} {e.start_offset}" for e in entries])
