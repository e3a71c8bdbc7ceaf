"""The command line: one command, one file; nothing is imported before it is needed, so that nodes start fast."""

import sys

CLIENT = "confluent_kafka"


def run() -> None:
    """Entry point. `node` goes without the command-line library: imports are most of its boot time."""
    if sys.argv[1:2] == ["node"]:
        from strandline.server.node import run_node

        sys.exit(run_node(sys.argv[2:]))
    try:
        try:
            call()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        from strandline.cli.connect import hide_broken_pipe

        hide_broken_pipe(status=1)  # the status went to a reader that has gone
    except KeyboardInterrupt:  # while imports go on; commands take it themselves
        sys.exit(130)


def call() -> None:
    from strandline.cli.commands import app
    from strandline.cli.connect import fail
    from strandline.client.errors import BadOption, StrandlineError

    try:
        app()
    except StrandlineError as error:
        fail(error.problem, error.advice, status=2 if isinstance(error, BadOption) else 1)
    except ImportError as error:  # the command-line library raises one of its own for a command's module
        if not any(isinstance(each, ImportError) and each.name == CLIENT for each in (error, error.__cause__)):
            raise
        fail("this command needs confluent-kafka", "pip install 'strandline[clients]'")
