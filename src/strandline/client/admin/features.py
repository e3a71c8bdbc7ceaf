"""Which features a cluster has, and at which level."""

from strandline.client.ask import Servers, ask_any
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse

VERSION = 4


def features_of(bootstrap: Servers) -> ApiVersionsResponse:
    answer: ApiVersionsResponse = ask_any(bootstrap, ApiVersionsRequest(), VERSION)
    return answer


def feature_levels(bootstrap: Servers) -> dict[str, int]:
    """Those in force. A feature that is not named is at level 0."""
    return {row.name: row.max_version_level for row in features_of(bootstrap).finalized_features}
