"""The file with the cluster's secret: one line, for its owner alone."""

import os
import secrets
import stat

from msgspec.structs import replace

from strandline.base.ports import DiskError
from strandline.broker.config import NodeConfig
from strandline.log.directory import META_PROPERTIES
from strandline.security.secret import SECRET_BYTES_MIN, ClusterSecret
from strandline.server.storage.disk import naming

NAME = "cluster-secret"  # in the metadata log's directory, if the configuration names no file
OTHERS = stat.S_IRWXG | stat.S_IRWXO
SECRET_BYTES = 32


def path_of(config: NodeConfig) -> str:
    return config.text("cluster.secret.file") or os.path.join(config.metadata_log_dir, NAME)


def secret_of(config: NodeConfig) -> ClusterSecret | None:
    """What a node proves to others, and they to it; None: nobody need prove anything. Raises `DiskError` if the file is
    missing, others may read it, or it has no secret."""
    if not config.boolean("cluster.secret.required"):
        return None
    path = path_of(config)
    if not os.path.exists(path):
        if not os.path.exists(os.path.join(config.metadata_log_dir, META_PROPERTIES)):
            return None  # it is not formatted, and does not start
        raise DiskError(
            f"no cluster secret at {path}: `strandline format --ignore-formatted` writes it; all nodes need the same"
        )
    return replace(read_secret(path), node=config.node_id)


def read_secret(path: str) -> ClusterSecret:
    with naming(path):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
            mode = os.fstat(fd).st_mode
            text = file.read().strip()
    if mode & OTHERS:
        raise DiskError(f"{path} has a secret, and others may read it (mode {mode & 0o777:o}): chmod 600 {path}")
    if len(text) < SECRET_BYTES_MIN:
        raise DiskError(f"{path} has no secret of at least {SECRET_BYTES_MIN} letters")
    return ClusterSecret(text)


def new_secret() -> ClusterSecret:
    return ClusterSecret(secrets.token_urlsafe(SECRET_BYTES))


def write_secret(path: str, secret: ClusterSecret) -> None:
    """Into a file that is not there yet, whole and durable."""
    with naming(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        beside = f"{path}.{secrets.token_hex(4)}.tmp"
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(f"{secret.text}\n")
            file.flush()
            os.fsync(fd)
        os.rename(beside, path)
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
