"""IncrementalAlterConfigs: dynamic configurations of topics, of one broker, and of all brokers (KIP-339).

Each resource succeeds or fails alone, as a whole. A value that is set to what it is already is written all the same, as
in Kafka; what is deleted although it is not set is not.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.controller.basis import ELR_FEATURE, Basis, Plan
from strandline.metadata.config_key import LIST
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from strandline.metadata.records import ClearElrRecord, ConfigRecord, PartitionChangeRecord
from strandline.metadata.topic_configs import (
    DYNAMIC_NODE_KEYS,
    STATE_KEYS,
    TOPIC_CONFIGS,
    topic_default_text,
    why_invalid,
)
from strandline.metadata.topic_configs import MIN_ISR_KEY as MIN_ISR_KEY
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

E = ErrorCode
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
VERBS = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
LONGEST_VALUE = 32767
# A broker's key -> the topic's key whose type and limits it has.
OF_BROKERS = {synonym: row.name for row in TOPIC_CONFIGS.values() for synonym, factor in row.synonyms if factor == 1}


class Refusal(Value, frozen=True):
    error: ErrorCode
    message: str


def plan_alter_configs(request: IncrementalAlterConfigsRequest, basis: Basis) -> Plan:
    counts = Counter((r.resource_type, r.resource_name) for r in request.resources)
    records: list[Any] = []
    results: list[AlterConfigsResourceResponse] = []
    for resource in request.resources:
        outcome: Refusal | list[ConfigRecord]
        if counts[(resource.resource_type, resource.resource_name)] > 1:
            outcome = Refusal(E.INVALID_REQUEST, "Each resource must appear at most once.")
        else:
            outcome = why_no_resource(resource, basis) or plan_resource(resource, basis)
        results.append(
            AlterConfigsResourceResponse(
                error_code=outcome.error if isinstance(outcome, Refusal) else E.NONE,
                error_message=outcome.message if isinstance(outcome, Refusal) else None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
        if isinstance(outcome, list):
            records += outcome
            records += clearing(outcome, resource, basis)
    if is_elr_enabled(basis) and concern(records, MIN_ISR_KEY):
        records += renewals(records, basis)
    response = IncrementalAlterConfigsResponse(responses=tuple(results))
    return Plan(() if request.validate_only else tuple(records), response)


def why_no_resource(resource: AlterConfigsResource, basis: Basis) -> Refusal | None:
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        if name in basis.image.topic_ids:
            return None
        return Refusal(E.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource.resource_type == BROKER_RESOURCE:
        if name == CLUSTER_DEFAULT or (name.isascii() and name.isdigit()):
            return None
        return Refusal(E.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    return Refusal(E.INVALID_REQUEST, f"Unexpected resource type {resource.resource_type}.")


def plan_resource(resource: AlterConfigsResource, basis: Basis) -> Refusal | list[ConfigRecord]:
    if len({config.name for config in resource.configs}) < len(resource.configs):
        return Refusal(E.INVALID_REQUEST, "Error due to duplicate config keys")
    where = (resource.resource_type, resource.resource_name)
    current = basis.image.configs.get(where, {})
    records: list[ConfigRecord] = []
    for config in resource.configs:
        value = altered(config, where[0], current)
        if isinstance(value, Refusal):
            return value
        why = why_not_set(config.name, value, resource, basis)
        if why is not None:
            return Refusal(E.INVALID_CONFIG, why)
        if value is not None and resource.resource_type == BROKER_RESOURCE:
            refusal = why_not_dynamic(config.name, resource.resource_name)
            if refusal is not None:
                return refusal
        if value is None and config.name not in current:
            continue
        if value is None and where == (BROKER_RESOURCE, CLUSTER_DEFAULT) and config.name in STATE_KEYS:
            # Nothing below it in the log gives all nodes the same value, so it becomes what this node's file says.
            value = topic_default_text(config.name, basis.static)
        records.append(ConfigRecord(resource_type=where[0], resource_name=where[1], name=config.name, value=value))
    return records


def altered(config: AlterableConfig, kind: int, current: dict[str, str]) -> str | Refusal | None:
    """The value after the operation; None deletes it."""
    if config.config_operation == DELETE:
        return None
    if config.config_operation not in (SET, APPEND, SUBTRACT):
        return Refusal(E.INVALID_REQUEST, f"Unknown configuration operation {config.config_operation}.")
    if config.value is None:
        return Refusal(E.INVALID_REQUEST, f"Null value not supported for : {config.name}")
    if config.config_operation == SET:
        return config.value
    row = TOPIC_CONFIGS.get(config.name if kind == TOPIC_RESOURCE else OF_BROKERS.get(config.name, ""))
    if row is None or row.type != LIST:
        verb = VERBS[config.config_operation]
        return Refusal(E.INVALID_CONFIG, f"Can't {verb} to key {config.name} because its type is not LIST.")
    assert isinstance(row.default, tuple)
    old = split(current[config.name]) if config.name in current else row.default
    change = split(config.value)
    if config.config_operation == APPEND:
        return ",".join([*old, *(entry for entry in change if entry not in old)])
    return ",".join(entry for entry in old if entry not in change)


def split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def why_not_set(name: str, value: str | None, resource: AlterConfigsResource, basis: Basis) -> str | None:
    """Why may the resource not have this value, or not lose the one it has?"""
    if resource.resource_type == BROKER_RESOURCE and name == MIN_ISR_KEY and is_elr_enabled(basis):
        # Controller and brokers must agree on min ISR (T1), so only topics and the whole cluster have one.
        if resource.resource_name != CLUSTER_DEFAULT:
            return "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        if value is None:
            return "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    if value is None:
        return None
    if len(value.encode()) > LONGEST_VALUE:
        return (
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{LONGEST_VALUE} bytes."
        )
    if resource.resource_type == TOPIC_RESOURCE:
        return why_invalid(name, value)
    twin = OF_BROKERS.get(name)
    why = None if twin is None else TOPIC_CONFIGS[twin].why_invalid(value)
    return None if why is None or twin is None else why.replace(f"configuration {twin}:", f"configuration {name}:")


def why_not_dynamic(name: str, broker: str) -> Refusal | None:
    """Which settings of brokers may change while they run? The defaults of topics, for all brokers at once: controller
    and brokers must resolve a topic's setting to the same value (T1)."""
    if name not in DYNAMIC_NODE_KEYS:
        return Refusal(E.INVALID_REQUEST, f"Cannot update these configs dynamically: Set({name})")
    if broker != CLUSTER_DEFAULT:
        advice = "set it for all brokers (an empty broker name), or for topics"
        return Refusal(E.INVALID_REQUEST, f"{name} cannot be set for one broker alone: {advice}")
    return None


