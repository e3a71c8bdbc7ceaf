"""The command line: one command, one file; nothing is imported before it is needed, so that nodes start fast."""

import sys


def run() -> None:
    """Entry point. `node` goes without the command-line library: imports are most of its boot time."""
    if sys.argv[1:2] == ["node"]:
        from strandline.cli.node import run_node

        sys.exit(run_node(sys.argv[2:]))
    from strandline.cli.commands import app

    app()
