"""To which topics a group of the classic protocol is subscribed: its members' clients say so to one another, and a
coordinator that knows their format can read it."""

from strandline.group.classic.group import Group
from strandline.wire.compress import Corrupt
from strandline.wire.messages.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolSubscription,
    decode_embedded,
)


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """By the protocol that its members have chosen. None: it is not known, so any topic counts."""
    if not group.members:
        return frozenset()
    if group.protocol_type != PROTOCOL_TYPE or group.protocol is None:
        return None
    found: set[str] = set()
    for member in group.members.values():
        metadata = member.protocols.get(group.protocol)
        if metadata is None:  # it joins with other protocols than those of the generation
            return None
        try:
            found.update(decode_embedded(ConsumerProtocolSubscription, metadata).topics)
        except Corrupt:
            return None
    return frozenset(found)
