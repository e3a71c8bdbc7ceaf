"""What must hold when a producer gets a success for its batch, the first time or as a duplicate.

- the batch is in the leader's log at the offset that the answer names, with the producer, the sequences and the records
  that the client sent
- with acks=all it is committed at that moment
- it is one that a producer may write: no control batch, none with a cleaner's mark
- the same producer's batch before it is in the log, too, if the partition was asked to write it: clients take one
  success for that of all that they sent before
- who waits for acks=all is answered in the event in which the leadership ends: a later one must not confirm it. A
  broker that has not joined drops what waits for that on connections that have closed
"""

from types import NoneType
from typing import Any

from strandline.base.effects import Disconnected, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import TRANSACTION_TOPIC, TopicIdPartition
from strandline.log.reading import Read
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.sim.clients.client import REFUSED
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.batch import HEADER_SIZE, SEQUENCE_MAX, BatchHeader, read_header, why_no_batch
from strandline.wire.messages.records.produce import ProduceRequest, ProduceResponse

ACKS_ALL = -1
Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence
Sent = tuple[
    BatchHeader, bytes, bool
]  # its header, as it came, its records, and does the request name a transactional id
Writer = tuple[TopicIdPartition, int, int]  # a producer of one partition, in one epoch
WRITTEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


class Answers:
    HEARS = ((Received, ProduceRequest), (Disconnected, NoneType))
    ANSWERS = (ProduceResponse, NoneType)

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.asked: dict[Asked, tuple[int, dict[TopicIdPartition, Sent]]] = {}
        self.first: dict[Writer, int] = {}  # the earliest sequence that anybody was asked to write
        self.refused: dict[Writer, None] = {}  # a batch of it was not permitted, and the next one may have been
        self.latest: dict[Writer, int] = {}  # the end of what was acknowledged last

    def forget(self, machine: Machine) -> None:
        """The process is gone, and answers nobody."""
        for which in [which for which in self.asked if which[0] == machine.name]:
            del self.asked[which]

    def received(self, machine: Machine, event: Any) -> None:
        if type(event) is Disconnected:
            self.closes(machine, event)
        else:
            self.asks(machine, event)

    def asks(self, machine: Machine, event: Any) -> None:
        sent = {}
        for topic in event.message.topic_data:
            for data in topic.partition_data:
                records: Any = data.records
                if records is not None and why_no_batch(records, 0) is None:
                    at = TopicIdPartition(topic.topic_id, data.index)
                    sent[at] = (
                        read_header(records),
                        bytes(records[HEADER_SIZE:]),
                        bool(event.message.transactional_id),
                    )
        for at, (header, _, _) in sent.items():
            writer = (at, header.producer_id, header.producer_epoch)
            self.first[writer] = earlier(header.base_sequence, self.first.get(writer, header.base_sequence))
        self.asked[machine.name, machine.life, event.to.connection, event.to.sequence] = event.message.acks, sent

    def closes(self, machine: Machine, event: Disconnected) -> None:
        """Once a broker has joined, all that it has written there is still answered, though nobody reads it."""
        if machine.node is None or machine.node.early is None:
            return
        here = machine.name, machine.life, event.connection
        for which in [which for which in self.asked if which[:3] == here]:
            del self.asked[which]

    def replies(self, machine: Machine, reply: Reply) -> None:
        asked = self.asked.pop((machine.name, machine.life, reply.to.connection, reply.to.sequence), None)
        if asked is None or type(reply.message) is not ProduceResponse:
            return
        acks, sent = asked
        assert machine.node is not None
        assert machine.node.broker is not None
        for topic in reply.message.responses:
            for row in topic.partition_responses:
                at = TopicIdPartition(topic.topic_id, row.index)
                if row.error_code in REFUSED and at in sent:
                    header = sent[at][0]
                    self.refused[at, header.producer_id, header.producer_epoch] = None
                hosted = machine.node.broker.replicas.host.partitions.find(at)
                if row.error_code in WRITTEN and at in sent and hosted is not None and self.is_held_to_it(machine, at):
                    with machine.disk.observed():
                        self.is_there(f"{machine.name}, {hosted.name}", hosted, row.base_offset, acks, sent[at])

    def leads_no_longer(self, machine: Machine, hosted: Hosted) -> None:
        """Of requests that wait for this partition alone. Before a broker is let in nothing of them is written."""
        assert machine.node is not None
        if machine.node.early is not None:
            return
        for which, (acks, sent) in self.asked.items():
            if which[:2] == (machine.name, machine.life) and acks == ACKS_ALL:
                assert list(sent) != [hosted.at], (
                    f"{machine.name} no longer leads {hosted.name}, and does not tell who waits to have written there"
                )

    def is_held_to_it(self, machine: Machine, at: TopicIdPartition) -> bool:
        """Not where more was lost than the configuration promises to survive."""
        damage = self.world.damage
        return not machine.is_rotten and at not in damage.exceeded and not damage.is_lossy(at, machine.node_id)

    def is_there(self, who: str, hosted: Hosted, offset: int, acks: int, sent: Sent) -> None:
        asked, records, is_transactions = sent
        log, leader = hosted.log, hosted.role
        is_clients = not (asked.is_control or asked.has_delete_horizon)
        is_clients = is_clients and asked.is_transactional <= is_transactions
        assert is_clients, (
            f"{who} takes a batch from a producer that only a broker may write: attributes {asked.attributes}"
        )
        which = f"{who} says that sequence {asked.base_sequence} of producer {asked.producer_id} is at offset {offset}"
        assert offset >= 0, f"{who} names no offset for sequence {asked.base_sequence} of producer {asked.producer_id}"
        if type(leader) is Leader and acks == ACKS_ALL:
            last = offset + asked.last_offset_delta
            assert leader.high_watermark > last, f"{which}, and its high watermark is {leader.high_watermark}"
        if offset < log.log_start_offset or log.has_gaps:
            return  # deleted or compacted since
        there = header_at(hosted, offset)
        assert there is not None, f"{which}, and nothing is there"
        header, content = there
        named = (
            header.base_offset,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset,
        )
        expected = (
            offset,
            asked.producer_id,
            asked.producer_epoch,
            asked.base_sequence,
            offset + asked.last_offset_delta,
        )
        assert named == expected, f"{which}, and there is {named}"
        # Once a producer's next epoch is lost, two have the same one: the batch of the other is taken for this one.
        if not (asked.is_transactional and self.world.damage.is_exceeded(TRANSACTION_TOPIC)):
            assert header.codec != asked.codec or content == records, f"{which}, and other records are there"
        writer = (hosted.at, asked.producer_id, asked.producer_epoch)
        if asked.producer_id >= 0 and asked.base_sequence != self.first[writer] and writer not in self.refused:
            if log.log_start_offset == 0 and asked.base_sequence != self.latest.get(writer):
                self.comes_after(which, hosted, header)
            self.latest[writer] = (header.last_sequence + 1) & SEQUENCE_MAX

    def comes_after(self, which: str, hosted: Hosted, batch: BatchHeader) -> None:
        """Nothing was ever deleted here: the producer's batch before it is in the log."""
        before = None
        for header in hosted.log.headers(0):
            if header.base_offset >= batch.base_offset:
                break
            if (header.producer_id, header.producer_epoch) == (batch.producer_id, batch.producer_epoch):
                before = header
        last = None if before is None else before.last_sequence
        assert last == (batch.base_sequence - 1) & SEQUENCE_MAX, f"{which}, and behind sequence {last}"


def earlier(one: int, other: int) -> int:
    """Of two sequences of a producer: behind the last there is 0 again."""
    return other if (one - other) & SEQUENCE_MAX <= SEQUENCE_MAX >> 1 else one


def header_at(hosted: Hosted, offset: int) -> tuple[BatchHeader, bytes] | None:
    found = hosted.log.read(offset, 1, upto=hosted.log.log_end_offset, min_one=True)
    if not isinstance(found, Read) or not found.size:
        return None
    buffer = found.buffers[0]
    header = read_header(buffer)
    return header, bytes(buffer[header.position + HEADER_SIZE : header.end])
