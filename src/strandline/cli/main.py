"""The command line: one command, one file; nothing is imported before it is needed, so that nodes start fast."""

import os
import sys


def run() -> None:
    """Entry point. `node` goes without the command-line library: imports are most of its boot time."""
    if sys.argv[1:2] == ["node"]:
        from strandline.cli.node import run_node

        sys.exit(run_node(sys.argv[2:]))
    from strandline.cli.commands import app

    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
