"""What is in the logs at the end: everything of some topics, read by a client of our own."""

from collections.abc import Sequence

from strandline.client.cluster import EARLIEST, LATEST
from strandline.client.cluster import Cluster as Client
from strandline.client.config import ClientConfig
from strandline.testing.watching.recording import Recording
from strandline.wire.batch import batches
from strandline.wire.record import records

FINAL = "the final reader"
Place = tuple[str, int]


def read_all(config: ClientConfig, places: Sequence[Place], recording: Recording) -> dict[Place, int]:
    """Each partition from its start to its end, as polls of `FINAL`; where each starts."""
    recording.forget(FINAL)
    with Client(config) as client:
        starts = client.list_offsets(dict.fromkeys(places, EARLIEST))
        ends = client.list_offsets(dict.fromkeys(places, LATEST), isolation=0)
        for topic, partition in places:
            start, end = starts[topic, partition].offset, ends[topic, partition].offset
            for fetched in client.read(topic, partition, start, end, isolation=0) if start < end else ():
                began_ms = recording.now_ms()
                content = bytes(fetched.records)
                recording.poll(
                    FINAL,
                    began_ms,
                    [
                        (topic, partition, record.offset, record.value, record.headers)
                        for header in batches(content)
                        if not header.is_control
                        for record in records(header, content)
                        if start <= record.offset < end
                    ],
                )
    return {place: found.offset for place, found in starts.items()}
