"""The ledger's law: the leading image is what the written records say, whatever happens in whatever order."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.test_acls import WITH_ACLS, anything, creation

from strandline.base.effects import Failure
from strandline.metadata.image import Image
from strandline.metadata.records import FeatureLevelRecord
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.security.create_acls import CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsRequest
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState

BROKERS = 4
UNCLEAN = CreatableTopicConfig(name="unclean.leader.election.enable", value="true")


def state(image: Image) -> dict[str, Any]:
    """Everything that an image knows; empty index entries say nothing."""
    return {
        "topics": image.topics,
        "names": image.topic_ids,
        "brokers": image.brokers,
        "configs": image.configs,
        "features": image.features,
        "producer ids": image.next_producer_id,
        "ACLs": image.acls,
        "ids of ACLs": image.acl_ids,
        "hosted": {node: set(index) for node, index in image.hosted.items() if index},
        "eligible": {node: set(index) for node, index in image.eligible.items() if index},
    }


def rebuilt(records: list[Any]) -> Image:
    image = Image()
    image.apply_all(records)
    return image


def create(cluster: Cluster, rng: Random) -> None:
    topic = CreatableTopic(
        name=f"t{rng.randrange(5)}",
        num_partitions=rng.randrange(1, 4),
        replication_factor=rng.randrange(1, BROKERS + 1),
        configs=(UNCLEAN,) if rng.randrange(2) else (),
    )
    cluster.ask(CreateTopicsRequest(topics=(topic,)), version=7)


def delete(cluster: Cluster, rng: Random) -> None:
    cluster.ask(DeleteTopicsRequest(topics=(DeleteTopicState(name=f"t{rng.randrange(5)}"),)), version=6)


def widen(cluster: Cluster, rng: Random) -> None:
    topic = CreatePartitionsTopic(name=f"t{rng.randrange(5)}", count=rng.randrange(1, 6), assignments=None)
    cluster.ask(CreatePartitionsRequest(topics=(topic,)), version=3)


def register(cluster: Cluster, rng: Random) -> None:
    node = rng.randrange(1, BROKERS + 1)
    cluster.register(node, previous=cluster.epochs.get(node, -1) if rng.randrange(2) else -1)


def beat(cluster: Cluster, rng: Random) -> None:
    node = rng.randrange(1, BROKERS + 1)
    if node in cluster.epochs:
        cluster.beat(node, want_fence=rng.randrange(8) == 0, want_shut_down=rng.randrange(8) == 0)


def alter(cluster: Cluster, rng: Random) -> None:
    if not cluster.image.topic_ids:
        return
    name = rng.choice(sorted(cluster.image.topic_ids))
    partition = cluster.partition(name)
    if partition.leader in cluster.epochs:
        isr = tuple(n for n in partition.replicas if n == partition.leader or rng.randrange(2))
        if all(n in cluster.epochs for n in isr):
            cluster.alter(name, isr)


def die(cluster: Cluster, rng: Random) -> None:
    node = rng.randrange(1, BROKERS + 1)
    if node in cluster.lives:
        cluster.disconnect(cluster.connection(node))
        for _ in range(2):
            for probe in cluster.probes():
                cluster.probed(probe, Failure.REFUSED if rng.randrange(4) else Failure.TIMED_OUT)
            cluster.wait(50)


def pass_time(cluster: Cluster, rng: Random) -> None:
    cluster.wait(rng.randrange(1, 12_000) if rng.randrange(20) else 300_000)


def unregister(cluster: Cluster, rng: Random) -> None:
    node = rng.randrange(1, BROKERS + 1)
    cluster.ask(UnregisterBrokerRequest(broker_id=node))


def permit(cluster: Cluster, rng: Random) -> None:
    made = creation(resource_name=f"t{rng.randrange(3)}", permission_type=rng.choice((2, 3)))
    cluster.ask(CreateAclsRequest(creations=(made, creation(principal=f"User:{rng.randrange(3)}"))), version=3)


def forbid(cluster: Cluster, rng: Random) -> None:
    name = rng.choice((None, f"t{rng.randrange(3)}"))
    wanted = anything(resource_name_filter=name, permission_type=rng.choice((2, 3)))
    cluster.ask(DeleteAclsRequest(filters=(wanted, wanted)), version=3)


OPERATIONS = [
    create,
    create,
    delete,
    widen,
    register,
    register,
    beat,
    beat,
    beat,
    beat,
    alter,
    alter,
    die,
    pass_time,
    unregister,
    permit,
    forbid,
]


def cluster_of(elr: bool) -> Cluster:
    """Controller.check runs after every step."""
    cluster = Cluster(brokers=BROKERS - 1, static={**WITH_ACLS, "min.insync.replicas": 2})
    if elr:
        feature = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
        cluster.controller.write([feature], cluster.now)
    return cluster


def check_elr(cluster: Cluster) -> None:
    """KIP-966: a large enough ISR needs no ELR, and what is last known is neither in sync nor eligible."""
    image = cluster.image
    for topic in image.topics.values():
        for partition in topic.partitions.values():
            if len(partition.isr) >= image.effective_min_isr(topic, partition):
                assert not partition.elr and not partition.last_known_elr
            assert not set(partition.last_known_elr) & set(partition.isr + partition.elr)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, len(OPERATIONS) - 1), min_size=20, max_size=80), st.integers(0, 1 << 32), st.booleans())
def test_the_leading_image_is_what_the_records_say(choices: list[int], seed: int, elr: bool) -> None:
    rng = Random(seed)
    cluster = cluster_of(elr)
    for choice in choices:
        OPERATIONS[choice](cluster, rng)
        if elr:
            check_elr(cluster)
    said = rebuilt(cluster.log.records)
    said.check()
    assert state(said) == state(cluster.image)
    snapshot = rebuilt(list(cluster.image.records()))
    assert state(snapshot) == state(cluster.image)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, len(OPERATIONS) - 1), min_size=20, max_size=60), st.integers(0, 1 << 32), st.booleans())
def test_epochs_never_go_back_and_a_leader_epoch_has_one_leader(choices: list[int], seed: int, elr: bool) -> None:
    rng = Random(seed)
    cluster = cluster_of(elr)
    for choice in choices:
        OPERATIONS[choice](cluster, rng)
    image = Image()
    leaders: dict[tuple[Any, int], int] = {}
    for record in cluster.log.records:
        before = dict(image.topics)
        image.apply(record)
        for topic in image.topics.values():
            old = before.get(topic.topic_id)
            for index, new in topic.partitions.items():
                was = None if old is None else old.partitions.get(index)
                if was is not None and was != new:
                    assert new.partition_epoch == was.partition_epoch + 1
                    assert new.leader_epoch in (was.leader_epoch, was.leader_epoch + 1)
                at = (topic.topic_id, index, new.leader_epoch)
                assert leaders.setdefault(at, new.leader) == new.leader
