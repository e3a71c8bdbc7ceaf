"""What one sample has to do without, and for how long it tries: nobody who is silent hides those who answer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.client.errors import KafkaError, TimedOut, passes_by_itself
from strandline_spark.errors import StrandlineError

LIMIT_MS = 10_000  # that failures may cost a sample; who is asked later is asked only once


class Trouble:
    """The trouble of one sample. `strict`: errors that do not pass by themselves are raised."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.left = float(LIMIT_MS)
        self.lacking: dict[str, str] = {}  # what is lacking -> a sentence about it

    @property
    def patience_ms(self) -> int:
        """How long the next question may be asked again."""
        return max(0, int(self.left))

    @contextmanager
    def without(self, what: str) -> Iterator[None]:
        """If the block fails, that is reported after `what`, and left out of the sample."""
        began = time.monotonic()
        try:
            yield
        except (StrandlineError, OSError) as error:
            if self.strict and not is_passing(error):
                raise
            self.took(began)
            problem = error.problem if isinstance(error, StrandlineError) else error
            self.lacking[what] = f"{what}: {problem}"

    def took(self, began: float) -> None:
        """Something has failed that was tried since `began` (`time.monotonic`)."""
        self.left -= (time.monotonic() - began) * 1000


def is_passing(error: Exception) -> bool:
    return isinstance(error, TimedOut) or (isinstance(error, KafkaError) and passes_by_itself(error))