def clearing(records: list[ConfigRecord], resource: AlterConfigsResource, basis: Basis) -> list[ClearElrRecord]:
    """Who is eligible was decided with the old min ISR, so it ends in the batch that changes it (T2). So does what ELR
    left behind when it was switched off: it would be believed again when it is on."""
    if not concern(records, MIN_ISR_KEY):
        return []
    name = resource.resource_name if resource.resource_type == TOPIC_RESOURCE else ""
    if not is_elr_enabled(basis) and not has_elr(name, basis):
        return []
    return [ClearElrRecord(topic_name=name)]


def has_elr(name: str, basis: Basis) -> bool:
    """Does a partition of the topic, or of any if the name is empty, have an ELR?"""
    named = basis.image.topic_named(name)
    topics = basis.image.topics.values() if named is None else (named,)
    return any(partition.elr for topic in topics for partition in topic.partitions.values())


def renewals(records: list[Any], basis: Basis) -> list[PartitionChangeRecord]:
    """Leaders that have not heard of the new min ISR propose nothing any more; clearing an ELR has begun an epoch."""
    image = basis.image.copy()
    image.apply_all(records)
    return replace(basis, image=image).renewals(basis.image)


def is_elr_enabled(basis: Basis) -> bool:
    return basis.image.features.get(ELR_FEATURE, 0) > 0


def concern(records: Iterable[object], key: str) -> bool:
    """Does any of the records change this key?"""
    return any(isinstance(record, ConfigRecord) and record.name == key for record in records)
