"""What watched clients are configured for, as their requests show it: a client's object often does not say.

A producer is recognized by the header of its records. Of consumers only the requests are known, not whose they are: so
a reader counts as read_committed if all fetches of clients were.
"""

from collections.abc import Iterable, Mapping

from strandline.testing.answers.captured import Request
from strandline.testing.watching.recording import HEADER, Traits
from strandline.wire.batch import read_header
from strandline.wire.compress import Corrupt
from strandline.wire.record import all_records


def traits_of(
    processes: Mapping[bytes, str], everybody: Iterable[str], requests: Iterable[Request]
) -> dict[str, Traits]:
    """By process. `processes`: who sent the record with this header."""
    wanted = set(processes.values())
    producers: dict[str, Traits] = {}
    levels: set[int] = set()
    for request in requests:
        if request.api == "Fetch":
            levels.add(request.message.isolation_level)  # type: ignore[attr-defined]  # it is a FetchRequest
        elif request.api == "Produce" and len(producers) < len(wanted):
            for process, is_idempotent in senders(request, processes):
                producers.setdefault(process, Traits(acks_of(request), is_idempotent))
    reader = Traits(is_read_committed=levels == {1})
    return {process: producers.get(process, reader) for process in everybody}


def acks_of(request: Request) -> int:
    found: int = request.message.acks  # type: ignore[attr-defined]  # it is a ProduceRequest
    return found


def senders(request: Request, processes: Mapping[bytes, str]) -> Iterable[tuple[str, bool]]:
    """Of the first record of each batch: a batch has one producer's."""
    for batch in request.batches():
        try:
            first = next(iter(all_records(batch)), None)
        except Corrupt:
            continue
        marks = [content for name, content in (first.headers if first else ()) if name == HEADER]
        for mark in marks:
            if mark is not None and mark in processes:
                yield processes[mark], read_header(batch).has_producer_id
