"""IncrementalAlterConfigs (KIP-339) and AlterConfigs: configurations of topics, of one broker, of all brokers, and of
groups; and subscriptions to the metrics of clients (KIP-714), which are there as long as they are configured.

Each resource succeeds or fails alone, as a whole. A broker's value that is set to what it is already is written all the
same, as in Kafka: that makes brokers look again. What is deleted although it is not set is not written.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.metadata.configs import group_configs
from strandline.metadata.configs.client_metrics import CLIENT_METRICS_CONFIGS, why_invalid_subscription
from strandline.metadata.configs.config_key import LIST, LONGEST_NUMBER
from strandline.metadata.configs.dynamic_configs import (
    ONE_FOR_ALL,
    is_dynamic,
    is_for_one_broker,
    why_invalid_for_broker,
    why_not_together,
)
from strandline.metadata.configs.group_configs import GROUP_CONFIGS, why_invalid_for_group
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.tls_configs import DYNAMIC_TLS_KEYS
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY as MIN_ISR_KEY
from strandline.metadata.configs.topic_configs import (
    STATE_KEYS,
    TOPIC_CONFIGS,
    topic_default_text,
    why_invalid,
)
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, GROUP_RESOURCE, TOPIC_RESOURCE, Image
from strandline.metadata.records import (
    CLIENT_METRICS_RESOURCE,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
)
from strandline.wire.messages.cluster import alter_configs
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from strandline.wire.messages.cluster.incremental_alter_configs import (
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
# By kind of resource.
TABLES = {
    TOPIC_RESOURCE: TOPIC_CONFIGS,
    BROKER_RESOURCE: NODE_CONFIGS,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_CONFIGS,
    GROUP_RESOURCE: GROUP_CONFIGS,
}


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
    if is_elr_enabled(basis) and concern(records, MIN_ISR_KEY):  # guard: min-isr-change-begins-no-epoch
        records += renewals(records, basis)
    assert len(results) == len(request.resources)
    response = IncrementalAlterConfigsResponse(responses=tuple(results))
    return Plan(() if request.validate_only else tuple(records), response)


def why_no_resource(resource: AlterConfigsResource, basis: Basis) -> Refusal | None:
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        if name in basis.image.topic_ids:
            return None
        return Refusal(E.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource.resource_type == BROKER_RESOURCE:
        if name == CLUSTER_DEFAULT:
            return None
        if not (name.isascii() and name.isdigit() and len(name) <= LONGEST_NUMBER):
            return Refusal(E.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
        if NodeId(int(name)) in basis.image.brokers:
            return None
        return Refusal(E.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")
    if resource.resource_type == GROUP_RESOURCE:
        return None if name else Refusal(E.INVALID_REQUEST, "Default group resources are not allowed.")
    if resource.resource_type == CLIENT_METRICS_RESOURCE:
        return None if name else Refusal(E.INVALID_REQUEST, "Subscription name can't be empty")
    return Refusal(E.INVALID_REQUEST, f"Unexpected resource type {resource.resource_type}.")


def plan_resource(resource: AlterConfigsResource, basis: Basis) -> Refusal | list[ConfigRecord]:
    if len({config.name for config in resource.configs}) < len(resource.configs):
        return Refusal(E.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [c.name for c in resource.configs if c.config_operation != DELETE and c.value is None]
    if nulls:
        return Refusal(E.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    where = (resource.resource_type, resource.resource_name)
    current = basis.image.configs.get(where, {})
    values: dict[str, str | None] = {}
    for config in resource.configs:
        value = altered(config, where[0], current)
        if isinstance(value, Refusal):
            return value
        refusal = why_not_set(config.name, value, resource, basis)
        if refusal is not None:
            return refusal
        values[config.name] = value
    refusal = why_not_altogether(resource, {**current, **values}, basis)
    return refusal or records_of(where, values, current, basis)


def records_of(
    where: tuple[int, str], values: dict[str, str | None], current: dict[str, str], basis: Basis
) -> list[ConfigRecord]:
    assert where[0] in TABLES, "refused before"
    records: list[ConfigRecord] = []
    for name, value in values.items():
        if value is None and name not in current:
            continue
        if value is None and where == (BROKER_RESOURCE, CLUSTER_DEFAULT) and name in STATE_KEYS:
            # Nothing below it in the log gives all nodes the same value, so it becomes what this node's file says.
            value = topic_default_text(name, basis.static)
        if value == current.get(name) and where[0] != BROKER_RESOURCE:
            continue
        records.append(ConfigRecord(resource_type=where[0], resource_name=where[1], name=name, value=value))
    return records


def altered(config: AlterableConfig, kind: int, current: dict[str, str]) -> str | Refusal | None:
    """The value after the operation; None deletes it."""
    assert kind in TABLES, "refused before"
    if config.config_operation == DELETE:
        return None
    if config.config_operation not in (SET, APPEND, SUBTRACT):
        return Refusal(E.INVALID_REQUEST, f"Unknown configuration operation {config.config_operation}.")
    assert config.value is not None, "refused before"
    if config.config_operation == SET:
        return config.value
    row = TABLES[kind].get(config.name)
    if row is None or row.type != LIST:
        verb = VERBS[config.config_operation]
        return Refusal(E.INVALID_CONFIG, f"Can't {verb} to key {config.name} because its type is not LIST.")
    default = row.default if isinstance(row.default, tuple) else ()
    old = split(current[config.name]) if config.name in current else default
    change = split(config.value)
    if config.config_operation == APPEND:
        return ",".join([*old, *(entry for entry in change if entry not in old)])
    return ",".join(entry for entry in old if entry not in change)


def split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def why_not_set(name: str, value: str | None, resource: AlterConfigsResource, basis: Basis) -> Refusal | None:
    """Why may the resource not have this value, or not lose the one it has?"""
    assert resource.resource_type in TABLES, "refused before"
    kind = resource.resource_type
    if kind == BROKER_RESOURCE and name == MIN_ISR_KEY and is_elr_enabled(basis):
        # Controller and brokers must agree on min ISR (T1), so only topics and the whole cluster have one.
        if resource.resource_name != CLUSTER_DEFAULT:
            why = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            return Refusal(E.INVALID_CONFIG, why)
        if value is None:
            why = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            return Refusal(E.INVALID_CONFIG, why)
    if value is None:
        return None
    if len(value.encode()) > LONGEST_VALUE:
        why = "The configuration value cannot be added because it exceeds the maximum value size of"
        why += f" {LONGEST_VALUE} bytes."
        return Refusal(E.INVALID_CONFIG, why)
    if kind == BROKER_RESOURCE:
        return why_not_dynamic(name, value, resource.resource_name)
    if kind == CLIENT_METRICS_RESOURCE:
        wrong = why_invalid_subscription(name, value)
        return None if wrong is None else Refusal(*wrong)
    invalid = why_invalid(name, value) if kind == TOPIC_RESOURCE else why_invalid_for_group(name, value)
    return None if invalid is None else Refusal(E.INVALID_CONFIG, invalid)


def why_not_dynamic(name: str, value: str, broker: str) -> Refusal | None:
    """Why may a running broker not be given this value? Kafka's code for it is INVALID_REQUEST, whatever is wrong."""
    if name in DYNAMIC_TLS_KEYS:
        why = f"These security configs can be dynamically updated only per-listener using the listener prefix: [{name}]"
        return Refusal(E.INVALID_REQUEST, why)
    if not is_dynamic(name):
        return Refusal(E.INVALID_REQUEST, f"Cannot update these configs dynamically: [{name}]")
    if broker == CLUSTER_DEFAULT and is_for_one_broker(name):
        why = f"Cannot update these configs at default cluster level, broker id must be specified: [{name}]"
        return Refusal(E.INVALID_REQUEST, why)
    if broker != CLUSTER_DEFAULT and name in ONE_FOR_ALL:
        advice = "set it for all brokers (an empty broker name), or for topics"
        return Refusal(E.INVALID_REQUEST, f"{name} cannot be set for one broker alone: {advice}")
    invalid = why_invalid_for_broker(name, value)
    return None if invalid is None else Refusal(E.INVALID_REQUEST, invalid)


