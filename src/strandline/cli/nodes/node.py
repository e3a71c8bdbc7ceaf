"""`strandline node`: one node. `cli.main` runs it without the command-line library; this shows its help."""

from pathlib import Path

from strandline.server.node import run_node


def node(*, config: Path) -> int:
    """Run one node until SIGTERM or Ctrl-C, which shut it down in order.

    Parameters
    ----------
    config
        the node's properties file, with Kafka's names; or the folder that `strandline format --shards` wrote: all
        nodes of this machine then run as one
    """
    return run_node(["--config", str(config)])
