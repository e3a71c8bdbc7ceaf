"""One question to one node, or to any node that answers: for commands that look at a cluster."""

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.client.config import ClientConfig
from strandline.client.connection import Connection
from strandline.client.errors import BadOption, StrandlineError, Unreachable
from strandline.wire.frame import Malformed

ANY_TIMEOUT_S = 10.0
CLIENT_ID = "strandline-ask"


def ask(host: str, port: int, message: Any, version: int | None, timeout_s: float = 5.0) -> Any:
    """The answer to `message`, in this version; None: the highest that both sides know, for which the node is asked.

    Raises OSError if there is none in time, Malformed if it makes no sense, `Unsupported` if no version fits."""
    timeout_ms = int(timeout_s * 1000)
    config = ClientConfig(
        bootstrap=((host, port),), client_id=CLIENT_ID, request_timeout_ms=timeout_ms, setup_timeout_ms=timeout_ms
    )
    try:
        connection = Connection(host, port, config, learns_versions=version is None)
        try:
            return connection.ask(message, version)
        finally:
            connection.close()
    except Unreachable as error:
        cause = error.cause
        raise cause if isinstance(cause, OSError | Malformed) else ConnectionError(error.problem) from None


def ask_any(bootstrap: str, message: Any, version: int | None, timeout_s: float = ANY_TIMEOUT_S) -> Any:
    """The answer of the first node of "host:port,host:port" that gives one. Raises StrandlineError if none does, or if
    the answer refuses the whole request."""
    problems = []
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        if not port.isdigit():
            raise BadOption(f"{server!r} is not host:port")
        try:
            answer = ask(host.strip("[]") or "127.0.0.1", int(port), message, version, timeout_s)
        except (OSError, Malformed) as error:
            problems.append(f"{server}: {error}")
            continue
        error_code = ErrorCode(getattr(answer, "error_code", 0))
        if error_code is not ErrorCode.NONE:
            raise StrandlineError(getattr(answer, "error_message", None) or error_code.name)
        return answer
    raise StrandlineError(
        f"no cluster answers at {bootstrap} ({'; '.join(problems)})",
        "start one with `strandline up`, or name another with --bootstrap-server",
    )
