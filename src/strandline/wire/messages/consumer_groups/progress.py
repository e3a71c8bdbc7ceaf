"""How far a group is, and which members went: of our own, in DescribeGroups and ConsumerGroupDescribe."""

from typing import Annotated

from strandline.wire.schema import Group, Int32, Int64, NullableString, String, Tag


class MemberProgress(Group, frozen=True):
    """`waits_for`: "join" or "sync" if the member waits for the answer to that, else empty. `session_left_ms`: until
    it is removed if it sends nothing; -1 while it waits. `revoke_left_ms`: until it is removed if it does not revoke
    partitions; -1 if it need not. `committed_ms`: since it committed for the last time; -1 if it never did, or the
    coordinator does not know."""

    member_id: String = ""
    waits_for: String = ""
    session_left_ms: Int64 = -1
    rebalance_timeout_ms: Int32 = -1
    revoke_left_ms: Annotated[Int64, Tag(0)] = -1
    committed_ms: Annotated[Int64, Tag(1)] = -1


class MemberDeparture(Group, frozen=True):
    """A member that went, and how long ago; `why` continues a sentence about it. `committed_ms`: how long before it
    went it had committed for the last time; -1 if it never did, or the coordinator does not know."""

    member_id: String = ""
    client_id: String = ""
    client_host: String = ""
    ago_ms: Int64 = 0
    why: String = ""
    committed_ms: Annotated[Int64, Tag(0)] = -1
    rebalance_timeout_ms: Annotated[Int32, Tag(1)] = -1


class GroupProgress(Group, frozen=True):
    """`generation`: of the classic protocol. `in_state_ms`: how long the group is stable, empty, or rebalancing.
    `phase_left_ms`: until the join or sync phase of a rebalance ends; -1 if there is none. `promised`: member ids
    that were given out, and have not joined yet. `cause`: of the last rebalance, a sentence; empty if it is not known,
    or in the consumer protocol."""

    generation: Int32 = 0
    in_state_ms: Int64 = 0
    phase_left_ms: Int64 = -1
    leader: NullableString = None
    promised: Int32 = 0
    members: tuple[MemberProgress, ...] = ()
    departures: tuple[MemberDeparture, ...] = ()
    cause: Annotated[String, Tag(0)] = ""
