"""Formatting: what must lie in a log directory before a node may use it."""

import os
import secrets
from collections.abc import Mapping

from strandline.base.ids import Uuid, uuid_text
from strandline.broker.bootstrap_file import ELR_KEY, write_bootstrap
from strandline.broker.config import NodeConfig
from strandline.log.directory import DirectoryMeta, read_meta, write_meta
from strandline.metadata.features import initial_levels, why_not_initial
from strandline.security.secret import ClusterSecret
from strandline.server.clock import Clock
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.secret_file import new_secret, path_of, read_secret, write_secret


class NotFormattable(Exception):
    """A directory is formatted already, or belongs to another cluster or node; the message says which."""


def random_uuid_text() -> str:
    """A new cluster id in Kafka's form. Never begins with a dash: people paste it after an option."""
    while (text := uuid_text(secrets.token_bytes(16))).startswith("-"):
        pass
    return text


def format_node(
    config: NodeConfig,
    cluster_id: str,
    features: Mapping[str, int] | None = None,
    *,
    ignore_formatted: bool,
    secret: ClusterSecret | None = None,
) -> list[str]:
    """Write `meta.properties` into each directory of the node, and `bootstrap.checkpoint` and the cluster's secret into
    that of the metadata log; returns the directories that were written. All are checked before any is.

    `secret`: of the cluster; a new one if None. A secret that is there already stays, and must be the same.
    `features`: levels that the cluster begins with. Where one is not named, the node's file and Kafka's defaults
    say it. A directory that is formatted already keeps what it has.
    """
    assert cluster_id
    for name, level in (features or {}).items():
        why = why_not_initial(name, level)
        if why is not None:
            raise NotFormattable(why)
    disk = RealDisk()
    found = {path: read_meta(disk, path) for path in sorted({*config.log_dirs, config.metadata_log_dir})}
    for path, meta in found.items():
        if meta is None:
            continue
        if (meta.cluster_id, meta.node_id) != (cluster_id, config.node_id):
            raise NotFormattable(f"{path} belongs to node {meta.node_id} of cluster {meta.cluster_id}")
        if not ignore_formatted:
            raise NotFormattable(f"Log directory {path} is already formatted. Use --ignore-formatted to ignore this")
    fresh = [path for path, meta in found.items() if meta is None]
    assert ignore_formatted or len(fresh) == len(found), "a directory is formatted once"
    assert config.metadata_log_dir in found
    put_secret(config, secret)
    levels = initial_levels(features or {}, is_elr_enabled=config.boolean(ELR_KEY))
    for path in fresh:
        if path == config.metadata_log_dir:  # before it counts as formatted
            write_bootstrap(disk, path, levels, Clock().now())
        write_meta(disk, path, DirectoryMeta(cluster_id, config.node_id, Uuid(secrets.token_bytes(16))))
    return fresh


def put_secret(config: NodeConfig, secret: ClusterSecret | None) -> None:
    path = path_of(config)
    if not os.path.exists(path):
        write_secret(path, secret or new_secret())
    elif secret is not None and read_secret(path) != secret:
        raise NotFormattable(f"{path} has another secret: all nodes of a cluster need the same")
