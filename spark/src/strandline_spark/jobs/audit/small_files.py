"""Invalid small files of a log directory. What they would have said about its logs cannot be checked, and the audit
reports that. Brokers replace them in one step: a healthy broker never has half of one."""

import os
from collections.abc import Callable, Iterator

import msgspec

from strandline.base.ports import DiskError
from strandline.log.checkpoints import Unreadable, parse_epochs, parse_offsets
from strandline.log.directory import DamagedMetadata, parse_directory_name, read_meta, read_topic_id
from strandline.log.evidence.clean_shutdown import FILE as MARKER
from strandline.log.evidence.clean_shutdown import Marker, whole_marker
from strandline.log.files.epoch_file import EPOCHS_FILE
from strandline.replica.hosting.rows import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from strandline.server.storage.disk import RealDisk
from strandline_spark.replica.left import is_of

CHECKPOINTS = {
    HIGH_WATERMARKS: "none of its logs counts as committed, or is compared with others",
    RECOVERY_POINTS: "how far its logs were flushed is unknown",
    LOG_STARTS: "its logs are judged from their first segments on",
    CLEANED: "its compacted logs are judged as if no cleaner had run",
}


def damaged_files(directory: str) -> Iterator[str]:
    """A sentence for each. What cannot be read at all is reported elsewhere."""
    for file, meaning in CHECKPOINTS.items():
        if is_damaged(f"{directory}/{file}", parse_offsets):
            yield f"{directory}/{file} is damaged: {meaning}"
    why = why_no_marker(directory)
    if why is not None:
        yield f"{directory}/{MARKER} {why}: how the last stop left its logs is unknown"
    for name in sorted(os.listdir(directory)):
        if parse_directory_name(name) is None:
            continue
        log = f"{directory}/{name}"
        if is_damaged(f"{log}/{EPOCHS_FILE}", parse_epochs):
            yield f"{log}/{EPOCHS_FILE} is damaged: the log's epochs are not judged"
        try:
            read_topic_id(RealDisk(), log)
        except DamagedMetadata as error:
            yield f"{error}: the log is not compared with others"
        except DiskError:
            continue


def why_no_marker(directory: str) -> str | None:
    """None also where there is none. Kafka's says nothing of logs, and once was an empty file."""
    try:
        content, meta = RealDisk().read_file(f"{directory}/{MARKER}"), read_meta(RealDisk(), directory)
    except DiskError:
        return None
    if not content:
        return None
    try:
        marker = msgspec.json.decode(content, type=Marker)
    except (msgspec.MsgspecError, ValueError):
        return "is damaged"
    if marker.logs_checksum == 0 and not marker.logs:
        return None
    if whole_marker(content) is None:
        return "is damaged"
    return None if meta is None or is_of(marker, meta) else "is that of another log directory"


def is_damaged(path: str, parse: Callable[[bytes], object]) -> bool:
    try:
        content = RealDisk().read_file(path)
        if content is not None:
            parse(content)
    except Unreadable:
        return True
    except DiskError:
        pass
    return False
