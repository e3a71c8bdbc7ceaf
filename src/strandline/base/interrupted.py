"""An exception in the middle of a request of several parts, with what the parts before it want done."""

from collections.abc import Sequence

from strandline.base.effects import Effect


class Interrupted(Exception):
    """Raised from the exception that interrupted the request."""

    def __init__(self, effects: Sequence[Effect]) -> None:
        """`effects`: others wait for them, since what they rest on is done."""
        super().__init__("interrupted")
        self.effects = effects
