"""UpdateFeatures (key 57): raise or lower the finalized levels of features, all or none (KIP-584, KIP-778)."""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int8, Int16, Int32, Message, NullableString, String, V, message


class FeatureUpdateKey(Group, frozen=True):
    feature: String = ""
    max_version_level: Int16 = 0  # below 1 ends the feature
    allow_downgrade: Annotated[Bool, V("0")] = False
    upgrade_type: Annotated[Int8, V("1+")] = 1  # 1 upgrade, 2 safe downgrade, 3 unsafe downgrade


@message(key=57, kind="request", versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Message, frozen=True):
    timeout_ms: Int32 = 60_000
    feature_updates: tuple[FeatureUpdateKey, ...] = ()
    validate_only: Annotated[Bool, V("1+")] = False


class UpdatableFeatureResult(Group, frozen=True):
    feature: String = ""
    error_code: Int16 = 0
    error_message: NullableString = None


@message(key=57, kind="response", versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    results: Annotated[tuple[UpdatableFeatureResult, ...], V("0-1")] = ()
