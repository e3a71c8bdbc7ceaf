"""Counting all requests of a connection, from their last byte to their answer, for `queued.max.request.bytes`.

The hooks are put into the connection itself, so that others do not pay for them. As in Kafka, a request that was begun
below the bound may exceed it.
"""

from collections.abc import Sequence

from strandline.base.ports import Buffer
from strandline.server.network.unsent import Unsent


def count_requests(connection: Unsent) -> None:
    memory = connection.memory
    sizes: dict[int, int] = {}  # bytes of a request, by its sequence
    deliver, fill, forget = connection.frame_received, connection.fill, connection.forget_answers

    def frame_received(frame: memoryview) -> None:
        sequence = connection.first + len(connection.slots)
        size = len(frame)
        deliver(frame)
        place = sequence - connection.first
        if 0 <= place < len(connection.slots) and connection.slots[place] is None:
            sizes[sequence] = size
            memory.queued += size
        if not memory.may_begin and not connection.closed:
            connection.wait_for_memory()

    def counted_fill(sequence: int, answer: Sequence[Buffer]) -> None:
        fill(sequence, answer)
        size = sizes.pop(sequence, 0)
        if size:
            memory.answered(size)

    def forget_answers() -> None:
        forget()
        memory.answered(sum(sizes.values()))
        sizes.clear()

    connection.frame_received = frame_received  # type: ignore[method-assign]  # functions in the place of methods
    connection.fill = counted_fill  # type: ignore[method-assign]  # as above
    connection.forget_answers = forget_answers  # type: ignore[method-assign]  # as above
