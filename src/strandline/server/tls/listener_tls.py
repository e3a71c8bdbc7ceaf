"""TLS of one listener while the node runs: which contexts new handshakes get, and which principal a client is.

Files and dynamic settings are looked at every `LOOKS_S` seconds. What changed is read, and if it cannot be used, that
is reported once and the old certificates stay. Connections that stand are kept, whatever changes.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence

from strandline.base.effects import ANONYMOUS, Endpoint
from strandline.broker.listeners.settings import ListenerSettings
from strandline.broker.listeners.tls import tls_problems
from strandline.security.certificates import read_certificate
from strandline.security.distinguished_names import text_of
from strandline.security.principals import mapping_of
from strandline.security.protocols import uses_sasl
from strandline.server.tls.contexts import Contexts, read_contexts
from strandline.server.tls.stores import BadStore, readable_by_others, stamps

log = logging.getLogger("strandline")

LOOKS_S = 2.0
WARNED_DAYS = 14

Dynamic = Callable[[], Mapping[str, str]]  # what the running broker was given


class Unmapped(Exception):
    """A valid certificate of which `ssl.principal.mapping.rules` make no name."""


class ListenerTls:
    def __init__(self, static: ListenerSettings, *, is_served: bool, is_for_nodes: bool) -> None:
        """Raises BadStore."""
        self.static = static
        self.is_served = is_served
        self.is_for_nodes = is_for_nodes
        self.settings = static
        self.mapping = mapping_of(static.text("ssl.principal.mapping.rules"))
        self.stamps = stamps(static)
        self.contexts = self.read(static)
        others = readable_by_others(static)
        if others:
            log.warning("the key store %s is readable by every user of this machine: chmod 600 it", others)
        self.report_end()

    @property
    def name(self) -> str:
        return self.static.listener

    @property
    def server(self) -> ssl.SSLContext:
        assert self.contexts.server is not None, "nobody listens here"
        return self.contexts.server

    def read(self, settings: ListenerSettings) -> Contexts:
        return read_contexts(settings, is_served=self.is_served, is_for_nodes=self.is_for_nodes)

    def principal_of(self, certificate: bytes | None) -> str:
        """`certificate`: the client's in DER, verified; None if it sent none. Raises Unmapped. Clients of SASL say by
        SASL who they are."""
        if certificate is None or uses_sasl(self.static.protocol):
            return ANONYMOUS
        try:
            subject = text_of(read_certificate(certificate).subject)
        except ValueError as error:
            raise Unmapped(f"its certificate has a subject that cannot be read: {error}") from None
        name = self.mapping.name_of(subject)
        if name is None:
            raise Unmapped(f"no rule of ssl.principal.mapping.rules matches its certificate's subject {subject}")
        return f"User:{name}"

    # --- other certificates

    def look(self, dynamic: Mapping[str, str]) -> Contexts | None:
        """Has something changed? Then what is to be used from now on; None: nothing has. Reads files, so that it may
        take a while. Raises BadStore, once for each change."""
        settings = self.static.changed_by(dynamic)
        found = stamps(settings)
        if settings == self.settings and found == self.stamps:
            return None
        self.settings, self.stamps = settings, found
        problems = list(tls_problems(settings, is_served=self.is_served))  # a file's are found when the node starts
        if problems:
            raise BadStore("; ".join(problems))
        return self.read(settings)

    def report_end(self) -> None:
        end = self.contexts.not_after
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + WARNED_DAYS * 86400))
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if end and end < now:
            log.warning("the certificate of listener %s has expired at %s: clients reject it", self.name, end)
        elif end and end < soon:
            log.warning("the certificate of listener %s expires at %s", self.name, end)


class Tls:
    """TLS of all listeners of a node, its own and those of other nodes."""

    def __init__(
        self, listeners: Sequence[ListenerTls], voters: frozenset[Endpoint], for_voters: str, for_brokers: str
    ):
        """`for_voters`, `for_brokers`: the listeners by which those are reached."""
        self.by_name = {listener.name: listener for listener in listeners}
        self.voters = voters
        self.for_voters = for_voters
        self.for_brokers = for_brokers

    def of(self, name: str) -> ListenerTls | None:
        return self.by_name.get(name)

    def to(self, endpoint: Endpoint) -> ssl.SSLContext | None:
        """For a connection to another node; None: it is not encrypted."""
        listener = self.by_name.get(self.for_voters if endpoint in self.voters else self.for_brokers)
        return listener.contexts.client if listener is not None else None

    async def watch(self, dynamic: Dynamic) -> None:
        """Until it is cancelled."""
        while self.by_name:
            await asyncio.sleep(LOOKS_S)
            given = dict(dynamic())
            for listener in self.by_name.values():
                await self.renew(listener, given)

    async def renew(self, listener: ListenerTls, dynamic: Mapping[str, str]) -> None:
        try:
            found = await asyncio.to_thread(listener.look, dynamic)
        except (BadStore, OSError, ValueError) as error:
            log.error("new certificates of listener %s cannot be used, the old ones stay: %s", listener.name, error)
            return
        if found is not None:
            listener.contexts = found
            log.info("listener %s uses new certificates for new connections", listener.name)
            listener.report_end()
