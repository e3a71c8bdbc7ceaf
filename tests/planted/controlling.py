"""Bugs of the controller: registrations, sessions, AlterPartition, elections, and what it says before it is certain."""

from tests.planted.planted import MODEL, Planted, table

BROKERS = "strandline.controller.brokers.brokers"
ISR = "strandline.controller.partitions.isr"
PARTITION = "strandline.controller.partition"
CONTROLLER = "strandline.controller.controller"
BASIS = "strandline.controller.basis"
REGISTRATIONS = "strandline.metadata.registrations"

CONTROLLING = table(
    # --- registrations
    Planted(
        name="new-incarnation-keeps-the-epoch",
        module=BROKERS,
        old="if old is not None and old.incarnation_id == request.incarnation_id:",
        new="if old is not None:",
        trap="T29, T25, KIP-966 check 1: incarnation ids are compared",
        harm="a broker that was restarted stays in every ISR, whatever it lost",
        seeds=(1, 1),
    ),
    Planted(
        name="restart-leaves-the-isr-alone",
        module=BROKERS,
        old="changes = basis.departure(node, lost_tail=not is_clean, withdrawn=withdrawn)",
        new="changes: list[object] = []",
        trap="T29, T6",
        harm="a broker that is back before it was fenced is in sync and leads as before, without its tail",
        seeds=(1, 1),
    ),
    Planted(
        name="unclean-stop-unnoticed",
        module=BROKERS,
        old="is_clean = (NEVER_REGISTERED if old is None else old.epoch) == request.previous_broker_epoch",
        new="is_clean = True",
        trap="T5, KAFKA-18635",
        harm="a broker that lost its tail stays an eligible leader",
        found_by=MODEL,
    ),
    Planted(
        name="zombie-broker-served",
        module=BASIS,
        old="if broker is None or broker.epoch != BrokerEpoch(epoch):",
        new="if broker is None:",
        trap="T25, KIP-631",
        harm="an earlier incarnation's requests keep its successor's session alive and change ISRs",
        seeds=(14, 18),
        plan="zombie-broker-served.json",
    ),
    Planted(
        name="silent-broker-inherited",
        module=CONTROLLER,
        old="            if not broker.fenced:\n                self.heartbeats.touch(broker.node_id, None, now)",
        new="            if False:\n                self.heartbeats.touch(broker.node_id, None, now)",
        trap="T26, KAFKA-18138",
        harm="a broker that dies with the controller is never fenced",
        seeds=(1, 1),
    ),
    # --- AlterPartition
    Planted(
        name="rebooted-follower-accepted",
        module=ISR,
        old="return state.broker_epoch not in (EPOCH_UNKNOWN, broker.epoch)",
        new="return False",
        trap="T14, KAFKA-14139, KIP-903, KIP-966 check 9: broker epochs are compared",
        harm="a follower that lost its tail after it was proposed enters the ISR",
        seeds=(46, 46),
        plan="rebooted-follower-accepted.json",
    ),
    Planted(
        name="old-partition-epoch-accepted",
        module=ISR,
        old="if proposal.partition_epoch < old.partition_epoch:",
        new="if False:",
        trap="KIP-966 check 10: partition epochs are compared",
        harm="a proposal that rests on an ISR of before undoes a change in between",
        seeds=(9, 9),
        plan="old-partition-epoch-accepted.json",
    ),
    Planted(
        name="fenced-broker-accepted",
        module=ISR,
        old="if broker is None or not broker.is_active:",
        new="if broker is None:",
        trap="T16, KIP-841",
        harm="a broker that was just fenced enters the ISR again",
        seeds=(57, 57),
    ),
    Planted(
        name="answers-before-it-is-committed",
        module=CONTROLLER,
        old="if self.last_written < self.high_watermark:",
        new="if self.last_written >= -1:",
        trap="KIP-631",
        harm="an ISR, a topic or an epoch is promised and gone with the controller",
        seeds=(1, 1),
    ),
    Planted(
        name="acts-before-it-knows",
        module="strandline.broker.node",
        old="if leads and not controller.is_active and self.committed.end > self.quorum.epoch_start_offset:",
        new="if leads and not controller.is_active:",
        trap="KAFKA-13968",
        harm="a new controller decides without the last records of its predecessor",
        seeds=(2, 2),
    ),
    # --- elections and epochs
    Planted(
        name="fenced-member-elected",
        module=PARTITION,
        old="return node in sets.isr and lives(node)",
        new="return node in sets.isr",
        trap="T8, KAFKA-19522",
        harm="a dead broker leads, and nobody else does",
        seeds=(3, 3),
    ),
    Planted(
        name="anyone-is-elected",
        module=PARTITION,
        old="    if resort is LastResort.ANYBODY:",
        new="    if True:",
        trap="unclean.leader.election.enable",
        harm="a replica without the committed records leads where the topic forbids it",
        seeds=(3, 3),
    ),
    Planted(
        name="isr-emptied",
        module=PARTITION,
        old="if not isr and not rules.is_elr_enabled:",
        new="if False:",
        trap="KIP-966: without ELR the last member stays",
        harm="the last member leaves the ISR, and nobody can ever lead again",
        seeds=(3, 3),
    ),
    Planted(
        name="isr-change-opens-an-epoch",
        module=PARTITION,
        old="leads_anew = elected.leader != old.leader\n",
        new="leads_anew = elected.leader != old.leader or sets.isr != old.isr\n",
        trap="T17, KAFKA-15021",
        harm="every change of an ISR disconnects all clients of the partition",
        seeds=(1, 1),
    ),
    Planted(
        name="partition-epoch-stands-still",
        module=REGISTRATIONS,
        old="partition_epoch=PartitionEpoch(old.partition_epoch + 1),",
        new="partition_epoch=PartitionEpoch(old.partition_epoch + leads_anew),",
        trap="T6, KAFKA-18106",
        harm="leaders cannot tell one ISR from the next, and the controller cannot tell their proposals",
        seeds=(2, 2),
    ),
    Planted(
        name="leader-epoch-stands-still",
        module=REGISTRATIONS,
        old="leader_epoch=LeaderEpoch(old.leader_epoch + leads_anew),",
        new="leader_epoch=old.leader_epoch,",
        trap="T6, KIP-101",
        harm="two leaders write under one epoch",
        seeds=(1, 1),
    ),
)
