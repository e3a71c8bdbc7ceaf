"""What must hold of single logs, next to what was committed.

- what a follower appends in a leader epoch is, byte for byte, what the leader of that epoch has there
- a follower's log has no epoch that is later than the one it follows in, and its leader's records fit it
- a log that was opened after a loss of power is whole: no batch is damaged, and its epochs are those of its batches
- a follower that hears of records or of a divergence does something about it
- a leader that names no divergence has the epoch, and the batch, with which the follower's log ends
- an answer to what a follower asked in an earlier leader epoch changes nothing
- a leader knows a follower by its latest incarnation: none that came before speaks for it again
- nothing is appended with acks=all while the committed ISR is smaller than min.insync.replicas
"""

import re
from typing import Any

from strandline.base.effects import Answered
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.base.ports import Buffer
from strandline.broker.node import Node
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.replica.hosting.follower import Follower, Position
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader, ReplicaState
from strandline.replica.tokens import FetchSent
from strandline.sim.laws.logs.truth import span_of
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.batch import batches, why_invalid
from strandline.wire.messages.records.fetch import FetchRequest, FetchResponse
from strandline.wire.messages.records.produce import ProduceRequest

READ_BYTES = 1 << 20
ACKS_ALL = -1
SAME_MAX = 10
Copied = tuple[int, int, int]  # a follower's log start, log end and high watermark
REFUSED_RECORDS = re.compile(r"\S+: records of leader (\d+) refused")


