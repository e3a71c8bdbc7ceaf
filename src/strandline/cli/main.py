"""The command line: one command, one file; nothing is imported before it is needed, so that nodes start fast."""

import sys


def run() -> None:
    """Entry point. `node` skips the command-line library: three of them start at once, and imports are their boot time."""
    if sys.argv[1:2] == ["node"]:
        from strandline.cli.node import run_node

        sys.exit(run_node(sys.argv[2:]))
    from strandline.cli.commands import app

    app()
