"""The console's server: it binds its port before it says that it is there, and runs in a thread."""

import logging
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn
from msgspec.structs import replace

from strandline.client.config import ClientConfig
from strandline.console.app import Console, Settings
from strandline.console.facts import SOURCES, Observed, Source
from strandline.console.guard import Secrets, is_loopback

CLIENT_ID = "strandline-console"  # as brokers and the loss ledger name it
STOP_S = 2  # for answers that are on their way


class Serving(uvicorn.Server):
    """Raises OSError if the port is taken."""

    def __init__(
        self,
        cluster: ClientConfig,
        options: str = "",
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_changes: bool = False,
        report: Callable[[str], None] = lambda _: None,
        sources: Iterable[Source] = SOURCES,
    ) -> None:
        """`options`: what a command needs to reach the cluster; port 0: any that is free. `report` gets a line for
        each change."""
        self.secrets = Secrets.new()
        self.console = Console(
            Observed(replace(cluster, client_id=CLIENT_ID), options),
            Settings(self.secrets, host, allow_changes, report),
            sources=sources,
        )
        self.socket = bound(host, port)
        self.is_local = is_loopback(host)
        self.thread: threading.Thread | None = None
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self.socket.getsockname()[1]}/?token={self.secrets.token}"
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # its lines would be between those of a command
        config = uvicorn.Config(
            self.console.application(),
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=STOP_S,
        )
        super().__init__(config)

    def start(self) -> None:
        """In a thread. It is reached at once: what comes before it is ready waits."""
        self.thread = threading.Thread(target=self.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.should_exit = True
        if self.thread is not None:
            self.thread.join()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.console.live.close()
        await super().shutdown(sockets)

    def __enter__(self) -> "Serving":
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()


def bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(128)
    except OSError:
        opened.close()
        raise
    return opened
