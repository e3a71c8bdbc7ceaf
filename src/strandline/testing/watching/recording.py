"""What watched clients did: sends and reads as they come, from any thread, and the operations that they make up.

A record is recognized by a header that is added when it is sent, since an application may send equal values. Without
the header, a record is its value and its place.

Sends of one producer overlap: it sends the next before the last is acknowledged. A history orders operations by their
times, so that the order of overlapping ones would not be judged. Where the producer promises it (idempotence), a run of
overlapping sends that were acknowledged is one operation, with its writes in the order of sending.
"""

import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.base.value import Value
from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write

HEADER = "strandline-watch"
SHOWN_BYTES = 40  # of a value, in what a finding says


class Traits(Value, frozen=True):
    """What a client is configured for, as far as it counts for a judgement."""

    acks: int = -1
    is_idempotent: bool = False
    is_read_committed: bool = False


class Send:
    """One record, from its sending on; `UNKNOWN` until the client hears of it. `partition` −1: nobody knows where."""

    def __init__(self, process: str, topic: str, partition: int, identity: bytes, began_ms: int) -> None:
        self.process = process
        self.topic = topic
        self.partition = partition
        self.identity = identity
        self.began_ms = began_ms
        self.ended_ms: int | None = None
        self.outcome = Outcome.UNKNOWN
        self.offset = -1
        self.error = ""
        self.is_transactional = False


class Poll(Value, frozen=True):
    """What one call brought; no reads: the process begins to read elsewhere."""

    process: str
    began_ms: int
    ended_ms: int
    reads: tuple[tuple[str, int, int, bytes], ...] = ()  # topic, partition, offset, identity


class Transaction(Value, frozen=True):
    process: str
    began_ms: int
    ended_ms: int
    outcome: Outcome
    sends: tuple[Send, ...]
    error: str = ""


class Recording:
    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.sends: list[Send] = []
        self.transactions: list[Transaction] = []
        self.polls: list[Poll] = []
        self.identities: dict[bytes, bytes] = {}  # by the header's content
        self.processes: dict[bytes, str] = {}  # likewise: who sent it

    def now_ms(self) -> int:
        return int((time.monotonic() - self.began) * 1000)

    # --- what clients report

    def send(self, process: str, topic: str, value: object, partition: int = -1) -> tuple[Send, bytes]:
        """A record is about to be sent: what to tell about its fate, and the content of its header."""
        with self.lock:
            mark = f"{self.run}-{len(self.identities)}".encode()
            identity = shown(value) + b" #%d" % len(self.identities)
            self.identities[mark], self.processes[mark] = identity, process
            made = Send(process, topic, partition, identity, self.now_ms())
            self.sends.append(made)
            return made, mark

    def acknowledged(self, send: Send, partition: int, offset: int) -> None:
        send.partition, send.offset = partition, offset
        send.outcome, send.ended_ms = Outcome.OK, self.now_ms()

    def failed(self, send: Send, error: object, *, certainly: bool) -> None:
        """`certainly`: it was not written, and will not be."""
        send.error, send.ended_ms = str(error), self.now_ms()
        send.outcome = Outcome.FAIL if certainly else Outcome.UNKNOWN

    def transaction(
        self, process: str, began_ms: int, outcome: Outcome, sends: Sequence[Send], error: object = ""
    ) -> None:
        with self.lock:
            done = Transaction(process, began_ms, self.now_ms(), outcome, tuple(sends), str(error))
            self.transactions.append(done)

    def poll(self, process: str, began_ms: int, records: Iterable[tuple[str, int, int, object, object]]) -> None:
        """`records`: topic, partition, offset, value and headers of each."""
        reads = tuple((t, p, offset, self.identity(offset, value, headers)) for t, p, offset, value, headers in records)
        if reads:
            with self.lock:
                self.polls.append(Poll(process, began_ms, self.now_ms(), reads))

    def forget(self, process: str) -> None:
        """What it has read."""
        with self.lock:
            self.polls = [poll for poll in self.polls if poll.process != process]

    def moved(self, process: str) -> None:
        """The process has been given other partitions, or has sought another position."""
        with self.lock:
            self.polls.append(Poll(process, self.now_ms(), self.now_ms()))

    def identity(self, offset: int, value: object, headers: object) -> bytes:
        pairs = headers if isinstance(headers, list | tuple) else ()
        marks = [self.identities.get(content) for name, content in pairs if name == HEADER and content is not None]
        return next((mark for mark in marks if mark is not None), shown(value) + b" @%d" % offset)

    # --- operations

    def topics(self) -> list[str]:
        sent = [send.topic for send in self.sends]
        return list(dict.fromkeys([*sent, *(read[0] for poll in self.polls for read in poll.reads)]))

    def operations(self, topic_ids: Mapping[str, Uuid], traits: Mapping[str, Traits]) -> list[Operation]:
        """In the order in which they ended. `traits`: by process."""

        view = View(topic_ids, traits)
        with self.lock:
            end_ms = self.now_ms()
            in_transactions = {id(send) for done in self.transactions for send in done.sends}
            plain = [send for send in self.sends if id(send) not in in_transactions]
            made = [view.of_sends(group, end_ms) for group in grouped(plain, traits)]
            made += map(view.of_transaction, self.transactions)
            made += map(view.of_poll, self.polls)
        return sorted(made, key=lambda operation: operation.ended_ms)


