"""The tables of the cluster's metadata, each with its writers: nobody else changes them.

Invariants (executed by `check`):
  - every partition is as `check_partition` wants it
  - every derived index equals its recomputation from the partitions
  - names and ids of topics are one-to-one
  - every ACL has one id
  - a resource without a key, a feature at level 0, or an entity without a quota, is not there
  - what changes goes to the delta, with its value before
  - records of a transaction (KIP-868) change `transaction` alone, until it ends
"""

from typing import Self

from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.metadata.records import TOPIC_RESOURCE
from strandline.metadata.registrations import Broker, Partition, Topic, check_partition
from strandline.metadata.security.acls import Acl, why_meaningless
from strandline.metadata.security.quotas import QuotaEntity
from strandline.metadata.security.scram import MECHANISMS, ScramCredential, ScramKey


class Delta:
    """What changed since the delta was last taken, each with its value before (None: it did not exist)."""

    def __init__(self) -> None:
        self.partitions: dict[TopicIdPartition, Partition | None] = {}
        self.topics: dict[Uuid, Topic | None] = {}
        self.brokers: dict[NodeId, Broker | None] = {}
        self.configs: dict[tuple[int, str], None] = {}
        self.reloaded = False  # a snapshot replaced everything

    def add(self, later: "Delta") -> None:
        """What changed after this, before this is taken."""
        self.partitions = later.partitions | self.partitions
        self.topics = later.topics | self.topics
        self.brokers = later.brokers | self.brokers
        self.configs |= later.configs
        self.reloaded |= later.reloaded

    def __bool__(self) -> bool:
        return bool(self.partitions or self.topics or self.brokers or self.configs or self.reloaded)


