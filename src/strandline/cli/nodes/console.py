"""`strandline console`: a cluster in the browser."""

import json
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.signals import interrupted_by_signals

if TYPE_CHECKING:  # the extra may not be installed
    from strandline.client.config import ClientConfig
    from strandline.console.serving import Serving

HOST, PORT = "127.0.0.1", 9080
PORT_MAX = 65_535
NEEDED = ("starlette", "uvicorn", "anyio")
AllowChanges = Annotated[
    bool, Parameter(negative="", help="the console may also change the cluster: elect leaders, produce, reset offsets")
]


def console(
    *,
    host: str = HOST,
    port: int = PORT,
    allow_changes: AllowChanges = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Show a cluster in the browser until Ctrl-C. Prints the address to open, with a token that lets you in.

    The console is read-only unless it is started with --allow-changes. Whoever opens it does everything with the rights
    of the user in --command-config.

    Parameters
    ----------
    host
        the address to listen at. Other addresses than this machine's own are not encrypted
    port
        the port to listen at; 0: any that is free
    """
    interrupted_by_signals()
    if not 0 <= port <= PORT_MAX:
        misuse(f"--port must be between 0 and {PORT_MAX}, and is {port}")
    try:
        with opened(cluster.config, cluster.options, host, port, allow_changes) as serving:
            if json_output:
                print(json.dumps({"url": serving.url, "read_only": not allow_changes}), flush=True)
            else:
                print("\n".join(lines_of(serving, allow_changes)), flush=True)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)


def opened(cluster: "ClientConfig", options: str, host: str, port: int, allow_changes: bool) -> "Serving":
    """Ends the command if the console is not installed, or its port is taken."""
    try:
        from strandline.console.serving import Serving
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        fail("the console needs starlette and uvicorn", "pip install 'strandline[console]'")
    try:
        return Serving(cluster, options, host=host, port=port, allow_changes=allow_changes, report=report)
    except OSError as error:
        fail(f"cannot listen at {host}:{port}: {error.strerror or error}", "name another port with --port; 0: any")


def lines_of(serving: "Serving", allow_changes: bool) -> list[str]:
    mode = "it may change the cluster" if allow_changes else "read-only: --allow-changes lets it change the cluster"
    warning = [] if serving.is_local else ["warning: the connection is not encrypted, and others may read what you see"]
    return [f"console: {serving.url}", f"  {mode}", *warning]


def report(change: str) -> None:
    """Each change of the cluster is a line on stderr, as long as somebody reads it."""
    with suppress(OSError, ValueError):
        print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} change by the console: {change}", file=sys.stderr, flush=True)
