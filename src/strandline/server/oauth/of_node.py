"""OAUTHBEARER of a node, from its configuration. Imported only where a listener enables it."""

import asyncio
import logging
from urllib.parse import urlsplit

from strandline.broker.config import NodeConfig
from strandline.broker.listeners.settings import ListenerSettings
from strandline.metadata.configs.sasl_configs import OAUTHBEARER
from strandline.security.sasl.jwt_tokens import JwtTokens, TokenRules
from strandline.server.oauth.key_set import KeySet, Times
from strandline.server.tls.of_node import is_loopback

log = logging.getLogger("strandline")


class OAuth:
    def __init__(self, config: NodeConfig) -> None:
        """Reads key sets that are files. Raises CannotRead."""
        self.sets: dict[str, KeySet] = {}  # by URL
        self.tokens: dict[str, JwtTokens] = {}  # by listener
        self.watching: list[asyncio.Task[None]] = []
        for name in config.sasl_listener_names:
            settings = config.settings_of(name).for_mechanism(OAUTHBEARER)
            if OAUTHBEARER in settings.texts("sasl.enabled.mechanisms"):
                url = settings.text("sasl.oauthbearer.jwks.endpoint.url")
                if url not in self.sets:
                    self.sets[url] = KeySet(url, times_of(settings))
                self.tokens[name] = JwtTokens(self.sets[url], rules_of(settings))
        for url, keys in self.sets.items():
            parts = urlsplit(url)
            if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
                log.warning(
                    "whoever can change what is on the wire can change the keys of OAUTHBEARER: %s has no TLS", url
                )
            keys.begin()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self.watching = [loop.create_task(keys.watch()) for keys in self.sets.values()]

    def close(self) -> None:
        for task in self.watching:
            task.cancel()


def times_of(settings: ListenerSettings) -> Times:
    return Times(
        refresh_ms=settings.whole("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        backoff_ms=settings.whole("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        backoff_max_ms=settings.whole("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    )


def rules_of(settings: ListenerSettings) -> TokenRules:
    audiences = settings.value("sasl.oauthbearer.expected.audience")
    assert audiences is None or isinstance(audiences, tuple)
    return TokenRules(
        audiences=audiences or (),
        issuer=settings.text("sasl.oauthbearer.expected.issuer"),
        name_claim=settings.text("sasl.oauthbearer.sub.claim.name"),
        scope_claim=settings.text("sasl.oauthbearer.scope.claim.name"),
        skew_s=settings.whole("sasl.oauthbearer.clock.skew.seconds"),
    )
