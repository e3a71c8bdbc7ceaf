"""One question to one node, or to any node that answers: for commands that look at a cluster."""

from collections.abc import Mapping
from socket import gaierror
from typing import Any

from msgspec.structs import replace

from strandline.base.errors import ErrorCode, message_of
from strandline.client.config import PREFIX, ClientConfig
from strandline.client.config import servers as parsed_servers
from strandline.client.connection import Connection
from strandline.client.errors import BadOption, StrandlineError, Unreachable
from strandline.wire.frame import Malformed

ANY_TIMEOUT_S = 10.0
CLIENT_ID = "strandline-ask"
PLAIN = ClientConfig(bootstrap=(), client_id=CLIENT_ID)  # without TLS and SASL
Servers = str | ClientConfig  # "host:port,host:port", which are asked as in `PLAIN`; or how they are reached


def config_of(servers: Servers, options: Mapping[str, str] | None = None) -> ClientConfig:
    """`options`: Kafka's, as in the properties file of its commands. Raises BadOption."""
    if isinstance(servers, ClientConfig):
        return servers
    try:
        parsed_servers(servers)
    except ValueError as error:
        raise BadOption(str(error)) from None
    given = {"client.id": CLIENT_ID, **(options or {}), "bootstrap.servers": servers}
    return ClientConfig.of({f"{PREFIX}{key}": value for key, value in given.items()})


def ask(
    host: str, port: int, message: Any, version: int | None, timeout_s: float = 5.0, config: ClientConfig = PLAIN
) -> Any:
    """The answer to `message`, in this version; None: the highest that both sides know, for which the node is asked.

    Raises OSError if there is none in time, Malformed if it makes no sense, `Unsupported` if no version fits."""
    timeout_ms = int(timeout_s * 1000)
    config = replace(config, request_timeout_ms=timeout_ms, setup_timeout_ms=timeout_ms)
    try:
        connection = Connection(host, port, config, learns_versions=version is None or config.sasl is not None)
        try:
            return connection.ask(message, version)
        finally:
            connection.close()
    except Unreachable as error:
        cause = error.cause
        raise cause if isinstance(cause, OSError | Malformed) else ConnectionError(error.problem) from None


def ask_any(bootstrap: Servers, message: Any, version: int | None, timeout_s: float = ANY_TIMEOUT_S) -> Any:
    """The answer of the first of these nodes that gives one. Raises StrandlineError if none does, or if the answer
    refuses the whole request."""
    config, problems, is_reached = config_of(bootstrap), [], False
    for host, port in config.bootstrap:
        try:
            answer = ask(host, port, message, version, timeout_s, config)
        except (OSError, Malformed) as error:
            problems.append(f"{text_of(host, port)}: {error}")
            is_reached |= not isinstance(error, ConnectionRefusedError | TimeoutError | gaierror)
            continue
        error_code = ErrorCode(getattr(answer, "error_code", 0))
        if error_code is not ErrorCode.NONE:
            raise StrandlineError(getattr(answer, "error_message", None) or message_of(error_code))
        return answer
    servers = ",".join(text_of(*server) for server in config.bootstrap)
    advice = "start one with `strandline up`, or name another with --bootstrap-server"
    if is_reached and config.security_protocol == PLAIN.security_protocol:
        advice = "does it want TLS or SASL? Name a file of client properties with --command-config"
    raise StrandlineError(f"no cluster answers at {servers} ({'; '.join(problems)})", advice)


def text_of(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
