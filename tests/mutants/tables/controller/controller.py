"""Mutants of the controller: proposals, registrations, recoveries."""

from tests.mutants.mutant import Breaks, Mutant, table

CONTROLLER = table(
    Mutant(
        "a proposal of an older partition epoch is accepted",
        "controller/partitions/isr.py",
        "    if proposal.partition_epoch < old.partition_epoch:\n        return E.INVALID_UPDATE_VERSION\n",
        "",
        Breaks.DURABILITY,
        (
            (
                "kip/test_chapter.py::"
                "test_5_both_epochs_are_strictly_monotonic_and_an_alter_partition_commits_only_at_the_matching_epoch"
            ),
            "kip/test_kip_497.py::test_a_proposal_of_an_older_partition_epoch_is_refused_and_changes_nothing",
        ),
        (
            "Both epochs only grow, and AlterPartition commits only at the matching one",
            "A proposal is committed only at the partition epoch that it was made in",
        ),
    ),
    Mutant(
        "every stop counts as unclean",
        "controller/brokers/brokers.py",
        "lost_tail=not is_clean",
        "lost_tail=True",
        Breaks.AGREEMENT,
        ("kip/kip_966/test_kip_966_shutdown.py::test_the_same_epoch_as_is_registered_is_a_clean_shutdown_end_to_end",),
        ("A registration with the previous broker epoch means a clean shutdown, end",),
    ),
    Mutant(
        "every stop counts as clean",
        "controller/brokers/brokers.py",
        "lost_tail=not is_clean",
        "lost_tail=False",
        Breaks.DURABILITY,
        (
            (
                "kip/kip_966/test_kip_966_shutdown.py::"
                "test_a_registration_that_cannot_say_an_epoch_is_one_after_an_unclean_shutdown"
            ),
            (
                "kip/kip_966/test_kip_966_shutdown.py::test_an_epoch_that_is_not_the_registered_one_means_an_unclean_shutdown"
            ),
        ),
        ("A registration with the previous broker epoch means a clean shutdown, end",),
    ),
    Mutant(
        "a registration that names no epoch counts as clean",
        "controller/brokers/brokers.py",
        "== request.previous_broker_epoch\n",
        "== request.previous_broker_epoch or request.previous_broker_epoch == -1\n",
        Breaks.DURABILITY,
        (
            "kip/kip_966/test_kip_966_shutdown.py::"
            "test_a_registration_that_cannot_say_an_epoch_is_one_after_an_unclean_shutdown",
        ),
        ("A registration with the previous broker epoch means a clean shutdown, end",),
    ),
    Mutant(
        "finished recoveries are counted once",
        "controller/partitions/recovery.py",
        "        self.finished += len(changes)\n",
        "        self.finished = max(self.finished, min(1, len(changes)))\n",
        Breaks.ANSWERS,
        ("unit/broker/metrics/test_gauges.py::test_recoveries_are_counted_until_there_is_another_controller",),
        ("unclean_recovery_finished_count, from 0 with each controller",),
    ),
    Mutant(
        "who has consent to stop is let in by a late heartbeat",
        "controller/brokers/brokers.py",
        "    shutdown = START_SHUTDOWN if is_leaving and not broker.in_controlled_shutdown else 0\n",
        "    shutdown = 0\n",
        Breaks.AGREEMENT,
        ("unit/controller/test_brokers.py::test_who_has_consent_to_stop_is_not_let_in_by_what_it_said_before",),
        ("A controlled shutdown is not cancelled",),
    ),
    Mutant(
        "a shutdown is taken back",
        "controller/brokers/brokers.py",
        (
            "    if broker.in_controlled_shutdown:\n"
            "        return Next(fenced=broker.fenced, shutting_down=True)  # A shutdown is not taken back.\n"
        ),
        "",
        Breaks.AGREEMENT,
        (
            "unit/controller/test_brokers.py::"
            "test_a_broker_that_is_fenced_while_it_shuts_down_is_not_unfenced_by_a_heartbeat_that_has_overtaken_its_wish",
        ),
        ("A controlled shutdown is not cancelled",),
    ),
    Mutant(
        "a proposal of who leads no longer is accepted",
        "controller/partitions/isr.py",
        "    if proposal.leader_epoch < old.leader_epoch:\n        return E.FENCED_LEADER_EPOCH\n",
        "",
        Breaks.DURABILITY,
        ("kip/test_kip_497.py::test_a_deposed_leader_is_fenced",),
        ("A broker that does not lead, or no longer leads, is rejected",),
    ),
    Mutant(
        "who does not lead may propose",
        "controller/partitions/isr.py",
        "    if broker != old.leader:\n        return E.INVALID_REQUEST\n",
        "",
        Breaks.AGREEMENT,
        ("kip/test_kip_497.py::test_a_broker_that_is_not_the_leader_proposes_nothing",),
        ("A broker that does not lead, or no longer leads, is rejected",),
    ),
    Mutant(
        "a leader that knows more than the controller is fenced",
        "controller/partitions/isr.py",
        (
            "    if proposal.leader_epoch > old.leader_epoch or proposal.partition_epoch > old.pa"
            "rtition_epoch:\n"
            "        return E.NOT_CONTROLLER\n"
        ),
        "",
        Breaks.AGREEMENT,
        ("kip/test_kip_497.py::test_a_leader_that_knows_more_than_the_controller_is_sent_to_the_next_one",),
        ("A proposal is committed only at the partition epoch that it was made in",),
    ),
    Mutant(
        "an ineligible broker is left out of a proposed ISR",
        "controller/partitions/isr.py",
        "    if any(is_ineligible(state, old, basis) for state in states):",
        "    if all(is_ineligible(state, old, basis) for state in states):",
        Breaks.DURABILITY,
        (
            "kip/test_kip_841.py::test_the_controller_refuses_an_isr_with_an_ineligible_broker_as_a_whole",
            "kip/test_kip_841.py::test_the_next_controller_rejects_it_too",
            "kip/traps/test_in_sync.py::test_t16_a_controller_rejects_a_broker_that_is_fenced_or_shuts_down",
            (
                "kip/test_kip_903.py::"
                "test_the_controller_compares_the_epoch_of_every_member_and_not_only_of_the_newcomer"
            ),
            ("unit/controller/test_isr.py::test_a_follower_that_was_restarted_after_it_caught_up_is_not_admitted"),
        ),
        (
            "An ISR with a broker that is fenced or shuts down is rejected as a whole",
            "The epoch of every proposed member must be that of its registration",
        ),
    ),
    Mutant(
        "who leaves stays in its ISRs and leaderships",
        "controller/basis.py",
        "        for at in sorted({*self.image.eligible.get(node, {}), *withdrawn}):\n",
        "        for at in sorted(withdrawn):\n",
        Breaks.AGREEMENT,
        (
            "kip/test_kip_841.py::"
            "test_an_ineligible_broker_leaves_the_isr_and_the_leadership_in_the_batch_that_makes_it_so",
        ),
        ("A broker that becomes so leaves ISRs and leaderships in the same batch",),
    ),
    Mutant(
        "only the newcomer's broker epoch is compared",
        "controller/partitions/isr.py",
        "    if any(is_ineligible(state, old, basis) for state in states):",
        ("    if any(is_ineligible(state, old, basis) for state in states if state.broker_id not in old.isr):"),
        Breaks.DURABILITY,
        ("kip/test_kip_903.py::test_the_controller_compares_the_epoch_of_every_member_and_not_only_of_the_newcomer",),
        ("The epoch of every proposed member must be that of its registration",),
    ),
    Mutant(
        "no epoch helps a broker that is fenced",
        "controller/partitions/isr.py",
        "    if broker is None or not broker.is_active:\n        return True\n",
        (
            "    if broker is None or not (broker.is_active or state.broker_epoch == EPOCH_UNKNOWN):\n"
            "        return True\n"
        ),
        Breaks.DURABILITY,
        ("kip/test_kip_903.py::test_a_fenced_broker_is_rejected_with_minus_one_too",),
        ("−1 is not compared, and a fenced broker is rejected with it too",),
    ),
    Mutant(
        "a restarted broker stays in the ISR until it is fenced",
        "controller/brokers/brokers.py",
        "    return Plan((*changes, record), BrokerRegistrationResponse(broker_epoch=epoch))\n\n\ndef why",
        ("    return Plan((record,), BrokerRegistrationResponse(broker_epoch=basis.next_offset))\n\n\ndef why"),
        Breaks.DURABILITY,
        (
            "kip/test_kip_903.py::test_a_new_incarnation_leaves_every_isr_in_the_batch_that_registers_it",
            (
                "kip/traps/test_registration.py::"
                "test_t29_a_restart_within_the_session_leaves_every_isr_before_its_new_epoch_can_be_used"
            ),
            (
                "kip/traps/test_eligible.py::"
                "test_t6_what_a_registration_takes_away_goes_through_the_builder_and_opens_epochs"
            ),
            (
                "kip/traps/test_eligible.py::"
                "test_t5_a_machine_that_lost_its_tail_in_a_power_cut_is_neither_in_sync_nor_eligible"
            ),
        ),
        (
            "A broker that registers again leaves every ISR, so a change accepted just",
            "T29",
            "A broker that stopped uncleanly leaves ISR and ELR in the batch that",
        ),
    ),
    Mutant(
        "Balanced recovers without all of LastKnownELR",
        "controller/partitions/recovery.py",
        (
            "        is_enough = bool(asked_for) and all(node in known for node in asked_for) and"
            " (have_all_answered or is_over)"
        ),
        (
            "        is_enough = bool(asked_for) and any(node in known for node in asked_for) and"
            " (have_all_answered or is_over)"
        ),
        Breaks.DURABILITY,
        (
            "unit/controller/elections/test_recovery.py::test_balanced_waits_for_all_replicas_that_were_eligible_last_beyond_the_timeout",
        ),
        ("Balanced elects when all of LastKnownELR have answered",),
    ),
    Mutant(
        "the longest log wins over a later epoch",
        "controller/partitions/recovery.py",
        "key=lambda node: known[node].evidence.rank)",
        "key=lambda node: known[node].evidence.rank[::-1])",
        Breaks.DURABILITY,
        (
            (
                "kip/kip_966/test_kip_966_recovery.py::"
                "test_the_log_end_and_the_epoch_of_each_replica_are_asked_for_and_the_most_data_leads"
            ),
            "unit/controller/elections/test_recovery.py::test_the_later_epoch_wins_over_the_longer_log",
            "unit/controller/elections/test_recovery.py::test_the_choice_is_that_of_a_sorted_list",
        ),
        ("the highest epoch and then the longest log leads",),
    ),
    Mutant(
        "answers of an earlier incarnation count in a recovery",
        "controller/partitions/recovery.py",
        "            and answers[node].broker_epoch == brokers[node].epoch\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/controller/elections/test_recovery.py::test_an_answer_of_another_incarnation_does_not_count",
            (
                "kip/kip_966/test_kip_966_recovery.py::"
                "test_a_replica_that_restarts_after_its_answer_is_asked_anew_once_it_has_registered"
            ),
        ),
        (
            "A replica reports its broker epoch and the leader epoch that it knows",
            "If a broker fails after its answer, the answer is ignored once it has",
        ),
    ),
    Mutant(
        "answers of an earlier leader epoch count in a recovery",
        "controller/partitions/recovery.py",
        "            and answers[node].leader_epoch == partition.leader_epoch\n",
        "",
        Breaks.DURABILITY,
        ("unit/controller/elections/test_recovery.py::test_an_answer_from_before_the_partitions_epoch_does_not_count",),
        ("A replica reports its broker epoch and the leader epoch that it knows",),
    ),
    Mutant(
        "Aggressive waits for all answers for ever",
        "controller/partitions/recovery.py",
        "        is_enough = all(node in known for node in candidates(partition)) or is_over",
        "        is_enough = all(node in known for node in candidates(partition))",
        Breaks.AGREEMENT,
        (
            (
                "unit/controller/elections/test_recovery.py::test_aggressive_does_not_wait_for_eligible_replicas_that_are_fenced"
            ),
            "unit/controller/elections/test_recovery.py::test_aggressive_takes_the_first_answer_after_the_timeout",
        ),
        ("Aggressive elects by the answers within the timeout",),
    ),
    Mutant(
        "a designated leader need not be alive",
        "controller/partitions/recovery.py",
        "        return recovery.designated if recovery.designated in known else None",
        "        return recovery.designated",
        Breaks.AGREEMENT,
        (
            "unit/controller/elections/test_manual_elections.py::test_by_hand_a_designated_replica_leads_though_another_has_more",
        ),
        ("An operator can designate a leader, or elect the longest log in the",),
    ),
    Mutant(
        "an ISR need not have its leader",
        "controller/partitions/isr.py",
        " or not set(isr) <= set(old.replicas) or old.leader not in isr:",
        " or not set(isr) <= set(old.replicas):",
        Breaks.AGREEMENT,
        ("unit/controller/test_isr.py::test_a_proposal_is_refused",),
        ("The controller rejects proposals, each reason with its error",),
    ),
    Mutant(
        "an ISR may have others than replicas",
        "controller/partitions/isr.py",
        " or not set(isr) <= set(old.replicas) or old.leader not in isr:",
        " or old.leader not in isr:",
        Breaks.AGREEMENT,
        ("unit/controller/test_isr.py::test_a_proposal_is_refused",),
        ("The controller rejects proposals, each reason with its error",),
    ),
    Mutant(
        "a recovering leader may add members",
        "controller/partitions/isr.py",
        (
            "    if proposal.leader_recovery_state == RECOVERING and (len(isr) > 1 or old.leader_"
            "recovery_state == RECOVERED):\n"
            "        return E.INVALID_REQUEST\n"
        ),
        "",
        Breaks.AGREEMENT,
        ("unit/controller/test_isr.py::test_a_recovering_leader_stays_alone_until_it_says_recovered",),
        ("A recovering leader is alone in the ISR until it reports that it has",),
    ),
    Mutant(
        "who was replaced by its own proposal is not told",
        "controller/partitions/isr.py",
        "        return refused(at, E.NEW_LEADER_ELECTED), change\n",
        "        return refused(at, E.NONE), change\n",
        Breaks.AGREEMENT,
        ("unit/controller/test_isr.py::test_a_reassignment_that_replaces_the_leader_ends_with_its_own_proposal",),
        ("NEW_LEADER_ELECTED when the change itself ends a reassignment",),
    ),
    Mutant(
        "a cancel may leave too few in sync",
        "controller/partitions/reassignments.py",
        "        if len(left) >= needed:\n            return None\n",
        "        return None\n",
        Breaks.DURABILITY,
        (
            "kip/traps/test_moves.py::test_t40_a_cancel_must_leave_an_isr_that_carries_the_replicas_of_before",
            "kip/traps/test_moves.py::test_t40_a_cancel_takes_no_eligible_replica_away_that_min_isr_needs",
            "unit/controller/test_reassignments.py::test_a_cancel_that_would_leave_too_few_in_sync_is_refused",
            "kip/kip_966/test_kip_966_elr.py::test_a_reassignment_ends_with_min_isr_in_sync_and_only_replicas_eligible",
        ),
        ("A reassignment ends, or is cancelled, with min ISR members in sync", "T40"),
    ),
    Mutant(
        "a new partition's ISR has fenced replicas",
        "controller/topics/assignment.py",
        "    isr = tuple(node for node in replicas if basis.image.is_active(node))\n",
        "    isr = tuple(replicas)\n",
        Breaks.AGREEMENT,
        ("kip/test_kip_841.py::test_a_new_partition_begins_without_fenced_replicas_in_its_isr",),
        ("A new partition begins without fenced replicas in its ISR",),
    ),
    Mutant(
        "None recovers as Balanced does",
        "controller/partitions/standing.py",
        "    if strategy is Strategy.NONE:\n        return Standing.OPERATOR\n",
        "",
        Breaks.DURABILITY,
        ("unit/controller/elections/test_recovery.py::test_none_asks_nobody_until_the_strategy_is_another",),
        ("None elects no leader, and waits for an operator",),
    ),
    Mutant(
        "answers outlive their controller",
        "controller/partitions/recovery.py",
        "        self.leaderless = dict.fromkeys(image.leaderless())\n        self.is_due",
        "        self.is_due",
        Breaks.AGREEMENT,
        (
            (
                "kip/kip_966/test_kip_966_recovery.py::"
                "test_nothing_of_a_recovery_stands_in_the_metadata_log_and_the_next_controller_begins_another"
            ),
            "unit/controller/elections/test_recovery.py::test_another_controller_begins_anew",
        ),
        ("Nothing is in the metadata log; each controller begins a recovery anew",),
    ),
    Mutant(
        "the limit of elections is one higher",
        "controller/partitions/manual.py",
        "            if count >= PARTITIONS_MAX:",
        "            if count > PARTITIONS_MAX:",
        Breaks.ANSWERS,
        ("unit/controller/elections/test_manual_elections.py::test_by_hand_no_more_than_a_thousand_at_once",),
        ("Serves 1,000 partitions of a request",),
    ),
    Mutant(
        "designated leaders are taken from the end",
        "controller/partitions/manual.py",
        "designated[position] if position < len(designated)",
        "designated[-1 - position] if position < len(designated)",
        Breaks.AGREEMENT,
        ("kip/kip_966/test_kip_966_api.py::test_the_designated_leaders_match_the_partitions_by_index",),
        ("The designated leaders match the partitions by index",),
    ),
    Mutant(
        "elections of eligible replicas are not counted apart",
        "controller/counts.py",
        "                elif record.leader in old.elr:",
        "                elif record.leader in old.isr:",
        Breaks.ANSWERS,
        ("unit/controller/test_counts.py::test_an_eligible_replica_that_leads_is_counted_apart",),
        ("ElectionFromEligibleLeaderReplicasPerSec",),
    ),
    Mutant(
        "unclean elections are counted among the eligible ones",
        "controller/counts.py",
        "                    self.unclean_elections += 1\n",
        "                    self.eligible_elections += 1\n",
        Breaks.ANSWERS,
        ("unit/controller/test_counts.py::test_an_unclean_election_is_counted_as_one",),
        ("ElectionFromEligibleLeaderReplicasPerSec",),
    ),
)
