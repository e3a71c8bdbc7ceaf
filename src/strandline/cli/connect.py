"""How commands reach a cluster: the bootstrap address, and errors that say what to do next."""

import os
import sys
from typing import Annotated, NoReturn

from cyclopts import Parameter

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE = "STRANDLINE_BOOTSTRAP"  # in the environment: another default

Bootstrap = Annotated[
    str,
    Parameter(
        name=("--bootstrap-server", "--bootstrap"),
        env_var=BOOTSTRAP_VARIABLE,
        help="addresses of any nodes of the cluster, as HOST:PORT[,HOST:PORT…]",
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="print JSON")]


def fail(problem: str, advice: str = "", status: int = 1) -> NoReturn:
    print(f"error: {problem}", file=sys.stderr)
    if advice:
        print(f"  {advice}", file=sys.stderr)
    sys.exit(status)


def hide_broken_pipe(status: int = 0) -> NoReturn:
    """The reader of our output is gone: end quietly, also when the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
