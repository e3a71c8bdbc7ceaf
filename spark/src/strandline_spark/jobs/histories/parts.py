"""What of a recorded line goes to which key.

An operation on several keys is parted as `history.operation.by_key` does it. A new start of a process (ASSIGN) names no
key: it concerns what the process has read since its last one. Lines come in no order, so it goes to all keys that the
process ever reads in its run; where nothing was read since, it parts nothing, and changes no verdict.
"""

from collections.abc import Iterable, Iterator

import msgspec

from strandline.base.value import Value
from strandline.history.operation import Key, Kind, Operation, parts
from strandline.history.recorded import Known, Line, Recorded, read_line

KNOWN, ASSIGNED, OPERATION, UNREADABLE = "0 known", "1 assigned", "2 operation", "3 unreadable"  # sorted so in a key
NO_INDEX = -1
EXCERPT = 200  # characters of an unreadable line that are shown
LISTED_MAX = 20  # unreadable lines per task that are listed one by one
SEEN_MAX = 100_000  # of who reads what is remembered so much, so that it is not said again and again

encoder = msgspec.msgpack.Encoder()


class Part(Value, frozen=True):
    """`schemas.HISTORY_PART` says the same to Spark."""

    run: str
    topic: str
    topic_id: bytes
    partition: int
    index: int  # of the operation in its run
    role: str
    content: bytes  # msgpack: an Operation as this key sees it, or a Known; else text


class Mark(Value, frozen=True):
    """An event of a process in a run: a key that it reads (no content), or a new start (no key)."""

    run: str
    process: str
    topic: str | None
    topic_id: bytes | None
    partition: int | None
    index: int
    content: bytes | None


def parts_in(lines: Iterable[Line | str]) -> Iterator[Part]:
    """A text is what is wrong with a line that could not be read."""
    bad = 0
    for line in lines:
        if isinstance(line, str):
            bad += 1
            if bad <= LISTED_MAX:
                yield unreadable(line, 1)
        elif isinstance(line, Known):
            yield part_of(line.run, line.key, NO_INDEX, KNOWN, encoder.encode(line))
        else:
            for key, own in parts(line):
                yield part_of(line.run, key, line.index, OPERATION, encoder.encode(own))
    if bad > LISTED_MAX:
        yield unreadable("and more of the same kind", bad - LISTED_MAX)


def part_of(run: str, key: Key, index: int, role: str, content: bytes) -> Part:
    return Part(run, key.topic, key.topic_id, key.partition, index, role, content)


def unreadable(problem: str, count: int) -> Part:
    return Part("", "", b"", NO_INDEX, count, UNREADABLE, problem.encode())


def marks_in(lines: Iterable[Line | str]) -> Iterator[Mark]:
    known: dict[tuple[str, str, Key], None] = {}
    for line in lines:
        if not isinstance(line, Recorded):
            continue
        if line.kind is Kind.ASSIGN:
            yield Mark(line.run, line.process, None, None, None, line.index, encoder.encode(line))
        for key in dict.fromkeys(read.key for read in line.reads):
            reader = (line.run, line.process, key)
            if reader not in known:
                if len(known) >= SEEN_MAX:
                    known.clear()
                known[reader] = None
                yield Mark(line.run, line.process, key.topic, key.topic_id, key.partition, NO_INDEX, None)


def lines_of_text(texts: Iterable[str], place: str = "") -> Iterator[Line | str]:
    for text in texts:
        if not text.strip():
            continue
        try:
            yield read_line(text)
        except msgspec.MsgspecError as error:
            yield f"{place}{error}: {text[:EXCERPT]}"


def lines_of_rows(rows: Iterable[dict[str, object]]) -> Iterator[Line | str]:
    """Of a table: columns that are null are fields that the line does not have."""
    for row in rows:
        fields = {name: value for name, value in row.items() if value is not None}
        try:
            yield read_line(msgspec.json.encode(fields))
        except msgspec.MsgspecError as error:
            yield f"{error}: {str(fields)[:EXCERPT]}"


operation_decoder = msgspec.msgpack.Decoder(Operation)
known_decoder = msgspec.msgpack.Decoder(Known)
