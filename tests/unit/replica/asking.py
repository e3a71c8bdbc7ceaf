"""Requests of a client to one of the brokers, and what its answers hold."""

from typing import Any

from strandline.base.effects import Caller
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, NodeId
from strandline.base.ports import Buffer
from strandline.wire.batch import batches, build
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CALLER = Caller("client", "127.0.0.1", "PLAINTEXT", is_node=True)


def offsets_in(records: Any) -> list[int]:
    parts: tuple[Buffer, ...] = records if isinstance(records, tuple) else (records,)
    return [header.base_offset for header in batches(b"".join(parts))]


def ask(world: Any, node: int, name: str, request: Any, version: int = 7) -> Any:
    to = world.to(version)
    effects = getattr(world.nodes[node], name)(to, CALLER, request, world.now)
    world.perform(NodeId(node), effects)
    return lambda: world.answers.get(to.correlation_id)


def written_by(world: Any, client: str, topic: str = OFFSETS_TOPIC) -> ErrorCode:
    """What a client of this name is told when it writes a coordinator's record."""
    batch = memoryview(bytearray(build([(0, b"k", b"v", ())])))
    data = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),)),)
    to = world.to()
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=data)
    world.perform(NodeId(1), world.nodes[1].produce(to, Caller(client, "h", "PLAINTEXT"), request, world.now))
    (row,) = world.answers[to.correlation_id].responses[0].partition_responses
    return ErrorCode(row.error_code)
