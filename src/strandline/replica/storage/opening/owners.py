"""Whose is a log that lies on disk? `partition.metadata` says it, and is synced with the log's first records.

The directory's own checkpoint of topic ids says it again. It is written before a recovery point is that vouches for
records, and loses a name's row before that name is used again. So where a log's file is missing or damaged, and there
is a row, the row is right. Where the file says another topic, it may be the folder that is another one's, back after a
loss of power: then the file counts.

A topic keeps its name. So where a folder's file says a topic of another name, the files or the folders were
exchanged by hand. Then it is not known whose the records are, and the log counts as one that is not there. The
checkpoint shows it before the log is opened, or else metadata before it has a role.

Invariants:
  - no log has a role in a folder that does not bear its topic's name
  - no records are removed because it is not known whose they are: where they may have been durable, their directory has
    failed; where no flush ever vouched for them, they are set aside and the broker goes on
  - what is set aside keeps its content, and no start looks at it again
"""

from collections.abc import Generator, Mapping

from strandline.base.effects import Effect, Report
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid, uuid_text
from strandline.base.ports import Disk, DiskError
from strandline.log.directory import (
    PARTITION_METADATA,
    STRAY_SUFFIX,
    DamagedMetadata,
    directory_name,
    parse_directory_name,
    read_topic_id,
    write_partition_metadata,
)
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.losses.losing import Findings

ENTRY_MAX = 180  # of a name with 255 characters at most, of which a suffix needs some

WRONG_CHARACTERS_MAX = 2  # of 22: that two topics have so similar ids by chance is out of the question


def topic_of(
    disk: Disk,
    directory: str,
    entry: str,
    rows: Mapping[TopicPartition, Uuid],
    durable_below: int | None,
) -> Generator[Effect, None, Uuid | None]:
    """The topic whose log `entry` is. None: it is no log, or is none any more. Raises DiskError where it is one and
    it is not known whose.

    `rows`: of the checkpoint. `durable_below`: which records may have been durable; None: all. A loss of power explains
    the state of the others."""
    path = f"{directory}/{entry}"
    name = parse_directory_name(entry)
    saved = None if name is None else rows.get(name)
    topic_id, why = topic_or_why(disk, path)
    if saved is not None and (topic_id is None or (topic_id != saved and is_nearly(topic_id, saved))):
        write_partition_metadata(disk, path, saved)
        yield Report("warning", f"{path} had lost its topic id, or had another one; it is restored")
        return saved
    if topic_id is not None:
        if saved is None or topic_id == saved or topic_id not in rows.values():
            return topic_id
        aside = set_aside(disk, directory, entry)
        yield Report("error", f"{path} has the id of a topic of another name; it is kept in {aside}")
        return None
    start = start_of_records(disk, path)
    if start is None:
        return None
    # The recovery point of a log that was begun anew where its leader's begins is its start, and vouches for nothing.
    if durable_below is None or start < durable_below:
        raise DiskError(f"{why}, and there are records beside it: it is unknown to which topic they belong")
    aside = set_aside(disk, directory, entry)
    yield Report("warning", f"{why}; the records beside it were never synced, and are kept in {aside}")
    return None


def has_misread_id(host: Host, namesakes: list[Hosted], at: TopicIdPartition) -> bool:
    """Is one of these logs the one of `at`, its topic id damaged into what might be another's? Two topics' ids
    differ by far more. Its directory has failed then."""
    for namesake in namesakes:
        if is_nearly(namesake.at.topic_id, at.topic_id):
            path = f"{namesake.log.directory}/{PARTITION_METADATA}"
            host.fail(namesake.directory, DiskError(f"{path} is damaged: its id is nearly {uuid_text(at.topic_id)}"))
            host.absent[at] = namesake.directory.directory_id
            return True
    return False


def refuse_other_name(found: Hosted, path: str) -> None:
    """Raises DiskError where the log in `path` has the topic id of one that was found under another name."""
    if found.log.directory.rpartition("/")[2] != path.rpartition("/")[2]:
        raise DiskError(
            f"{path} and {found.log.directory} have one topic id: it is unknown to which topic their records belong"
        )


def part_with_misnamed(host: Host, disk: Disk, findings: Findings) -> list[Effect]:
    """Once metadata says what the topics are called, and before a log has a role."""
    effects: list[Effect] = []
    for hosted in list(host.partitions.all()):
        topic = host.image.topics.get(hosted.at.topic_id)
        if topic is None or topic.name == hosted.name.topic or not host.directories.is_live(hosted.directory):
            continue
        assert hosted.role is None, hosted.name
        path, directory = hosted.log.directory, hosted.directory
        try:
            hosted.log.abandon()
            aside = set_aside(disk, directory.path, directory_name(hosted.name))
        except DiskError as error:
            host.fail(directory, error)
            continue
        host.drop(hosted)
        findings.is_another(hosted)
        effects.append(Report("error", f"{path} has the id of topic {topic.name}; it is kept in {aside}"))
    return effects


def is_nearly(one: Uuid, other: Uuid) -> bool:
    pairs = zip(uuid_text(one), uuid_text(other), strict=True)
    return sum(mine != theirs for mine, theirs in pairs) <= WRONG_CHARACTERS_MAX


def make_room(disk: Disk, path: str) -> None:
    """Before a new log is begun in `path`: what may go, goes. Raises DiskError over records without an owner."""
    if not disk.exists(path):
        return
    topic_id, why = topic_or_why(disk, path)
    if topic_id is None and start_of_records(disk, path) is not None:
        raise DiskError(f"{why}, and there are records beside it")
    disk.remove_tree(path)  # a leftover without records, or a second log that `load` left alone


def topic_or_why(disk: Disk, path: str) -> tuple[Uuid | None, str]:
    try:
        topic_id = read_topic_id(disk, path)
    except DamagedMetadata as error:
        return None, str(error)
    return topic_id, f"{path}/{PARTITION_METADATA} is missing"


def start_of_records(disk: Disk, path: str) -> int | None:
    """The first offset of the log in `path`; None if it has no records and had none, as an offset above 0 shows."""
    segments = [name for name in disk.list(path) if name.endswith(".log") and name[:-4].isdecimal()]
    if not segments:
        return None
    start = int(segments[0][:-4])
    assert start >= 0
    if start == 0 and not any(size_of(disk, f"{path}/{name}") for name in segments):
        return None
    return start


def size_of(disk: Disk, path: str) -> int:
    file = disk.open(path)
    try:
        return file.size()
    finally:
        file.close()


def set_aside(disk: Disk, directory: str, entry: str) -> str:
    stray = stray_name(disk, directory, entry)
    disk.rename(f"{directory}/{entry}", stray)
    return stray


def stray_name(disk: Disk, directory: str, entry: str) -> str:
    """A path that is free."""
    names = dict.fromkeys(disk.list(directory))
    number = 1
    while (stray := f"{entry[:ENTRY_MAX]}.{number}{STRAY_SUFFIX}") in names:
        number += 1
    assert len(stray) <= 255, stray
    return f"{directory}/{stray}"
