"""A JSON Web Key Set, from a file or a URL, while the node runs.

It is read every `refresh_ms`, and soon if a token names a key that it lacks: signers announce a new key there when they
begin to use it. If it cannot be read, that is reported once, the old keys stay, and it is tried again, ever more
seldom.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener, url2pathname

from strandline.base.value import Value
from strandline.security.sasl.jwt_tokens import Key, keys_in

log = logging.getLogger("strandline")

BYTES_MAX = 1 << 20
TIMEOUT_S = 10.0
# Between two reads because of keys that are missing, by the first letters of the URL: anybody can invent keys.
MISSES_S = {"file": 0.2, "http": 10.0, "https": 10.0}


class Times(Value, frozen=True):
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int


class CannotRead(OSError):
    """The key set is not there, or is none."""


class NoRedirects(HTTPRedirectHandler):
    """Another host, or one without TLS, is not what was configured."""

    def redirect_request(self, *_: Any) -> None:
        return None


def read(url: str) -> tuple[Key, ...]:
    """Takes a while. Raises CannotRead."""
    try:
        return keys_in(json.loads(content_of(url)))
    except (OSError, HTTPException) as error:
        raise CannotRead(f"cannot read {url}: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, RecursionError) as error:
        raise CannotRead(f"{url} is not usable: {error}") from None


def content_of(url: str) -> bytes:
    parts = urlsplit(url)
    if parts.scheme == "file":
        with open(url2pathname(parts.path), "rb") as file:
            content = file.read(BYTES_MAX + 1)
    else:
        request = Request(url, headers={"Accept": "application/json, application/jwk-set+json"})
        with build_opener(NoRedirects).open(request, timeout=TIMEOUT_S) as answer:
            content = answer.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise ValueError(f"it has more than {BYTES_MAX} bytes")
    return bytes(content)


class KeySet:
    """`Keys` for tokens. All but the reading happens on the loop."""

    def __init__(self, url: str, times: Times, read: Callable[[str], tuple[Key, ...]] = read) -> None:
        self.url = url
        self.times = times
        self.read = read
        self.keys: tuple[Key, ...] = ()
        self.wanted = asyncio.Event()
        self.pause_s = MISSES_S[urlsplit(url).scheme]
        self.read_at = -self.pause_s
        self.failures = 0

    def all(self) -> tuple[Key, ...]:
        return self.keys

    def misses(self, key_id: str) -> None:
        if not self.wanted.is_set() and time.monotonic() >= self.read_at + self.pause_s:
            self.wanted.set()

    def begin(self) -> None:
        """Of a file the keys are there before anybody can connect; a URL is not waited for. Raises CannotRead."""
        if urlsplit(self.url).scheme == "file":
            self.accept(self.read(self.url))

    async def watch(self) -> None:
        """Until it is cancelled."""
        if urlsplit(self.url).scheme != "file":
            await self.renew()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wanted.wait(), self.next_pause_s())
            self.wanted.clear()
            await self.renew()

    def next_pause_s(self) -> float:
        if not self.failures:
            return max(self.times.refresh_ms, 1) / 1000
        pause_ms = max(self.times.backoff_ms, 1) << min(self.failures - 1, 20)
        return min(pause_ms, max(self.times.backoff_max_ms, 1)) / 1000

    async def renew(self) -> None:
        try:
            found = await asyncio.to_thread(self.read, self.url)
        except CannotRead as error:
            self.failures += 1
            self.read_at = time.monotonic()
            if self.failures == 1:
                log.error("keys of OAUTHBEARER: %s; the old ones stay, and it is tried again", error)
            return
        self.accept(found)

    def accept(self, found: tuple[Key, ...]) -> None:
        self.failures = 0
        self.read_at = time.monotonic()
        before, now = {key.id for key in self.keys}, {key.id for key in found}
        if not found:
            log.error("keys of OAUTHBEARER: %s has no key for signatures: nobody can log in with a token", self.url)
        elif before != now:
            log.info("keys of OAUTHBEARER: %d from %s", len(found), self.url)
        self.keys = found
