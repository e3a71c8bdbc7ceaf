"""Bugs of groups that move between the classic and the consumer protocol while their members consume (KIP-848)."""

from tests.planted.changes import ALWAYS, SKIP, Gives, Instead, Swap
from tests.planted.planted import Planted, table

PLAN = "rebalancing.json"
SLOWLY = "rebalancing-slowly.json"  # the same, and answers take longer: others act while a member joins

MIGRATING: dict[str, Planted] = table(
    Planted(
        name="upgrade-forgets-assignments",
        how=Gives("by_id((), image)"),
        trap="KIP-848, Upgrade",
        harm="the first member of the consumer protocol is given what classic members consume",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="upgrade-forgets-what-members-still-own",
        how=ALWAYS,
        trap="KIP-848, Upgrade; KIP-429",
        harm="what a cooperative member is about to give back is given to another one at once",
        seeds=(2, 2),
        plan=SLOWLY,
    ),
    Planted(
        name="upgrade-begins-anew",
        how=Gives("1"),
        trap="KIP-848, Upgrade",
        harm="epochs come again that members had in earlier generations, and fence nobody",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="classic-group-outlives-its-upgrade",
        how=Gives("[*creation_records(group)]"),
        trap="KIP-848, Upgrade",
        harm="the next coordinator loads the classic group, and forgets the consumer group",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="group-never-goes-back",
        how=ALWAYS,
        trap="KIP-848, Downgrade",
        harm="a group of classic members alone is assigned by the coordinator for ever",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="downgrade-begins-anew",
        how=Gives("1"),
        trap="KIP-848, Downgrade",
        harm="generations come again that members had before, and fence nobody",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="downgrade-without-rebalance",
        how=Gives("members[0].member_id"),
        trap="KIP-848, Downgrade",
        harm="nobody consumes what the last member of the consumer protocol had",
        seeds=(3, 3),
        plan=PLAN,
    ),
    Planted(
        name="consumer-group-outlives-its-downgrade",
        how=Gives("(...)[-1:]"),
        trap="KIP-848, Downgrade",
        harm="the next coordinator loads the consumer group, and the members of the classic one are unknown",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="downgrade-forgets-assignments",
        how=Gives("[]"),
        trap="KIP-848, Downgrade",
        harm="a group that goes back and forth gives a partition away while its owner consumes it",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="classic-member-believed-to-own-nothing",
        how=Swap("owned, subscribed", "{}, subscribed"),
        trap="KIP-848, KIP-429",
        harm="a partition is given away while a cooperative member consumes it",
        seeds=(2, 2),
        plan=SLOWLY,
    ),
    Planted(
        name="released-partition-not-fetched",
        how=Gives("False"),
        trap="KIP-848",
        harm="a classic member is not told to join again when what it waits for is free",
        seeds=(2, 2),
        plan=SLOWLY,
    ),
    Planted(
        name="sync-answered-before-its-group-is-committed",
        how=Instead("error, effects = ErrorCode.NONE, answer(ErrorCode.NONE)"),
        trap="an answer needs its record",
        harm="a classic member consumes what the next coordinator gives to another one",
        seeds=(2, 2),
        plan=SLOWLY,
    ),
    Planted(
        name="classic-heartbeat-begins-no-session",
        how=SKIP,
        trap="KIP-848",
        harm="classic members are taken out although they send heartbeats",
        seeds=(1, 1),
        plan=PLAN,
    ),
    Planted(
        name="member-removed-after-it-joined",
        how=SKIP,
        trap="KIP-848",
        harm="a classic member is taken out although it has joined in time",
        seeds=(1, 1),
        plan=PLAN,
    ),
)
