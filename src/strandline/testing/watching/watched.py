"""What watched clients of all libraries have in common: everything that is not recorded is the client's own."""

import threading
from typing import Any, Self

from strandline.history.operation import Outcome
from strandline.testing.watching.recording import HEADER, Recording, Send

Headers = list[tuple[str, bytes | None]]
# Errors of the clients in Python after which a record is certainly not in the log.
NEVER_SENT = ("MessageSizeTooLargeError", "TopicAuthorizationFailedError", "UnknownTopicOrPartitionError")


class Watched:
    def __init__(self, client: Any, recording: Recording, process: str) -> None:
        self.client = client
        self.recording = recording
        self.process = process

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    # What Python looks up in the class does not reach `__getattr__`.

    def __len__(self) -> int:
        return len(self.client)

    def __bool__(self) -> bool:
        return bool(self.client)

    def __enter__(self) -> Self:
        self.client.__enter__()
        return self

    def __exit__(self, *failure: Any) -> Any:
        return self.client.__exit__(*failure)


class WatchedProducer(Watched):
    """Sends of an open transaction share its fate."""

    def __init__(self, client: Any, recording: Recording, process: str) -> None:
        super().__init__(client, recording, process)
        self.lock = threading.RLock()  # for threads that share a producer: records are recorded in the order of sending
        self.open: list[Send] | None = None  # of the transaction; None: there is none
        self.began_ms = 0

    def sending(self, topic: str, value: object, headers: Any, partition: int | None) -> tuple[Send, Headers]:
        known = -1 if partition is None else partition
        send, mark = self.recording.send(self.process, topic, value, known)
        if self.open is not None:
            self.open.append(send)
            send.is_transactional = True
        pairs = headers.items() if isinstance(headers, dict) else headers or ()
        return send, [*pairs, (HEADER, mark)]

    def began(self) -> None:
        self.open, self.began_ms = [], self.recording.now_ms()

    def ended(self, outcome: Outcome, error: object = "") -> None:
        sends, self.open = self.open or [], None
        self.recording.transaction(self.process, self.began_ms, outcome, sends, error)


class PolledConsumer(Watched):
    """Of the clients in Python. A change of its assignment is noticed with the next records."""

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self.assigned: object = None

    def got(self, began_ms: int, records: list[Any]) -> None:
        assigned = self.client.assignment()
        if assigned != self.assigned:
            self.recording.moved(self.process)
            self.assigned = assigned
        self.recording.poll(
            self.process, began_ms, [(r.topic, r.partition, r.offset, r.value, r.headers) for r in records]
        )
