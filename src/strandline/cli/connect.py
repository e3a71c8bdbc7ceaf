"""How commands reach a cluster: its addresses, TLS and SASL; and errors that say what to do next."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from stat import S_IRWXG, S_IRWXO
from typing import TYPE_CHECKING, Annotated, NoReturn

from cyclopts import Parameter

if TYPE_CHECKING:  # most commands need no cluster
    from strandline.client.config import ClientConfig

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
OTHERS = S_IRWXG | S_IRWXO
SECRETS = (
    "sasl.jaas.config",
    "sasl.password",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.key.pem",
)
BOOTSTRAP_VARIABLE = "STRANDLINE_BOOTSTRAP"  # in the environment: another default

Bootstrap = Annotated[
    str,
    Parameter(
        name=("--bootstrap-server", "--bootstrap"),
        env_var=BOOTSTRAP_VARIABLE,
        help="addresses of any nodes of the cluster, as HOST:PORT[,HOST:PORT…]",
    ),
]
CommandConfig = Annotated[
    Path | None,
    Parameter(help="a properties file for TLS and SASL, with the keys of Kafka's clients"),
]


@dataclass(frozen=True)
class Cluster:
    """The cluster that an admin command is about."""

    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
    command_config: CommandConfig = None

    @cached_property
    def config(self) -> "ClientConfig":
        """Raises `BadOption`."""
        from strandline.client.ask import config_of

        if self.command_config is None:
            return config_of(self.bootstrap)
        from strandline.broker.config import parse_properties
        from strandline.client.errors import BadOption

        try:
            given = parse_properties(self.command_config.read_text())
            warn_of_mode(self.command_config, given)
        except (OSError, UnicodeDecodeError) as error:
            fail(f"cannot read {self.command_config}: {getattr(error, 'strerror', None) or error}", status=2)
        try:
            return config_of(self.bootstrap, given)
        except BadOption as error:
            raise BadOption(f"{self.command_config}: {error.problem}", error.advice) from None

    @property
    def options(self) -> str:
        """What a command needs to reach the same cluster."""
        server = "" if self.bootstrap == DEFAULT_BOOTSTRAP else f" --bootstrap-server {self.bootstrap}"
        return server if self.command_config is None else f"{server} --command-config {self.command_config}"


OfCluster = Annotated[Cluster, Parameter(name="*")]
HERE = Cluster()
Json = Annotated[bool, Parameter(name="--json", negative="", help="print JSON")]


def warn_of_mode(path: Path, given: Mapping[str, str]) -> None:
    """If others may read the passwords in a file of properties. Raises OSError."""
    if any(key.lower() in SECRETS for key in given) and path.stat().st_mode & OTHERS:
        print(f"warning: {path} has a password, and others may read it: chmod 600 {path}", file=sys.stderr)


def fail(problem: str, advice: str = "", status: int = 1) -> NoReturn:
    print(f"error: {problem}", file=sys.stderr)
    if advice:
        print(f"  {advice}", file=sys.stderr)
    sys.exit(status)


def hide_broken_pipe(status: int = 0) -> NoReturn:
    """The reader of our output is gone: end quietly, also when the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
