"""Offsets that open transactions have committed: they count when the transaction does (KIP-98, KIP-447).

Rules:
  - an offset is pending from when its record is committed until its producer's marker is: then it counts, or is
    forgotten
  - of an offset that counts and one that was pending, that with the later record wins, as it does for a cleaner
  - a tombstone takes away what was pending before it

Invariants (executed by `check`): `holders` and `groups` say of `by_producer` who has what.
"""

from collections import Counter

from strandline.group.offsets.offsets import CommittedOffset

Key = tuple[str, str, int]  # group, topic and partition


class Pending:
    def __init__(self) -> None:
        self.by_producer: dict[int, dict[Key, CommittedOffset]] = {}
        self.holders: dict[Key, set[int]] = {}  # producers
        self.groups: Counter[str] = Counter()  # how many keys each has
        self.under_way: Counter[Key] = Counter()  # accepted, and not written yet

    def add(self, producer_id: int, key: Key, committed: CommittedOffset) -> None:
        """In the log's order: the last one of a producer counts."""
        assert producer_id >= 0 and committed.record_offset >= 0
        self.by_producer.setdefault(producer_id, {})[key] = committed
        if key not in self.holders:
            self.holders[key] = set()
            self.groups[key[0]] += 1
        self.holders[key].add(producer_id)

    def end(self, producer_id: int) -> dict[Key, CommittedOffset]:
        """The producer's transaction has ended: these were pending in it."""
        found = self.by_producer.pop(producer_id, {})
        for key in found:
            self.release(producer_id, key)
        return found

    def forget(self, key: Key, record_offset: int) -> None:
        """There is a tombstone at `record_offset`."""
        assert record_offset >= 0, "a tombstone is in the log"
        for producer_id in list(self.holders.get(key, ())):
            offsets = self.by_producer[producer_id]
            if offsets[key].record_offset < record_offset:
                del offsets[key]
                if not offsets:
                    del self.by_producer[producer_id]
                self.release(producer_id, key)

    def release(self, producer_id: int, key: Key) -> None:
        holders = self.holders[key]
        holders.remove(producer_id)
        if not holders:
            del self.holders[key]
            assert self.groups[key[0]] > 0
            self.groups[key[0]] -= 1
            if not self.groups[key[0]]:
                del self.groups[key[0]]

    def is_unstable(self, key: Key) -> bool:
        """May an offset come to count here that does not yet? So also while its record is being written: the member
        that commits it was in the group when it was accepted, and may not be any more."""
        return key in self.holders or self.under_way[key] > 0

    def keys_of(self, group_id: str) -> list[Key]:
        if group_id not in self.groups:
            return []
        keys = [key for key in self.holders if key[0] == group_id]
        assert len(keys) == self.groups[group_id]
        return keys

    def check(self) -> None:
        assert all(self.by_producer.values()), "a producer without offsets is forgotten"
        has = [(producer_id, key) for producer_id, offsets in self.by_producer.items() for key in offsets]
        assert sorted(has) == sorted((producer_id, key) for key, ids in self.holders.items() for producer_id in ids)
        assert self.groups == Counter(key[0] for key in self.holders)
        assert all(count > 0 for count in self.under_way.values())
