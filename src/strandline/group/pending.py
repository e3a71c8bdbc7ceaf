"""Offsets that were committed in transactions which are not over (KIP-98, KIP-447).

They count from their marker on, if that commits. An offset that was committed for the same partition meanwhile counts
instead if its record lies behind theirs.

Invariant (executed by `check`): no producer is listed without an offset.
"""

from strandline.group.offsets import CommittedOffset, Offsets

Key = tuple[str, str, int]  # group, topic and partition


class Pending:
    def __init__(self) -> None:
        self.by_producer: dict[int, dict[Key, CommittedOffset]] = {}

    def add(self, producer_id: int, key: Key, committed: CommittedOffset) -> None:
        assert producer_id >= 0 and committed.record_offset >= 0
        self.by_producer.setdefault(producer_id, {})[key] = committed

    def drop(self, key: Key) -> None:
        """A tombstone: the offset is forgotten, whoever commits it."""
        for producer_id, offsets in list(self.by_producer.items()):
            if offsets.pop(key, None) is not None and not offsets:
                del self.by_producer[producer_id]

    def end(self, producer_id: int, *, commits: bool, into: dict[str, Offsets]) -> None:
        """The marker of this producer's transaction is committed."""
        offsets = self.by_producer.pop(producer_id, {})
        for (group, topic, partition), committed in offsets.items() if commits else ():
            known = into.setdefault(group, {})
            now = known.get((topic, partition))
            if now is None or now.record_offset < committed.record_offset:
                known[topic, partition] = committed

    def of_group(self, group: str) -> set[tuple[str, int]]:
        """The partitions of which an offset of this group is pending."""
        return {key[1:] for offsets in self.by_producer.values() for key in offsets if key[0] == group}

    def has(self, key: Key) -> bool:
        return any(key in offsets for offsets in self.by_producer.values())

    def check(self) -> None:
        assert all(self.by_producer.values())
