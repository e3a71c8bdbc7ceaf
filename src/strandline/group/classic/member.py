"""One member of a classic group, as its coordinator knows it."""

from strandline.base.effects import ReplyTo
from strandline.base.time import NEVER, Instant
from strandline.base.timers import Deadline


class Member:
    """`protocols` maps each assignor that the member supports, best first, to its subscription bytes.

    `joining` and `syncing` are where the answers of a parked JoinGroup and SyncGroup go; while one of them is parked
    the member is alive by definition and has no session deadline. With the answer a whole session begins.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "joining",
        "member_id",
        "protocols",
        "reason",
        "rebalance_timeout_ms",
        "session",
        "session_ends",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: dict[str, bytes],
        reason: str = "",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.reason = reason  # why it joins, as its client says (KIP-800)
        self.assignment = b""
        self.joining: ReplyTo | None = None
        self.syncing: ReplyTo | None = None
        self.session_ends: Instant = NEVER
        self.session: Deadline | None = None  # while it is in a group

    def heard(self, now: Instant) -> None:
        ends = Instant(now + self.session_timeout_ms)
        if self.session is not None:
            self.session.set(ends)  # first: a call that is broken off between these leaves a member that is looked at
        self.session_ends = ends

    @property
    def is_parked(self) -> bool:
        return self.joining is not None or self.syncing is not None
