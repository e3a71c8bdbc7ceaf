"""A history as lines of JSON, one object each, in any order: what clients did, and what is known of each key beside it.

What a judgement needs stands with the key that it concerns, so that lines can be parted by key. Several runs may be in
one file: the same key of another run is another key. docs/histories.md says every field.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from strandline.base.value import Value
from strandline.history.operation import Key, Operation, by_key
from strandline.history.policy import Facts

ALWAYS = -(1 << 62)  # too much had failed from the beginning


class Recorded(Operation, frozen=True, tag_field="record", tag="operation", kw_only=True, forbid_unknown_fields=True):
    """An operation, and its place in its run."""

    index: int  # operations of a run are judged in this order, in which they ended
    run: str = ""


class Known(Value, frozen=True, tag_field="record", tag="key", forbid_unknown_fields=True):
    """What is known of one key of a run. Without such a line nothing is: then nothing is excused by it."""

    key: Key
    run: str = ""
    trimmed: int = 0  # below this offset records may have been deleted at a user's wish
    final: str = ""  # the process that has read all of the key, after everything else was over
    is_exceeded: bool = False  # the faults took more of it than its configuration promises to survive
    exceeded_since_ms: int | None = None  # and since when; null: always
    is_gone: bool = False  # its topic was deleted
    is_duplicating: bool = False  # the network may have delivered a request twice
    is_subscribed: bool = False  # groups hand the partition over
    ledger: tuple[tuple[int, int], ...] | None = None  # offsets that the loss ledger names; null: it was not asked

    @property
    def facts(self) -> Facts:
        exceeded_ms = ALWAYS if self.exceeded_since_ms is None else self.exceeded_since_ms
        return Facts(
            exceeded=(self.key,) if self.is_exceeded else (),
            exceeded_ms={self.key: exceeded_ms} if self.is_exceeded else {},
            gone=(self.key,) if self.is_gone else (),
            is_duplicating=self.is_duplicating,
            is_subscribed=self.is_subscribed,
            ledger=None if self.ledger is None else {self.key: self.ledger},
        )


Line = Recorded | Known
decoder = msgspec.json.Decoder(Line)


def read_line(line: bytes | str) -> Line:
    """Raises msgspec.MsgspecError, which says what is wrong and in which field; also for values that make no sense."""
    found: Line = decoder.decode(line)
    if isinstance(found, Recorded):
        check(found.index >= 0, "`index` is below 0")
        check(found.began_ms <= found.ended_ms, "it ended before it began")
        check(all(read.offset >= 0 for read in found.reads), "a record was read at an offset below 0")
        keys = [*(write.key for write in found.writes), *(read.key for read in found.reads)]
    else:
        keys = [found.key]
    check(all(len(key.topic_id) == 16 for key in keys), "a `topic_id` is not of 16 bytes")
    return found


def check(holds: bool, problem: str) -> None:
    if not holds:
        raise msgspec.ValidationError(problem)


def write_lines(
    operations: Iterable[Operation],
    facts: Facts,
    trimmed: Mapping[Key, int] | None = None,
    finals: Mapping[Key, str] | None = None,
    run: str = "",
) -> Iterator[bytes]:
    """All that `judge` would be given, each line with its end."""
    recorded = list(operations)
    keys = dict.fromkeys((*by_key(recorded), *(finals or {})))
    for key in keys:
        yield msgspec.json.encode(known(key, facts, trimmed or {}, finals or {}, run)) + b"\n"
    for index, operation in enumerate(recorded):
        yield msgspec.json.encode(Recorded(**fields(operation), index=index, run=run)) + b"\n"


def known(key: Key, facts: Facts, trimmed: Mapping[Key, int], finals: Mapping[Key, str], run: str) -> Known:
    since = facts.exceeded_ms.get(key)
    return Known(
        key=key,
        run=run,
        trimmed=trimmed.get(key, 0),
        final=finals.get(key, ""),
        is_exceeded=key in facts.exceeded or since is not None,
        exceeded_since_ms=since,
        is_gone=key in facts.gone,
        is_duplicating=facts.is_duplicating,
        is_subscribed=facts.is_subscribed,
        ledger=None if facts.ledger is None else tuple(facts.ledger.get(key, ())),
    )


def fields(operation: Operation) -> dict[str, Any]:
    return {name: getattr(operation, name) for name in Operation.__struct_fields__}
