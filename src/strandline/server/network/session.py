"""What a connection may ask: little, where it has to prove first who it is (SASL), and once its session has ended.

Requests cost nothing for it: `served` is exchanged when something is proved, and by a timer.
"""

import asyncio

from msgspec.structs import replace

from strandline.base.effects import Authenticated, Caller
from strandline.wire.api import API_BY_KEY, API_VERSIONS
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest

# What whoever has not proved yet who it is may ask where that is demanded (KIP-43).
SERVED_TO_STRANGERS = frozenset((API_VERSIONS, SaslHandshakeRequest.api_key, SaslAuthenticateRequest.api_key))
TIMER_MS_MAX = 86_400_000  # timers of loops need not be able to wait for longer


class Session:
    loop: asyncio.AbstractEventLoop
    caller: Caller
    frame_bytes_max: int

    def begin(self, served: frozenset[int], frame_bytes_max: int, stranger_bytes_max: int | None) -> None:
        """`served`: what the listener answers. `stranger_bytes_max`: the largest request until it has authenticated;
        None: it need not."""
        self.served_by_listener = served
        self.known_bytes_max = frame_bytes_max
        self.must_authenticate = stranger_bytes_max is not None
        self.served = SERVED_TO_STRANGERS if self.must_authenticate else served
        self.frame_bytes_max = stranger_bytes_max or frame_bytes_max
        self.expiry: asyncio.TimerHandle | None = None  # when it has to prove again who it is

    @property
    def is_stranger(self) -> bool:
        """It has to prove who it is, and never has."""
        return self.served is SERVED_TO_STRANGERS and self.expiry is None

    def authenticated(self, effect: Authenticated) -> None:
        self.caller = replace(self.caller, principal=effect.principal, is_node=effect.is_node)
        self.served = self.served_by_listener
        self.frame_bytes_max = self.known_bytes_max
        self.end_timer()
        if effect.lifetime_ms:
            self.expire_after(effect.lifetime_ms)

    def expire_after(self, left_ms: int) -> None:
        """The connection itself stays: it may authenticate again."""
        if left_ms > 0:
            pause_ms = min(left_ms, TIMER_MS_MAX)
            self.expiry = self.loop.call_later(pause_ms / 1000, self.expire_after, left_ms - pause_ms)
        else:
            self.served = SERVED_TO_STRANGERS

    def end_timer(self) -> None:
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None

    def why_not_served(self, api_key: int) -> str:
        if self.served is self.served_by_listener or api_key not in self.served_by_listener:
            return f"API key {api_key} is not served on this listener"
        name = API_BY_KEY[api_key].name
        if self.is_stranger:
            return f"{name} before it has authenticated: check the client's security.protocol"
        return f"{name} after its session has expired: it did not authenticate again"
