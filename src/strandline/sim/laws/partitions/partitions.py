"""What must hold of partitions after every event.

- one leader, in one process, per partition and leader epoch
- a leader's high watermark never retreats; a follower's only by a truncation of its log
- no high watermark passes the end of its log, and no follower's the true one
- what a leader calls the committed ISR is committed at that partition epoch, and its high watermark moves only while
  that has the effective min ISR, and never without a member of the ISR that the controller has committed
- nothing above the high watermark is deleted, by retention or by request; with `flush.messages` a log that has grown
  lacks fewer records on its disk than that
- who is proposed for an ISR that is under min ISR has caught up with the leader's log
- what once was below a leader's high watermark is the same, at the same offset, in the log of every later leader, and
  of every running member of the committed ISR and ELR
- logs agree with it below their own high watermark; a compacted one as `compacted` says, whenever it was compacted
"""

from strandline.base.ids import TopicIdPartition, TopicPartition
from strandline.base.ports import DiskError
from strandline.broker.node import Node
from strandline.log.log import Log
from strandline.metadata.image import Partition
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted, Role
from strandline.replica.hosting.isr import Committed as CommittedIsr
from strandline.replica.hosting.isr import IsrState, Pending, PendingExpand
from strandline.replica.hosting.leader import Leader
from strandline.sim.laws.clients.answers import Answers
from strandline.sim.laws.logs.compacted import Committed
from strandline.sim.laws.logs.logs import Logs
from strandline.sim.laws.logs.producers import check_producers
from strandline.sim.laws.logs.truth import Truth
from strandline.sim.laws.partitions.fetches import Fetches
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.sim.world.trace import Kind

STUCK_MS = 300
LOOK_MS = 20  # how often a high watermark that does not move is looked at


# Its role, high watermark and log, that one's start, end, recovery point, and up to where it was cleaned.
State = tuple[Role | None, int, Log, int, int, int, int | None]


class Mark:
    """One replica as it was when all of it was looked at: what is the same now was not touched since."""

    __slots__ = ("isr", "partition_epoch", "state")

    def __init__(self, state: State) -> None:
        role = state[0]
        self.state = state
        self.isr: IsrState | None = None
        self.partition_epoch = -1
        if type(role) is Leader:
            self.isr, self.partition_epoch = role.isr, role.partition_epoch


class Seen:
    """What one process last showed of one partition."""

    __slots__ = (
        "cleaned_to",
        "epoch",
        "high_watermark",
        "log_end",
        "log_start",
        "partition_epoch",
        "proposed",
        "stuck_since",
        "verified",
    )

    def __init__(self) -> None:
        self.epoch = -1  # of a leader; −1: it followed
        self.partition_epoch = -1
        self.proposed: Pending | None = None  # what was looked at last
        self.high_watermark = -1
        self.log_end = -1
        self.log_start = 0
        self.stuck_since = -1  # a leader whose high watermark could move, and has not
        self.cleaned_to: int | None = None
        self.verified = 0  # its log agrees with the truth up to here


