"""Mutants of the partition builder."""

from tests.mutants.mutant import Breaks, Mutant, table

PARTITIONS = table(
    Mutant(
        "a reassignment ends below min ISR",
        "controller/partition.py",
        "    return (missing, lacking) if missing or lacking else None",
        "    return (missing, lacking) if missing else None",
        Breaks.DURABILITY,
        (
            "kip/kip_966/test_kip_966_elr.py::test_a_reassignment_ends_with_min_isr_in_sync_and_only_replicas_eligible",
            "kip/traps/test_moves.py::test_t40_a_move_does_not_end_with_an_isr_that_does_not_carry_its_target",
            "kip/traps/test_moves.py::test_t40_a_cancel_takes_no_eligible_replica_away_that_min_isr_needs",
            "unit/controller/test_partition.py::test_a_reassignment_waits",
            (
                "unit/controller/test_partition.py::"
                "test_a_reassignment_that_adds_replicas_ends_with_an_isr_that_is_large_enough_for_all_of_them"
            ),
        ),
        (
            "A reassignment ends, or is cancelled, with min ISR members in sync",
            "T40",
            "Completes with all added replicas in the ISR",
        ),
    ),
    Mutant(
        "removed replicas stay eligible",
        "controller/partition.py",
        "    elr = tuple(n for n in replicas if n in candidates and n not in isr and n not in lost_tail)",
        (
            "    elr = tuple(n for n in (*replicas, *without(old.replicas, replicas)) if n in can"
            "didates and n not in isr and n not in lost_tail)"
        ),
        Breaks.AGREEMENT,
        (
            "kip/traps/test_moves.py::test_t40_a_replica_that_a_cancel_removes_is_not_eligible",
            "kip/kip_966/test_kip_966_elr.py::test_a_reassignment_ends_with_min_isr_in_sync_and_only_replicas_eligible",
        ),
        ("A reassignment ends, or is cancelled, with min ISR members in sync",),
    ),
    Mutant(
        "an unchanged ISR begins a partition epoch",
        "controller/partition.py",
        "    return None if change == unchanged and not wish.renews_epoch else change",
        "    return change",
        Breaks.ANSWERS,
        (
            "kip/test_kip_497.py::test_an_isr_as_it_is_begins_no_epoch",
            "kip/traps/test_eligible.py::test_t12_the_last_member_that_cannot_leave_makes_no_record",
        ),
        ("A change of the ISR begins a partition epoch but no leader epoch; a", "T12"),
    ),
    Mutant(
        "without ELR the last member leaves the ISR",
        "controller/partition.py",
        "        isr = old.isr\n    isr = within(isr, replicas)",
        "        isr = ()\n    isr = within(isr, replicas)",
        Breaks.DURABILITY,
        (
            ("kip/test_kip_841.py::test_a_broker_that_is_fenced_as_the_last_member_stays_in_the_isr_without_leading"),
            (
                "kip/test_kip_903.py::"
                "test_the_exception_the_last_member_stays_in_the_isr_though_it_crashed_and_is_fenced"
            ),
        ),
        (
            "The last member stays in the ISR, without leading",
            "The last member stays in the ISR though it crashed",
        ),
    ),
    Mutant(
        "who leaves below min ISR is not eligible",
        "controller/partition.py",
        "    candidates = set(old.elr) | set(old.isr)\n",
        "    candidates = set(old.elr)\n",
        Breaks.AGREEMENT,
        (
            "kip/kip_966/test_kip_966_elr.py::test_the_isr_can_be_empty_and_a_fenced_broker_leaves_it",
            "kip/kip_966/test_kip_966_elr.py::test_a_lagging_follower_leaves_the_isr_as_before_and_stays_eligible_below_min_isr",
            "kip/kip_966/test_kip_966_elr.py::test_fencing_updates_the_elr_with_the_isr_that_is_left",
            (
                "kip/kip_966/test_kip_966_elr.py::"
                "test_below_min_isr_the_elr_stays_and_gets_replicas_that_leave_the_isr_but_none_in_sync"
            ),
            "kip/kip_966/test_kip_966_elr.py::test_a_proposed_isr_updates_the_elr_though_no_broker_speaks_of_it",
            "kip/kip_966/test_kip_966_elr.py::test_the_example_4_brokers_with_min_isr_3",
            (
                "kip/kip_966/test_kip_966_elr.py::"
                "test_an_eligible_replica_has_all_up_to_the_high_watermark_when_it_leads_though_it_was_away_meanwhile"
            ),
            "kip/kip_966/test_kip_966_api.py::test_partitions_of_before_have_an_empty_elr_and_the_next_change_records_one",
        ),
        (
            "The ISR can be empty; replicas that lag or are fenced leave it as before",
            "Fencing updates it",
            "A smaller one keeps the ELR, adds replicas that leave the ISR, and removes",
            "AlterPartition's new ISR updates it",
            "4 brokers with min ISR 3",
            "A member has the data up to the high watermark",
            "Partitions from before have an empty ELR; the next change records one",
        ),
    ),
    Mutant(
        "an ISR that is large enough keeps the ELR",
        "controller/partition.py",
        "    if len(isr) >= min_isr:\n        return (), ()\n",
        "",
        Breaks.DURABILITY,
        (
            "kip/kip_966/test_kip_966_elr.py::test_a_proposed_isr_that_is_large_enough_empties_the_elr",
            (
                "kip/kip_966/test_kip_966_elr.py::test_only_members_of_the_last_isr_before_it_is_below_min_isr_can_join_the_elr"
            ),
            (
                "kip/kip_966/test_kip_966_elr.py::test_whatever_happens_but_an_unclean_shutdown_min_isr_replicas_are_electable"
            ),
        ),
        (
            "An ISR of min ISR members or more empties the ELR",
            "No member of the ELR is in the ISR",
        ),
    ),
    Mutant(
        "min ISR 1 drops the ELR of an ISR without members",
        "controller/partition.py",
        "    if len(isr) >= min_isr:\n        return (), ()\n",
        "    if len(isr) >= min_isr - 1:\n        return (), ()\n",
        Breaks.DURABILITY,
        (
            "kip/traps/test_latent.py::"
            "test_l6_a_new_min_isr_keeps_the_last_leader_and_the_eligible_replicas_of_a_partition_without_a_leader",
        ),
        ("A change of min ISR keeps the last leader and the eligible replicas of a",),
    ),
    Mutant(
        "an unclean shutdown leaves eligibility",
        "controller/partition.py",
        "and n not in isr and n not in lost_tail)\n    known",
        "and n not in isr)\n    known",
        Breaks.DURABILITY,
        (
            "kip/kip_966/test_kip_966_elr.py::test_only_an_unclean_shutdown_brings_isr_and_elr_below_min_isr",
            (
                "kip/kip_966/test_kip_966_elr.py::"
                "test_an_unclean_shutdown_takes_a_broker_from_isr_and_elr_before_its_registration_is_written"
            ),
            (
                "kip/traps/test_eligible.py::"
                "test_t5_a_machine_that_lost_its_tail_in_a_power_cut_is_neither_in_sync_nor_eligible"
            ),
        ),
        (
            "unless a member has an unclean shutdown, which ends its eligibility",
            "An unclean shutdown takes a broker from ISR and ELR",
            "T5",
        ),
    ),
    Mutant(
        "an eligible leader stays in the ELR",
        "controller/partition.py",
        "        isr, elr = (leader,), without(sets.elr, (leader,))\n",
        "        isr, elr = (leader,), sets.elr\n",
        Breaks.AGREEMENT,
        (
            "kip/kip_966/test_kip_966_elr.py::test_an_eligible_replica_that_is_unfenced_leads_if_the_isr_is_empty",
            "kip/traps/test_eligible.py::test_t9_a_leader_that_is_elected_from_the_elr_is_no_longer_in_it",
            "unit/controller/test_partition.py::test_change",
        ),
        (
            "A member that is unfenced while the ISR is empty leads, joins the ISR and leaves the ELR",
            "A leader from the ELR becomes the whole ISR and leaves the ELR",
            "T9",
        ),
    ),
    Mutant(
        "eligible replicas lead while they are fenced",
        "controller/partition.py",
        "            if node in sets.elr and lives(node):",
        "            if node in sets.elr:",
        Breaks.AGREEMENT,
        (
            "kip/traps/test_eligible.py::test_t8_a_broker_that_shuts_down_is_not_elected_either",
            "kip/traps/test_eligible.py::test_t8_no_path_elects_a_broker_that_is_not_alive",
            ("kip/traps/test_directories.py::test_t8_no_path_elects_a_replica_whose_directory_is_offline"),
            "kip/kip_966/test_kip_966_election.py::test_the_first_eligible_replica_to_be_unfenced_leads",
            "kip/kip_966/test_kip_966_election.py::test_the_decision_is_made_in_the_order_of_the_kip",
        ),
        (
            "Every election asks whether the broker lives",
            "The partition waits for fenced members of the ELR, and the first to be",
            "The decision in the KIP's order, for each strategy",
        ),
    ),
    Mutant(
        "lost tails are not remembered",
        "controller/partition.py",
        "    known = set(old.last_known_elr) | (candidates & set(lost_tail))\n",
        "    known = set(old.last_known_elr)\n",
        Breaks.AGREEMENT,
        (
            "kip/kip_966/test_kip_966_elr.py::"
            "test_an_eligible_replica_that_lost_its_tail_is_in_last_known_elr_until_the_isr_has_min_isr_members",
        ),
        ("Members that had an unclean shutdown are remembered as LastKnownELR",),
    ),
    Mutant(
        "who led last is not remembered",
        "controller/partition.py",
        "    last_leader = old.leader if old.leader != NOBODY else old.last_known_leader\n",
        "    last_leader = old.last_known_leader\n",
        Breaks.AGREEMENT,
        (
            (
                "kip/kip_966/test_kip_966_elr.py::test_the_leader_that_is_fenced_is_remembered_until_another_one_is_elected"
            ),
            "kip/traps/test_eligible.py::test_t10_last_known_elr_is_kept_until_there_is_a_leader",
        ),
        (
            "The leader that is fenced is recorded as last known leader",
            "T10",
        ),
    ),
    Mutant(
        "nobody is remembered as the last leader",
        "controller/partition.py",
        "    last_leader = old.leader if old.leader != NOBODY else old.last_known_leader\n",
        "    last_leader = old.leader\n",
        Breaks.AGREEMENT,
        ("kip/traps/test_eligible.py::test_l9_no_leader_is_never_recorded_as_the_last_leader",),
        ('"No leader" is never recorded',),
    ),
    Mutant(
        "an unclean election does not say so",
        "controller/partition.py",
        "    if elected.how is How.UNCLEAN:\n        recovery = RECOVERING\n",
        "",
        Breaks.AGREEMENT,
        (
            "kip/traps/test_eligible.py::test_t7_an_unclean_election_says_so_itself",
            "unit/controller/test_partition.py::test_change",
        ),
        (
            "The election records that it was unclean",
            "Only if allowed; the leader is RECOVERING and alone in the ISR",
        ),
    ),
    Mutant(
        "an unclean election has no entry in the ledger",
        "controller/partition.py",
        "        losses=(loss(old, elected, wish, rules),) if elected.how is How.UNCLEAN and not is_lossless else (),",
        "",
        Breaks.ANSWERS,
        (
            "unit/controller/elections/test_recovery.py::test_the_ledger_says_from_where_on_records_may_be_lost",
            "unit/controller/elections/test_recovery.py::test_the_ledger_trusts_an_older_log_up_to_its_high_watermark",
        ),
        ("Every unclean election is recorded with what it may lose, in the record",),
    ),
    Mutant(
        "a downgrade keeps who was eligible",
        "controller/partition.py",
        "    if rules.is_elr_enabled or not isr:",
        "    if rules.is_elr_enabled or not isr or old.elr:",
        Breaks.AGREEMENT,
        (
            "kip/kip_966/test_kip_966_api.py::test_after_a_downgrade_the_next_change_of_a_partition_drops_all_fields_of_it",
        ),
        ("After a downgrade the next change drops all of it",),
    ),
)
