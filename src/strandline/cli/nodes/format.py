"""`strandline format` and `strandline random-uuid`: what a node's log directories must have before it starts."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from strandline.base.ids import parse_uuid
from strandline.base.ports import DiskError
from strandline.broker.config import ConfigError, NodeConfig, parse_properties
from strandline.cli.admin.features import parsed
from strandline.cli.connect import fail
from strandline.security.secret import ClusterSecret
from strandline.server.storage.formatting import NotFormattable, format_node, random_uuid_text
from strandline.server.storage.secret_file import new_secret, path_of, read_secret, write_secret


def format_storage(
    *,
    config: Path,
    cluster_id: str,
    cluster_secret: Path | None = None,
    feature: Annotated[list[str] | None, Parameter(negative="")] = None,
    ignore_formatted: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Prepare a node's log directories before its first start.

    Writes meta.properties (cluster id, node id, directory ids), bootstrap.checkpoint with the features that a new
    cluster starts with, and cluster-secret, by which its nodes know one another.

    Parameters
    ----------
    config
        the node's properties file
    cluster_id
        the same for all nodes of a cluster; `strandline random-uuid` prints a new one
    cluster_secret
        a file with the secret by which nodes know one another, the same for all nodes of a cluster: written if it is
        not there yet, for you to copy to the other machines. A cluster of a single node needs no such file
    feature
        NAME=LEVEL of a new cluster; may be repeated. Eligible leader replicas are on unless this is
        eligible.leader.replicas.version=0, or the properties have eligible.leader.replicas.enabled=false
    ignore_formatted
        skip directories that are already formatted for this cluster and node
    """
    try:
        parse_uuid(cluster_id)
    except ValueError:
        fail(f"'{cluster_id}' is not a cluster id", "`strandline random-uuid` prints one", status=2)
    levels = dict(parsed(text) for text in feature or ())
    try:
        node = NodeConfig.from_properties(parse_properties(config.read_text()))
    except OSError as error:
        fail(f"cannot read {config}: {error.strerror}", status=2)
    except ConfigError as error:
        fail(f"{config} is not a valid configuration: {'; '.join(error.problems)}", status=2)
    needs_secret = node.boolean("cluster.secret.required") and not os.path.exists(path_of(node))
    if len(node.voters) > 1 and needs_secret and cluster_secret is None:
        fail(
            "a cluster of several nodes needs one secret, by which its nodes know one another",
            "add --cluster-secret FILE: it is written if it is not there; use the same file for each node",
            status=2,
        )
    paths = sorted({*node.log_dirs, node.metadata_log_dir})
    try:
        secret = None if cluster_secret is None else shared_secret(str(cluster_secret))
        fresh = format_node(node, cluster_id, levels, ignore_formatted=ignore_formatted, secret=secret)
    except (NotFormattable, DiskError) as error:
        fail(str(error))
    for path in paths:
        print(f"{'formatted' if path in fresh else 'already formatted:'} {path}")


def shared_secret(path: str) -> ClusterSecret:
    if not os.path.exists(path):
        write_secret(path, new_secret())
        print(f"wrote a new secret to {path}: copy it to the machines of the other nodes")
    return read_secret(path)


def random_uuid() -> None:
    """Print a new cluster id."""
    print(random_uuid_text())
