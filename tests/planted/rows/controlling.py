"""Bugs of the controller: registrations, sessions, AlterPartition, elections, and what it says before it is certain."""

from tests.planted.changes import ALWAYS, NEVER, Gives, Swap, Without
from tests.planted.planted import MODEL, Planted, table

ISR = "strandline.controller.partitions.isr"

CONTROLLING = table(
    # --- registrations
    Planted(
        name="new-incarnation-keeps-the-epoch",
        how=Without("incarnation_id"),
        trap="T29, T25, KIP-966 check 1: incarnation ids are compared",
        harm="a broker that was restarted stays in every ISR, whatever it lost",
        seeds=(1, 1),
    ),
    Planted(
        name="restart-leaves-the-isr-alone",
        how=Gives("[]"),
        trap="T29, T6",
        harm="a broker that is back before it was fenced is in sync and leads as before, without its tail",
        seeds=(1, 1),
    ),
    Planted(
        name="unclean-stop-unnoticed",
        how=ALWAYS,
        trap="T5, KAFKA-18635",
        harm="a broker that lost its tail stays an eligible leader",
        found_by=MODEL,
    ),
    Planted(
        name="zombie-broker-served",
        how=Without("epoch"),
        trap="T25, KIP-631",
        harm="an earlier incarnation's requests keep its successor's session alive and change ISRs",
        seeds=(16, 16),
        plan="zombie-broker-served.json",
    ),
    Planted(
        name="silent-broker-inherited",
        how=NEVER,
        trap="T26, KAFKA-18138",
        harm="a broker that dies with the controller is never fenced",
        seeds=(1, 1),
    ),
    # --- AlterPartition
    Planted(
        name="rebooted-follower-accepted",
        how=NEVER,
        trap="T14, KAFKA-14139, KIP-903, KIP-966 check 9: broker epochs are compared",
        harm="a follower that lost its tail after it was proposed enters the ISR",
        seeds=(103, 103),
        plan="rebooted-follower-accepted.json",
    ),
    Planted(
        name="old-partition-epoch-accepted",
        how=NEVER,
        trap="KIP-966 check 10: partition epochs are compared",
        harm="a proposal that rests on an ISR of before undoes a change in between",
        seeds=(9, 9),
        plan="old-partition-epoch-accepted.json",
    ),
    Planted(
        name="fenced-broker-accepted",
        how=Without("is_active"),
        trap="T16, KIP-841",
        harm="a broker that was just fenced enters the ISR again",
        seeds=(57, 57),
    ),
    Planted(
        name="answers-before-it-is-committed",
        how=ALWAYS,
        trap="KIP-631",
        harm="an ISR, a topic or an epoch is promised and gone with the controller",
        seeds=(1, 1),
    ),
    Planted(
        name="acts-before-it-knows",
        how=Without("epoch_start_offset"),
        trap="KAFKA-13968",
        harm="a new controller decides without the last records of its predecessor",
        seeds=(2, 2),
    ),
    # --- elections and epochs
    Planted(
        name="fenced-member-elected",
        how=Without("lives"),
        trap="T8, KAFKA-19522",
        harm="a dead broker leads, and nobody else does",
        seeds=(3, 3),
    ),
    Planted(
        name="anyone-is-elected",
        how=ALWAYS,
        trap="unclean.leader.election.enable",
        harm="a replica without the committed records leads where the topic forbids it",
        seeds=(3, 3),
    ),
    Planted(
        name="isr-emptied",
        how=NEVER,
        trap="KIP-966: without ELR the last member stays",
        harm="the last member leaves the ISR, and nobody can ever lead again",
        seeds=(3, 3),
    ),
    Planted(
        name="isr-change-opens-an-epoch",
        how=Gives("... or sets.isr != old.isr"),
        trap="T17, KAFKA-15021",
        harm="every change of an ISR disconnects all clients of the partition",
        seeds=(1, 1),
    ),
    Planted(
        name="partition-epoch-stands-still",
        how=Swap("1", "leads_anew"),
        trap="T6, KAFKA-18106",
        harm="leaders cannot tell one ISR from the next, and the controller cannot tell their proposals",
        seeds=(2, 2),
        plan="partition-epoch-stands-still.json",
    ),
    Planted(
        name="leader-epoch-stands-still",
        how=Gives("old.leader_epoch"),
        trap="T6, KIP-101",
        harm="two leaders write under one epoch",
        seeds=(1, 1),
    ),
)