class Logs:
    def __init__(self, world: Subject) -> None:
        self.world = world
        self.closed: dict[TopicIdPartition, int] = {}  # led under min ISR, and a Produce with acks=all came: their ends
        self.asking: NodeId | None = None  # the follower whose Fetch is handled
        self.late: list[tuple[Hosted, Follower, Copied]] = []  # of an answer that is being handled
        self.has_heard = False  # any of these three
        # What a follower had when news came, and how often it was the same.
        self.heard: dict[tuple[str, int, Uuid, int], tuple[Position, int]] = {}
        self.matched: dict[tuple[str, int, TopicIdPartition, int], None] = {}  # followers, in a leader epoch
        self.incarnations: dict[tuple[str, int, TopicIdPartition, int, NodeId], int] = {}
        self.looked_at: dict[NodeId, dict[Leader, ReplicaState]] = {}  # by follower: what it last had, as leaders know

    # --- copying

    def appended(self, machine: Machine, hosted: Hosted, follower: Follower, start: int, end: int) -> None:
        """A follower's log grew from `start` to `end` in one step."""
        assert hosted.log.latest_epoch <= follower.epoch, (
            f"{machine.name} follows {hosted.name} in leader epoch {follower.epoch} and has records of epoch"
            f" {hosted.log.latest_epoch}"
        )
        found = self.origin_of(machine, hosted, follower)
        if found is None:
            return
        source, origin = found
        if origin.log.log_start_offset > start:
            return  # deleted meanwhile
        assert origin.log.log_end_offset >= end, (
            f"{machine.name} appended to {hosted.name} up to {end}, and its leader {source.name} has only"
            f" {origin.log.log_end_offset}"
        )
        if origin.log.has_gaps:
            # What is committed may be compacted by now; the truth is asked about that.
            start = max(start, origin.high_watermark)
        with source.disk.observed():
            ours, theirs = content(hosted.log, start, end), content(origin.log, start, end)
        assert ours == theirs, (
            f"{machine.name} appended to {hosted.name} at {start} what {source.name}, its leader in epoch"
            f" {follower.epoch}, does not have there"
        )

    def origin_of(self, machine: Machine, hosted: Hosted, follower: Follower) -> "tuple[Machine, Hosted] | None":
        """Whose records a follower copies. None: that leadership is over, or what lies there has rotted or is gone."""
        source = self.world.machines.get(follower.leader)
        if source is None or source.node is None or source.node.broker is None or machine.is_rotten or source.is_rotten:
            return None
        origin = source.node.broker.replicas.host.partitions.find(hosted.at)
        if origin is None or type(origin.role) is not Leader or origin.role.epoch != follower.epoch:
            return None
        if machine.has_lost(hosted) or source.has_lost(origin):
            return None
        return source, origin

    def refused(self, machine: Machine, text: str) -> bool:
        """Does the node report that its leader's records do not fit? Only damage explains that."""
        found = REFUSED_RECORDS.match(text)
        if found is None or machine.is_rotten:
            return False
        if machine.has_misread:
            machine.has_misread = False
            return False
        return not any(other.node_id == int(found[1]) and other.is_rotten for other in self.world.machines.values())

    def answered(self, machine: Machine, node: Node, event: Answered) -> None:
        """A follower that hears of records or of a divergence changes, or it would hear of them for ever."""
        assert node.broker is not None
        host, answer = node.broker.replicas.host, event.message
        fetchers = node.broker.replicas.fetchers.by_leader
        fetcher = fetchers.get(event.token.leader) if type(event.token) is FetchSent else None
        for topic in answer.responses:
            for row in topic.partitions:
                hosted = host.partitions.find(TopicIdPartition(topic.topic_id, row.partition_index))
                asked = None if hosted is None or fetcher is None else fetcher.asked.get(hosted.at)
                if hosted is not None and asked is not None and type(hosted.role) is Follower:
                    self.late += [(hosted, hosted.role, copied(hosted))] * (asked.leader_epoch != hosted.role.epoch)
                if row.diverging_epoch.epoch < 0:
                    if hosted is not None and asked is not None and not row.error_code:
                        self.matches(machine, hosted, asked, event.token.leader)
                    if not row.records:
                        continue
                if hosted is not None and type(hosted.role) is Follower:
                    which = (machine.name, machine.life, topic.topic_id, row.partition_index)
                    position = hosted.role.position()
                    last, count = self.heard.get(which, (position, 0))
                    count = count + 1 if position == last else 1
                    self.heard[which] = (position, count)
                    assert count <= SAME_MAX or any(one.is_rotten for one in self.world.machines.values()), (
                        f"{machine.name} follows {hosted.name}, hears the same again and again, and stays as it is:"
                        f" {position}"
                    )

    def matches(self, machine: Machine, hosted: Hosted, asked: Position, leader: NodeId) -> None:
        """The first answer of a leader that names no divergence: what the follower has last, the leader has there."""
        follower = hosted.role
        if type(follower) is not Follower or follower.leader != leader:
            return
        which = (machine.name, machine.life, hosted.at, follower.epoch)
        if which in self.matched or follower.position() != asked:
            return  # that was seen, or it was an answer to another question
        found = self.origin_of(machine, hosted, follower)
        if found is None:
            return
        source, origin = found
        self.matched[which] = None
        end = hosted.log.log_end_offset
        if max(hosted.log.log_start_offset, origin.log.log_start_offset) >= end:
            return
        begun, last = [entry.epoch for entry in origin.log.epochs.entries], hosted.log.latest_epoch
        assert last in begun, (
            f"{machine.name} follows {hosted.name}, its last epoch is {last}, and {source.name}, which leads in epoch"
            f" {follower.epoch}, has only {begun} and names no divergence"
        )
        if origin.log.has_gaps or hosted.log.has_gaps:
            return
        with machine.disk.observed(), source.disk.observed():
            ours, theirs = content(hosted.log, end - 1, end), content(origin.log, end - 1, end)
        assert ours == theirs, (
            f"{machine.name} follows {hosted.name} from offset {end} on, and {source.name}, its leader in epoch"
            f" {follower.epoch}, has another batch before it and names no divergence"
        )

    # --- opening

    def opened(self, machine: Machine, hosted: Hosted) -> None:
        """Where a loss of power may have taken something, what is left must be whole."""
        log = hosted.log
        if machine.is_rotten or not self.world.damage.is_lossy(hosted.at, machine.node_id):
            return
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found = log.read(offset, READ_BYTES, upto=log.log_end_offset, min_one=True)
            if log.has_gaps and isinstance(found, Read) and not found.size:
                break  # a cut may leave a log that ends in a gap
            assert isinstance(found, Read) and found.size, f"{hosted.name} on {machine.name} ends at {offset}: {found}"
            for buffer in found.buffers:
                for header in batches(buffer):
                    known = log.epoch_at(max(header.base_offset, log.log_start_offset))
                    assert why_invalid(header, buffer) is None, (
                        f"{hosted.name} on {machine.name} was opened with a damaged batch at {header.base_offset}"
                    )
                    first = log.epochs.entries[0] if log.epochs.entries else None
                    # Records that were deleted may be back, and their epochs' beginnings are not.
                    is_deleted = first is not None and header.base_offset < first.start_offset
                    assert known == header.partition_leader_epoch or is_deleted, (
                        f"{hosted.name} on {machine.name} was opened, and offset {header.base_offset} counts for epoch"
                        f" {known}, not {header.partition_leader_epoch}"
                    )
                    offset = header.next_offset

    # --- serving

    def only_later(self, machine: Machine, host: Host, follower: NodeId) -> None:
        """What an earlier incarnation left in the network never speaks for its successor (T15)."""
        looked_at = self.looked_at.setdefault(follower, {})
        for hosted, leader in host.partitions.leaders():
            state = leader.followers.get(follower)
            if state is not None and state.broker_epoch >= 0 and looked_at.get(leader) is not state:
                looked_at[leader] = state
                which = (machine.name, machine.life, hosted.at, leader.epoch, follower)
                known = self.incarnations.get(which, -1)
                assert state.broker_epoch >= known, (
                    f"{machine.name} takes a fetch of broker epoch {state.broker_epoch} for what node {follower} has of"
                    f" {hosted.name}, and has heard of epoch {known}"
                )
                self.incarnations[which] = state.broker_epoch

    # --- before and after an event

    def forget(self) -> None:
        """The process died in the middle of an event: nothing follows from it."""
        if self.has_heard:
            self.closed = {}
            self.asking = None
            self.late = []
            self.has_heard = False

    def received(self, machine: Machine, node: Node, event: Any) -> None:
        """Who asks, and which partitions may not grow by it? `forget` what was before first."""
        assert not self.has_heard
        if node.broker is None:
            return
        message = event.message
        if type(event) is Answered:
            if type(message) is FetchResponse:
                self.answered(machine, node, event)
        elif type(message) is FetchRequest:
            if message.replica_state.replica_id >= 0:
                self.asking = NodeId(message.replica_state.replica_id)
        elif type(message) is ProduceRequest and message.acks == ACKS_ALL:
            for hosted, leader in node.broker.replicas.host.partitions.leaders():
                if leader.is_under_min_isr():
                    self.closed[hosted.at] = hosted.log.log_end_offset
        self.has_heard = bool(self.late or self.closed or self.asking is not None)

    def look(self, machine: Machine, node: Node) -> None:
        self.has_heard = False
        if node.broker is None:
            return
        if self.asking is not None:
            self.only_later(machine, node.broker.replicas.host, self.asking)
            self.asking = None
        late, self.late = self.late, []
        for follower, role, before in late:
            assert follower.role is not role or copied(follower) == before, (
                f"{machine.name} takes an answer about {follower.name} to what it asked in an earlier leader epoch: log"
                f" start, end and high watermark were {before} and are {copied(follower)}"
            )
        if not self.closed:
            return
        closed, self.closed = self.closed, {}
        for at, end in closed.items():
            hosted = node.broker.replicas.host.partitions.find(at)
            assert hosted is None or hosted.log.log_end_offset == end, (
                f"{machine.name} appended to {hosted.name} with acks=all while its ISR is under min ISR"
            )


def copied(hosted: Hosted) -> Copied:
    return hosted.log.log_start_offset, hosted.log.log_end_offset, hosted.high_watermark


def content(log: Log, start: int, end: int) -> bytes:
    """Whole batches, from the one that holds `start`; a read ends with its segment."""
    parts: list[Buffer] = []
    while start < end:
        found = log.read(start, READ_BYTES, upto=end, min_one=True)
        if not isinstance(found, Read) or not found.size:
            break
        parts += found.buffers
        start = span_of(parts[-1])[1]
    return b"".join(parts)
