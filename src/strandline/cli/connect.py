"""How commands reach a cluster: its addresses, TLS and SASL; and errors that say what to do next."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
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
        from strandline.client.errors import BadOption

        try:
            return config_of(self.bootstrap, properties_in(self.command_config))
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


def properties_in(path: Path) -> Mapping[str, str]:
    """A file of --command-config."""
    from strandline.broker.config import parse_properties

    try:
        given = parse_properties(path.read_text())
        warn_of_mode(path, given)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        misuse(f"--command-config {path} cannot be read: {why}", "name a file with the properties of Kafka's clients")
    return given


def warn_of_mode(path: Path, given: Mapping[str, str]) -> None:
    """If others may read the passwords in a file of properties. Raises OSError."""
    if any(key.lower() in SECRETS for key in given) and path.stat().st_mode & OTHERS:
        print(f"warning: {path} has a password, and others may read it: chmod 600 {path}", file=sys.stderr)


def fail(problem: str, advice: str, status: int = 1) -> NoReturn:
    """End the command. `problem` says what happened and why, `advice` what to do; it is empty only where the problem
    comes from elsewhere and has none."""
    print(f"error: {problem}", file=sys.stderr)
    if advice:
        print(f"  {advice}", file=sys.stderr)
    sys.exit(status)


def misuse(problem: str, advice: str = "") -> NoReturn:
    """End the command because its options or arguments make no sense: status 2. Without advice it names the help."""
    fail(problem, advice or f"`strandline {' '.join(command_words())} --help` explains the options", status=2)


def command_words() -> list[str]:
    """The command that runs: at most two words, since what follows is an argument."""
    return list(takewhile(lambda word: not word.startswith("-"), sys.argv[1:3]))


def check_at_least(least: float, **options: float) -> None:
    """Ends the command if one of these options is less."""
    for name, value in options.items():
        if value < least:
            misuse(f"{option(name)} must be at least {least:g}, and is {value:g}")


def check_positive(**options: float) -> None:
    """Ends the command if one of these options is not more than zero."""
    for name, value in options.items():
        if value <= 0:
            misuse(f"{option(name)} must be more than 0, and is {value:g}")


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def hide_broken_pipe(status: int = 0) -> NoReturn:
    """The reader of our output is gone: end quietly, also when the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
