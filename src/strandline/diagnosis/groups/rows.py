"""Groups, their members and their positions as JSON. The keys stay as they are: scripts rely on them."""

from typing import Any

from strandline.client.admin.groups.described import GroupState, Listed, Member
from strandline.client.admin.groups.offsets import Position
from strandline.wire.messages.consumer_groups.progress import MemberDeparture


def listed_json(row: Listed) -> dict[str, Any]:
    return {
        "group": row.group_id,
        "type": row.type,
        "protocol_type": row.protocol_type,
        "state": row.state,
        "coordinator": row.coordinator,
    }


def group_json(state: GroupState) -> dict[str, Any]:
    progress = state.progress
    return {
        "group": state.group_id,
        "coordinator": state.coordinator,
        "type": state.type,
        "protocol_type": state.protocol_type,
        "state": state.state,
        "assignor": state.assignor,
        "members": len(state.members),
        "epoch": progress.generation if state.epoch is None and progress is not None else state.epoch,
        "in_state_ms": None if progress is None else progress.in_state_ms,
    }


def member_json(state: GroupState, member: Member) -> dict[str, Any]:
    return {
        "group": state.group_id,
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "epoch": member.epoch,
        "partitions": len(member.assigned),
        "subscribed": list(member.subscribed),
        "regex": member.regex or None,
        "assigned": [str(at) for at in member.assigned],
        "target": None if member.target is None else [str(at) for at in member.target],
    }


def position_json(group_id: str, position: Position, owner: Member | None) -> dict[str, Any]:
    ends = None if isinstance(position.ends, str) else position.ends
    return {
        "group": group_id,
        "topic": position.at.topic,
        "partition": position.at.partition,
        "committed_offset": None if position.committed is None else position.committed.offset,
        "log_start_offset": None if ends is None else ends.start,
        "last_stable_offset": None if ends is None else ends.last_stable,
        "log_end_offset": None if ends is None else ends.end,
        "lag": position.lag,
        "member_id": None if owner is None else owner.member_id,
        "client_id": None if owner is None else owner.client_id,
        "host": None if owner is None else owner.host,
        "error": position.ends if isinstance(position.ends, str) else None,
    }


def departure_json(row: MemberDeparture) -> dict[str, Any]:
    return {
        "member_id": row.member_id,
        "client_id": row.client_id,
        "host": row.client_host,
        "ago_ms": row.ago_ms,
        "why": row.why,
        "committed_ms_before": None if row.committed_ms < 0 else row.committed_ms,
    }