class Partitions:
    def __init__(self, world: Subject, fetches: Fetches, logs: Logs, answers: Answers) -> None:
        self.world = world
        self.fetches, self.logs, self.answers = fetches, logs, answers
        self.truths: dict[TopicIdPartition, Truth] = {}
        self.committed: dict[TopicIdPartition, Committed] = {}  # of those that are compacted
        self.names = world.names
        self.leaders: dict[tuple[TopicIdPartition, int], tuple[str, int]] = {}
        self.latest: dict[TopicIdPartition, int] = {}  # the latest leader epoch that anybody led in
        self.seen: dict[str, dict[TopicIdPartition, Seen]] = {}
        self.marks: dict[str, dict[Hosted, Mark]] = {}
        self.next_look: dict[str, int] = {}
        self.unseen: dict[TopicIdPartition, None] = {}  # a leader committed more, and lost its directory, in one event

    def forget(self, machine: Machine) -> None:
        """The process is gone; what it knew does not bind the next one."""
        self.seen.pop(machine.name, None)
        self.marks.pop(machine.name, None)

    def named(self, name: TopicPartition) -> list[TopicIdPartition]:
        return [at for at, known in self.names.items() if known == name]

    def is_misnamed(self, hosted: Hosted) -> bool:
        topic = self.world.committed.image.topics.get(hosted.at.topic_id)
        name = self.names.get(hosted.at) if topic is None else TopicPartition(topic.name, hosted.at.partition)
        return name not in (hosted.name, None)

    def is_bound(self, at: TopicIdPartition) -> bool:
        """Not where faults exceeded what the configuration promises."""
        return at not in self.world.damage.exceeded

    # --- after every event

    def look(self, machine: Machine, node: Node) -> list[Hosted]:
        """Returns the replicas that were touched since the last look. All that is read below of the others is the same
        as then, but for the clock: that asks only of leaders whose high watermark is not at their log's end."""
        broker = node.broker
        if broker is None:
            return []
        name, now = machine.name, self.world.time.now
        marks = self.marks.setdefault(name, {})
        may_be_stuck = now >= self.next_look.get(name, 0)
        if may_be_stuck:
            self.next_look[name] = now + LOOK_MS
        touched: dict[Hosted, State] = {}
        for group in broker.replicas.host.partitions.by_id.values():
            for hosted in group.values():
                role, log = hosted.role, hosted.log
                state = (
                    role,
                    hosted.start if role is None else role.high_watermark,
                    log,
                    log.log_start_offset,
                    log.log_end_offset,
                    log.recovery_point,
                    log.gaps.cleaned_to,
                )
                mark = marks.get(hosted)
                if mark is None or mark.state != state:
                    touched[hosted] = state
                elif type(role) is Leader:
                    if mark.isr is not role.isr or mark.partition_epoch != role.partition_epoch:
                        touched[hosted] = state
                    elif may_be_stuck and role.high_watermark != log.log_end_offset:
                        self.moves_when_it_may(machine, hosted, role, self.seen[machine.name][hosted.at])
        for hosted, state in touched.items():
            if self.look_at(machine, node, hosted, may_be_stuck=may_be_stuck):
                marks[hosted] = Mark(state)
            else:
                marks.pop(hosted, None)
        if broker.directories.offline:
            self.look_for_offline(machine, broker.replicas.host)
        return list(touched)

    def look_at(self, machine: Machine, node: Node, hosted: Hosted, *, may_be_stuck: bool) -> bool:
        """False if it has to be looked at again although nothing touches it."""
        role = hosted.role
        if role is None and self.is_misnamed(hosted):
            return False  # somebody exchanged its files, and metadata is not there yet to show it
        known = self.seen_of(machine, hosted.at)
        if type(role) is Leader:
            if (
                known.high_watermark != role.high_watermark
                or known.epoch != role.epoch
                or known.partition_epoch != role.partition_epoch
            ):
                self.look_at_leader(machine, hosted, role, known)
            pending = role.isr
            if not isinstance(pending, CommittedIsr) and pending is not known.proposed:
                known.proposed = pending
                if isinstance(pending, PendingExpand):
                    self.expands(machine, hosted, role, pending)
                self.fetches.proposes(machine, node, hosted, pending)
            if role.high_watermark == hosted.log.log_end_offset:
                known.stuck_since = -1
            elif may_be_stuck:
                self.moves_when_it_may(machine, hosted, role, known)
        elif known.high_watermark != hosted.high_watermark or known.epoch >= 0:
            self.look_at_follower(machine, hosted, known)
        self.look_at_log(machine, hosted, known)
        return True

    def seen_of(self, machine: Machine, at: TopicIdPartition) -> Seen:
        found = self.seen.get(machine.name, {}).get(at)
        if found is None:
            found = self.seen.setdefault(machine.name, {})[at] = Seen()
        return found

    def look_at_log(self, machine: Machine, hosted: Hosted, known: Seen) -> None:
        role, log = hosted.role, hosted.log
        if log.log_start_offset != known.log_start and role is not None:
            known.log_start = log.log_start_offset
            assert known.log_start <= hosted.high_watermark or not self.is_bound(hosted.at), (
                f"{machine.name} deleted {hosted.name} up to {known.log_start}, and its high watermark is"
                f" {hosted.high_watermark}"
            )
        if log.cleaned_to != known.cleaned_to:
            known.cleaned_to, known.verified = log.cleaned_to, 0
            truth = self.truths.get(hosted.at)
            if truth is not None and role is not None and self.is_bound(hosted.at):
                self.agrees(machine, hosted, truth, known, hosted.high_watermark)
        end = log.log_end_offset
        if end == known.log_end:
            return
        if log.must_flush and 0 <= known.log_end < end:
            flushes_by_number(machine, hosted)
        if end < known.log_end:
            known.verified = min(known.verified, end)
            self.cut(machine, hosted, known.log_end, end)
            check_producers(machine, hosted)
        elif known.log_end < 0:
            self.logs.opened(machine, hosted)
            check_producers(machine, hosted)
        elif type(role) is Follower:
            self.logs.appended(machine, hosted, role, known.log_end, end)
        known.log_end = end

    def look_for_offline(self, machine: Machine, host: Host) -> None:
        """A leader whose directory has failed leads no more, and nothing shows what it committed last."""
        for at, known in self.seen.get(machine.name, {}).items():
            if known.epoch >= 0 and host.partitions.find(at) is None:
                known.epoch, self.unseen[at] = -1, None

    def look_at_leader(self, machine: Machine, hosted: Hosted, leader: Leader, known: Seen) -> None:
        at, log = hosted.at, hosted.log
        truth = self.truths.get(at)
        if truth is None:
            truth = self.truths[at] = Truth(0)
        self.names[at] = hosted.name
        assert leader.high_watermark <= log.log_end_offset, f"the high watermark of {hosted.name} passed its log"
        if known.epoch != leader.epoch:
            self.leads(machine, hosted, leader, truth, known)
        elif self.is_bound(at):
            assert leader.partition_epoch >= known.partition_epoch, (
                f"{machine.name} goes back from partition epoch {known.partition_epoch} of {hosted.name} to"
                f" {leader.partition_epoch}"
            )
            assert leader.high_watermark >= known.high_watermark, (
                f"the high watermark of {hosted.name} fell from {known.high_watermark} to {leader.high_watermark}"
                f" on {machine.name}"
            )
            if leader.high_watermark > known.high_watermark:
                self.moved(machine, hosted, leader)
        known.epoch, known.partition_epoch = leader.epoch, leader.partition_epoch
        known.high_watermark = leader.high_watermark
        known.stuck_since = -1
        if self.is_bound(at) and leader.high_watermark > truth.end:
            before = truth.end
            try:
                truth.extend(log, leader.high_watermark, is_rotten=machine.is_rotten)
                if known.verified >= before and not log.has_gaps:
                    known.verified = truth.end  # the truth was read from this log just now
            except DiskError:
                if not machine.has_lost(hosted):
                    raise
                truth.end = leader.high_watermark  # a hole: the others have it, and nobody saw it here
            newest = self.world.committed.image.partition(at)
            if newest is not None:
                self.members_hold_truth(at, newest)

    def leads(self, machine: Machine, hosted: Hosted, leader: Leader, truth: Truth, known: Seen) -> None:
        at, log = hosted.at, hosted.log
        who = (machine.name, machine.life)
        first = self.leaders.setdefault((at, leader.epoch), who)
        assert first == who, f"{hosted.name} is led by {first} and by {who} in one leader epoch, {leader.epoch}"
        self.world.note(
            Kind.LEADS,
            f"leads {hosted.name} in epoch {leader.epoch}: high watermark {leader.high_watermark}, log end"
            f" {log.log_end_offset}",
            machine.name,
            hosted=hosted,
        )
        if leader.epoch < self.latest.get(at, -1):
            return  # it catches up with metadata, and hears next that its leadership is over already
        self.latest[at] = leader.epoch
        if self.is_bound(at):
            self.holds_truth(machine, hosted, truth, known, f"leads in epoch {leader.epoch}")

    def moved(self, machine: Machine, hosted: Hosted, leader: Leader) -> None:
        """The gate: the *committed* ISR, against the effective min ISR."""
        committed = self.world.committed.partition_at(hosted.at, leader.partition_epoch)
        isr = leader.isr.isr
        if committed is not None:
            assert set(committed.isr) == set(isr), (
                f"{machine.name} takes {isr} for the ISR of {hosted.name} at partition epoch {leader.partition_epoch},"
                f" committed is {committed.isr}"
            )
        newest = self.world.committed.image.partition(hosted.at)
        if newest is not None and newest.leader_epoch == leader.epoch:
            assert set(newest.isr) <= set(leader.isr.maximal), (
                f"{machine.name} moved the high watermark of {hosted.name} with {leader.isr.maximal}, and the ISR is"
                f" {newest.isr}"
            )
        min_isr = effective_min_isr(machine, hosted)
        assert len(isr) >= min_isr, (
            f"the high watermark of {hosted.name} moved to {leader.high_watermark} with the ISR {isr}, under min ISR"
            f" {min_isr}"
        )
        is_traced = self.world.trace is not None  # else nobody reads the text
        text = f"{hosted.name}: high watermark {leader.high_watermark}" if is_traced else ""
        self.world.note(Kind.HIGH_WATERMARK, text, machine.name, hosted=hosted)

    def expands(self, machine: Machine, hosted: Hosted, leader: Leader, pending: PendingExpand) -> None:
        """Under min ISR the high watermark does not move: a replica that has passed it may lack any number of
        records, would hold it back for all of them, and be dropped for that again (T18)."""
        if len(pending.isr) >= effective_min_isr(machine, hosted):
            return
        for node in pending.maximal:
            if node in pending.isr:
                continue
            state = leader.followers[node]
            lag = hosted.log.log_end_offset - state.log_end_offset
            silent_ms = machine.clock.now() - state.last_caught_up
            assert lag == 0 or silent_ms <= leader.lag_time_max_ms, (
                f"{machine.name} wants {node} in the ISR {pending.isr} of {hosted.name}, which is under min ISR, and it"
                f" lacks {lag} records"
            )

    def moves_when_it_may(self, machine: Machine, hosted: Hosted, leader: Leader, known: Seen) -> None:
        """Nobody outside the maximal ISR holds the high watermark back but who may enter it soon (T17, T20)."""
        now = machine.clock.now()
        possible = hosted.log.log_end_offset
        for node, state in leader.followers.items():
            is_joining = now - state.last_caught_up <= leader.lag_time_max_ms or state.log_end_offset == possible
            broker = machine.node.image.brokers.get(node) if machine.node is not None else None
            is_eligible = broker is not None and broker.is_active and state.broker_epoch in (-1, broker.epoch)
            if node in leader.isr.maximal or (is_joining and is_eligible):
                possible = min(possible, state.log_end_offset)
        may_move = len(leader.isr.isr) >= leader.min_isr and possible > leader.high_watermark
        if not may_move or known.epoch != leader.epoch:
            known.stuck_since = -1
        elif known.stuck_since < 0:
            known.stuck_since = self.world.time.now
        else:
            span = self.world.time.now - max(known.stuck_since, machine.resumed_at)
            # Time alone calls nobody: a follower's next fetch does, and the task that looks for laggards.
            patience = STUCK_MS + machine.config.integer("replica.fetch.wait.max.ms") + leader.lag_time_max_ms // 2
            assert span <= patience, (
                f"the high watermark of {hosted.name} on {machine.name} stands at {leader.high_watermark} for {span} ms"
                f" and could be {possible}"
            )

    def look_at_follower(self, machine: Machine, hosted: Hosted, known: Seen) -> None:
        hw, end = hosted.high_watermark, hosted.log.log_end_offset
        bound = self.is_bound(hosted.at)
        assert hw <= end, f"the high watermark {hw} of {hosted.name} passes its log's end {end} on {machine.name}"
        if bound:
            truth = self.truths.get(hosted.at)
            true_end = max(0 if truth is None else truth.end, hosted.log.log_start_offset)
            assert hw <= true_end or hosted.at in self.unseen, (
                f"{machine.name} believes that {hosted.name} is committed up to {hw}, not {true_end}"
            )
            assert hw >= known.high_watermark or end < known.log_end or known.epoch >= 0, (
                f"the high watermark of {hosted.name} fell from {known.high_watermark} to {hw} on the follower"
                f" {machine.name}, and nothing was cut"
            )
            if truth is not None and hosted.role is not None:
                self.agrees(machine, hosted, truth, known, hw)
        if known.epoch >= 0:
            self.answers.leads_no_longer(machine, hosted)
        if known.epoch >= 0 and self.world.trace is not None:
            self.world.note(Kind.FOLLOWS, f"no longer leads {hosted.name}", machine.name, hosted=hosted)
        known.epoch = -1
        known.high_watermark = hw

    def cut(self, machine: Machine, hosted: Hosted, before: int, now: int) -> None:
        text = f"{hosted.name}: cut from {before} to {now}"
        self.world.note(Kind.TRUNCATED, text, machine.name, hosted=hosted)

    # --- what logs must hold

    def agrees(self, machine: Machine, hosted: Hosted, truth: Truth, known: Seen, upto: int) -> None:
        """Its log is the truth up to `upto` (or its end), as far as that was not seen already. Not where bits flip or
        files are gone: readers must find that."""
        if machine.is_rotten or machine.has_lost(hosted):
            return
        upto = min(upto, truth.end, hosted.log.log_end_offset)
        if known.verified < upto:
            with machine.disk.observed():
                if hosted.log.has_gaps:
                    committed = self.committed.setdefault(hosted.at, Committed())
                    why = committed.differs(truth, hosted.log, upto, self.world.time.now)
                else:
                    why = truth.differs(hosted.log, known.verified, upto)
            assert why is None, f"{hosted.name} on {machine.name} differs from what was committed: {why}"
            known.verified = upto

    def holds_truth(self, machine: Machine, hosted: Hosted, truth: Truth, known: Seen, as_what: str) -> None:
        end = hosted.log.log_end_offset
        assert end >= truth.end, (
            f"{machine.name} {as_what} of {hosted.name} and its log ends at {end}, but {truth.end} are committed"
        )
        self.agrees(machine, hosted, truth, known, truth.end)

    def members_hold_truth(self, at: TopicIdPartition, partition: "Partition") -> None:
        """When the committed ISR has changed: every running member, as the incarnation that is registered."""
        truth = self.truths.get(at)
        if truth is None or not self.is_bound(at):
            return
        for member in (*partition.isr, *partition.elr):
            machine = self.world.machines[member]
            node = machine.node
            if node is None or node.broker is None or not self.world.committed.is_registered(machine):
                continue
            hosted = node.broker.replicas.host.partitions.find(at)
            if hosted is not None:
                known = self.seen_of(machine, at)
                self.holds_truth(machine, hosted, truth, known, f"is in the ISR {partition.isr}")

    # --- what clients saw

    def acknowledged(self, at: TopicIdPartition, offset: int, values: tuple[bytes, ...]) -> None:
        """With acks=all: it is committed, exactly there."""
        truth = self.truths.get(at)
        if at in self.unseen and (truth is None or truth.end <= offset):
            return  # the next leader will show it, or the client's history that it is lost
        if self.is_bound(at):
            found = [] if truth is None else truth.values(offset, len(values))
            is_hole = truth is not None and truth.is_hole(offset, offset + len(values))
            assert found == list(values) or is_hole, (
                f"{self.names.get(at)} at {offset}: acknowledged {values}, committed is {found}"
            )

    def consumed(self, at: TopicIdPartition, end: int) -> None:
        if self.is_bound(at):
            truth = self.truths.get(at)
            known = 0 if truth is None else truth.end
            assert end <= known or at in self.unseen, (
                f"{self.names.get(at)}: a consumer read up to {end}, but only {known} are committed"
            )


def effective_min_isr(machine: Machine, hosted: Hosted) -> int:
    """As the metadata that this node has applied says."""
    assert machine.node is not None
    image = machine.node.image
    topic, partition = image.topics.get(hosted.at.topic_id), image.partition(hosted.at)
    if topic is None or partition is None:
        return 0
    return image.effective_min_isr(topic, partition)


def flushes_by_number(machine: Machine, hosted: Hosted) -> None:
    """With `flush.messages=1` each record is durable before any client sees it."""
    lacking, most = hosted.log.log_end_offset - hosted.log.recovery_point, hosted.log.config.flush_messages
    assert lacking < most, (
        f"{machine.name}: {lacking} records of {hosted.name} are not durable, and flush.messages is {most}"
    )
