"""How commands reach a cluster: the bootstrap address, quiet clients, and errors that say what to do next."""

import os
import sys
from typing import Annotated, NoReturn

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cyclopts import Parameter

from strandline.client.librdkafka import client_config

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE = "STRANDLINE_BOOTSTRAP"  # in the environment: another default
TIMEOUT_S = 5.0

Bootstrap = Annotated[
    str,
    Parameter(
        name=("--bootstrap-server", "--bootstrap"),
        env_var=BOOTSTRAP_VARIABLE,
        help="host:port[,host:port…] of any nodes",
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="print JSON, for scripts")]


def admin(bootstrap: str) -> AdminClient:
    """An admin client of a cluster that answers; ends the command with a clear error if none does."""
    client = AdminClient(client_config(bootstrap))
    try:
        client.list_topics(timeout=TIMEOUT_S)
    except KafkaException:
        fail(
            f"no cluster answers at {bootstrap}",
            "start one with `strandline up`, or name another with --bootstrap-server",
        )
    return client


def fail(problem: str, advice: str = "", status: int = 1) -> NoReturn:
    print(f"error: {problem}", file=sys.stderr)
    if advice:
        print(f"  {advice}", file=sys.stderr)
    sys.exit(status)


def why(error: KafkaException) -> str:
    return str(error.args[0].str()) if error.args else str(error)


def hide_broken_pipe(status: int = 0) -> NoReturn:
    """The reader of our output is gone: end quietly, also when the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
