"""Bugs of what stands behind the ISR: eligible replicas, who led last, and what is remembered of both (KIP-966)."""

from tests.planted.planted import MODEL, Change, Planted, table

PARTITION = "strandline.controller.partition"
CONFIGS = "strandline.controller.configs"

LAST_REPLICAS = table(
    # --- who is eligible
    Planted(
        name="call-site-without-elr",
        module="strandline.controller.brokers.directories",
        old="        return plan_change(at, old, Wish(located=located), basis.rules(topic))",
        new=(
            "        from msgspec.structs import replace\n"
            "        rules = replace(basis.rules(topic), is_elr_enabled=False)\n"
            "        return plan_change(at, old, Wish(located=located), rules)"
        ),
        trap="T9, KIP-966",
        harm="a broker that says where its replicas lie wipes out who is eligible",
        seeds=(1, 3),
        plan="call-site-without-elr.json",
    ),
    Planted(
        name="eligible-replicas-not-indexed",
        module="strandline.metadata.state",
        old="        for node in new.isr + new.elr:\n            self.eligible",
        new="        for node in new.isr:\n            self.eligible",
        trap="L1",
        harm="a broker that lost its tail stays eligible: nobody finds the partitions in which it is",
        seeds=(1, 3),
        plan="eligible-replicas-not-indexed.json",
    ),
    Planted(
        name="min-isr-by-replicas-to-be",
        module=PARTITION,
        old="        min_isr = effective_min_isr(rules.min_isr, replicas, adding)",
        new="        min_isr = effective_min_isr(rules.min_isr, replicas, ())",
        trap="L2, T19",
        harm="controller and leader count another min ISR while replicas are added",
        found_by=MODEL,
    ),
    Planted(
        name="unregistered-broker-eligible",
        module="strandline.controller.brokers.brokers",
        old="    changes = basis.departure(broker.node_id, lost_tail=True)",
        new="    changes = basis.departure(broker.node_id, lost_tail=False)",
        trap="L4",
        harm="a broker that never comes back is waited for, for ever",
        seeds=(1, 3),
        plan="unregistered-broker-eligible.json",
    ),
    Planted(
        name="eligible-in-any-directory",
        module="strandline.controller.brokers.directories",
        old="    if former != directory and not broker.is_online(former) and rules.is_elr_enabled:",
        new="    if False:",
        trap="L5",
        harm="a replica that began empty in another directory is elected as if it had what the lost one had",
        seeds=(8, 8),
        plan="eligible-in-any-directory.json",
        also=Change(
            "strandline.log.evidence.clean_shutdown",
            "uuid_text(directory_id), together, place.dead)",
            "uuid_text(directory_id))",
        ),
    ),
    # --- who led last
    Planted(
        name="last-leader-elected-cleanly",
        module=PARTITION,
        old="        return Elected(sets.last_leader, How.UNCLEAN,",
        new="        return Elected(sets.last_leader, How.IN_SYNC,",
        trap="L8",
        harm="who led last leads again after it lost its tail, and nobody is told",
        seeds=(1, 3),
        plan="last-leader-elected-cleanly.json",
    ),
    Planted(
        name="dead-last-leader-elected",
        module=PARTITION,
        old="not sets.elr and lives(sets.last_leader):",
        new="not sets.elr and sets.last_leader != NOBODY:",
        trap="KAFKA-19522, T8",
        harm="a dead broker leads because it led last",
        seeds=(1, 3),
        plan="dead-last-leader-elected.json",
    ),
    Planted(
        name="last-leader-overwritten-by-nobody",
        module=PARTITION,
        old="    last_leader = old.leader if old.leader != NOBODY else old.last_known_leader",
        new="    last_leader = old.leader",
        trap="T10, L9",
        harm="who led last is forgotten with the next change of a partition without a leader",
        seeds=(1, 3),
        plan="last-leader-overwritten-by-nobody.json",
    ),
    Planted(
        name="deleted-without-isr-stays-indexed",
        module="strandline.metadata.state",
        old="            self.unindex(at, partition)\n",
        new="            if partition.isr:\n                self.unindex(at, partition)\n",
        trap="L10",
        harm="a topic that is deleted while nobody is in sync stays in the index, and a later fencing breaks on it",
        seeds=(1, 1),
        plan="deleted-without-isr-stays-indexed.json",
    ),
)
