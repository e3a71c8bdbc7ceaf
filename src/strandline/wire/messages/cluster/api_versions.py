"""ApiVersions (key 18): which requests, versions and features a server knows."""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int16, Int32, Int64, Message, String, Tag, V, message


@message(key=18, kind="request", versions="0-4", flexible="3+")
class ApiVersionsRequest(Message, frozen=True):
    client_software_name: Annotated[String, V("3+")] = ""
    client_software_version: Annotated[String, V("3+")] = ""


class ApiVersion(Group, frozen=True):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Group, frozen=True):
    name: Annotated[String, V("3+")] = ""
    min_version: Annotated[Int16, V("3+")] = 0
    max_version: Annotated[Int16, V("3+")] = 0


class FinalizedFeatureKey(Group, frozen=True):
    name: Annotated[String, V("3+")] = ""
    max_version_level: Annotated[Int16, V("3+")] = 0
    min_version_level: Annotated[Int16, V("3+")] = 0


@message(key=18, kind="response", versions="0-4", flexible="3+")
class ApiVersionsResponse(Message, frozen=True):
    error_code: Int16 = 0
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], V("3+"), Tag(0)] = ()
    finalized_features_epoch: Annotated[Int64, V("3+"), Tag(1)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], V("3+"), Tag(2)] = ()
    zk_migration_ready: Annotated[Bool, V("3+"), Tag(3)] = False
