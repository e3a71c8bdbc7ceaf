"""Which logs lie in which directories: a snapshot of names and sizes, taken while brokers may write.

Invariants:
  - a segment's size in the snapshot is that of a moment; what is appended later is not part of it;
  - a log whose names change while they are listed is listed again, so no swap of the cleaner is seen half done.
"""

import glob
import os
import re
import time
from collections.abc import Iterator, Sequence

from strandline.base.ids import uuid_text
from strandline.base.ports import DiskError
from strandline.log.directory import META_PROPERTIES, parse_directory_name, read_meta, read_topic_id
from strandline.log.files.epoch_file import EPOCHS_FILE
from strandline.log.files.swapping import SWAP
from strandline.server.storage.disk import RealDisk
from strandline_spark.errors import BadOption, StrandlineError
from strandline_spark.replica.errors import LogChanged, naming
from strandline_spark.replica.located import Replica, SegmentFile
from strandline_spark.replica.options import Request, Wanted
from strandline_spark.replica.windows import end_offset_of

SEGMENT = re.compile(r"^(\d{20})\.log$")
SWAPPED = re.compile(rf"^(\d{{20}})\.log\{SWAP}$")
LISTINGS_MAX = 20
PAUSE_SECONDS = 0.1


def log_directories(request: Request) -> list[str]:
    """The directories that the paths name, each once. Raises `BadOption` if a path names none."""
    found: dict[str, None] = {}
    for path in request.paths:
        plain = path.removeprefix("file://")
        matches = sorted(glob.glob(plain)) if glob.has_magic(plain) else [plain]
        matches = [os.path.abspath(match) for match in matches if os.path.isdir(match)]
        if not matches:
            raise BadOption(f"{path} is not a directory", "a path is a log directory (log.dirs), or matches some")
        found |= dict.fromkeys(matches)
    return list(found)


def replicas(request: Request) -> list[Replica]:
    """All logs in all directories that are wanted, by directory, topic and partition."""
    found: list[Replica] = []
    for directory in log_directories(request):
        broker = broker_of(directory, request.node)
        found += logs_in(directory, broker, request.wanted)
    return found


def broker_of(directory: str, node: int | None) -> int | None:
    try:
        meta = read_meta(RealDisk(), directory)
    except DiskError as error:
        if node is None:
            raise StrandlineError(str(error), "option('node', …) sets the node of the directory") from None
        return node
    if meta is None and node is None and not has_logs(directory):
        raise BadOption(
            f"{directory} is not a log directory: it has no {META_PROPERTIES} and no partition in it",
            "a path is what log.dirs names, not the folder around it",
        )
    return meta.node_id if meta is not None else node


def has_logs(directory: str) -> bool:
    return any(parse_directory_name(name) is not None for name in os.listdir(directory))


def logs_in(directory: str, broker: int | None, wanted: Wanted) -> Iterator[Replica]:
    """Without those that are deleted, that only come here from another directory, or that were set aside."""
    disk = RealDisk()
    for name in sorted(os.listdir(directory)):
        at = parse_directory_name(name)
        path = f"{directory}/{name}"
        if at is None or not wanted.has(at.topic, at.partition) or not os.path.isdir(path):
            continue
        try:
            topic_id = read_topic_id(disk, path)
        except DiskError:
            topic_id = None  # damaged: nobody knows
        text = None if topic_id is None else uuid_text(topic_id)
        yield Replica(broker, directory, at.topic, text, at.partition, path)


def segments(replica: Replica) -> list[SegmentFile]:
    """The log's segments, by offset; none if the log is gone. Raises `LogChanged`, `UnreadableLog`."""
    for listing in range(LISTINGS_MAX):
        names = listed(replica.path)
        is_swapping = any(SWAPPED.match(name) for name in names)
        if is_swapping and listing < LISTINGS_MAX - 1:  # takes milliseconds, unless a broker died in it
            time.sleep(PAUSE_SECONDS)
            continue
        try:
            found = sized(replica.path, names)
        except (FileNotFoundError, LogChanged):
            continue
        if listed(replica.path) == names:
            return found
    raise LogChanged(f"the files of {replica} change all the time", "try again, or read a copy")


def listed(path: str) -> list[str]:
    try:
        with naming(path):
            return sorted(name for name in os.listdir(path) if SEGMENT.match(name) or SWAPPED.match(name))
    except FileNotFoundError:
        return []


def sized(path: str, names: Sequence[str]) -> list[SegmentFile]:
    """A swap that a broker's death left half done counts as done: what it takes the place of is passed over."""
    files = {int(match[1]): name for name in names if (match := SEGMENT.match(name))}
    for name in names:
        if match := SWAPPED.match(name):
            base = int(match[1])
            end = end_offset_of(f"{path}/{name}", base)
            files = {each: file for each, file in files.items() if not base <= each < max(end, base + 1)} | {base: name}
    bases = sorted(files)
    found = []
    for index, base in enumerate(bases):
        following = bases[index + 1] if index + 1 < len(bases) else None
        found.append(SegmentFile.of(f"{path}/{files[base]}", base, following))
    return found


def epochs_content(replica: Replica) -> bytes | None:
    return content_of(f"{replica.path}/{EPOCHS_FILE}")


def content_of(path: str) -> bytes | None:
    """The content of a small file; None if there is none. Raises `UnreadableLog`."""
    with naming(path):
        return RealDisk().read_file(path)