def why_not_altogether(resource: AlterConfigsResource, after: dict[str, str | None], basis: Basis) -> Refusal | None:
    """Why may a topic or a group not have all these values together, or the topics of a broker these defaults?"""
    assert resource.resource_type in TABLES, "refused before"
    if resource.resource_type == CLIENT_METRICS_RESOURCE:
        return None
    if resource.resource_type == GROUP_RESOURCE:
        own = {name: value for name, value in after.items() if value is not None}
        invalid = group_configs.why_not_together(own, basis.static)
        return None if invalid is None else Refusal(E.INVALID_CONFIG, invalid)
    image = Image()
    image.configs = dict(basis.image.configs)
    image.configs[(resource.resource_type, resource.resource_name)] = {k: v for k, v in after.items() if v is not None}
    is_topic = resource.resource_type == TOPIC_RESOURCE
    topic, broker = (resource.resource_name, CLUSTER_DEFAULT) if is_topic else ("", resource.resource_name)
    why = why_not_together({key: image.topic_config(topic, key, basis.static, broker) for key in TOPIC_CONFIGS})
    error = E.INVALID_CONFIG if is_topic else E.INVALID_REQUEST
    return None if why is None else Refusal(error, why)


def plan_replace_configs(request: AlterConfigsRequest, basis: Basis) -> Plan:
    """The older request has all keys of a resource: keys that are not in it go back to their defaults."""
    plan = plan_alter_configs(
        IncrementalAlterConfigsRequest(
            resources=tuple(replacing(resource, basis) for resource in request.resources),
            validate_only=request.validate_only,
        ),
        basis,
    )
    responses = tuple(
        alter_configs.AlterConfigsResourceResponse(
            error_code=r.error_code,
            error_message=r.error_message,
            resource_type=r.resource_type,
            resource_name=r.resource_name,
        )
        for r in plan.response.responses
    )
    assert len(responses) == len(request.resources)
    return Plan(plan.records, AlterConfigsResponse(responses=responses))


