"""`strandline node --config FILE`: run one node until a signal stops it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter_ns

from strandline.base.effects import Endpoint
from strandline.base.ports import Disk, Rng
from strandline.broker.authorizing.guarded import node_of
from strandline.broker.config import ConfigError, NodeConfig, parse_properties
from strandline.broker.node import Node
from strandline.broker.parts import prepare
from strandline.security.secret import ClusterSecret
from strandline.server.clock import Clock
from strandline.server.main import DiskOf, real_disk, serve
from strandline.server.storage.secret_file import OTHERS

USAGE = """usage: strandline node --config FILE
  FILE has Kafka's properties: node.id, process.roles, listeners, log.dirs, …
  A folder of such files runs all of them as one machine; `strandline format --shards` writes it."""


def make_node(
    config: NodeConfig, disk: Disk, rng: Rng, where: Mapping[str, Endpoint], secret: ClusterSecret | None
) -> Node:
    now = Clock().now()
    return node_of(prepare(config, disk, rng, where, now, secret, perf_counter_ns), now)


def run_node(arguments: list[str], disk_of: DiskOf = real_disk) -> int:
    """The exit status: 0 after a controlled shutdown, 2 for a bad command line or configuration."""
    is_help = arguments in (["--help"], ["-h"])
    if is_help or len(arguments) != 2 or arguments[0] != "--config":
        print(USAGE, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 2
    path = Path(arguments[1])
    if path.is_dir():
        from strandline.server.machine.supervisor import run_machine  # most machines run one node

        return run_machine(path)
    try:
        config = NodeConfig.from_properties(parse_properties(path.read_text()))
    except OSError as error:
        print(f"cannot read {path}: {error.strerror}", file=sys.stderr)
        return 2
    except ConfigError as error:
        print(f"{path} is not a valid configuration:", file=sys.stderr)
        for problem in error.problems:
            print(f"  - {problem}", file=sys.stderr)
        return 2
    mode = path.stat().st_mode
    if config.has_secrets and mode & OTHERS:
        shown = f"{mode & 0o777:o}"
        print(f"{path} has passwords, and others may read it (mode {shown}): chmod 600 {path}", file=sys.stderr)
    return serve(config, make_node, disk_of)