class View:
    """Operations of what was recorded, with what is known at the end."""

    def __init__(self, topic_ids: Mapping[str, Uuid], traits: Mapping[str, Traits]) -> None:
        self.topic_ids = topic_ids
        self.traits = traits

    def key(self, topic: str, partition: int) -> Key:
        return Key(topic, self.topic_ids.get(topic, ZERO_UUID), partition)

    def writes(self, sends: Iterable[Send]) -> tuple[Write, ...]:
        return tuple(
            Write(self.key(send.topic, send.partition), send.identity, send.offset)
            for send in sends
            if send.partition >= 0
        )

    def of_sends(self, sends: Sequence[Send], end_ms: int) -> Operation:
        first, traits = sends[0], self.traits[sends[0].process]
        return Operation(
            process=first.process,
            kind=Kind.SEND,
            began_ms=min(send.began_ms for send in sends),
            ended_ms=max(end_ms if send.ended_ms is None else send.ended_ms for send in sends),
            # Of a transaction that is still open, nothing is decided.
            outcome=Outcome.UNKNOWN if first.is_transactional else first.outcome,
            acks=traits.acks,
            is_idempotent=traits.is_idempotent,
            writes=self.writes(sends),
            error=sends[-1].error,
            transactional_id=first.process if first.is_transactional else "",
        )

    def of_transaction(self, done: Transaction) -> Operation:
        return Operation(
            process=done.process,
            kind=Kind.SEND,
            began_ms=done.began_ms,
            ended_ms=done.ended_ms,
            outcome=done.outcome,
            is_idempotent=True,
            writes=self.writes(done.sends),
            error=done.error,
            transactional_id=done.process,
        )

    def of_poll(self, poll: Poll) -> Operation:
        return Operation(
            process=poll.process,
            kind=Kind.POLL if poll.reads else Kind.ASSIGN,
            began_ms=poll.began_ms,
            ended_ms=poll.ended_ms,
            outcome=Outcome.OK,
            reads=tuple(Read(self.key(t, p), offset, identity) for t, p, offset, identity in poll.reads),
            is_read_committed=self.traits[poll.process].is_read_committed,
        )


def grouped(sends: Iterable[Send], traits: Mapping[str, Traits]) -> Iterable[list[Send]]:
    """What is one operation each."""
    runs: dict[str, list[Send]] = {}  # by process
    ends_ms: dict[str, int] = {}  # likewise: when the last of the run was acknowledged
    for send in sends:
        if not traits[send.process].is_idempotent or send.outcome is not Outcome.OK:
            yield [send]
            continue
        assert send.ended_ms is not None, "it was acknowledged"
        run = runs.setdefault(send.process, [])
        if run and send.began_ms > ends_ms[send.process]:
            yield run
            run = runs[send.process] = []
        run.append(send)
        ends_ms[send.process] = max(send.ended_ms, ends_ms.get(send.process, 0))
    yield from (run for run in runs.values() if run)


def shown(value: object) -> bytes:
    if value is None:
        return b"(null)"
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)[:SHOWN_BYTES]
    return str(value).encode()[:SHOWN_BYTES]
