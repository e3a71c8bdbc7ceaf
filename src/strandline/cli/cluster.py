"""Questions that librdkafka's admin client cannot ask, asked directly: of any node that answers."""

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.cli.connect import fail
from strandline.server.ask import ask
from strandline.wire.frame import Malformed

TIMEOUT_S = 10.0


def ask_any(bootstrap: str, message: Any, version: int, timeout_s: float = TIMEOUT_S) -> Any:
    """The answer of the first node that gives one. Ends the command if none does, or if all of the request failed."""
    problems = []
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        if not port.isdigit():
            fail(f"{server!r} is no host:port", status=2)
        try:
            answer = ask(host.strip("[]") or "127.0.0.1", int(port), message, version, timeout_s)
        except (OSError, Malformed) as error:
            problems.append(f"{server}: {error}")
            continue
        error_code = ErrorCode(getattr(answer, "error_code", 0))
        if error_code is not ErrorCode.NONE:
            fail(getattr(answer, "error_message", None) or error_code.name)
        return answer
    return fail(
        f"no node answers ({'; '.join(problems)})",
        "start a cluster with `strandline up`, or name another with --bootstrap-server",
    )
