"""Topics are created, deleted and given more partitions.

Each topic of a request succeeds or fails alone. Refusals are in Kafka's words, which operators and tools search for.

Invariants:
  - a topic and all of its partitions and configurations appear in one batch;
  - a name that a request has twice is refused each time.
"""

from collections import Counter

from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, NodeId, Uuid, uuid_text
from strandline.base.ports import Rng
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.controller.topics.assignment import Replicas, new_partitions, places, why_not_assigned
from strandline.controller.topics.placement import place, why_not_placed
from strandline.metadata.configs.config_key import show_value
from strandline.metadata.configs.dynamic_configs import why_not_together
from strandline.metadata.configs.topic_configs import SHOWN, TOPIC_CONFIGS, why_invalid
from strandline.metadata.image import FROM_TOPIC, TOPIC_RESOURCE, Topic
from strandline.metadata.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from strandline.metadata.topic_names import why_colliding, why_illegal
from strandline.wire.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from strandline.wire.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.messages.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

E = ErrorCode
DEFAULT = -1


# --- create


def plan_create_topics(request: CreateTopicsRequest, basis: Basis) -> Plan:
    counts = Counter(topic.name for topic in request.topics)
    records: list[object] = []
    results: list[CreatableTopicResult] = []
    taken = list(basis.image.topic_ids)
    partitions_left = basis.config.max_partitions_per_request
    for topic in request.topics:
        outcome: Refusal | list[Replicas]
        if counts[topic.name] > 1:
            outcome = Refusal(E.INVALID_REQUEST, "Duplicate topic name.")
        else:
            outcome = plan_new_topic(topic, taken, partitions_left, basis)
        if isinstance(outcome, Refusal):
            result = CreatableTopicResult(name=topic.name, error_code=outcome.error, error_message=outcome.message)
            results.append(result)
            continue
        topic_id = ZERO_UUID if request.validate_only else new_topic_id(basis)
        records.append(TopicRecord(name=topic.name, topic_id=topic_id))
        records += [
            ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=c.name, value=c.value)
            for c in topic.configs
        ]
        records += new_partitions(topic_id, 0, outcome, basis)
        taken.append(topic.name)
        partitions_left -= len(outcome)
        assert outcome, "a topic has partitions"
        results.append(created(topic, topic_id, outcome, basis))
    assert len(results) == len(request.topics)
    return Plan(() if request.validate_only else tuple(records), CreateTopicsResponse(topics=tuple(results)))


