"""All brokers of a cluster, those that are fenced too, and one question put to each of them at once."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from strandline.base.operations import UNKNOWN_OPERATIONS
from strandline.base.value import Value
from strandline.client.ask import PLAIN, Servers, ask, ask_any, config_of
from strandline.client.config import ClientConfig
from strandline.metadata.security.acls import AclOperation
from strandline.wire.frame import Malformed
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

TIMEOUT_S = 5.0
DESCRIBE = DescribeClusterRequest(include_fenced_brokers=True)
DESCRIBE_VERSION = 2  # the first that lists fenced brokers
AT_ONCE_MAX = 32


class BrokerAt(Value, frozen=True):
    node: int
    host: str
    port: int
    is_fenced: bool = False
    config: ClientConfig = PLAIN  # how it is reached
    rack: str | None = None


class Silence(Value, frozen=True):
    """Why a broker gave no answer, as the end of a sentence about it."""

    why: str
    hangs: bool = False  # it listens, and does not answer


def brokers_of(bootstrap: Servers) -> dict[int, BrokerAt]:
    """All that are registered, by id, as any node knows them."""
    return brokers_in(describe_cluster(bootstrap), config_of(bootstrap))


def describe_cluster(bootstrap: Servers) -> DescribeClusterResponse:
    answer: DescribeClusterResponse = ask_any(bootstrap, DESCRIBE, DESCRIBE_VERSION)
    return answer


def brokers_in(answer: DescribeClusterResponse, config: ClientConfig) -> dict[int, BrokerAt]:
    return {
        row.broker_id: BrokerAt(row.broker_id, row.host, row.port, row.is_fenced, config, row.rack)
        for row in sorted(answer.brokers, key=lambda row: row.broker_id)
    }


def may_describe_cluster(bootstrap: Servers) -> bool:
    """May we see what belongs to no topic? Also true if the cluster does not say."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer: DescribeClusterResponse = ask_any(bootstrap, request, None)
    operations = answer.cluster_authorized_operations
    return operations == UNKNOWN_OPERATIONS or bool(operations >> AclOperation.DESCRIBE & 1)


def ask_each(brokers: Mapping[int, BrokerAt], requests: Mapping[int, Any], version: int | None) -> dict[int, Any]:
    """What each of these brokers answers to its request, or its Silence."""

    def asked(node: int) -> Any:
        if node not in brokers:
            return Silence("is not registered")
        return ask_one(brokers[node], requests[node], version)

    with ThreadPoolExecutor(max_workers=AT_ONCE_MAX) as threads:
        return dict(zip(requests, threads.map(asked, requests), strict=True))


def ask_one(broker: BrokerAt, request: Any, version: int | None) -> Any:
    try:
        return ask(broker.host, broker.port, request, version, TIMEOUT_S, broker.config)
    except ConnectionRefusedError:
        return Silence(f"does not run: nobody listens at {broker.host}:{broker.port}")
    except TimeoutError:
        return Silence(f"does not answer at {broker.host}:{broker.port} within {TIMEOUT_S:.0f} s", hangs=True)
    except (OSError, Malformed) as error:
        return Silence(f"gives no answer at {broker.host}:{broker.port} ({error})")
