"""Mutants of the metadata's records and its image."""

from tests.mutants.mutant import Breaks, Mutant, table

METADATA = table(
    Mutant(
        "replicas that are being added are not in a snapshot",
        "metadata/registrations.py",
        "        adding_replicas=partition.adding_replicas,\n",
        "",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_a_snapshot_says_all_of_a_partition_whatever_happens_to_it",),
    ),
    Mutant(
        "a record that clears the ELR is not replayed",
        "metadata/replay.py",
        "            if not old.isr or not (old.elr or old.last_known_elr):",
        "            if old.isr:",
        Breaks.DURABILITY,
        (
            "kip/traps/test_eligible.py::"
            "test_t3_brokers_clear_an_elr_as_the_controller_does_and_touch_only_what_had_one",
        ),
        ("T3",),
    ),
    Mutant(
        "what has no ISR loses its ELR by a record that clears it",
        "metadata/replay.py",
        "            if not old.isr or not (old.elr or old.last_known_elr):",
        "            if not (old.elr or old.last_known_elr):",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_the_elr_of_a_partition_without_an_isr_is_not_cleared",),
        ("L6",),
    ),
    Mutant(
        "a record of a shutdown can take it back",
        "metadata/replay.py",
        "in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown > 0,",
        "in_controlled_shutdown=record.in_controlled_shutdown > 0,",
        Breaks.AGREEMENT,
        (
            (
                "unit/controller/test_brokers.py::"
                "test_a_broker_that_is_fenced_while_it_shuts_down_is_not_unfenced_by_a_heartbeat_that_has_overtaken_its_wish"
            ),
            "unit/controller/test_brokers.py::test_no_later_change_of_its_registration_takes_a_shutdown_back",
        ),
        ("A controlled shutdown is not taken back",),
    ),
    Mutant(
        "a broker that shuts down may be in an ISR",
        "metadata/registrations.py",
        "        return not self.fenced and not self.in_controlled_shutdown",
        "        return not self.fenced",
        Breaks.AGREEMENT,
        (
            "kip/test_kip_841.py::test_the_controller_refuses_an_isr_with_an_ineligible_broker_as_a_whole",
            "kip/test_kip_841.py::test_whoever_leads_next_as_controller_refuses_it_too",
            "kip/traps/test_in_sync.py::test_t16_a_controller_refuses_who_is_fenced_or_shuts_down",
            ("kip/test_kip_841.py::test_t16_a_leader_does_not_propose_a_broker_that_its_metadata_calls_ineligible"),
            "kip/traps/test_in_sync.py::test_t16_a_leader_does_not_propose_who_is_fenced_or_shuts_down",
        ),
        (
            "An ISR with a broker that is fenced or shuts down is refused as a whole",
            "It proposes nobody whom its metadata calls fenced or shutting down",
            "T16",
        ),
    ),
    Mutant(
        "effective min ISR is as configured",
        "metadata/registrations.py",
        "    return max(1, min(configured, len(replicas) - len(adding)))",
        "    return max(1, configured)",
        Breaks.ANSWERS,
        (
            "kip/test_kip_966.py::test_more_than_there_are_replicas_is_as_many_as_there_are",
            "kip/traps/test_in_sync.py::test_t19_min_isr_counts_no_more_replicas_than_there_are",
            "unit/metadata/test_image.py::test_effective_min_isr",
            "kip/traps/test_moves.py::test_t19_a_move_after_which_min_isr_counts_more_begins_a_leader_epoch",
        ),
        (
            "Effective min ISR is min(min.insync.replicas, replication factor)",
            "T19",
        ),
    ),
    Mutant(
        "replicas that are being added count for min ISR",
        "metadata/registrations.py",
        "    return max(1, min(configured, len(replicas) - len(adding)))",
        "    return max(1, min(configured, len(replicas)))",
        Breaks.AGREEMENT,
        ("kip/traps/test_latent.py::test_l2_replicas_that_are_only_being_added_do_not_count",),
        ("Min ISR counts by the replicas of each partition, without those that are being added",),
    ),
    Mutant(
        "an empty ISR loses its ELR to another min ISR",
        "metadata/replay.py",
        "            if not old.isr or not (old.elr or old.last_known_elr):",
        "            if not (old.elr or old.last_known_elr):",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_the_elr_of_a_partition_without_an_isr_is_not_cleared",),
        ("Another min ISR leaves a partition without a leader who led last and who is eligible",),
    ),
    Mutant(
        "a change of an unnamed leader begins a leader epoch",
        "metadata/registrations.py",
        "        leader_epoch=LeaderEpoch(old.leader_epoch + leads_anew),",
        "        leader_epoch=LeaderEpoch(old.leader_epoch + 1),",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_a_change_without_a_leader_keeps_the_leader_epoch",),
    ),
    Mutant(
        "eligible replicas are not in a snapshot",
        "metadata/registrations.py",
        "        eligible_leader_replicas=partition.elr or None,\n        last",
        "        last",
        Breaks.DURABILITY,
        ("unit/metadata/test_image.py::test_a_snapshot_says_everything",),
    ),
    Mutant(
        "cordoned directories are not in a snapshot",
        "metadata/registrations.py",
        "        cordoned_log_dirs=broker.cordoned or None,\n",
        "",
        Breaks.ANSWERS,
        ("unit/controller/test_cordoned.py::test_it_is_in_a_snapshot_and_a_new_incarnation_says_it_anew",),
    ),
    Mutant(
        "losses are forgotten with the next change",
        "metadata/registrations.py",
        "        losses=kept(old.losses + change.losses) if change.losses else old.losses,",
        "        losses=kept(change.losses) if change.losses else old.losses,",
        Breaks.ANSWERS,
        ("unit/metadata/test_image.py::test_a_loss_is_told_beside_those_before_it",),
    ),
    Mutant(
        "a deleted topic stays indexed",
        "metadata/replay.py",
        "        image.unindex(at, partition)\n",
        "",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_the_indexes_follow_isr_elr_and_deletion",),
    ),
    Mutant(
        "a leader that comes back leads in its old epoch",
        "metadata/registrations.py",
        "    leads_anew = change.leader != r.NO_LEADER_CHANGE\n",
        "    leads_anew = change.leader not in (r.NO_LEADER_CHANGE, old.leader, old.last_known_leader)\n",
        Breaks.DURABILITY,
        (
            "kip/test_kip_101.py::test_a_leader_that_returns_without_an_election_leads_in_a_new_epoch",
            "kip/test_kip_101.py::test_t34_an_epoch_whose_entry_a_power_loss_took_is_never_led_again",
        ),
        ("A leader that comes back without an election leads in a new epoch",),
    ),
    Mutant(
        "who led last is not in a snapshot",
        "metadata/registrations.py",
        "        last_known_leader=partition.last_known_leader,\n        losses",
        "        losses",
        Breaks.AGREEMENT,
        (
            "kip/test_kip_966_elr.py::"
            "test_whom_a_recovery_must_ask_and_who_led_last_stand_in_the_metadata_log_and_in_its_snapshots",
        ),
        ("LastKnownELR and the last known leader are in the metadata log",),
    ),
    Mutant(
        "LastKnownELR is not in a snapshot",
        "metadata/registrations.py",
        "        last_known_elr=partition.last_known_elr or None,\n",
        "",
        Breaks.AGREEMENT,
        (
            "kip/test_kip_966_elr.py::"
            "test_whom_a_recovery_must_ask_and_who_led_last_stand_in_the_metadata_log_and_in_its_snapshots",
        ),
        ("LastKnownELR and the last known leader are in the metadata log",),
    ),
    Mutant(
        "Aggressive is the default",
        "metadata/strategy.py",
        "    return strategy_in(static) or Strategy.BALANCED",
        "    return strategy_in(static) or Strategy.AGGRESSIVE",
        Breaks.DURABILITY,
        (
            "kip/test_kip_966_election.py::test_balanced_is_the_default",
            "kip/test_kip_966_election.py::test_the_nearest_level_decides_and_on_one_level_the_strategy",
        ),
        ("Balanced is the default; the older key is mapped",),
    ),
    Mutant(
        "the older key set to false means None",
        "metadata/strategy.py",
        "    return Strategy.AGGRESSIVE if is_unclean_allowed else Strategy.BALANCED",
        "    return Strategy.AGGRESSIVE if is_unclean_allowed else Strategy.NONE",
        Breaks.AGREEMENT,
        (
            "kip/test_kip_966_election.py::test_the_deprecated_key_is_mapped",
            "kip/test_kip_966_election.py::test_the_nearest_level_decides_and_on_one_level_the_strategy",
        ),
        ("Balanced is the default; the older key is mapped",),
    ),
)
