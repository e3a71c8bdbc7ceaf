"""The partition builder: every change of a leader, an ISR, an ELR or a replica set is decided here (T6).

A pure function: (partition, what is wished, the rules in force) -> one PartitionChangeRecord, or None. Whoever wants a
change states a `Wish`; nobody writes a PartitionChangeRecord by hand.

Invariants:
  - nothing is emitted when nothing changes (T12), unless a partition epoch is wished for itself;
  - every election path, the last resort too, asks the one predicate `Rules.is_acceptable` (T8);
  - without ELR the ISR is never emptied: its last member stays, and the partition has no leader;
  - with ELR, `isr` and `elr` are disjoint, within the replicas (L3), and `elr` is empty once the ISR is large enough;
  - an ISR shrink opens no leader epoch (T17); a change of leader, or of the replica set, does, and so does the end of
    a reassignment that lets min ISR count more replicas, and a replica's word that it lost records;
  - uncleanness is said by the election (RECOVERING), never inferred from sets (T7), and comes with an entry in the loss
    ledger, or with the word that it loses nothing;
  - who led last is remembered while nobody leads, and only then (T10, L9);
  - a reassignment ends only under a leader from the ISR that it ends with.
"""

from collections.abc import Callable
from enum import Enum

from msgspec.structs import replace

from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.base.value import Value
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERING, Partition, directory_of, effective_min_isr
from strandline.metadata.losses import Evidence, loss_of
from strandline.metadata.records import LossEvent, PartitionChangeRecord

Nodes = tuple[NodeId, ...]


class Election(Enum):
    KEEP = "the current leader stays if it may"
    PREFERRED = "the first replica leads if it may"


class LastResort(Enum):
    """Who may lead where neither ISR nor ELR has anyone. Each of it is an unclean election (L8)."""

    NOBODY = "wait for a recovery or an operator"
    LAST_KNOWN_LEADER = "the last leader"
    ANYBODY = "the last leader, else the first live replica"


class Rules(Value, frozen=True):
    """What is in force for a topic's partitions at this moment. No defaults: a call site cannot forget one (T9)."""

    is_acceptable: Callable[[NodeId, Uuid], bool]  # may this broker lead now, from this directory?
    last_resort: LastResort  # what the topic's strategy means where no recovery is managed
    min_isr: int  # as configured: what of it counts depends on the replicas that a change leaves (T19)
    is_elr_enabled: bool  # the feature eligible.leader.replicas.version
    now: int  # milliseconds since the Unix epoch, for the loss ledger


class Assignment(Value, frozen=True):
    """Other replicas for a partition (KIP-455). Until all of `adding` are in sync, `removing` stay."""

    replicas: Nodes  # all of them, those to be removed last
    adding: Nodes
    removing: Nodes
    directories: tuple[Uuid, ...]  # of each replica
    original: Nodes  # those of before the move, in the order to which a cancel goes back


class Wish(Value, frozen=True):
    """What the caller wants of a partition. None and empty mean: as it is."""

    isr: Nodes | None = None
    election: Election = Election.KEEP
    recovery_state: int | None = None
    lost_tail: Nodes = ()  # brokers whose logs may miss what they had acknowledged: after an unclean stop, or found so
    renews_epoch: bool = False  # a partition epoch begins even if nothing else changes
    assignment: Assignment | None = None
    located: tuple[Uuid, ...] | None = None  # the directories of the replicas, as they turned out to be
    designated: NodeId | None = None  # leads if it lives and nobody may lead cleanly, whatever the rules' last resort
    evidence: Evidence | None = None  # what it said of its log
    cause: str = ""  # why it was designated, for the loss ledger
    is_lossless: bool = False  # its election, if it is one, loses nothing
    withdrawn: tuple[LossEvent, ...] = ()  # what those with a lost tail said that they lost


class Sets(Value, frozen=True):
    """The replica sets of a partition, on their way from old to new."""

    replicas: Nodes
    adding: Nodes
    removing: Nodes
    isr: Nodes
    elr: Nodes
    last_known: Nodes  # LastKnownElr
    last_leader: NodeId  # who led last, if nobody does


class How(Enum):
    """By what right somebody leads."""

    KEPT = "it leads already"
    IN_SYNC = "it is in the ISR"
    ELIGIBLE = "it is in the ELR"
    UNCLEAN = "nobody may lead cleanly"
    NOBODY = "nobody leads"


