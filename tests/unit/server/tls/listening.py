"""A listener with TLS, and a client's trust in it."""

import ssl
from pathlib import Path

from strandline.broker.listeners.settings import ListenerSettings
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.server.tls.listener_tls import ListenerTls

HOST = "127.0.0.1"


def settings(folder: Path, name: str = "server", **changes: str) -> ListenerSettings:
    given = {"ssl.keystore.location": str(folder / f"{name}.store"), "ssl.truststore.location": str(folder / "ca.pem")}
    given |= {key.replace("_", "."): value for key, value in changes.items()}
    own = {key: NODE_CONFIGS[key].parse(value) for key, value in given.items()}
    return ListenerSettings("SSL", "SSL", {name: key.default for name, key in NODE_CONFIGS.items()}, own, {})


def listener(folder: Path, name: str = "server", **changes: str) -> ListenerTls:
    return ListenerTls(settings(folder, name, **changes), is_served=True, is_for_nodes=False)


def trusting(folder: Path, name: str = "", authority: str = "ca") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / f"{authority}.pem"))
    if name:
        context.load_cert_chain(folder / f"{name}.store")
    return context
