"""What somebody who can connect to every listener of three real nodes cannot do: act as one of them."""

from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster
from strandline.wire.api import API_BY_KEY
from strandline.wire.messages.records.fetch import FetchRequest, ReplicaState
from strandline.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest

VOTE, BEGIN_EPOCH, END_EPOCH, FETCH_SNAPSHOT = 52, 53, 54, 59
REGISTRATION, HEARTBEAT, ALTER_PARTITION, ASSIGN_DIRECTORIES, PRODUCER_IDS = 62, 63, 56, 73, 67
OF_CONTROLLERS = (
    VOTE, BEGIN_EPOCH, END_EPOCH, FETCH_SNAPSHOT,
    REGISTRATION, HEARTBEAT, ALTER_PARTITION, ASSIGN_DIRECTORIES, PRODUCER_IDS,
)  # fmt: skip
CONSUMER_OF_METADATA = FetchRequest()


def forged_of_broker() -> list[tuple[Any, int]]:
    """What only a broker asks of a broker: each message, and its version."""
    return [
        (FetchRequest(replica_state=ReplicaState(replica_id=2, replica_epoch=1)), 17),
        (FetchRequest(replica_id=2), 12),
        (AddPartitionsToTxnRequest(), 5),
    ]


@pytest.mark.cluster
def test_a_stranger_cannot_act_as_a_node_on_any_listener(three_nodes: LocalCluster) -> None:
    node = three_nodes.node(1)
    asked = [(node.port, message, version) for message, version in forged_of_broker()]
    for key in OF_CONTROLLERS:
        request = API_BY_KEY[key].request
        asked.append((node.controller_port, request(), request.versions[-1]))
    asked.append((node.controller_port, CONSUMER_OF_METADATA, 17))
    for port, message, version in asked:
        answer = ask(HOST, port, message, version)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{type(message).__name__} on port {port}"
