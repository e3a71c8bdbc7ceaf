"""`strandline format` and `strandline random-uuid`: what a node's log directories must have before it starts."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from strandline.base.ids import parse_uuid
from strandline.base.ports import DiskError
from strandline.broker.config import ConfigError, NodeConfig, parse_properties
from strandline.cli.admin.features import parsed
from strandline.cli.connect import fail, misuse
from strandline.cli.security.add_scram import user_of
from strandline.cli.security.passwords import warn
from strandline.metadata.records import UserScramCredentialRecord
from strandline.security.secret import ClusterSecret
from strandline.server.machine.layout import BadLayout, folder_of, name_of, shards_of, text_of
from strandline.server.storage.formatting import NotFormattable, format_node, random_uuid_text
from strandline.server.storage.secret_file import new_secret, path_of, read_secret, write_secret


def format_storage(
    *,
    config: Path,
    cluster_id: str,
    cluster_secret: Path | None = None,
    feature: Annotated[list[str] | None, Parameter(negative="")] = None,
    add_scram: Annotated[list[str] | None, Parameter(negative="")] = None,
    ignore_formatted: Annotated[bool, Parameter(negative="")] = False,
    shards: int | None = None,
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
    add_scram
        a user of a new cluster, as kafka-storage takes it: SCRAM-SHA-256=[name=alice,password=secret]. It may have a
        salt and iterations, or a saltedpassword in place of the password. May be repeated; the same for each controller
    ignore_formatted
        skip directories that are already formatted for this cluster and node
    shards
        number of nodes that this machine runs, one for each core: writes a properties file for each of them, in a
        folder next to the properties file, and formats their log directories. `strandline node --config FOLDER` runs
        them as one. They have one broker.rack, so that no two replicas of a partition are on one machine as long as
        there are as many machines as replicas. Shard N has N added to the node id, and 10·N to each port
    """
    try:
        parse_uuid(cluster_id)
    except ValueError:
        misuse(f"'{cluster_id}' is not a cluster id", "`strandline random-uuid` prints one")
    levels = dict(parsed(text) for text in feature or ())
    users = users_of(add_scram or [])
    configs = [config] if shards is None else write_shards(config, shards)
    for path in configs:
        format_node_of(path, cluster_id, levels, users, cluster_secret, ignore_formatted=ignore_formatted)
    if shards is not None:
        print(f"`strandline node --config {folder_of(config)}` runs the {shards} shards of this machine")


def write_shards(config: Path, count: int) -> list[Path]:
    """Their properties files, which only their owner may read: they may have passwords."""
    try:
        shards = shards_of(parse_properties(config.read_text()), count)
        folder = folder_of(config)
        folder.mkdir(mode=0o700, exist_ok=True)
        stale = {path.name for path in folder.glob("*.properties")} - {name_of(number) for number in range(count)}
        if stale:
            fail(
                f"{folder} has shards that {count} shards do not have: {', '.join(sorted(stale))}",
                "move their replicas to other brokers, stop the machine, and remove these files",
            )
        paths = [folder / name_of(number) for number in range(count)]
        for path, shard in zip(paths, shards, strict=True):
            path.touch(mode=0o600)
            path.write_text(text_of(shard))
    except OSError as error:
        misuse(f"{error.filename}: {error.strerror}", "name a file that can be read, in a folder of your own")
    except (BadLayout, ConfigError) as error:
        misuse(f"{config} cannot be divided: {error}", "docs/machines.md says what a machine's file must have")
    return paths


def format_node_of(
    config: Path,
    cluster_id: str,
    levels: dict[str, int],
    users: list[UserScramCredentialRecord],
    cluster_secret: Path | None,
    *,
    ignore_formatted: bool,
) -> None:
    try:
        node = NodeConfig.from_properties(parse_properties(config.read_text()))
    except OSError as error:
        misuse(f"{config} cannot be read: {error.strerror}", "name the node's properties file with --config")
    except ConfigError as error:
        misuse(f"{config} is not a valid configuration: {'; '.join(error.problems)}", "docs/configs.md lists the keys")
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
        fresh = format_node(node, cluster_id, levels, ignore_formatted=ignore_formatted, secret=secret, users=users)
    except (NotFormattable, DiskError) as error:
        fail(str(error), f"nothing was formatted: correct {config}, or name other directories in its log.dirs")
    for path in paths:
        print(f"{'formatted' if path in fresh else 'already formatted:'} {path}")


def shared_secret(path: str) -> ClusterSecret:
    if not os.path.exists(path):
        write_secret(path, new_secret())
        print(f"wrote a new secret to {path}: copy it to the machines of the other nodes")
    return read_secret(path)


def users_of(texts: list[str]) -> list[UserScramCredentialRecord]:
    try:
        users = [user_of(text) for text in texts]
    except ValueError as error:
        misuse(str(error), "for example SCRAM-SHA-256=[name=alice,password=secret]")
    if any("password=" in text.replace("saltedpassword=", "") for text in texts):
        warn("the password of --add-scram is visible to other users of this machine, and stays in the shell's history")
    return users


def random_uuid() -> None:
    """Print a new cluster id."""
    print(random_uuid_text())
