"""An append of the broker's own, to the topics of its coordinators, until it is committed.

Invariant: `then` is called once: with the commit, with the end of this leadership, or when the time is over.
"""

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.coordination.internal_log import Done
from strandline.replica.hosting.host import Host


class InternalAppend:
    """An append of the broker's own, until it is committed."""

    __slots__ = ("base_offset", "done", "host", "required", "then")

    def __init__(self, host: Host, then: Done, base_offset: int, required: int) -> None:
        self.host = host
        self.then = then
        self.base_offset = base_offset
        self.required = required
        self.done = False

    def complete(self, error: ErrorCode, now: Instant) -> list[Effect]:
        assert not self.done
        self.done = True
        self.host.timers.entry_done()
        return self.then(error, self.base_offset, now)

    def expire(self, now: Instant) -> list[Effect]:
        assert not self.done
        self.done = True
        return self.then(ErrorCode.REQUEST_TIMED_OUT, self.base_offset, now)
