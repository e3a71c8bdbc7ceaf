"""Mutants of partitions at work: who copies from whom, what a delta of metadata means, duplicates, transactions."""

from tests.mutants.mutant import Breaks, Mutant, table

ONE_REQUEST = (
    "unit/replica/serving/test_alterations.py::test_a_broker_has_one_request_under_way_and_the_next_has_all_that_waited"
)

COPYING = table(
    Mutant(
        "who has nothing in common with its leader goes back to its high watermark",
        "replica/hosting/follower.py",
        "            return min(own_end, end)\n",
        "            return max(min(own_end, end), self.high_watermark)\n",
        Breaks.AGREEMENT,
        (
            (
                "kip/test_kip_101.py::test_where_a_leader_knows_no_epoch_up_to_the_asked_one_"
                "the_follower_begins_anew_and_not_at_its_high_watermark"
            ),
        ),
        ("No follower falls back on its high watermark: every batch has an epoch",),
    ),
    Mutant(
        "a log that is thrown away begins at the high watermark",
        "replica/hosting/follower.py",
        "            return Cut(answer.log_start_offset, True,",
        "            return Cut(max(answer.log_start_offset, self.high_watermark), True,",
        Breaks.AGREEMENT,
        (
            (
                "kip/traps/test_in_sync.py::"
                "test_t23_after_a_whole_log_is_thrown_away_the_high_watermark_lies_within_the_new_one"
            ),
        ),
        ("No follower falls back on its high watermark: every batch has an epoch",),
    ),
    Mutant(
        "a follower with an empty log does not begin at its leader's first batch",
        "replica/hosting/follower.py",
        "        if first is not None and first.base_offset < log.log_end_offset < first.next_offset:\n",
        "        if False:\n",
        Breaks.ANSWERS,
        ("sim/test_scenarios.py::test_a_new_replica_of_a_log_that_starts_inside_a_batch_catches_up",),
        ("A follower whose first batch lies across the leader's log start",),
    ),
    Mutant(
        "a new epoch of the same leader changes nothing",
        "replica/roles.py",
        (
            "        if type(role) is Follower and role.epoch == partition.leader_epoch and role.leader == "
            "partition.leader:\n"
        ),
        "        if type(role) is Follower and role.leader == partition.leader:\n",
        Breaks.AGREEMENT,
        (
            "kip/test_kip_101.py::test_a_follower_that_sees_a_larger_epoch_in_a_message_set_adds_it_to_its_file_before_it_appends_the_set",
        ),
        ("A larger epoch in a fetched batch is in the follower",),
    ),
    Mutant(
        "answers of an earlier leader epoch are taken",
        "replica/hosting/follower.py",
        "        return asked.leader_epoch == self.epoch and asked.offset == self.log.log_end_offset\n",
        "        return asked.offset == self.log.log_end_offset\n",
        Breaks.DURABILITY,
        ("kip/traps/test_logs.py::test_t31_what_a_leader_of_before_answers_is_dropped",),
        ("In a new leader epoch a follower fetches from the new leader, from its own",),
    ),
    Mutant(
        "what is new comes before what is deleted",
        "replica/assigned.py",
        "        effects = self.unassign(changed, now)\n",
        "        effects: list[Effect] = []\n",
        Breaks.DURABILITY,
        ("kip/traps/test_logs.py::test_t39_a_topic_that_is_created_anew_under_its_name_has_nothing_of_the_old_log",),
        ("Deletions come first, so that a new topic of the same name is not affected",),
        (
            (
                "replica/assigned.py",
                "        return effects\n\n    def unassign(",
                "        return effects + self.unassign(changed, now)\n\n    def unassign(",
            ),
            (
                "replica/assigned.py",
                "        return [effect for namesake in namesakes for effect in self.delete(namesake, now)]\n",
                "        return []\n",
            ),
        ),
    ),
    Mutant(
        "a broker has many requests under way",
        "replica/serving/alterations.py",
        "        if not self.waiting or not self.outbox.is_free:\n",
        "        if not self.waiting or not self.outbox.pause.done:\n",
        Breaks.ANSWERS,
        (ONE_REQUEST,),
        (
            "At most one change of a partition is under way, and one request",
            "One request per broker, all partitions in it",
        ),
        (("replica/hosting/outbox.py", "        assert not self.is_in_flight\n", ""),),
    ),
    Mutant(
        "a request has one partition",
        "replica/serving/alterations.py",
        "        for at in self.waiting:\n            leader =",
        "        for at in list(self.waiting)[:1]:\n            leader =",
        Breaks.ANSWERS,
        (ONE_REQUEST,),
        ("One request per broker, all partitions in it",),
    ),
    Mutant(
        "a proposal is asked again sooner",
        "replica/config.py",
        "    alter_partition_retry_ms: int = 50\n",
        "    alter_partition_retry_ms: int = 40\n",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_alterations.py::test_any_other_error_is_asked_again_after_50_ms_without_limit",),
        ("One request per broker, all partitions in it",),
    ),
    Mutant(
        "a leader waits for nobody",
        "replica/hosting/leader.py",
        "            if state.log_end_offset < new and (\n",
        "            if False and (\n",
        Breaks.DURABILITY,
        (
            "unit/replica/test_random.py::test_nothing_acknowledged_is_lost",
            "unit/replica/test_cluster.py::test_acks_all_waits_while_a_member_of_the_isr_is_silent",
            "kip/test_chapter.py::test_3_every_committed_record_is_on_every_member_of_the_isr_so_that_a_clean_election_keeps_it",
            "sim/test_scenarios.py::test_an_old_leader_that_cannot_reach_the_controller_acknowledges_nothing_that_is_lost",
        ),
        (
            "Nothing below the old high watermark is lost",
            "It leaves the ISR, the high watermark moves without it",
            "Every committed record is on every member of the ISR",
            "A deposed leader changes and acknowledges nothing",
        ),
    ),
    Mutant(
        "who lags never leaves",
        "replica/hosting/leader.py",
        "        if len(kept) == len(self.isr.isr):\n            return None\n        self.isr = PendingShrink",
        "        if True:\n            return None\n        self.isr = PendingShrink",
        Breaks.ANSWERS,
        (
            "unit/replica/test_cluster.py::test_acks_all_waits_while_a_member_of_the_isr_is_silent",
            "unit/replica/test_cluster.py::test_a_shrink_counts_only_once_the_controller_has_agreed",
        ),
        ("It leaves the ISR, the high watermark moves without it",),
    ),
    Mutant(
        "who has caught up does not come back",
        "replica/hosting/leader.py",
        '        if node in self.isr.maximal:\n            return "it is in the ISR"\n',
        '        if True:\n            return "it is in the ISR"\n',
        Breaks.ANSWERS,
        ("unit/replica/test_cluster.py::test_a_follower_that_is_back_enters_the_isr",),
        ("It leaves the ISR, the high watermark moves without it",),
    ),
    Mutant(
        "a new leader keeps its ISR from others",
        "controller/partition.py",
        "        return node in sets.isr and lives(node)\n",
        "        return lives(node)\n",
        Breaks.DURABILITY,
        ("kip/test_chapter.py::test_4_the_isr_contains_the_leader_and_is_a_subset_of_the_assignment",),
        ("The ISR contains the leader and is part of the assignment",),
    ),
    Mutant(
        "a producer that a new leader does not know is refused",
        "log/producers/producers.py",
        "            return None  # never seen, or forgotten: any sequence may be its first\n",
        "            return ErrorCode.UNKNOWN_PRODUCER_ID\n",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_duplicates.py::test_a_new_leader_that_lacks_it_writes_it",),
        ("A new leader that lacks the batch writes it", "360.10"),
    ),
    Mutant(
        "the last stable offset runs ahead of the high watermark",
        "replica/hosting/leader.py",
        "return self.log.last_stable_offset(self.high_watermark)",
        "return self.log.last_stable_offset(self.log.log_end_offset)",
        Breaks.DURABILITY,
        ("kip/traps/test_logs.py::test_t43_records_and_last_stable_offset_come_of_one_high_watermark",),
        ("T43",),
    ),
    Mutant(
        "a partition that has changed twice was what the first change made",
        "metadata/state.py",
        "        self.delta.partitions.setdefault(at, old)\n",
        "        self.delta.partitions[at] = old\n",
        Breaks.AGREEMENT,
        (
            "kip/traps/test_replay.py::test_t4_names_mean_what_they_mean_at_their_place_and_a_delta_says_what_was_before_it",
        ),
        ("T4",),
    ),
    Mutant(
        "a topic that comes and goes is not forgotten",
        "metadata/state.py",
        "        del self.topic_ids[topic.name]\n",
        "        self.topic_ids.get(topic.name)\n",
        Breaks.AGREEMENT,
        (
            "kip/traps/test_replay.py::test_t4_names_mean_what_they_mean_at_their_place_and_a_delta_says_what_was_before_it",
        ),
        ("T4",),
    ),
    Mutant(
        "nobody looks for open transactions",
        "replica/roles.py",
        "            self.hanging_transactions.suspect(hosted, now)\n",
        "            pass\n",
        Breaks.ANSWERS,
        (
            "kip/traps/test_transactions.py::test_t42_after_an_unclean_election_transactions_without_an_end_are_noted_and_told",
            "kip/traps/test_transactions.py::test_t42_a_large_log_is_looked_through_in_bounded_steps",
        ),
        ("T42",),
    ),
    Mutant(
        "a transaction with an end is told as open",
        "replica/losses/hanging_transactions.py",
        "                self.open.pop(header.producer_id, None)\n",
        "                pass\n",
        Breaks.ANSWERS,
        ("kip/traps/test_transactions.py::test_t42_where_every_transaction_has_its_end_nothing_is_reported",),
        ("T42",),
    ),
)
