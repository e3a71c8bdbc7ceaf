"""An exception in the middle of a request of several parts, with what the parts before it want done."""

from collections.abc import Sequence

from strandline.base.effects import Effect


class Interrupted(Exception):
    """Raised from the exception that interrupted the request. What is in `effects` is proven: others wait for it."""

    def __init__(self, effects: Sequence[Effect]) -> None:
        super().__init__("interrupted")
        self.effects = effects
