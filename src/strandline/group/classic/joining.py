"""JoinGroup: who this is, whether it may join, and as what."""

from collections.abc import Callable

from strandline.base.effects import Effect, Received, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.base.ports import Rng
from strandline.base.time import Instant, after
from strandline.coordination.partitioning import is_too_long
from strandline.group.classic.group import Group
from strandline.group.classic.member import Member
from strandline.group.config import GroupConfig
from strandline.group.departures import SHOWN_MAX
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse

Persist = Callable[[Group, Callable[[ErrorCode], list[Effect]]], list[Effect]]
METADATA_BYTES_MAX = 1024 * 1024  # of one member's protocols, which the coordinator keeps and may have to write
MADE_ID_LENGTH = 40  # what `new_id` adds, and more
MEMBER_ID_FIRST = 4  # from this version on, a new member is given its id and joins with it (KIP-394)


class Joining:
    def __init__(self, config: GroupConfig, rng: Rng) -> None:
        self.config = config
        self.rng = rng

    def join(
        self, group: Group, received: Received, request: JoinGroupRequest, persist: Persist, now: Instant
    ) -> list[Effect]:
        """`persist` writes the group as it is now, and calls back when the write is committed or has failed."""
        why = self.why_not(group, request) or why_too_large(request, received.caller.client_id)
        if why is not None:
            return [Reply(received.to, JoinGroupResponse(error_code=why, member_id=request.member_id))]
        protocols = {p.name: bytes(p.metadata) for p in request.protocols}
        assert protocols, "who supports none is refused"
        instance_id = request.group_instance_id
        if instance_id is not None and instance_id in group.static and not request.member_id:
            new = self.member(self.new_id(instance_id), received, request, protocols)
            return self.replace(group, group.members[group.static[instance_id]], new, received.to, persist, now)
        if request.member_id in group.members:
            asked = self.member(request.member_id, received, request, protocols)
            return group.rejoin(group.members[request.member_id], asked, received.to, now)
        if request.member_id or instance_id is not None or received.to.api_version < MEMBER_ID_FIRST:
            member_id = request.member_id or self.new_id(instance_id or received.caller.client_id)
            member = self.member(member_id, received, request, protocols)
            return group.add(member, request.protocol_type, received.to, now)
        member_id = self.new_id(received.caller.client_id)
        group.invite(member_id, after(now, request.session_timeout_ms))
        answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        return [Reply(received.to, answer)]

    def replace(
        self, group: Group, old: Member, new: Member, to: ReplyTo, persist: Persist, now: Instant
    ) -> list[Effect]:
        """A quiet swap is answered when it is durable: the next coordinator would fence the new member id."""
        assert new.instance_id is not None
        assert group.static.get(new.instance_id) == old.member_id
        is_quiet, old_leader = group.can_swap_quietly(old, new), group.leader
        effects = group.replace_static(old, new, now)
        if not is_quiet:
            return effects + group.join_replaced(new, to, now)
        answer = group.swap_answer(new, old_leader, to.api_version)

        def done(error: ErrorCode) -> list[Effect]:
            if error is ErrorCode.NONE and group.members.get(new.member_id) is not new:
                # It was removed while the write was under way, or a third process came with the same instance id.
                fenced = new.instance_id in group.static
                error = ErrorCode.FENCED_INSTANCE_ID if fenced else ErrorCode.UNKNOWN_MEMBER_ID
            return [Reply(to, answer if error is ErrorCode.NONE else JoinGroupResponse(error_code=error))]

        return effects + persist(group, done)

    def why_not(self, group: Group, request: JoinGroupRequest) -> ErrorCode | None:
        low, high = self.config.min_session_timeout_ms, self.config.max_session_timeout_ms
        if not low <= request.session_timeout_ms <= high:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if request.group_instance_id is not None and request.member_id:
            current = group.static.get(request.group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != request.member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        member_id = request.member_id
        if request.group_instance_id is not None and not member_id:
            member_id = group.static.get(request.group_instance_id, "")
        return group.why_not_join(member_id, request.protocol_type, [p.name for p in request.protocols])

    def member(
        self, member_id: str, received: Received, request: JoinGroupRequest, protocols: dict[str, bytes]
    ) -> Member:
        assert member_id
        patience = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
        return Member(
            member_id,
            instance_id=request.group_instance_id,
            client_id=received.caller.client_id,
            client_host=f"/{received.caller.host}",
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=patience,
            protocols=protocols,
            reason=(request.reason or "")[:SHOWN_MAX],
        )

    def new_id(self, prefix: str) -> str:
        raw = Uuid(self.rng.randbytes(16)).hex()
        made = f"{prefix}-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
        assert len(made) <= len(prefix) + MADE_ID_LENGTH, "records have room for it"
        return made


def why_too_large(request: JoinGroupRequest, client_id: str) -> ErrorCode | None:
    """Newer requests can have texts that no record of a group can have. It is written long after the request, and by
    each coordinator that the client then turns to."""
    names = [protocol.name for protocol in request.protocols]
    made_of = request.group_instance_id or client_id
    texts = [made_of + "-" * MADE_ID_LENGTH, request.protocol_type, *names]
    size = sum(map(len, names)) + sum(len(protocol.metadata) for protocol in request.protocols)
    return ErrorCode.INVALID_REQUEST if size > METADATA_BYTES_MAX or any(map(is_too_long, texts)) else None
