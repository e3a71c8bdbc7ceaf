"""What topics, brokers, groups and subscriptions to the metrics of clients are set to, and where from."""

from typing import Any

from msgspec.structs import replace

from strandline.base.errors import ErrorCode, message_of
from strandline.client.ask import Servers, ask_any, config_of
from strandline.client.errors import StrandlineError
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.topics.metadata import MetadataRequest

CLIENT_METRICS = "client-metrics"
NUMBERS = {"topics": 2, "brokers": 4, CLIENT_METRICS: 16, "groups": 32}
# By kind: the sources of what was set for it.
OWN_SOURCES = {"topics": (1,), "brokers": (2, 3), CLIENT_METRICS: (7,), "groups": (8,)}
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
CLUSTER_DEFAULT = ""


def server_for(bootstrap: Servers, kind: str, name: str) -> Servers:
    """Only a broker itself knows what its file says."""
    if kind != "brokers" or name == CLUSTER_DEFAULT:
        return bootstrap
    config = config_of(bootstrap)
    for broker in ask_any(config, MetadataRequest(topics=()), 12).brokers:
        if str(broker.node_id) == name:
            return replace(config, bootstrap=((broker.host, broker.port),))
    raise StrandlineError(f"broker '{name}' is not in the cluster, or is not running")


def described(bootstrap: Servers, kind: str, name: str) -> Any:
    resource = DescribeConfigsResource(resource_type=NUMBERS[kind], resource_name=name)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=True)
    (result,) = ask_any(server_for(bootstrap, kind, name), request, 4).results
    refuse(result)
    return result.configs


def refuse(result: Any) -> None:
    error = ErrorCode(result.error_code)
    if error is not ErrorCode.NONE:
        message = getattr(result, "error_message", None) or message_of(error)
        raise StrandlineError(f"{message} ({error.name})")


def rows_of(bootstrap: Servers, kind: str, name: str, everything: bool) -> list[dict[str, Any]]:
    return [
        {
            "entity_type": kind,
            "entity_name": name,
            "name": config.name,
            "value": config.value,
            "source": SOURCES[config.config_source],
            "read_only": config.read_only,
            "sensitive": config.is_sensitive,
            "synonyms": [{"name": s.name, "value": s.value, "source": SOURCES[s.source]} for s in config.synonyms],
            "documentation": config.documentation,
        }
        for config in described(bootstrap, kind, name)
        if everything or config.config_source in OWN_SOURCES[kind]
    ]
