"""Mutants of what leaders answer to clients, to followers and to the controller."""

from tests.mutants.mutant import Breaks, Mutant, table

SERVING = table(
    Mutant(
        "records are deleted up to the log's end",
        "replica/serving/offsets.py",
        "if not 0 <= offset <= leader.high_watermark:",
        "if not 0 <= offset <= leader.log.log_end_offset:",
        Breaks.DURABILITY,
        ("unit/replica/serving/test_offsets.py::test_what_the_leader_has_and_its_followers_lack_cannot_be_deleted",),
    ),
    Mutant(
        "an answer about another leader epoch is taken",
        "replica/serving/alterations.py",
        "            if row.leader_epoch != leader.epoch:\n                return False\n",
        "",
        Breaks.AGREEMENT,
        (
            "unit/replica/serving/test_alterations.py::"
            "test_an_answer_that_names_another_leader_epoch_is_dropped_though_the_proposal_is_the_one_that_was_asked",
        ),
        ("An answer about an earlier leadership is dropped",),
    ),
    Mutant(
        "a smaller epoch of the leader is no divergence",
        "replica/serving/reading.py",
        "            if epoch < last_epoch or end < offset:",
        "            if end < offset:",
        Breaks.DURABILITY,
        (
            (
                "kip/test_kip_101.py::"
                "test_kip_279_a_follower_whose_last_epoch_its_leader_never_had_cuts_where_the_last_common_epoch_ends"
            ),
            (
                "kip/traps/test_logs.py::"
                "test_t37_a_last_epoch_that_the_leader_never_had_is_a_divergence_even_at_an_offset_that_it_has"
            ),
            "kip/test_kip_101.py::test_the_appendixs_divergence_below_two_unclean_elections_is_found",
        ),
        (
            "The divergence that KIP-101 leaves after two unclean elections is found",
            "A Fetch with the epoch of the last record learns of a divergence",
            "The leader finds the divergence in Fetch, and returns no records with it",
        ),
    ),
    Mutant(
        "ends of epochs are told by followers",
        "replica/serving/offsets.py",
        (
            "        leader = self.leader_of(topic, asked.partition, asked.current_leader_epoch)\n"
            "        if isinstance(leader, ErrorCode):\n"
            "            return EpochEndOffset"
        ),
        (
            "        leader = self.role_of(topic, asked.partition, asked.current_leader_epoch, ma"
            "y_follow=True)\n"
            "        if isinstance(leader, ErrorCode):\n"
            "            return EpochEndOffset"
        ),
        Breaks.AGREEMENT,
        ("kip/test_kip_101.py::test_only_partitions_whose_leader_is_asked_are_answered",),
        ("Only partitions that the asked broker leads are answered",),
    ),
    Mutant(
        "min ISR is measured on what is proposed",
        "replica/serving/producing.py",
        "if acks == ACKS_ALL and len(leader.isr.isr) < leader.min_isr:",
        "if acks == ACKS_ALL and len(leader.isr.maximal) < leader.min_isr:",
        Breaks.DURABILITY,
        (
            "kip/test_kip_497.py::test_min_isr_is_measured_on_the_committed_isr_and_not_on_what_is_proposed",
            "kip/traps/test_in_sync.py::test_t21_acks_all_is_judged_by_the_committed_isr",
        ),
        ("min.insync.replicas is measured on the committed ISR",),
    ),
    Mutant(
        "a proposal without an answer is given up",
        "replica/serving/alterations.py",
        (
            "        for at in self.outbox.take():\n"
            "            self.waiting[at] = None\n"
            "        self.outbox.back_off(now)\n"
        ),
        "        self.outbox.take()\n        self.outbox.back_off(now)\n",
        Breaks.AGREEMENT,
        ("kip/test_kip_497.py::test_without_an_answer_the_proposal_stays_and_is_asked_again_until_there_is_one",),
        ("A proposal is repeated until it is answered, or newer metadata arrives",),
    ),
    Mutant(
        "the answer waits for its metadata",
        "replica/serving/alterations.py",
        "        if error is ErrorCode.NONE:\n            if row.leader_epoch",
        "        if error is ErrorCode.NONE:\n            return False\n            if row.leader_epoch",
        Breaks.AGREEMENT,
        (
            ("kip/test_kip_497.py::test_an_answer_before_its_metadata_counts_and_the_metadata_then_says_nothing_new"),
            "kip/test_kip_497.py::test_metadata_that_an_answer_has_overtaken_brings_no_older_isr_back",
        ),
        ("The answer counts before its metadata arrives, and older metadata that",),
    ),
    Mutant(
        "what may have been done is taken for refused",
        "replica/serving/alterations.py",
        "        ErrorCode.INVALID_UPDATE_VERSION,\n        ErrorCode.INVALID_REQUEST,\n",
        "        ErrorCode.INVALID_REQUEST,\n",
        Breaks.AGREEMENT,
        (
            (
                "unit/replica/serving/test_alterations.py::"
                "test_what_may_have_been_done_stays_pending_until_metadata_says_what_was"
            ),
            "kip/traps/test_in_sync.py::test_t21_after_a_refusal_that_may_be_none_the_proposal_stays_pending",
        ),
        ("Each error has its meaning: certainly not done, perhaps done, ask again",),
    ),
    Mutant(
        "what was certainly not done stays pending",
        "replica/serving/alterations.py",
        "            leader.refused(pending)\n            return True",
        "            return True",
        Breaks.AGREEMENT,
        (
            (
                "unit/replica/serving/test_alterations.py::test_what_was_certainly_not_done_falls_back_to_the_committed_isr"
            ),
            (
                "kip/test_kip_841.py::"
                "test_a_leader_that_has_not_heard_of_the_fencing_is_refused_and_falls_back_to_the_committed_isr"
            ),
            (
                "kip/test_kip_903.py::"
                "test_the_leader_goes_back_to_the_committed_isr_when_the_controller_finds_it_ineligible"
            ),
        ),
        (
            "Each error has its meaning: certainly not done, perhaps done, ask again",
            "If rejected, it falls back to the committed ISR, and proposes again once",
            "On INELIGIBLE_REPLICA it goes back to the committed ISR",
        ),
    ),
    Mutant(
        "acks=all below min ISR is written first",
        "replica/serving/producing.py",
        "        if acks == ACKS_ALL and len(leader.isr.isr) < leader.min_isr:\n",
        "        if False:\n",
        Breaks.ANSWERS,
        (
            "unit/replica/test_cluster.py::"
            "test_too_small_an_isr_refuses_acks_all_before_writing_and_freezes_the_high_watermark",
        ),
        ("Below min ISR it is rejected before anything is written",),
    ),
    Mutant(
        "a parked produce is not looked at",
        "replica/serving/fetching.py",
        "        if hosted.waiting:\n            effects += hosted.complete_waiting(leader, now)\n",
        "",
        Breaks.ANSWERS,
        (
            "kip/traps/test_in_sync.py::"
            "test_t20_acks_all_is_answered_with_the_change_that_commits_it_and_not_with_the_next_fetch",
        ),
        ("Parked Produce requests are checked when the high watermark moves",),
    ),
    Mutant(
        "a leader hands out what it has not committed",
        "replica/serving/reading.py",
        "            upto = log.log_end_offset if is_follower else stable_end if committed else high_watermark\n",
        "            upto = log.log_end_offset\n",
        Breaks.DURABILITY,
        ("unit/replica/serving/test_requests.py::test_a_consumer_sees_only_what_is_committed",),
    ),
    Mutant(
        "a duplicate is acknowledged before it is committed",
        "replica/serving/producing.py",
        "if acks == ACKS_ALL and leader.high_watermark <= appended.last_offset:",
        "if acks == ACKS_ALL and leader.high_watermark <= appended.last_offset and not appended.duplicate:",
        Breaks.DURABILITY,
        (
            "unit/replica/serving/test_requests.py::"
            "test_a_batch_that_is_sent_again_is_acknowledged_when_it_is_committed_and_not_before",
        ),
    ),
    Mutant(
        "acks=1 is refused below min ISR",
        "replica/serving/producing.py",
        "        if acks == ACKS_ALL and len(leader.isr.isr) < leader.min_isr:",
        "        if acks != 0 and len(leader.isr.isr) < leader.min_isr:",
        Breaks.ANSWERS,
        ("kip/kip_966/test_kip_966.py::test_acks_1_is_acknowledged_all_the_same",),
        ("acks=1 is acknowledged all the same once the leader has the record",),
    ),
    Mutant(
        "other acks are taken for 1",
        "replica/serving/producing.py",
        "        if acks not in (ACKS_ALL, 0, 1):",
        "        if acks < ACKS_ALL:",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_requests.py::test_other_acks_are_refused",),
        ("0: no answer. 1: when the leader has it. −1: when it is committed; other",),
    ),
)
