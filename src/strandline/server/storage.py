"""Formatting: what must lie in a log directory before a node may use it."""

import secrets
from collections.abc import Sequence

from strandline.base.ids import Uuid, uuid_text
from strandline.log.directory import DirectoryMeta, read_meta, write_meta
from strandline.server.disk import RealDisk


class NotFormattable(Exception):
    """A directory is formatted already, or belongs to another cluster or node; the message says which."""


def random_uuid_text() -> str:
    """A new cluster id in Kafka's form. Never begins with a dash: people paste it after an option."""
    while (text := uuid_text(secrets.token_bytes(16))).startswith("-"):
        pass
    return text


def format_directories(paths: Sequence[str], cluster_id: str, node_id: int, *, ignore_formatted: bool) -> list[str]:
    """Write `meta.properties` into each directory; returns those that were written. All are checked before any is."""
    disk = RealDisk()
    found = {path: read_meta(disk, path) for path in paths}
    for path, meta in found.items():
        if meta is None:
            continue
        if (meta.cluster_id, meta.node_id) != (cluster_id, node_id):
            raise NotFormattable(f"{path} belongs to node {meta.node_id} of cluster {meta.cluster_id}")
        if not ignore_formatted:
            raise NotFormattable(f"Log directory {path} is already formatted. Use --ignore-formatted to ignore this")
    fresh = [path for path, meta in found.items() if meta is None]
    for path in fresh:
        write_meta(disk, path, DirectoryMeta(cluster_id, node_id, Uuid(secrets.token_bytes(16))))
    return fresh
