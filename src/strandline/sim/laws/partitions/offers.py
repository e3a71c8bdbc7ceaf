"""Where a leader may send consumers (KIP-392).

- the replica that it offers them is in the ISR that it knows to be committed
"""

from strandline.base.effects import Reply
from strandline.base.ids import TopicIdPartition
from strandline.replica.hosting.leader import Leader
from strandline.sim.world.machine import Machine
from strandline.wire.messages.records.fetch import FetchResponse


def look_at_offers(machine: Machine, reply: Reply) -> None:
    if type(reply.message) is not FetchResponse or machine.node is None or machine.node.broker is None:
        return
    host = machine.node.broker.replicas.host
    for topic in reply.message.responses:
        for row in topic.partitions:
            if row.preferred_read_replica < 0:
                continue
            hosted = host.partitions.find(TopicIdPartition(topic.topic_id, row.partition_index))
            if hosted is None or type(hosted.role) is not Leader:
                continue
            isr = hosted.role.isr.isr
            assert row.preferred_read_replica in isr, (
                f"{machine.name} sends consumers of {hosted.name} to {row.preferred_read_replica}, and the ISR is {isr}"
            )
