"""Trap T4 (KAFKA-19383, KAFKA-19497): what many records of the metadata log mean together, where names come and go."""

from random import Random
from typing import Any

from tests.rows import each
from tests.unit.replica.conftest import World

from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE, Image

MIN_ISR = "min.insync.replicas"


def a_life_of_topics(rng: Random) -> list[Any]:
    """Records in which two names are created, configured, cleared, deleted and created anew."""
    found: list[Any] = []
    living: dict[str, Uuid] = {}
    for number in range(rng.randrange(4, 25)):
        name = rng.choice("ab")
        topic_id = living.get(name)
        if topic_id is None:
            living[name] = topic_id = Uuid(bytes([number + 1] * 16))
            found.append(r.TopicRecord(name=name, topic_id=topic_id))
            replicas = rng.choice(((1, 2), (1,), (2,)))
            rest = {"leader": replicas[0], "leader_epoch": 0, "partition_epoch": 0}
            eligible = {"isr": replicas[:1], "eligible_leader_replicas": replicas[1:]}
            found.append(r.PartitionRecord(partition_id=0, topic_id=topic_id, replicas=replicas, **eligible, **rest))
        elif rng.randrange(3) == 0:
            del living[name]
            found.append(r.RemoveTopicRecord(topic_id=topic_id))
        else:
            config = r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=MIN_ISR, value="1")
            found += [config, r.ClearElrRecord(topic_name=rng.choice((name, "")))]
    return found


def named(records: list[Any]) -> tuple[dict[Uuid, tuple[str, tuple[int, ...]]], dict[str, str]]:
    """Topics by id with their names and eligible replicas, and configurations by name: each name means the topic that
    bears it at that place in the log."""
    topics: dict[Uuid, tuple[str, tuple[int, ...]]] = {}
    configs: dict[str, str] = {}
    for record in records:
        match record:
            case r.TopicRecord(name=name, topic_id=topic_id):
                topics[topic_id] = (name, ())
            case r.PartitionRecord(topic_id=topic_id, eligible_leader_replicas=elr):
                topics[topic_id] = (topics[topic_id][0], elr or ())
            case r.RemoveTopicRecord(topic_id=topic_id):
                configs.pop(topics.pop(topic_id)[0], None)
            case r.ConfigRecord(resource_name=name, value=value):
                configs[name] = value
            case r.ClearElrRecord(topic_name=name):
                topics = {at: (n, () if name in ("", n) else elr) for at, (n, elr) in topics.items()}
    return topics, configs


@each("seed", range(30))
def test_t4_names_mean_what_they_mean_at_their_place_and_a_delta_says_what_was_before_it(seed: int) -> None:
    rng = Random(seed)
    records = a_life_of_topics(rng)
    cut = rng.randrange(len(records))
    while cut and isinstance(records[cut], r.PartitionRecord | r.ClearElrRecord):
        cut -= 1  # a batch of the controller is replayed as a whole
    image = Image()
    image.apply_all(records[:cut])
    before = image.copy()
    image.take_delta()
    image.apply_all(records[cut:])
    topics, configs = named(records)
    assert {at: (t.name, t.partitions[0].elr) for at, t in image.topics.items()} == topics
    assert {name: entries[MIN_ISR] for (_, name), entries in image.configs.items()} == configs
    delta = image.take_delta()
    changed = {
        at.topic_id: at
        for topic_id in before.topics | image.topics
        if before.partition(at := TopicIdPartition(topic_id, 0)) != image.partition(at)
    }
    assert set(changed.values()) <= set(delta.partitions)
    assert all(old == before.partition(at) for at, old in delta.partitions.items())
    assert all((old is None) == (topic_id not in before.topics) for topic_id, old in delta.topics.items())
    assert {name for _, name in before.configs | image.configs} <= {name for _, name in delta.configs} | {
        name for (kind, name), entries in before.configs.items() if image.configs.get((kind, name)) == entries
    }


@each("seed", range(30))
def test_t4_a_broker_makes_of_one_delta_what_it_makes_of_each_record(seed: int) -> None:
    world = World(brokers=2)
    world.controller_answers = False
    for record in a_life_of_topics(Random(seed)):
        world.commit(record, skip=(2,))
    world.catch_up(NodeId(2))  # everything at once: what was created and deleted in between was never there
    each, whole = world.images[NodeId(1)], world.images[NodeId(2)]
    assert (each.topics, each.topic_ids, each.configs) == (whole.topics, whole.topic_ids, whole.configs)
    for node in world.nodes:
        hosted = {(h.at, str(h.name)) for h in world.nodes[node].host.partitions.all()}
        assert hosted == {(at, f"{whole.topics[at.topic_id].name}-0") for at in whole.hosted.get(node, {})}


def test_t4_a_topic_that_comes_and_goes_between_two_looks_leaves_nothing() -> None:
    world = World(brokers=1)
    topic_id = Uuid(b"x" * 16)
    fields = {"replicas": (1,), "isr": (1,), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    world.commit(
        r.TopicRecord(name="x", topic_id=topic_id),
        r.PartitionRecord(partition_id=0, topic_id=topic_id, **fields),
        r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="x", name=MIN_ISR, value="1"),
        r.ClearElrRecord(topic_name="x"),
        r.RemoveTopicRecord(topic_id=topic_id),
    )
    assert not list(world.nodes[NodeId(1)].host.partitions.all())
    assert not any(path for path in world.disks[NodeId(1)].directories if "x-0" in path)
