"""A group as it will be, while a change is planned, with the records that make it so. The group stays as it is."""

from collections import Counter
from collections.abc import Callable, Iterable

from strandline.base.time import Instant
from strandline.group.assignors.spec import GroupSpec, MemberSpec, TopicSpec
from strandline.group.assignors.table import ASSIGNORS
from strandline.group.config import GroupConfig
from strandline.group.consumer.catalog import Facts, facts_of, hash_of
from strandline.group.consumer.group import ConsumerGroup, Resolved
from strandline.group.consumer.member import Member
from strandline.group.consumer.regexes import InvalidRegex, resolve
from strandline.group.consumer.stored import (
    Record,
    current_record,
    member_record,
    member_tombstones,
    metadata_record,
    regex_record,
    regex_tombstone,
    same,
    target_epoch_record,
    target_record,
)
from strandline.metadata.image import Image
from strandline.wire.messages.consumer_groups.records import ConsumerGroupPartitionMetadataKey


class Draft:
    def __init__(self, group: ConsumerGroup, config: GroupConfig, image: Image) -> None:
        self.group = group
        self.config = config
        self.image = image
        self.members = dict(group.members)
        self.target = dict(group.target)
        self.regexes = dict(group.regexes)
        self.epoch = group.epoch
        self.target_epoch = group.target_epoch
        self.records: list[Record] = []
        self.has_looked = False
        self.looked_up: Facts | None = None

    # --- members

    def replace(self, old: Member, new: Member) -> None:
        """A static member has another id from now on."""
        assert old.instance_id is not None and new.instance_id == old.instance_id, "static members alone are replaced"
        assert new.member_id not in self.members, "no member takes the place of two"
        group_id = self.group.group_id
        target = self.target.get(old.member_id, {})
        self.remove(old.member_id)
        self.members[new.member_id] = new
        self.target[new.member_id] = target
        self.records += member_tombstones(group_id, old.member_id)  # guard: replaced-member-stays
        self.records += [
            member_record(group_id, new),
            target_record(group_id, new.member_id, target),
            current_record(group_id, new),
        ]

    def remove(self, member_id: str) -> None:
        del self.members[member_id]
        self.target.pop(member_id, None)

    def assignor(self) -> str:
        return preferred_assignor(self.members.values(), self.config)

    # --- subscriptions

    def topics_of(self, member: Member) -> frozenset[str]:
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def resolve(self, own: str, names: Callable[[], Iterable[str]], now: Instant) -> bool:
        """Regular expressions that are new, and all of them if topics may have come or gone. Are there other topics
        now that match? `names`: of the topics that there are. Raises InvalidRegex if `own` is invalid, which is that of
        the member that asks. Only a log that Kafka wrote can have others that are: these match what they did."""
        used = {member.regex for member in self.members.values() if member.regex}
        has_changed = False
        for regex in sorted(used):
            known = self.regexes.get(regex)
            if known is not None and not self.group.is_stale:  # guard: expression-not-resolved-again
                continue
            try:
                matches = resolve(regex, names())
            except InvalidRegex:
                if regex == own:
                    raise
                matches = frozenset[str]() if known is None else known.topics
            if known is None or known.topics != matches:
                self.regexes[regex] = Resolved(matches, 0, now)
                self.records.append(regex_record(self.group.group_id, regex, matches, now))
                has_changed = True
        self.forget_regexes()
        return has_changed

    def forget_regexes(self) -> None:
        used = {member.regex for member in self.members.values()}
        for regex in sorted(self.regexes.keys() - used):
            del self.regexes[regex]
            self.records.append(regex_tombstone(self.group.group_id, regex))

    def facts(self) -> Facts:
        """Of all topics of the subscriptions. Looked up once: after this the members and their subscriptions stay."""
        if self.looked_up is None:
            names = frozenset[str]().union(*(self.topics_of(member) for member in self.members.values()))
            self.looked_up = facts_of(self.image, names)
        return self.looked_up

    # --- epochs

    def renew(self, *, must: bool) -> None:
        """A new epoch of the group, if it must be or if the topics of its subscriptions have changed."""
        if not must and not self.group.is_stale:
            return
        found = hash_of(self.facts())
        self.has_looked = True
        if not must and found == self.group.metadata_hash:  # guard: no-epoch-for-other-topics
            return
        self.epoch = max(self.epoch, self.target_epoch) + 1  # guard: group-epoch-stands-still
        self.records.append(metadata_record(self.group.group_id, self.epoch, found))
        if self.group.has_partition_metadata:
            self.records.append((ConsumerGroupPartitionMetadataKey(group=self.group.group_id), None))

    def assign(self, now: Instant) -> None:
        """A new target assignment, if the group is newer than it."""
        if self.epoch <= self.target_epoch:
            return
        facts = self.facts()
        members = {
            member_id: MemberSpec(
                # guard: target-of-the-old-subscriptions
                frozenset(facts[name].topic_id for name in self.topics_of(member) if name in facts),
                member.rack,
                member.instance_id,
                self.target.get(member_id, {}),
            )
            for member_id, member in self.members.items()
        }
        topics = {topic.topic_id: TopicSpec(topic.partitions, topic.racks) for topic in facts.values()}
        found = ASSIGNORS[self.assignor()](GroupSpec(members, topics))
        assert found.keys() == self.members.keys(), "each member has a target, perhaps an empty one"
        for member_id in self.members:
            given = {topic_id: them for topic_id, them in found.get(member_id, {}).items() if them}
            known = self.target.get(member_id)
            if known is None or not same(known, given):
                self.target[member_id] = given
                self.records.append(target_record(self.group.group_id, member_id, given))
        self.target_epoch = self.epoch
        self.records.append(target_epoch_record(self.group.group_id, self.epoch, now))


def preferred_assignor(members: Iterable[Member], config: GroupConfig) -> str:
    """That which most members prefer; if there are several, the first of the configuration."""
    votes = Counter(member.assignor for member in members if member.assignor is not None)
    return max(config.consumer_assignors, key=lambda name: votes[name])
