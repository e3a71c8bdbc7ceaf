"""The command line: one command, one file; nothing is imported before it is needed, so that nodes start fast."""

import gc
import sys

CLIENT = "confluent_kafka"


def run() -> None:
    """Entry point. `node` and the list of commands go without the command-line library: imports are most of what they
    cost."""
    if sys.argv[1:2] == ["node"]:
        gc.disable()  # imports leave nothing to collect, and looking for it is a tenth of what they cost
        from strandline.server.node import run_node

        gc.enable()
        sys.exit(run_node(sys.argv[2:]))
    try:
        try:
            if sys.argv[1:] in ([], ["--help"], ["-h"]):
                from strandline.cli.commands import help_text

                print(help_text())
            elif sys.argv[1:] == ["--version"]:
                from strandline.base import VERSION

                print(VERSION)
            else:
                call()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        from strandline.cli.connect import hide_broken_pipe

        hide_broken_pipe(status=1)  # the status went to a reader that has gone
    except KeyboardInterrupt:  # while imports go on; commands take it themselves
        sys.exit(130)


def call() -> None:
    from strandline.cli.app import app
    from strandline.cli.connect import fail, misuse
    from strandline.client.errors import BadOption, StrandlineError

    try:
        app()
    except StrandlineError as error:
        if isinstance(error, BadOption):
            misuse(error.problem, error.advice)
        fail(error.problem, error.advice)
    except ImportError as error:  # the command-line library raises one of its own for a command's module
        if not any(isinstance(each, ImportError) and each.name == CLIENT for each in (error, error.__cause__)):
            raise
        fail("this command needs confluent-kafka", "pip install 'strandline[clients]'")
