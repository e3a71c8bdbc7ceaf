"""How long something is tried, and how long is waited between two tries."""

import random
import time

from strandline.client.config import ClientConfig
from strandline.client.errors import TimedOut

JITTER = 0.2  # Kafka's


class Patience:
    """The time that one operation has, and its pauses: each longer than the last, up to a bound."""

    def __init__(self, config: ClientConfig, what: str, limit_ms: int | None = None) -> None:
        self.what = what
        self.limit_ms = config.default_api_timeout_ms if limit_ms is None else limit_ms
        self.began = time.monotonic()
        self.pause_ms = float(config.retry_backoff_ms)
        self.pause_max_ms = float(max(config.retry_backoff_max_ms, config.retry_backoff_ms))
        self.tries_left = config.retries
        self.tries = 0
        self.reason = ""  # of the last failure

    @property
    def left_ms(self) -> float:
        return self.limit_ms - (time.monotonic() - self.began) * 1000

    def renew(self) -> None:
        """There was progress."""
        self.began = time.monotonic()
        self.tries = 0

    def pause(self, reason: object) -> None:
        """Wait before the next try. Raises `TimedOut`, with the last failure, when there is no time for one."""
        self.reason = str(reason)
        self.tries += 1
        delay = min(self.pause_max_ms, self.pause_ms * 2 ** min(self.tries - 1, 20))
        delay *= random.uniform(1 - JITTER, 1 + JITTER)
        if delay >= self.left_ms or self.tries > self.tries_left:
            raise self.over()
        time.sleep(delay / 1000)

    def over(self) -> TimedOut:
        after = (time.monotonic() - self.began) * 1000
        return TimedOut(
            f"{self.what} did not succeed within {after:.0f} ms, after {max(1, self.tries)} tries;"
            f" the last one: {self.reason or 'no answer'}"
        )
