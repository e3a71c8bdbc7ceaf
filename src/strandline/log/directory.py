"""Names and small files of a log directory: `meta.properties`, `<topic>-<partition>`, `partition.metadata`."""

from strandline.base.ids import ZERO_UUID, TopicPartition, Uuid, parse_uuid, uuid_text
from strandline.base.ports import Disk, DiskError
from strandline.base.value import Value

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
DELETED_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
STRAY_SUFFIX = "-stray"


class DamagedMetadata(DiskError):
    """A `partition.metadata` that makes no sense."""


class DirectoryMeta(Value, frozen=True):
    """Whose directory this is (`meta.properties`, version 1)."""

    cluster_id: str
    node_id: int
    directory_id: Uuid


def read_meta(disk: Disk, directory: str) -> DirectoryMeta | None:
    """None if the directory is not formatted. Raises DiskError if the file is there and makes no sense."""
    path = f"{directory}/{META_PROPERTIES}"
    content = disk.read_file(path)
    if content is None:
        return None
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()]
    rows = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    try:
        if rows["version"] != "1":
            raise DiskError(f"{path}: version {rows['version']} is not supported, only 1 is")
        return DirectoryMeta(rows["cluster.id"], int(rows["node.id"]), parse_uuid(rows["directory.id"]))
    except (KeyError, ValueError) as error:
        raise DiskError(f"{path} is damaged: {error}") from None


def write_meta(disk: Disk, directory: str, meta: DirectoryMeta) -> None:
    assert meta.node_id >= 0 and "\n" not in meta.cluster_id
    text = (
        f"#\nversion=1\ncluster.id={meta.cluster_id}\nnode.id={meta.node_id}\n"
        f"directory.id={uuid_text(meta.directory_id)}\n"
    )
    disk.make_directory(directory)
    disk.save(f"{directory}/{META_PROPERTIES}", text.encode())


def directory_name(at: TopicPartition) -> str:
    return f"{at.topic}-{at.partition}"


def future_name(at: TopicPartition, topic_id: Uuid) -> str:
    """The folder of a future log, which will replace the partition's log in another directory."""
    return f"{directory_name(at)}.{topic_id.hex()}{FUTURE_SUFFIX}"


def parse_future_name(name: str) -> TopicPartition | None:
    stem, dot, _ = name.removesuffix(FUTURE_SUFFIX).rpartition(".")
    return parse_directory_name(stem) if dot and name.endswith(FUTURE_SUFFIX) else None


def parse_directory_name(name: str) -> TopicPartition | None:
    """None if it is not the name of a partition's directory."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not (partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition))


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    """The topic id that `partition.metadata` has; None without such a file."""
    path = f"{directory}/{PARTITION_METADATA}"
    content = disk.read_file(path)
    if content is None:
        return None
    lines = content.decode("utf-8", "replace").splitlines()
    rows = {key: text.strip() for key, _, text in (line.partition(":") for line in lines)}
    try:
        topic_id = parse_uuid(rows["topic_id"]) if rows["version"] == "0" else ZERO_UUID
    except (KeyError, ValueError):
        topic_id = ZERO_UUID
    if topic_id == ZERO_UUID:
        raise DamagedMetadata(f"{path} is damaged: {content[:64]!r}")
    return topic_id


def write_partition_metadata(disk: Disk, directory: str, topic_id: Uuid) -> None:
    assert topic_id != ZERO_UUID, "`read_topic_id` takes that for damage"
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    disk.write_file(f"{directory}/{PARTITION_METADATA}", text.encode())
