"""Is a log directory that of its broker's last run? Its marker has the broker epoch of the stop, and the metadata log
has every registration. A start takes the marker away before the broker registers. So a marker of an earlier epoch than
the last registration is out of an older image, or the directory was offline since: its logs may lack committed records.
"""

from collections.abc import Iterator, Sequence

from strandline.metadata.framing import decode_record
from strandline.metadata.records import RegisterBrokerRecord
from strandline.wire.batch import batches
from strandline.wire.compress import Corrupt
from strandline.wire.record import records
from strandline_spark.jobs.audit.metadata.files import content_of, folder_in, names_in, snapshots
from strandline_spark.jobs.audit.rows import Row, plain
from strandline_spark.replica.left import Stopped

RULE = "stale-directory"
RULES = {RULE: "a log directory is of an earlier stop than its broker's last one"}
Registered = dict[tuple[str, int], int]  # the last broker epoch, by cluster id and broker


def stale_directories(stops: Sequence[Stopped], registered: Registered) -> Iterator[Row]:
    for stop in stops:
        epoch = registered.get((stop.marker.cluster_id, stop.marker.node_id), -1)
        if epoch <= stop.marker.broker_epoch or not stop.is_still():
            continue
        what = (
            f"{stop.directory} stopped with broker epoch {stop.marker.broker_epoch}, and the broker has registered"
            f" since, with {epoch}: an older image, or the directory was offline"
        )
        for row in stop.marker.logs:
            key = (stop.marker.node_id, stop.directory, row.topic, row.topic_id, row.partition)
            yield plain(RULE, what, key, row.start, max(row.end, row.start + 1))


def registrations_in(directory: str, cluster_id: str) -> Registered:
    """Empty if there is no metadata log."""
    folder = folder_in(directory)
    contents = [content for _, _, content in snapshots(folder)]
    contents += [content_of(f"{folder}/{name}") or b"" for name in sorted(names_in(folder)) if name.endswith(".log")]
    found: Registered = {}
    for content in contents:
        for record in registrations(content):
            key = (cluster_id, record.broker_id)
            found[key] = max(found.get(key, -1), record.broker_epoch)
    return found


def registrations(content: bytes) -> Iterator[RegisterBrokerRecord]:
    """What cannot be read is another rule's."""
    for header in batches(content):
        if header.is_control:
            continue
        try:
            for record in records(header, content):
                # A record begins with two numbers of one byte: the frame's version and the record's key.
                if record.value is not None and bytes(record.value[1:2]) == bytes([RegisterBrokerRecord.key]):
                    found = decode_record(record.value)
                    if isinstance(found, RegisterBrokerRecord):
                        yield found
        except Corrupt:
            continue
