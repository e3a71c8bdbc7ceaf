"""Bugs of what stands behind the ISR: eligible replicas, who led last, and what is remembered of both (KIP-966)."""

from tests.planted.changes import ALWAYS, NEVER, Gives, Instead, Swap
from tests.planted.planted import MODEL, Change, Planted, table

LAST_REPLICAS = table(
    # --- who is eligible
    Planted(
        name="call-site-without-elr",
        guard="moves-between-directories",
        how=Swap(
            "basis.rules(topic)", "__import__('msgspec').structs.replace(basis.rules(topic), is_elr_enabled=False)"
        ),
        trap="T9, KIP-966",
        harm="a broker that says where its replicas lie wipes out who is eligible",
        seeds=(1, 3),
        plan="call-site-without-elr.json",
    ),
    Planted(
        name="eligible-replicas-not-indexed",
        how=Gives("new.isr"),
        trap="L1",
        harm="a broker that lost its tail stays eligible: nobody finds the partitions in which it is",
        seeds=(1, 3),
        plan="eligible-replicas-not-indexed.json",
    ),
    Planted(
        name="min-isr-by-replicas-to-be",
        how=Swap("adding", "()"),
        trap="L2, T19",
        harm="controller and leader count another min ISR while replicas are added",
        found_by=MODEL,
    ),
    Planted(
        name="unregistered-broker-eligible",
        guard="unregistering-loses-the-tail",
        how=Swap("True", "False"),
        trap="L4",
        harm="a broker that never comes back is waited for, for ever",
        seeds=(1, 3),
        plan="unregistered-broker-eligible.json",
    ),
    Planted(
        name="eligible-in-any-directory",
        guard="begins-in-an-empty-directory",
        how=NEVER,
        trap="L5",
        harm="a replica that began empty in another directory is elected as if it had what the lost one had",
        seeds=(8, 8),
        plan="eligible-in-any-directory.json",
        also=Change("marker-names-all-directories", Swap(", together, place.dead", "")),
    ),
    # --- who led last
    Planted(
        name="last-leader-elected-cleanly",
        how=Swap("UNCLEAN", "IN_SYNC"),
        trap="L8",
        harm="who led last leads again after it lost its tail, and nobody is told",
        seeds=(1, 3),
        plan="last-leader-elected-cleanly.json",
    ),
    Planted(
        name="dead-last-leader-elected",
        guard="last-known-leader",
        how=Swap("lives(sets.last_leader)", "sets.last_leader != NOBODY"),
        trap="KAFKA-19522, T8",
        harm="a dead broker leads because it led last",
        seeds=(1, 3),
        plan="dead-last-leader-elected.json",
    ),
    Planted(
        name="last-leader-overwritten-by-nobody",
        guard="who-led-last",
        how=ALWAYS,
        trap="T10, L9",
        harm="who led last is forgotten with the next change of a partition without a leader",
        seeds=(1, 3),
        plan="last-leader-overwritten-by-nobody.json",
    ),
    Planted(
        name="deleted-without-isr-stays-indexed",
        how=Instead("if partition.isr:\n    ..."),
        trap="L10",
        harm="a topic that is deleted while nobody is in sync stays in the index, and a later fencing breaks on it",
        seeds=(1, 1),
        plan="deleted-without-isr-stays-indexed.json",
    ),
)
