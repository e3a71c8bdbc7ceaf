"""Bugs of groups of the consumer protocol (KIP-848). Their laws are in `sim/laws/clients/promises.py`; how a group must
be in the end is in `sim/workloads/rebalancing.py`."""

from tests.planted.changes import ALWAYS, NEVER, SKIP, Gives, Instead, Swap, Without
from tests.planted.planted import Planted, table

PLAN = "rebalancing.json"  # short: a node fails and comes back, and another one is killed

PROMISED: dict[str, Planted] = table(
    Planted(
        name="partition-given-before-it-is-released",
        how=ALWAYS,
        trap="KIP-848",
        harm="two members consume one partition, and set each other's position back",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="revoked-before-it-is-reported",
        how=NEVER,
        trap="KIP-848",
        harm="a partition is given away while its owner consumes it",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="revoking-member-moved-on",
        how=NEVER,
        trap="KIP-848",
        harm="a partition that is being given back is given away with the owner's next heartbeat, whatever that says",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="silence-taken-for-a-report",
        how=Gives("owned is not None and (...)"),
        trap="KIP-848: a field that is null did not change",
        harm="a heartbeat that says nothing about partitions counts as one that owns none",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="heartbeat-answered-before-its-record-is-committed",
        how=Instead(
            "error, effects = self.write(shard, group.group_id, records, lambda _: [], now)\n"
            "if error is ErrorCode.NONE:\n"
            "    effects = effects + answer(error)"
        ),
        trap="an answer needs its record",
        harm="a member consumes what the next coordinator gives to another one",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="heartbeat-answered-before-its-group-is-committed",
        how=Instead("return ErrorCode.NONE, answer(ErrorCode.NONE)"),
        trap="an answer needs its record",
        harm="a member that repeats its heartbeat is answered what the next coordinator does not know",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="loaded-group-taken-for-committed",
        how=Gives("True"),
        trap="an answer needs its record",
        harm="a new coordinator answers what it has read, and loses it",
        seeds=(2, 2),
        plan="loaded-group-taken-for-committed.json",
    ),
    Planted(
        name="older-member-epoch-accepted",
        how=ALWAYS,
        trap="KIP-848",
        harm="a process that was taken for dead reports what it owned then, and what it owns is given away",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="older-epoch-commits",
        how=ALWAYS,
        trap="KIP-848, KIP-1251",
        harm="a member sets the position of the next owner back",
        seeds=(3, 3),
        plan=PLAN,
    ),
    Planted(
        name="stranger-commits-for-a-group",
        how=Instead("if member is None:\n    return None"),
        trap="KIP-848",
        harm="a member that was taken out sets the position of the next owner back",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="instance-id-taken-from-a-living-member",
        how=NEVER,
        trap="KIP-848, KIP-345",
        harm="two processes with one instance id take each other's partitions all the time",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="replaced-member-stays",
        how=SKIP,
        trap="KIP-848, KIP-345",
        harm="a static member has two ids, and the next coordinator gives its partitions to the one that is dead",
        seeds=(1, 1),
        plan=PLAN,
    ),
)

STABLE: dict[str, Planted] = table(
    Planted(
        name="rebalance-timeout-forgotten",
        how=NEVER,
        trap="KIP-848",
        harm="a member that gives nothing back holds up its group for ever",
        seeds=(2, 2),
        plan=PLAN,
    ),
    Planted(
        name="session-without-end",
        how=Gives("... * 1000"),
        trap="KIP-848",
        harm="nobody consumes the partitions of a dead member",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="loaded-member-has-no-session",
        how=Swap("session_ms", "0"),
        trap="KIP-848",
        harm="a new coordinator takes all members out that have not found it yet",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="heartbeat-begins-no-session",
        how=NEVER,
        trap="KIP-848",
        harm="members are taken out although they send heartbeats",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="lost-answer-not-repeated",
        how=Without("says_all"),
        trap="KIP-848: a member that says everything is told everything",
        harm="a member whose answer was lost never learns of its partitions",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="no-epoch-for-other-topics",
        how=Gives("not must"),
        trap="KIP-848, KIP-1101",
        harm="nobody consumes the new partitions of a topic",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="group-not-told-of-topics",
        how=SKIP,
        trap="KIP-848",
        harm="nobody consumes the new partitions of a topic, until members change",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="hash-without-topic-ids",
        how=Swap("{topic.topic_id.hex()}", ""),
        trap="KIP-1101",
        harm="a topic that was deleted and created again is not consumed",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="expression-not-resolved-again",
        how=Gives("known is not None"),
        trap="KIP-848",
        harm="a subscription by expression never sees new topics",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="target-of-the-old-subscriptions",
        how=Gives(
            "frozenset(facts[name].topic_id for name in self.topics_of(self.group.members.get(member_id, member))"
            " if name in facts)"
        ),
        trap="KIP-848",
        harm="a member that subscribes to something else gets what it wanted before",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="group-epoch-stands-still",
        how=Swap("+ 1", ""),
        trap="KIP-848",
        harm="a group with other members keeps its target assignment",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="target-outlives-its-member",
        how=Gives("(r.ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id), None)"),
        trap="KIP-848",
        harm="the log of a group grows with each member that ever was, and no cleaner takes that away",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="member-outlives-its-tombstone",
        how=Gives("(r.ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id), None)"),
        trap="KIP-848",
        harm="a member that has left is assigned partitions for ever",
        seeds=(1, 1),
        plan=PLAN,
    ),
)