class Elected(Value, frozen=True):
    leader: NodeId
    how: How
    cause: str = ""  # of an unclean election


def plan_change(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> PartitionChangeRecord | None:
    """The record that brings `old` as close to the wish as the rules allow."""
    assert len(set(old.replicas)) == len(old.replicas) > 0
    was_located = old.directories
    if wish.located is not None:
        old = replace(old, directories=wish.located)
    sets, elected = decide(old, wish, rules)
    recovery = old.leader_recovery_state if wish.recovery_state is None else wish.recovery_state
    if elected.how is How.UNCLEAN:  # guard: unclean-election-unsaid
        recovery = RECOVERING
    is_lossless = elected.how is How.UNCLEAN and wish.is_lossless and elected.leader == wish.designated
    leads_anew = elected.leader != old.leader  # guard: isr-change-opens-an-epoch
    # Replicas that are no more must not go on under the epoch in which they were some. What one that lost records had
    # fetched before says nothing of what it has now, nor does what its leader proposed by that; and a leader that lost
    # some must not write others in their places under the epoch in which they were copied.
    # guard: leader-epoch-is-past
    is_past = without(old.replicas, sets.replicas) or counts_more(old, sets, rules) or wish.withdrawn
    if is_past and elected.leader != NOBODY:  # guard: nobody-elected-anew
        leads_anew = True
    change = PartitionChangeRecord(
        partition_id=at.partition,
        topic_id=at.topic_id,
        isr=changed(sets.isr, old.isr),
        leader=elected.leader if leads_anew else NO_LEADER_CHANGE,
        replicas=sets.replicas if sets.replicas != old.replicas else None,
        removing_replicas=changed(sets.removing, old.removing_replicas),
        adding_replicas=changed(sets.adding, old.adding_replicas),
        leader_recovery_state=recovery if recovery != old.leader_recovery_state else -1,
        eligible_leader_replicas=changed(sets.elr, old.elr),
        last_known_elr=changed(sets.last_known, old.last_known_elr),
        last_known_leader=sets.last_leader if sets.last_leader != old.last_known_leader else NO_LEADER_CHANGE,
        # guard: unclean-election-not-in-the-ledger
        losses=(loss(old, elected, wish, rules),) if elected.how is How.UNCLEAN and not is_lossless else (),
        lossless_epoch=old.leader_epoch + 1 if is_lossless else -1,
        directories=directories(old, was_located, wish, sets),
        original_replicas=originals(old, wish, sets),
        withdrawals=wish.withdrawn,
    )
    assert change.replicas is None or len(change.replicas) == len(change.directories or ())
    unchanged = PartitionChangeRecord(partition_id=at.partition, topic_id=at.topic_id)
    return None if change == unchanged and not wish.renews_epoch else change


def decide(old: Partition, wish: Wish, rules: Rules) -> tuple[Sets, Elected]:
    """The sets and the leader. A reassignment ends only under a leader from the ISR that it ends with: an election that
    replaces the ISR, or finds nobody, would take away replicas by an ISR that is not there."""
    sets = target_sets(old, wish, rules, may_end=True)
    elected = elect(old, sets, wish, rules)
    before = assigned(old, wish)
    has_ended = (sets.adding, sets.removing) != (before.adding, before.removing)
    if has_ended and elected.how not in (How.KEPT, How.IN_SYNC):  # guard: reassignment-ends-uncleanly
        sets = target_sets(old, wish, rules, may_end=False)
        elected = elect(old, sets, wish, rules)
    return sets_after(sets, elected, rules), elected


def target_sets(old: Partition, wish: Wish, rules: Rules, may_end: bool) -> Sets:
    """The sets before anyone is elected: the wished ISR, a reassignment completed if it can be, the ELR that follows.

    Sets keep the replicas' order, and the same ISR in another order is not a change.
    """
    target = assigned(old, wish)
    replicas, adding, removing = target.replicas, target.adding, target.removing
    isr = old.isr if wish.isr is None or set(wish.isr) == set(old.isr) else within(old.replicas, wish.isr)
    if not isr and not rules.is_elr_enabled:  # guard: isr-emptied
        # One broker leaves at a time, so this is the last member; it stays, for it alone may hold what was committed.
        isr = old.isr
    isr = within(isr, replicas)
    if may_end and can_complete(target, isr, rules):
        replicas = without(replicas, removing)
        isr = within(isr, replicas)
        adding = removing = ()
    elr: Nodes = ()
    last_known: Nodes = ()
    if rules.is_elr_enabled or not isr:
        # Switched off, it leaves behind an ELR that nobody keeps up. Only where nobody is in sync it is still true, and
        # all that can lead cleanly.
        min_isr = effective_min_isr(rules.min_isr, replicas, adding)  # guard: min-isr-by-replicas-to-be
        # guard: clearing-forgets-the-last-eligible
        elr, last_known = eligible(old, isr, replicas, wish.lost_tail, min_isr)
    last_leader = old.leader if old.leader != NOBODY else old.last_known_leader  # guard: who-led-last
    has_begun_anew = wish.located is not None and last_leader in wish.lost_tail  # in another directory
    if last_leader not in replicas or not rules.is_elr_enabled or has_begun_anew:
        last_leader = NOBODY
    assert set(isr) <= set(replicas), "who is in sync has a replica"
    return Sets(replicas, adding, removing, isr, elr, last_known, last_leader)


def counts_more(old: Partition, sets: Sets, rules: Rules) -> bool:
    """Does min ISR count more replicas than before? Then the leader must not hear of it by the answer to its proposal,
    which says nothing of replicas: it would go on by the old count (L7). An answer of a later leader epoch is not
    taken; the log is waited for."""
    before = effective_min_isr(rules.min_isr, old.replicas, old.adding_replicas)
    return effective_min_isr(rules.min_isr, sets.replicas, sets.adding) > before


def assigned(old: Partition, wish: Wish) -> Assignment:
    """The replicas as they are wished, or as they are."""
    if wish.assignment is not None:
        return wish.assignment
    return Assignment(old.replicas, old.adding_replicas, old.removing_replicas, old.directories, old.original_replicas)


def directories(old: Partition, was_located: tuple[Uuid, ...], wish: Wish, sets: Sets) -> tuple[Uuid, ...] | None:
    """Where the replicas lie, named whenever the replicas are: Kafka's readers refuse a record that names replicas, but
    not a directory for each. Null: all is as it was."""
    if wish.assignment is not None and sets.replicas != old.replicas:
        known = dict(zip(wish.assignment.replicas, wish.assignment.directories, strict=True))
        return tuple(known[node] for node in sets.replicas)
    if sets.replicas == old.replicas and old.directories == was_located:
        return None
    return tuple(directory_of(old, node) for node in sets.replicas)


def originals(old: Partition, wish: Wish, sets: Sets) -> Nodes | None:
    """The replicas of before a reassignment, while there is one; a reassignment that replaces it keeps them. Null: as
    it was."""
    wanted = assigned(old, wish).original if sets.adding or sets.removing else ()
    return None if wanted == old.original_replicas else wanted


def can_complete(target: Assignment, isr: Nodes, rules: Rules) -> bool:
    """May a reassignment end? See `why_incomplete`."""
    if not (target.adding or target.removing):
        return False
    return not why_incomplete(target, isr, rules)


def why_incomplete(target: Assignment, isr: Nodes, rules: Rules) -> tuple[Nodes, int] | None:
    """What a reassignment waits for: (replicas that must come into the ISR, how many members it lacks), or None.

    All replicas being added must be in sync, and what stays of the ISR must carry min ISR, as it counts for the
    replicas that stay: fewer than now, or more (T40). If there will be fewer replicas, all that stay must be in
    sync: else the ISR could shrink to one by the end of the reassignment alone.
    """
    final = without(target.replicas, target.removing)
    staying = within(isr, final)
    due = final if len(target.adding) < len(target.removing) else target.adding
    missing = without(due, isr)
    lacking = max(0, effective_min_isr(rules.min_isr, final, ()) - len(staying))  # guard: reassignment-ends-thin
    return (missing, lacking) if missing or lacking else None


def eligible(old: Partition, isr: Nodes, replicas: Nodes, lost_tail: Nodes, min_isr: int) -> tuple[Nodes, Nodes]:
    """The ELR and the last known ELR that go with a new ISR (KIP-966).

    A member that leaves an ISR below min ISR has everything that was committed, since the high watermark no longer
    moves: it stays eligible until it loses its tail. What is lost that way is remembered, for the recovery.
    """
    if len(isr) >= min_isr:  # guard: eligible-while-isr-suffices
        return (), ()
    candidates = set(old.elr) | set(old.isr)  # guard: eligible-forgotten
    # guard: eligible-replicas
    elr = tuple(n for n in replicas if n in candidates and n not in isr and n not in lost_tail)
    known = set(old.last_known_elr) | (candidates & set(lost_tail))  # guard: lost-tail-not-remembered
    return elr, tuple(n for n in replicas if n in known and n not in isr and n not in elr)


def elect(old: Partition, sets: Sets, wish: Wish, rules: Rules) -> Elected:
    """Who leads? The order of KIP-966: who leads already, the ISR in replica order, the ELR; and where none of these
    may lead, whom the wish names, or the rules' last resort."""

    def lives(node: NodeId) -> bool:
        return rules.is_acceptable(node, directory_of(old, node))

    def may(node: NodeId) -> bool:
        return node in sets.isr and lives(node)  # guard: fenced-member-elected

    if wish.election is Election.PREFERRED and may(sets.replicas[0]):  # guard: preferred-replica-elected-out-of-sync
        return Elected(sets.replicas[0], How.IN_SYNC)
    if may(old.leader):
        return Elected(old.leader, How.KEPT)
    for node in sets.replicas:
        if may(node):
            return Elected(node, How.IN_SYNC)
    if not sets.isr:
        for node in sets.replicas:
            if node in sets.elr and lives(node):  # guard: fenced-eligible-replica-elected
                return Elected(node, How.ELIGIBLE)
    if wish.designated in sets.replicas and lives(wish.designated):
        return Elected(wish.designated, How.UNCLEAN, wish.cause)
    resort = rules.last_resort
    # guard: last-known-leader
    if resort is not LastResort.NOBODY and not sets.isr and not sets.elr and lives(sets.last_leader):
        why = "the last known leader leads again: nobody is in sync or eligible"
        return Elected(sets.last_leader, How.UNCLEAN, wish.cause or why)  # guard: last-leader-elected-cleanly
    if resort is LastResort.ANYBODY:  # guard: anyone-is-elected
        # guard: added-replica-elected-before-others
        for node in (*without(sets.replicas, sets.adding), *sets.adding):  # these may have nothing yet
            if lives(node):  # guard: dead-broker-elected-as-last-resort
                return Elected(node, How.UNCLEAN, wish.cause or "any replica leads: the topic allows the loss")
    return Elected(NOBODY, How.NOBODY)


def loss(old: Partition, elected: Elected, wish: Wish, rules: Rules) -> LossEvent:
    """The entry of the loss ledger that goes with an unclean election."""
    assert elected.how is How.UNCLEAN
    assert elected.leader != NOBODY
    is_designated = elected.leader == wish.designated
    last_led = old.leader_epoch if old.leader != NOBODY else old.leader_epoch - 1
    evidence = wish.evidence if is_designated else None
    return loss_of(elected.leader, last_led, old.leader_epoch, evidence, rules.now, elected.cause)


def sets_after(sets: Sets, elected: Elected, rules: Rules) -> Sets:
    """The sets after the election. An unclean leader stands alone: whatever the others hold, its log is now the log."""
    leader = elected.leader
    assert (leader == NOBODY) == (elected.how is How.NOBODY)
    if leader == NOBODY:
        return sets
    isr, elr, known = sets.isr, sets.elr, sets.last_known
    if elected.how is How.ELIGIBLE:
        isr, elr = (leader,), without(sets.elr, (leader,))  # guard: elected-eligible-stays-eligible
        is_large_enough = len(isr) >= effective_min_isr(rules.min_isr, sets.replicas, sets.adding)
        if is_large_enough or not rules.is_elr_enabled:
            elr, known = (), ()
    elif elected.how is How.UNCLEAN:
        isr, elr, known = (leader,), (), ()  # guard: eligible-after-unclean-election
    # guard: last-known-leader-after-a-new-one
    return Sets(sets.replicas, sets.adding, sets.removing, isr, elr, known, last_leader=NOBODY)


def changed(new: Nodes, old: Nodes) -> Nodes | None:
    """A set in a change record: null leaves it alone, and another order is not a change."""
    return None if set(new) == set(old) else new


def within(nodes: Nodes, allowed: Nodes) -> Nodes:
    return tuple(n for n in nodes if n in allowed)


def without(nodes: Nodes, excluded: Nodes) -> Nodes:
    return tuple(n for n in nodes if n not in excluded)