class State:
    def __init__(self) -> None:
        self.topics: dict[Uuid, Topic] = {}
        self.topic_ids: dict[str, Uuid] = {}
        self.brokers: dict[NodeId, Broker] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.acls: dict[Uuid, Acl] = {}
        self.acl_ids: dict[Acl, Uuid] = {}
        # Grows with each change of an ACL, so that what was derived from them is known to be old. It is not state: two
        # images with the same ACLs may have come to them by different ways.
        self.acls_version = 0
        self.scram: dict[ScramKey, ScramCredential] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.quotas_version = 0  # grows with each change of `quotas`; another image may have the same for other quotas
        # Derived from the partitions: where a broker is a replica, and where it is in the ISR or the ELR.
        self.hosted: dict[NodeId, dict[TopicIdPartition, None]] = {}
        self.eligible: dict[NodeId, dict[TopicIdPartition, None]] = {}
        # Topics whose `partitions` no other image has: they are changed in place, or a topic's thousands of partitions
        # would be copied for each of them.
        self.own: dict[Uuid, None] = {}
        self.delta = Delta()
        # What this state becomes if the open transaction ends; None: no transaction is open.
        self.transaction: Self | None = None

    def copy(self) -> Self:
        """An independent image in the same state, with an empty delta."""
        twin = type(self)()
        twin.become(self)
        assert not twin.own and not twin.delta, "partitions are shared, until one of both changes them"
        if self.transaction is not None:
            twin.transaction = self.transaction.copy()
            twin.transaction.delta.reloaded = True  # what it has changed so far is in the other's delta
        return twin

    def become(self, other: Self) -> None:
        """Take over all tables. Values are shared: whoever changes one of them first has a copy of it from then on."""
        assert not self.own, "this one has changed nothing, or not since the other one is its copy"
        other.own.clear()
        self.topics = dict(other.topics)
        self.topic_ids = dict(other.topic_ids)
        self.brokers = dict(other.brokers)
        self.configs = dict(other.configs)
        self.features = dict(other.features)
        self.next_producer_id = other.next_producer_id
        self.acls = dict(other.acls)
        self.acl_ids = dict(other.acl_ids)
        self.acls_version = other.acls_version
        self.scram = dict(other.scram)
        self.quotas = dict(other.quotas)
        self.quotas_version = other.quotas_version
        self.hosted = {node: dict(index) for node, index in other.hosted.items()}
        self.eligible = {node: dict(index) for node, index in other.eligible.items()}

    def take_delta(self) -> Delta:
        taken, self.delta = self.delta, Delta()
        return taken

    def take_place_of(self, old: "State") -> None:
        """Whoever followed `old` must look at all of this one again."""
        self.delta.reloaded = True
        self.acls_version = max(self.acls_version, old.acls_version) + 1

    def take_over(self, new: Self) -> None:
        """What `new`, which was a copy of this one, has become since counts, at once. Whoever follows this image finds
        it in the delta."""
        version = self.acls_version
        self.become(new)
        self.acls_version = max(version, new.acls_version) + 1  # this one may have grown meanwhile: `take_place_of`
        self.transaction = new.transaction
        self.delta.add(new.delta)

    def topic_named(self, name: str) -> Topic | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, at: TopicIdPartition) -> Partition | None:
        topic = self.topics.get(at.topic_id)
        return None if topic is None else topic.partitions.get(at.partition)

    # --- transactions

    def begin_transaction(self) -> Self:
        """Returns what its records change."""
        assert self.transaction is None, "one at a time"
        self.transaction = self.copy()
        return self.transaction

    def end_transaction(self) -> None:
        """All that was changed in it counts."""
        new = self.transaction
        assert new is not None, "no transaction is open"
        assert new.transaction is None, "one at a time"
        self.take_over(new)

    def abort_transaction(self) -> None:
        assert self.transaction is not None, "no transaction is open"
        self.transaction = None

    # --- topics and partitions

    def add_topic(self, name: str, topic_id: Uuid) -> None:
        assert name not in self.topic_ids and topic_id not in self.topics, f"topic {name} exists"
        self.delta.topics.setdefault(topic_id, None)
        self.topics[topic_id] = Topic(name, topic_id, {})
        self.topic_ids[name] = topic_id

    def remove_topic(self, topic_id: Uuid) -> None:
        """With its partitions and its configuration."""
        topic = self.topics.pop(topic_id)
        self.own.pop(topic_id, None)
        assert self.topic_ids[topic.name] == topic_id
        del self.topic_ids[topic.name]
        self.delta.topics.setdefault(topic.topic_id, topic)
        for index, partition in topic.partitions.items():
            at = TopicIdPartition(topic.topic_id, index)
            self.delta.partitions.setdefault(at, partition)
            self.unindex(at, partition)  # guard: deleted-without-isr-stays-indexed
        if self.configs.pop((TOPIC_RESOURCE, topic.name), None) is not None:
            self.delta.configs[(TOPIC_RESOURCE, topic.name)] = None

    def put_partition(self, at: TopicIdPartition, new: Partition) -> None:
        topic = self.topics[at.topic_id]
        assert new.replicas and at.partition >= 0
        old = topic.partitions.get(at.partition)
        self.delta.partitions.setdefault(at, old)
        if at.topic_id in self.own:
            topic.partitions[at.partition] = new
        else:
            self.own[at.topic_id] = None
            self.topics[at.topic_id] = Topic(topic.name, topic.topic_id, {**topic.partitions, at.partition: new})
        self.unindex(at, old)
        for node in new.replicas:
            self.hosted.setdefault(node, {})[at] = None
        for node in new.isr + new.elr:  # guard: eligible-replicas-not-indexed
            self.eligible.setdefault(node, {})[at] = None

    def unindex(self, at: TopicIdPartition, old: Partition | None) -> None:
        if old is None:
            return
        for index, nodes in ((self.hosted, old.replicas), (self.eligible, old.isr + old.elr)):
            for node in nodes:
                index[node].pop(at, None)

    # --- brokers

    def put_broker(self, new: Broker) -> None:
        self.delta.brokers.setdefault(new.node_id, self.brokers.get(new.node_id))
        assert new.node_id >= 0 and new.epoch >= 0
        self.brokers[new.node_id] = new

    def remove_broker(self, node: NodeId, epoch: int) -> None:
        old = self.brokers.pop(node)
        assert old.epoch == epoch, "another registration of this broker"
        self.delta.brokers.setdefault(node, old)

    # --- the rest

    def put_config(self, resource: tuple[int, str], key: str, text: str | None) -> None:
        """None removes the key."""
        entries = dict(self.configs.get(resource, {}))
        if text is None:
            entries.pop(key, None)
        else:
            entries[key] = text
        if entries:
            self.configs[resource] = entries
        else:
            self.configs.pop(resource, None)
        self.delta.configs[resource] = None

    def put_feature(self, name: str, level: int) -> None:
        """Level 0: the feature is off."""
        assert level >= 0
        if level == 0:
            self.features.pop(name, None)
        else:
            self.features[name] = level

    def put_next_producer_id(self, next_producer_id: int) -> None:
        assert next_producer_id >= self.next_producer_id, "blocks of producer ids never overlap"
        self.next_producer_id = next_producer_id

    def add_acl(self, acl_id: Uuid, acl: Acl) -> None:
        assert acl_id not in self.acls and acl not in self.acl_ids, f"{acl} exists"
        self.acls[acl_id] = acl
        self.acl_ids[acl] = acl_id
        self.acls_version += 1

    def remove_acl(self, acl_id: Uuid) -> None:
        del self.acl_ids[self.acls.pop(acl_id)]
        self.acls_version += 1

    # --- users and clients

    def put_scram(self, key: ScramKey, credential: ScramCredential | None) -> None:
        """None removes the credential, which must be there."""
        assert key[1] in MECHANISMS
        if credential is None:
            del self.scram[key]
        else:
            assert credential.mechanism == MECHANISMS[key[1]]
            self.scram[key] = credential

    def put_quota(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """None removes the quota, if it is there."""
        assert entity == tuple(sorted(entity, key=lambda part: part[0])), "an entity has one form"
        quotas = dict(self.quotas.get(entity, {}))
        if value is None:
            quotas.pop(key, None)
        else:
            quotas[key] = value
        if quotas:
            self.quotas[entity] = quotas
        else:
            self.quotas.pop(entity, None)
        self.quotas_version += 1

    def check(self) -> None:
        if self.transaction is not None:
            assert self.transaction.transaction is None, "one at a time"
            self.transaction.check()
        hosted = eligible = 0
        assert {name: self.topics[i].name for name, i in self.topic_ids.items()} == {n: n for n in self.topic_ids}
        assert len(self.topic_ids) == len(self.topics)
        assert self.topics.keys() >= self.own.keys()
        assert all(self.configs.values()), "a resource without a key is not there"
        assert all(level > 0 for level in self.features.values())
        assert self.acl_ids == {acl: acl_id for acl_id, acl in self.acls.items()}
        assert len(self.acl_ids) == len(self.acls)
        assert all(why_meaningless(acl) is None for acl in self.acl_ids)
        assert all(self.quotas.values()), "an entity without a quota is not there"
        assert all(len({kind for kind, _ in entity}) == len(entity) for entity in self.quotas), "one name a type"
        assert all(MECHANISMS[code] == one.mechanism for (_, code), one in self.scram.items())
        assert all(broker.node_id == node for node, broker in self.brokers.items())
        for topic in self.topics.values():
            for index, partition in topic.partitions.items():
                at = TopicIdPartition(topic.topic_id, index)
                check_partition(partition)
                members = {*partition.isr, *partition.elr}
                for node in partition.replicas:
                    assert at in self.hosted.get(node, ()), at
                for node in members:
                    assert at in self.eligible.get(node, ()), at
                hosted, eligible = hosted + len(partition.replicas), eligible + len(members)
        # All of them are there, so that the same number is nothing else.
        assert hosted == sum(map(len, self.hosted.values()))
        assert eligible == sum(map(len, self.eligible.values()))
