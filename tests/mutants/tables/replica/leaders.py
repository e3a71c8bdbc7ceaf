"""Mutants of the leader of a partition."""

from tests.mutants.mutant import Breaks, Mutant, table

LEADERS = table(
    Mutant(
        "replicas are not taken from metadata that an answer has overtaken",
        "replica/hosting/leader.py",
        "if partition.partition_epoch >= self.partition_epoch:",
        "if partition.partition_epoch > self.partition_epoch:",
        Breaks.AGREEMENT,
        (
            "unit/replica/serving/test_alterations.py::test_metadata_that_the_answer_has_overtaken_still_has_the_replicas",
        ),
    ),
    Mutant(
        "the high watermark passes what a proposed member lacks",
        "replica/hosting/leader.py",
        "                node in maximal or (",
        "                node in isr.isr or (",
        Breaks.DURABILITY,
        ("kip/kip_966/test_kip_966.py::test_what_the_maximal_isr_lacks_is_not_committed",),
        ("Records must be on the whole maximal ISR before it passes them",),
    ),
    Mutant(
        "records are deleted before followers have done it",
        "replica/hosting/leader.py",
        "                lowest = min(lowest, state.log_start_offset if is_known else UNKNOWN)\n",
        "",
        Breaks.AGREEMENT,
        (
            (
                "unit/replica/serving/test_offsets.py::"
                "test_deletion_waits_for_a_new_incarnation_though_the_one_before_had_deleted_it"
            ),
            "unit/replica/serving/test_offsets.py::test_deletion_waits_for_a_silent_replica_until_its_time_is_over",
        ),
        ("The low watermark of DeleteRecords is the smallest log start of the live",),
    ),
    Mutant(
        "deletion waits for replicas that are not alive",
        "replica/hosting/leader.py",
        "            if self.is_eligible(node, UNKNOWN_BROKER_EPOCH):\n                is_known",
        "            if True:\n                is_known",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_offsets.py::test_deletion_does_not_wait_for_a_replica_whose_broker_is_fenced",),
        ("The low watermark of DeleteRecords is the smallest log start of the live",),
    ),
    Mutant(
        "a leader that begins does not note its epoch",
        "replica/hosting/leader.py",
        "        log.begin_epoch(self.epoch)\n",
        "",
        Breaks.DURABILITY,
        (
            "kip/test_kip_101.py::"
            "test_a_replica_that_becomes_leader_adds_the_epoch_and_its_log_end_to_the_file_before_it_writes_in_it",
        ),
        ("A new leader adds its epoch and its log end to the file",),
    ),
    Mutant(
        "who is proposed to leave counts no longer",
        "replica/hosting/leader.py",
        "        self.isr = PendingShrink(self.isr.isr, self.proposal(kept))\n        return self.isr",
        "        self.isr = PendingShrink(kept, self.proposal(kept))\n        return self.isr",
        Breaks.DURABILITY,
        (
            "kip/test_kip_497.py::test_while_a_shrink_is_pending_the_high_watermark_counts_the_removed_replica",
            "kip/traps/test_in_sync.py::test_t21_a_member_that_is_about_to_leave_still_counts",
            "kip/traps/test_in_sync.py::test_t21_a_refused_shrink_has_committed_nothing",
            "unit/replica/test_scripts.py::test_script",
        ),
        (
            "While a change is pending, the high watermark uses the union of both ISRs",
            "A pending expansion counts at once, a pending shrink only when it is committed",
        ),
    ),
    Mutant(
        "a second change of the ISR is proposed while one is under way",
        "replica/hosting/leader.py",
        "        if type(self.isr) is not Committed:\n            return None\n        kept",
        "        kept",
        Breaks.AGREEMENT,
        ("kip/test_kip_497.py::test_a_partition_has_one_change_under_way_and_a_broker_one_request",),
        ("At most one change of a partition is under way, and one request of a broker",),
    ),
    Mutant(
        "older metadata brings an older ISR back",
        "replica/hosting/leader.py",
        "        if partition_epoch <= self.partition_epoch:\n            return False\n",
        "        if partition_epoch == self.partition_epoch:\n            return False\n",
        Breaks.DURABILITY,
        (
            "kip/test_kip_497.py::test_metadata_that_an_answer_has_overtaken_brings_no_older_isr_back",
            "kip/traps/test_in_sync.py::test_t21_metadata_that_is_older_than_the_answer_changes_nothing",
        ),
        ("The answer counts before its metadata arrives, and older metadata that",),
    ),
    Mutant(
        "fenced replicas hold the high watermark back",
        "replica/hosting/leader.py",
        "(self.is_caught_up(state, now) and self.is_eligible(node, state.broker_epoch))",
        "self.is_caught_up(state, now)",
        Breaks.ANSWERS,
        (
            (
                "kip/test_kip_841.py::"
                "test_t17_an_ineligible_follower_outside_the_isr_does_not_hold_the_high_watermark_back"
            ),
            (
                "kip/test_kip_841.py::"
                "test_t17_the_high_watermark_moves_in_the_very_step_that_fences_the_last_replica_that_lacked_a_record"
            ),
            (
                "kip/test_kip_841.py::"
                "test_t17_an_eligible_follower_outside_the_isr_that_is_caught_up_does_hold_it_back_until_it_is_fenced"
            ),
        ),
        ("An ineligible replica outside the ISR does not hold the high watermark back",),
    ),
    Mutant(
        "caught-up replicas outside the ISR hold nothing back",
        "replica/hosting/leader.py",
        "node in maximal or (self.is_caught_up(state, now) and self.is_eligible(node, state.broker_epoch))",
        "node in maximal",
        Breaks.AGREEMENT,
        (
            (
                "kip/test_kip_841.py::"
                "test_t17_an_eligible_follower_outside_the_isr_that_is_caught_up_does_hold_it_back_until_it_is_fenced"
            ),
            "unit/replica/test_scripts.py::test_script",
        ),
        ("It waits for replicas that are caught up and eligible, but not in the ISR",),
    ),
    Mutant(
        "the leader proposes with the registered epoch",
        "replica/hosting/leader.py",
        "else BrokerEpoch(self.followers[node].broker_epoch)) for node in isr",
        "else self.cluster.brokers[node].epoch) for node in isr",
        Breaks.DURABILITY,
        (
            "kip/traps/test_in_sync.py::"
            "test_t15_what_a_member_fetched_as_is_proposed_and_not_what_it_has_registered_as_since",
        ),
        ("It keeps the epoch of the Fetch, and proposes with that",),
    ),
    Mutant(
        "incarnations are not compared by the leader",
        "replica/hosting/leader.py",
        "        return broker_epoch in (broker.epoch, UNKNOWN_BROKER_EPOCH)",
        "        return True",
        Breaks.AGREEMENT,
        ("kip/test_kip_903.py::test_until_fetch_and_metadata_name_the_same_incarnation_the_leader_proposes_nothing",),
        ("While Fetch and metadata have different broker epochs it proposes nothing",),
    ),
    Mutant(
        "any number may be a broker epoch",
        "replica/hosting/leader.py",
        "        return broker_epoch <= self.metadata_end + BROKER_EPOCH_STEPS_MAX\n",
        "        return True\n",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_fencing.py::test_a_number_that_is_nobodys_broker_epoch_shuts_no_follower_out",),
    ),
    Mutant(
        "a broker epoch that metadata never names counts for ever",
        "replica/hosting/leader.py",
        "        if state.broker_epoch > named and self.cluster.now - state.fetched_at > CLAIM_MS:\n",
        "        if False:\n",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_fencing.py::test_a_number_that_is_nobodys_broker_epoch_shuts_no_follower_out",),
    ),
    Mutant(
        "a fetch without an incarnation hides the last one",
        "replica/hosting/leader.py",
        "        known = max(broker_epoch, min(old.broker_epoch, self.latest_of(node)))\n",
        "        known = broker_epoch\n",
        Breaks.DURABILITY,
        ("kip/test_kip_903.py::test_a_fetch_that_names_no_incarnation_does_not_make_the_leader_forget_the_last_one",),
    ),
    Mutant(
        "a broker that leaves copies as nobody",
        "broker/broker.py",
        "BrokerEpoch(self.lifecycle.last_epoch)",
        "BrokerEpoch(self.lifecycle.epoch)",
        Breaks.DURABILITY,
        ("kip/test_kip_903.py::test_a_broker_that_leaves_copies_to_its_end_as_the_incarnation_that_it_was",),
    ),
    Mutant(
        "a late fetch of an earlier incarnation counts",
        "replica/hosting/leader.py",
        "        return UNKNOWN_BROKER_EPOCH < broker_epoch < self.latest_of(node) or not",
        "        return not",
        Breaks.DURABILITY,
        (
            ("kip/test_kip_903.py::test_t15_a_late_fetch_of_an_earlier_incarnation_says_nothing_about_its_successor"),
            ("kip/traps/test_in_sync.py::test_t15_a_fetch_that_an_earlier_incarnation_left_behind_changes_nothing"),
            (
                "kip/test_kip_903.py::"
                "test_a_fetch_of_an_incarnation_that_metadata_has_replaced_is_refused_before_its_successor_fetches"
            ),
        ),
        (
            "A late Fetch of an earlier incarnation overwrites nothing",
            "T15",
            "A Fetch with an older broker epoch than another Fetch or metadata had is",
        ),
    ),
    Mutant(
        "the high watermark is not gated",
        "replica/hosting/leader.py",
        "        if len(isr.isr) < self.min_isr:\n            return False\n        new = ",
        "        new = ",
        Breaks.DURABILITY,
        (
            (
                "unit/replica/test_cluster.py::"
                "test_too_small_an_isr_refuses_acks_all_before_writing_and_freezes_the_high_watermark"
            ),
            "kip/traps/test_in_sync.py::test_t24_under_min_isr_acks_1_is_acknowledged_and_no_consumer_sees_it",
            "unit/replica/test_scripts.py::test_script",
            (
                "kip/kip_966/test_kip_966.py::"
                "test_what_is_written_with_acks_0_or_1_is_not_committed_either_while_the_isr_is_too_small"
            ),
            "kip/kip_966/test_kip_966.py::test_what_a_consumer_has_seen_is_not_out_of_range_at_the_next_leader",
            (
                "kip/test_chapter.py::"
                "test_2_it_is_the_minimum_over_the_maximal_isr_and_never_advances_while_the_isr_is_below_the_effective_min_isr"
            ),
        ),
        (
            "It can only advance if the ISR has min.insync.replicas members or more",
            "This applies to records of acks=0 and acks=1 too",
            "T24",
            "The rule for the high watermark needs no feature",
            "The last replica standing, T0–T4",
            "It is the smallest log end of the maximal ISR, and does not move below the",
        ),
    ),
    Mutant(
        "the maximal ISR opens the gate",
        "replica/hosting/leader.py",
        "        if len(isr.isr) < self.min_isr:\n            return False\n        new = ",
        "        if len(isr.maximal) < self.min_isr:\n            return False\n        new = ",
        Breaks.DURABILITY,
        (
            "kip/kip_966/test_kip_966.py::test_the_isr_that_counts_is_what_the_controller_has_persisted",
            ("kip/traps/test_in_sync.py::test_t21_the_gate_is_the_committed_isr_and_the_minimum_is_the_maximal_one"),
        ),
        ("The ISR that is counted is what the controller persisted",),
    ),
    Mutant(
        "a joining replica need not be close under min ISR",
        "replica/hosting/leader.py",
        "        if self.is_under_min_isr() and not self.is_caught_up(state, now):",
        "        if self.is_under_min_isr() and not self.is_caught_up(state, now) and False:",
        Breaks.DURABILITY,
        (
            "unit/replica/serving/test_flapping.py::"
            "test_t18_a_laggard_that_crawls_through_a_frozen_partition_is_proposed_once_when_it_is_there",
        ),
        (
            "While it does not move, a replica that has passed it need not be in sync",
            "T18",
        ),
    ),
    Mutant(
        "the high watermark may fall",
        "replica/hosting/leader.py",
        "                if new <= old:\n                    return False\n",
        "",
        Breaks.AGREEMENT,
        ("kip/test_chapter.py::test_1_the_high_watermark_is_monotonic_on_a_given_log_and_never_exceeds_its_end",),
        ("The high watermark never falls on a given log, and never exceeds its end",),
    ),
    Mutant(
        "the minimum is that of the committed ISR",
        "replica/hosting/leader.py",
        "        maximal = isr.maximal\n        for node, state",
        "        maximal = isr.isr\n        for node, state",
        Breaks.DURABILITY,
        ("unit/replica/test_scripts.py::test_script",),
        ("A pending expansion counts at once, a pending shrink only when it is",),
    ),
    Mutant(
        "a replica joins an ISR as soon as it is caught up with the high watermark of before",
        "replica/hosting/leader.py",
        "        if state.log_end_offset < self.epoch_start_offset:",
        ("        if state.log_end_offset < self.epoch_start_offset and state.log_end_offset < self.high_watermark:"),
        Breaks.DURABILITY,
        ("kip/traps/test_logs.py::test_t36_a_follower_must_have_what_the_leader_had_when_it_began_to_lead",),
        ("The epoch's start must be reached",),
    ),
    Mutant(
        "who lags is proposed to leave at the next check only",
        "replica/hosting/leader.py",
        "or now - state.last_caught_up <= self.lag_time_max_ms",
        "or now - state.last_caught_up <= 2 * self.lag_time_max_ms",
        Breaks.ANSWERS,
        (
            "unit/replica/test_cluster.py::test_acks_all_waits_while_a_member_of_the_isr_is_silent",
            "unit/replica/test_scripts.py::test_script",
            (
                "kip/test_chapter_details.py::"
                "test_a_silent_follower_is_removed_after_the_lag_time_and_at_most_half_of_it_later"
            ),
            ("kip/test_chapter_details.py::test_a_slow_follower_that_fetches_and_never_reaches_the_end_leaves_too"),
        ),
        (
            "A follower that lags longer than replica.lag.time.max.ms leaves the ISR",
            "Checked every half replica.lag.time.max.ms; stuck and slow followers both",
        ),
    ),
    Mutant(
        "who trails by one fetch counts as caught up now",
        "replica/hosting/leader.py",
        "            caught_up = old.fetched_at\n",
        "            caught_up = now\n",
        Breaks.ANSWERS,
        ("unit/replica/test_scripts.py::test_script",),
        ("A follower is caught up if it has the leader's log end now, or had at its",),
    ),
    Mutant(
        "a slow follower never leaves",
        "replica/hosting/leader.py",
        "        elif offset >= old.leader_end_at_fetch and old.fetched_at > caught_up:\n",
        "        elif old.fetched_at > caught_up:\n",
        Breaks.AGREEMENT,
        ("kip/test_chapter_details.py::test_a_slow_follower_that_fetches_and_never_reaches_the_end_leaves_too",),
        ("Checked every half replica.lag.time.max.ms; stuck and slow followers both",),
    ),
    Mutant(
        "a new leader names its end before it knows it",
        "replica/hosting/leader.py",
        "        return self.high_watermark < self.epoch_start_offset",
        "        return False",
        Breaks.AGREEMENT,
        (
            (
                "unit/replica/serving/test_offsets.py::test_a_new_leader_does_not_name_an_end_that_may_lie_before_the_old_one"
            ),
            (
                "unit/replica/serving/test_offsets.py::"
                "test_a_time_whose_record_a_new_leader_has_not_committed_yet_is_not_answered_with_nothing"
            ),
        ),
        ("While it lags the epoch's start, the latest offset is OFFSET_NOT_AVAILABLE",),
    ),
    Mutant(
        "a leader that proposes has agreed already",
        "replica/hosting/leader.py",
        "        self.isr = PendingShrink(self.isr.isr, self.proposal(kept))\n        return self.isr",
        (
            "        self.isr = PendingShrink(self.isr.isr, self.proposal(kept))\n"
            "        pending, self.isr = self.isr, Committed(kept)\n"
            "        return pending"
        ),
        Breaks.DURABILITY,
        ("kip/test_kip_497.py::test_a_leader_changes_nothing_by_itself_it_asks_the_controller",),
        (
            "A leader changes no ISR by itself",
            "Leadership, ISR and epochs come from the metadata log alone",
        ),
    ),
    Mutant(
        "a follower is proposed by a timer",
        "replica/hosting/leader.py",
        '        if not self.is_eligible(node, state.broker_epoch):\n            return "the broker',
        '        if not self.is_eligible(node, UNKNOWN_BROKER_EPOCH):\n            return "the broker',
        Breaks.DURABILITY,
        ("kip/test_kip_903.py::test_until_fetch_and_metadata_name_the_same_incarnation_the_leader_proposes_nothing",),
        ("By a fetch, never by a timer; eligible means unfenced",),
    ),
)
