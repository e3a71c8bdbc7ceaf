"""Requests of clients as the relays have seen them, for a test to look at."""

import time
from collections import deque
from collections.abc import Iterator
from functools import cached_property

from strandline.wire.api import API_BY_KEY
from strandline.wire.frame import Malformed, Unsupported, decode_request
from strandline.wire.frame import Request as Decoded
from strandline.wire.record import Record, all_records
from strandline.wire.schema import Message

PRODUCE = 0
KEPT_MAX = 10_000
KEPT_BYTES_MAX = 64 << 20


class Request:
    """One request that reached the relay of `node`; whether the node got it depends on the rules for answers."""

    def __init__(self, node: int, frame: bytes, decoded: Decoded) -> None:
        self.node = node
        self.size = len(frame)
        self.at_s = time.monotonic()
        self.api = API_BY_KEY[decoded.api_key].name
        self.version = decoded.api_version
        self.correlation_id = decoded.correlation_id
        self.client_id = decoded.client_id or ""
        self.message: Message = decoded.message

    def __repr__(self) -> str:
        return f"<{self.api} v{self.version} of '{self.client_id}' to node {self.node}>"

    @property
    def expects_answer(self) -> bool:
        """Produce with acks=0 does not."""
        return self.api != "Produce" or getattr(self.message, "acks", -1) != 0

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Of Produce: the records in it, of all partitions in their order."""
        return tuple(record for batch in self.batches() for record in all_records(batch))

    def batches(self) -> Iterator[bytes]:
        for topic in getattr(self.message, "topic_data", ()):
            for partition in topic.partition_data:
                if partition.records is not None:
                    yield bytes(partition.records)


def heard(node: int, frame: bytes) -> Request | None:
    """None: it is not a request that we know, such as bytes of a login."""
    try:
        return Request(node, frame, decode_request(memoryview(frame)))
    except (Malformed, Unsupported):
        return None


class Captured:
    """The last requests, up to `KEPT_MAX` and `KEPT_BYTES_MAX`."""

    def __init__(self) -> None:
        self.kept: deque[Request] = deque()
        self.bytes = 0
        self.count = 0  # all that ever came

    def add(self, request: Request) -> None:
        self.kept.append(request)
        self.bytes += request.size
        self.count += 1
        while len(self.kept) > KEPT_MAX or (self.bytes > KEPT_BYTES_MAX and len(self.kept) > 1):
            self.bytes -= self.kept.popleft().size

    def since(self, count: int) -> list[Request]:
        """What came after the first `count`, as far as it is kept."""
        new = self.count - count
        return list(self.kept)[-new:] if new > 0 else []
