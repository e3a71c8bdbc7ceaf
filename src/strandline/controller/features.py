"""UpdateFeatures: the levels of features, which all nodes of the cluster agree on (KIP-584, KIP-778).

All updates of a request are made, or none. A level that a registered broker, or this controller, does not know is
refused; so is one whose feature rests on a lower level of another than the cluster has. What must be so before a
feature may count is written in the batch that raises it (T11).
"""

from collections.abc import Mapping
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY
from strandline.metadata.features import (
    ELR_FEATURE,
    METADATA_LEVEL,
    METADATA_VERSION,
    RESTS_ON,
    SUPPORTED_FEATURES,
    UNSUPPORTED,
)
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT
from strandline.metadata.records import ConfigRecord, FeatureLevelRecord
from strandline.wire.messages.cluster.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

E = ErrorCode
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def plan_update_features(request: UpdateFeaturesRequest, basis: Basis) -> Plan:
    names = [update.feature for update in request.feature_updates]
    if len(set(names)) < len(names):
        return Plan((), UpdateFeaturesResponse(error_code=E.INVALID_REQUEST, error_message="A feature is named twice."))
    proposed = {**basis.image.features, **{row.feature: row.max_version_level for row in request.feature_updates}}
    records: list[Any] = []
    for update in request.feature_updates:
        why = why_not_updated(update, proposed, basis)
        if why is not None:
            message = f"The update failed for all features since the following feature had an error: {why.message}"
            return Plan((), UpdateFeaturesResponse(error_code=why.error, error_message=message))
        if update.feature == ELR_FEATURE and update.max_version_level > 0:
            records += safety_records(basis)
        records.append(FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level))
    assert len(records) >= len(names), "all updates are made"
    response = UpdateFeaturesResponse(results=tuple(UpdatableFeatureResult(feature=name) for name in names))
    return Plan(() if request.validate_only else tuple(records), response)


def plan_beginning(basis: Basis) -> list[Any]:
    """What a new cluster begins with, in the batch that gives it a min ISR (T11): the levels of features, and users.
    One that has topics or brokers already, written before there were features, gets the metadata.version alone."""
    image = basis.image
    if METADATA_VERSION in image.features:
        return []
    is_new = not image.topics and not image.brokers
    levels = basis.config.initial_features if is_new else {METADATA_VERSION: METADATA_LEVEL}
    assert METADATA_VERSION in levels
    records: list[Any] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    return [*records, *basis.config.initial_users] if is_new else records


def why_not_updated(update: FeatureUpdateKey, proposed: Mapping[str, int], basis: Basis) -> Refusal | None:
    name, level, kind = update.feature, update.max_version_level, update.upgrade_type
    why: str | None
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        why = "The controller does not support the given upgrade type."
    elif level < 0:
        why = "A feature version cannot be less than 0."
    else:
        why = (
            why_unsupported(name, level, basis)
            or why_not_that_way(name, basis.image.features.get(name, 0), level, kind)
            or why_not_resting(name, level, proposed)
        )
    if why is None:
        return None
    return Refusal(E.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {why}")


def why_unsupported(name: str, level: int, basis: Basis) -> str | None:
    """Who does not know this level? Controllers do not register, so of them only this one is asked."""
    assert level >= 0, "refused before"
    knows = {"Local controller": SUPPORTED_FEATURES}
    knows.update({f"Broker {node}": broker.features for node, broker in sorted(basis.image.brokers.items())})
    for who, features in knows.items():
        low, high = features.get(name, UNSUPPORTED)
        if high == 0 != level:
            return f"{who} does not support this feature."
        if not low <= level <= high:
            return f"{who} only supports versions {low}-{high}"
    return None


def why_not_that_way(name: str, current: int, level: int, kind: int) -> str | None:
    assert level >= 0, "refused before"
    assert kind in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE), "refused before"
    if level < current and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe"
            " downgrade."
        )
    if level > current and kind != UPGRADE:
        return "Can't downgrade to a newer version."
    if level < current and name == METADATA_VERSION:
        # Records are always written in their newest form, and an older program could not read them.
        return "Refusing to perform the requested downgrade because it might delete metadata information."
    return None


def why_not_resting(name: str, level: int, proposed: Mapping[str, int]) -> str | None:
    for other, least in RESTS_ON.get((name, level), {}).items():
        if proposed.get(other, 0) < least:
            return f"{name} could not be set to {level} because it depends on {other} level {least}"
    return None


def safety_records(basis: Basis) -> list[ConfigRecord]:
    """Eligible Leader Replicas need one min ISR for all (T1). The cluster has one ever since it has a controller
    (`min_isr.py`); a log that another program began may have some for single brokers."""
    return [
        ConfigRecord(resource_type=kind, resource_name=name, name=MIN_ISR_KEY, value=None)
        for (kind, name), entries in basis.image.configs.items()
        if kind == BROKER_RESOURCE and name != CLUSTER_DEFAULT and MIN_ISR_KEY in entries
    ]
