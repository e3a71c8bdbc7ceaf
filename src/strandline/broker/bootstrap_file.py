"""`bootstrap.checkpoint` in the directory of the metadata log, as Kafka's own tool wrote it: what the first controller
of a new cluster writes into its metadata log.

It has the form of a snapshot. Formatting writes it; a node that was formatted without one goes by its configuration.
Kafka's tool of newer releases puts the same into the metadata log, as the snapshot with the end offset 0. Of what
another program wrote, features that this one does not know are left out: they are not in force here.
"""

from collections.abc import Mapping

from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.broker.config import NodeConfig
from strandline.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES, initial_levels, why_not_initial
from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.records import FeatureLevelRecord
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.metadata_log import DIRECTORY, SUFFIX, snapshot_name
from strandline.quorum.storage.snapshot_file import encode_snapshot, snapshot_records, why_incomplete
from strandline.wire.compress import Corrupt

NAME = "bootstrap.checkpoint"
SNAPSHOT_NAME = f"{DIRECTORY}/{snapshot_name(SnapshotId(0, 0))}{SUFFIX}"
ELR_KEY = "eligible.leader.replicas.enabled"


def write_bootstrap(disk: Disk, directory: str, levels: Mapping[str, int], now: Instant) -> None:
    records = [encode_record(FeatureLevelRecord(name=name, feature_level=level)) for name, level in levels.items()]
    disk.make_directory(directory)
    disk.save(f"{directory}/{NAME}", encode_snapshot(records, 0, now))


def initial_features(disk: Disk, config: NodeConfig) -> dict[str, int]:
    """The levels that a new cluster begins with if this node is its first controller. Raises DiskError."""
    for name in (NAME, SNAPSHOT_NAME):
        path = f"{config.metadata_log_dir}/{name}"
        content = disk.read_file(path)
        if content is not None:
            break
    else:
        return initial_levels({}, is_elr_enabled=config.boolean(ELR_KEY))
    why = why_incomplete(content)
    try:
        found = [] if why is not None else [decode_record(record) for record in snapshot_records(content)]
    except Corrupt as error:
        why = str(error)
    if why is not None:
        raise DiskError(f"{path} is damaged: {why}")
    levels = {record.name: record.feature_level for record in found if isinstance(record, FeatureLevelRecord)}
    known = {name: levels.get(name, 0) for name in SUPPORTED_FEATURES if name != METADATA_VERSION}
    for name, level in known.items():
        why = why_not_initial(name, level)
        if why is not None:
            raise DiskError(f"{path}: {why}")
    return initial_levels(known)