def replacing(resource: alter_configs.AlterConfigsResource, basis: Basis) -> AlterConfigsResource:
    where = (resource.resource_type, resource.resource_name)
    named = [config.name for config in resource.configs]
    configs = [AlterableConfig(name=c.name, config_operation=SET, value=c.value) for c in resource.configs]
    configs += [
        AlterableConfig(name=name, config_operation=DELETE)
        for name in basis.image.configs.get(where, {})
        if name not in named
    ]
    return AlterConfigsResource(resource_type=where[0], resource_name=where[1], configs=tuple(configs))


def clearing(records: list[ConfigRecord], resource: AlterConfigsResource, basis: Basis) -> list[ClearElrRecord]:
    """What ELR left behind when it was switched off would be believed again when it is on, and nobody keeps it up."""
    assert resource.resource_type in TABLES, "refused before"
    if not concern(records, MIN_ISR_KEY) or is_elr_enabled(basis):
        return []
    name = resource.resource_name if resource.resource_type == TOPIC_RESOURCE else ""
    return [ClearElrRecord(topic_name=name)] if has_elr(name, basis) else []


def has_elr(name: str, basis: Basis) -> bool:
    """Does a partition of the topic, or of any if the name is empty, have an ELR?"""
    named = basis.image.topic_named(name)
    topics = basis.image.topics.values() if named is None else (named,)
    return any(partition.elr for topic in topics for partition in topic.partitions.values())


def renewals(records: list[Any], basis: Basis) -> list[PartitionChangeRecord]:
    """Leaders that have not heard of the new min ISR propose nothing any more. An ISR that is large enough by it may
    commit without who was eligible, so that ends in the same batch (T2). While the ISR is too small by the new min ISR
    as by the old one, nothing is committed, and who was eligible still has everything (KIP-966)."""
    image = basis.image.copy()
    image.apply_all(records)
    return replace(basis, image=image).renewals(basis.image)


def is_elr_enabled(basis: Basis) -> bool:
    return basis.image.features.get(ELR_FEATURE, 0) > 0


def concern(records: Iterable[object], *keys: str) -> bool:
    """Does any of the records change one of these keys?"""
    assert keys
    return any(isinstance(record, ConfigRecord) and record.name in keys for record in records)
