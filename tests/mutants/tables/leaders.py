"""Mutants of the leader of a partition."""

from tests.mutants.mutant import Breaks, Mutant, table

LEADERS = table(
    Mutant(
        "replicas are not taken from metadata that an answer has overtaken",
        "replica/leader.py",
        "if partition.partition_epoch >= self.partition_epoch:",
        "if partition.partition_epoch > self.partition_epoch:",
        Breaks.AGREEMENT,
        ("unit/replica/test_alterations.py::test_metadata_that_the_answer_has_overtaken_still_says_who_is_a_replica",),
    ),
    Mutant(
        "the high watermark passes what a proposed member lacks",
        "replica/leader.py",
        "                node in maximal or (",
        "                node in isr.isr or (",
        Breaks.DURABILITY,
        ("kip/test_kip_966.py::test_what_the_maximal_isr_lacks_is_not_committed",),
        ("Records must be on the whole maximal ISR before it passes them",),
    ),
    Mutant(
        "records are deleted before followers have done it",
        "replica/leader.py",
        "                lowest = min(lowest, state.log_start_offset)\n",
        "                lowest = min(lowest, max(lowest, state.log_start_offset))\n",
        Breaks.AGREEMENT,
        ("unit/replica/test_offsets.py::test_deletion_waits_for_a_silent_replica_until_its_time_is_over",),
        ("The low watermark of DeleteRecords is the least log start of the replicas that live",),
    ),
    Mutant(
        "deletion waits for replicas that are not alive",
        "replica/leader.py",
        "            if self.is_eligible(node, UNKNOWN_BROKER_EPOCH):\n                lowest",
        "            if True:\n                lowest",
        Breaks.ANSWERS,
        ("unit/replica/test_offsets.py::test_deletion_does_not_wait_for_a_replica_whose_broker_is_fenced",),
        ("The low watermark of DeleteRecords is the least log start of the replicas that live",),
    ),
    Mutant(
        "a leader that begins does not note its epoch",
        "replica/leader.py",
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
        "replica/leader.py",
        "        self.isr = PendingShrink(self.isr.isr, self.proposal(kept))\n        return self.isr",
        "        self.isr = PendingShrink(kept, self.proposal(kept))\n        return self.isr",
        Breaks.DURABILITY,
        (
            "kip/test_kip_497.py::test_while_a_shrink_is_pending_the_high_watermark_counts_who_is_to_leave",
            "kip/traps/test_in_sync.py::test_t21_a_member_that_is_about_to_leave_still_counts",
            "kip/traps/test_in_sync.py::test_t21_a_refused_shrink_has_committed_nothing",
            "unit/replica/test_scripts.py::test_script",
        ),
        (
            "While a change is pending, the high watermark counts the union of both ISRs",
            "A pending expansion counts at once, a pending shrink only when it is committed",
        ),
    ),
    Mutant(
        "a second change of the ISR is proposed while one is under way",
        "replica/leader.py",
        "        if type(self.isr) is not Committed:\n            return None\n        kept",
        "        kept",
        Breaks.AGREEMENT,
        ("kip/test_kip_497.py::test_a_partition_has_one_change_under_way_and_a_broker_one_request",),
        ("At most one change of a partition is under way, and one request of a broker",),
    ),
    Mutant(
        "older metadata brings an older ISR back",
        "replica/leader.py",
        "        if partition_epoch <= self.partition_epoch:\n            return False\n",
        "        if partition_epoch == self.partition_epoch:\n            return False\n",
        Breaks.DURABILITY,
        (
            "kip/test_kip_497.py::test_metadata_that_an_answer_has_overtaken_brings_no_older_isr_back",
            "kip/traps/test_in_sync.py::test_t21_metadata_that_is_older_than_the_answer_changes_nothing",
        ),
        ("The answer counts before its metadata comes, and older metadata after it changes nothing",),
    ),
    Mutant(
        "fenced replicas hold the high watermark back",
        "replica/leader.py",
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
                "test_t17_the_high_watermark_moves_in_the_very_step_that_fences_the_last_one_who_lacked_a_record"
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
        "replica/leader.py",
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
        ("It waits for replicas that are caught up and eligible though not in the ISR yet",),
    ),
    Mutant(
        "the leader proposes with the registered epoch",
        "replica/leader.py",
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
        "replica/leader.py",
        "        return broker_epoch in (broker.epoch, UNKNOWN_BROKER_EPOCH)",
        "        return True",
        Breaks.AGREEMENT,
        ("kip/test_kip_903.py::test_until_fetch_and_metadata_name_the_same_incarnation_the_leader_proposes_nothing",),
        ("While Fetch and metadata name different incarnations it proposes nothing",),
    ),
    Mutant(
        "a late fetch of an earlier incarnation counts",
        "replica/leader.py",
        "        return UNKNOWN_BROKER_EPOCH < broker_epoch < self.followers[node].broker_epoch",
        "        return False",
        Breaks.DURABILITY,
        (
            ("kip/test_kip_903.py::test_t15_a_late_fetch_of_an_earlier_incarnation_says_nothing_about_its_successor"),
            ("kip/traps/test_in_sync.py::test_t15_a_fetch_that_an_earlier_incarnation_left_behind_changes_nothing"),
        ),
        (
            "A late Fetch of an earlier incarnation overwrites nothing",
            "T15",
            "A Fetch with an older broker epoch than is known is refused",
        ),
    ),
    Mutant(
        "the high watermark is not gated",
        "replica/leader.py",
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
                "kip/test_kip_966.py::"
                "test_what_is_written_with_acks_0_or_1_is_not_committed_either_while_the_isr_is_too_small"
            ),
        ),
        (
            "It can only advance if the ISR has min.insync.replicas members or more",
            "This applies to records of acks=0 and acks=1 too",
            "T24",
            "The rule for the high watermark needs no feature",
        ),
    ),
    Mutant(
        "the maximal ISR opens the gate",
        "replica/leader.py",
        "        if len(isr.isr) < self.min_isr:\n            return False\n        new = ",
        "        if len(isr.maximal) < self.min_isr:\n            return False\n        new = ",
        Breaks.DURABILITY,
        (
            "kip/test_kip_966.py::test_the_isr_that_counts_is_what_the_controller_has_persisted",
            ("kip/traps/test_in_sync.py::test_t21_the_gate_is_the_committed_isr_and_the_minimum_is_the_maximal_one"),
        ),
        ("The ISR that is counted is what the controller persisted",),
    ),
    Mutant(
        "a joining replica need not be close under min ISR",
        "replica/leader.py",
        "        if self.is_under_min_isr() and not self.is_caught_up(state, now):",
        "        if self.is_under_min_isr() and not self.is_caught_up(state, now) and False:",
        Breaks.DURABILITY,
        (
            "unit/replica/test_flapping.py::"
            "test_t18_a_laggard_that_crawls_through_a_frozen_partition_is_proposed_once_when_it_is_there",
        ),
        (
            "While it stands still, passing it is no proof of being in sync",
            "T18",
        ),
    ),
)