def plan_new_topic(topic: CreatableTopic, taken: list[str], limit: int, basis: Basis) -> Refusal | list[Replicas]:
    """The replicas of a new topic's partitions, or why there may be no such topic."""
    why = why_illegal(topic.name)
    if why is None and topic.name == METADATA_TOPIC:
        why = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
    if why is not None:
        return Refusal(E.INVALID_TOPIC_EXCEPTION, why)
    if topic.name in basis.image.topic_ids:
        return Refusal(E.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    why = why_colliding(topic.name, taken)
    if why is not None:
        return Refusal(E.INVALID_TOPIC_EXCEPTION, why)
    if (refusal := why_bad_configs(topic, basis)) is not None:
        return refusal
    return plan_named(topic, basis) if topic.assignments else plan_placed(topic, limit, basis)


def why_bad_configs(topic: CreatableTopic, basis: Basis) -> Refusal | None:
    seen: set[str] = set()
    for config in topic.configs:
        if config.name in seen:
            return Refusal(E.INVALID_REQUEST, f"Duplicate config key {config.name}.")
        seen.add(config.name)
        if config.value is None:
            return Refusal(E.INVALID_CONFIG, f"Null value not supported for topic configs: {config.name}")
        why = why_invalid(config.name, config.value)
        if why is not None:
            return Refusal(E.INVALID_CONFIG, why)
    own = {config.name: TOPIC_CONFIGS[config.name].parse(config.value or "") for config in topic.configs}
    why = why_not_together(
        {key: own.get(key, basis.image.topic_config("", key, basis.static)) for key in TOPIC_CONFIGS}
    )
    return None if why is None else Refusal(E.INVALID_CONFIG, why)


def plan_named(topic: CreatableTopic, basis: Basis) -> Refusal | list[Replicas]:
    """The request names every partition's replicas."""
    manual = "A manual partition assignment was specified, but"
    if topic.replication_factor != DEFAULT:
        return Refusal(E.INVALID_REQUEST, f"{manual} replication factor was not set to -1.")
    if topic.num_partitions != DEFAULT:
        return Refusal(E.INVALID_REQUEST, f"{manual} numPartitions was not set to -1.")
    assigned: dict[int, Replicas] = {}
    factor: int | None = None
    for entry in topic.assignments:
        index = entry.partition_index
        if index in assigned:
            why: str | None = f"Found multiple manual partition assignments for partition {index}"
        else:
            why = why_not_assigned(entry.broker_ids, factor, index, basis)
        if why is not None:
            return Refusal(E.INVALID_REPLICA_ASSIGNMENT, why)
        factor = len(entry.broker_ids)
        assigned[index] = tuple(NodeId(node) for node in entry.broker_ids)
    assert assigned, "else the controller chooses"
    if sorted(assigned) != list(range(len(assigned))):
        return Refusal(E.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence")
    return [assigned[index] for index in range(len(assigned))]


def plan_placed(topic: CreatableTopic, limit: int, basis: Basis) -> Refusal | list[Replicas]:
    """The controller chooses the replicas."""
    assert not topic.assignments, "else the request names the replicas"
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        return Refusal(
            E.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
        return Refusal(E.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = basis.config.default_num_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
    factor = topic.replication_factor
    if factor == DEFAULT:
        factor = basis.config.default_replication_factor
    if count > limit:
        return Refusal(E.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    assert 0 < count <= limit and factor > 0, "refused before"
    candidates = places(basis)
    why = why_not_placed(factor, candidates)
    return (
        Refusal(E.INVALID_REPLICATION_FACTOR, why) if why is not None else place(count, factor, candidates, basis.rng)
    )


def new_topic_id(basis: Basis) -> Uuid:
    while True:
        topic_id = random_uuid(basis.rng)
        assert topic_id != ZERO_UUID
        if topic_id not in basis.image.topics:
            return topic_id


def random_uuid(rng: Rng) -> Uuid:
    """A version 4 uuid. A leading dash in its text form would look like an option to command-line tools."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        topic_id = Uuid(bytes(raw))
        if topic_id != METADATA_TOPIC_ID and not uuid_text(topic_id).startswith("-"):
            return topic_id


def created(topic: CreatableTopic, topic_id: Uuid, assigned: list[Replicas], basis: Basis) -> CreatableTopicResult:
    assert assigned, "a topic has partitions"
    own = {config.name: config.value for config in topic.configs}
    configs = []
    for key in SHOWN:
        default, source = basis.image.config_in_force(topic.name, key.name, basis.static)
        value = show_value(default)
        if key.name in own:
            value, source = own[key.name], FROM_TOPIC
        configs.append(
            CreatableTopicConfigs(name=key.name, value=value, read_only=False, config_source=source, is_sensitive=False)
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=len(assigned),
        replication_factor=len(assigned[0]),
        configs=tuple(configs),
    )


# --- delete


def plan_delete_topics(request: DeleteTopicsRequest, basis: Basis, version: int) -> Plan:
    named = request.topics if version >= 6 else tuple(DeleteTopicState(name=name) for name in request.topic_names)
    names = Counter(state.name for state in named if state.name is not None)
    ids = Counter(state.topic_id for state in named if state.topic_id != ZERO_UUID)
    records: dict[Uuid, RemoveTopicRecord] = {}
    results: list[DeletableTopicResult] = []
    for state in named:
        outcome = find_doomed(state, names, ids, basis)
        if isinstance(outcome, Topic) and outcome.topic_id in records:
            outcome = Refusal(E.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")
        if isinstance(outcome, Refusal):
            result = DeletableTopicResult(
                name=state.name, topic_id=state.topic_id, error_code=outcome.error, error_message=outcome.message
            )
        else:
            records[outcome.topic_id] = RemoveTopicRecord(topic_id=outcome.topic_id)
            result = DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
        results.append(result)
    assert len(results) == len(named)
    assert records.keys() <= basis.image.topics.keys(), "a topic is deleted once, and was there"
    return Plan(tuple(records.values()), DeleteTopicsResponse(responses=tuple(results)))


def find_doomed(state: DeleteTopicState, names: Counter[str], ids: Counter[Uuid], basis: Basis) -> Refusal | Topic:
    if not basis.config.is_topic_deletion_enabled:
        return Refusal(E.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    if state.name is None and state.topic_id == ZERO_UUID:
        return Refusal(E.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if state.name is not None and state.topic_id != ZERO_UUID:
        return Refusal(E.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if state.name is not None:
        if names[state.name] > 1:
            return Refusal(E.INVALID_REQUEST, "Duplicate topic name.")
        topic = basis.image.topic_named(state.name)
        missing = E.UNKNOWN_TOPIC_OR_PARTITION
    else:
        if ids[state.topic_id] > 1:
            return Refusal(E.INVALID_REQUEST, "Duplicate topic id.")
        topic = basis.image.topics.get(state.topic_id)
        missing = E.UNKNOWN_TOPIC_ID
    return Refusal(missing, message_of(missing)) if topic is None else topic


# --- more partitions


def plan_create_partitions(request: CreatePartitionsRequest, basis: Basis) -> Plan:
    counts = Counter(topic.name for topic in request.topics)
    records: list[object] = []
    results: list[CreatePartitionsTopicResult] = []
    for topic in request.topics:
        old = basis.image.topic_named(topic.name)
        outcome: Refusal | list[Replicas]
        if counts[topic.name] > 1:
            outcome = Refusal(E.INVALID_REQUEST, "Duplicate topic name.")
        elif old is None:
            outcome = Refusal(E.UNKNOWN_TOPIC_OR_PARTITION, message_of(E.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            outcome = plan_more(topic, old, basis)
        if isinstance(outcome, Refusal):
            results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=outcome.error, error_message=outcome.message)
            )
            continue
        assert old is not None
        records += new_partitions(old.topic_id, len(old.partitions), outcome, basis)
        results.append(CreatePartitionsTopicResult(name=topic.name))
    assert len(results) == len(request.topics)
    return Plan(() if request.validate_only else tuple(records), CreatePartitionsResponse(results=tuple(results)))


def plan_more(topic: CreatePartitionsTopic, old: Topic, basis: Basis) -> Refusal | list[Replicas]:
    """The replicas of a topic's additional partitions, or why it may not have them."""
    had = len(old.partitions)
    if topic.count == had:
        return Refusal(E.INVALID_PARTITIONS, f"Topic already has {had} partition(s).")
    if topic.count < had:
        why = f"The topic {topic.name} currently has {had} partition(s); {topic.count} would not be an increase."
        return Refusal(E.INVALID_PARTITIONS, why)
    additional = topic.count - had
    assert additional > 0
    if additional > basis.config.max_partitions_per_request:
        return Refusal(E.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    factor = len(old.partitions[0].replicas)
    if topic.assignments is None:
        candidates = places(basis)
        refused = why_not_placed(factor, candidates)
        if refused is not None:
            return Refusal(E.INVALID_REPLICATION_FACTOR, refused)
        return place(additional, factor, candidates, basis.rng)
    if len(topic.assignments) != additional:
        why = (
            f"Attempted to add {additional} additional partition(s), but only {len(topic.assignments)} "
            "assignment(s) were specified."
        )
        return Refusal(E.INVALID_REPLICA_ASSIGNMENT, why)
    for index, entry in enumerate(topic.assignments, had):
        refused = why_not_assigned(entry.broker_ids, factor, index, basis)
        if refused is not None:
            return Refusal(E.INVALID_REPLICA_ASSIGNMENT, refused)
    return [tuple(NodeId(node) for node in entry.broker_ids) for entry in topic.assignments]
