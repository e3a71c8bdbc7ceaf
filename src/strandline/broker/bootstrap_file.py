"""`bootstrap.checkpoint` in the directory of the metadata log, as Kafka's own tool wrote it: what the first controller
of a new cluster writes into its metadata log.

It has the form of a snapshot. Formatting writes it; a node that was formatted without one goes by its configuration.
Kafka's tool of newer releases puts the same into the metadata log, as the snapshot with the end offset 0. Of what
another program wrote, features that this one does not know are left out: they are not in force here.
"""

from collections.abc import Iterable, Mapping

from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.broker.config import NodeConfig
from strandline.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES, initial_levels, why_not_initial
from strandline.metadata.fitting import why_unfit
from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.image import Image
from strandline.metadata.records import FeatureLevelRecord, UserScramCredentialRecord
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.metadata_log import DIRECTORY, SUFFIX, snapshot_name
from strandline.quorum.storage.snapshot_file import encode_snapshot, snapshot_records, why_incomplete
from strandline.wire.compress import Corrupt
from strandline.wire.schema import Message

NAME = "bootstrap.checkpoint"
SNAPSHOT_NAME = f"{DIRECTORY}/{snapshot_name(SnapshotId(0, 0))}{SUFFIX}"
ELR_KEY = "eligible.leader.replicas.enabled"


def write_bootstrap(
    disk: Disk, directory: str, levels: Mapping[str, int], now: Instant, users: Iterable[UserScramCredentialRecord] = ()
) -> None:
    """`users`: who can log in to a new cluster (KIP-900)."""
    features = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    records = [encode_record(record) for record in (*features, *users)]
    disk.make_directory(directory)
    disk.save(f"{directory}/{NAME}", encode_snapshot(records, 0, now))


def bootstrap_records(disk: Disk, config: NodeConfig) -> tuple[str, list[Message] | None]:
    """What lies in the file, and its path; None if there is none. Raises DiskError."""
    path, content = "", None
    for name in (NAME, SNAPSHOT_NAME):
        path = f"{config.metadata_log_dir}/{name}"
        content = disk.read_file(path)
        if content is not None:
            break
    else:
        return path, None
    why = why_incomplete(content)
    try:
        found = [] if why is not None else [decode_record(record) for record in snapshot_records(content)]
    except Corrupt as error:
        why = str(error)
    if why is not None:
        raise DiskError(f"{path} is damaged: {why}")
    return path, found


def initial_features(disk: Disk, config: NodeConfig) -> dict[str, int]:
    """The levels that a new cluster begins with if this node is its first controller. Raises DiskError."""
    path, found = bootstrap_records(disk, config)
    if found is None:
        return initial_levels({}, is_elr_enabled=config.boolean(ELR_KEY))
    levels = {record.name: record.feature_level for record in found if isinstance(record, FeatureLevelRecord)}
    known = {name: levels.get(name, 0) for name in SUPPORTED_FEATURES if name != METADATA_VERSION}
    for name, level in known.items():
        why = why_not_initial(name, level)
        if why is not None:
            raise DiskError(f"{path}: {why}")
    return initial_levels(known)


def initial_users(disk: Disk, config: NodeConfig) -> tuple[UserScramCredentialRecord, ...]:
    """Who can log in to a new cluster if this node is its first controller. Raises DiskError."""
    path, found = bootstrap_records(disk, config)
    users = tuple(record for record in found or () if isinstance(record, UserScramCredentialRecord))
    for record in users:
        why = why_unfit(Image(), record)
        if why is not None:
            raise DiskError(f"{path}: {why}")
    return users
