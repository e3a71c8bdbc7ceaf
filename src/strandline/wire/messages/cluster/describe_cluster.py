"""DescribeCluster (key 60): the brokers or, of endpoint type 2, the controllers (KIP-700, KIP-919)."""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int8, Int16, Int32, Message, NullableString, String, V, message


@message(key=60, kind="request", versions="0-2", flexible="0+")
class DescribeClusterRequest(Message, frozen=True):
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Annotated[Int8, V("1+")] = 1
    include_fenced_brokers: Annotated[Bool, V("2+")] = False


class DescribeClusterBroker(Group, frozen=True):
    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: NullableString = None
    is_fenced: Annotated[Bool, V("2+")] = False


@message(key=60, kind="response", versions="0-2", flexible="0+")
class DescribeClusterResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    endpoint_type: Annotated[Int8, V("1+")] = 1
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: Int32 = -(2**31)
