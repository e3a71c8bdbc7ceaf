"""Mutants of replication: followers, proposals, requests, what lies on disk."""

from tests.mutants.mutant import Breaks, Mutant, table

REPLICA = table(
    Mutant(
        "a follower cuts its log at a start that no log can have",
        "replica/hosting/follower.py",
        "0 <= answer.log_start_offset <= OFFSET_MAX:",
        "0 <= answer.log_start_offset:",
        Breaks.DURABILITY,
        ("unit/replica/test_scripts.py::test_a_leader_that_begins_where_no_log_can_begin_cuts_nothing",),
    ),
    Mutant(
        "what a replica without a broker has counts as lost",
        "replica/scrubbing/repairs.py",
        """            if endpoint is None:
                repair.is_final = False
""",
        """            if endpoint is None:
""",
        Breaks.DURABILITY,
        ("unit/replica/scrubbing/test_scrubbing.py::test_nor_while_a_replica_has_no_broker_that_could_be_asked",),
    ),
    Mutant(
        "what was lost is not counted",
        "broker/metrics/gauges.py",
        "repairs.repaired, repairs.lost)",
        "repairs.repaired, 0)",
        Breaks.ANSWERS,
        ("unit/replica/scrubbing/test_scrubbing.py::test_a_single_replica_has_nobody_to_ask",),
    ),
    Mutant(
        "records are deleted up to the log's end",
        "replica/serving/offsets.py",
        "if not 0 <= offset <= leader.high_watermark:",
        "if not 0 <= offset <= leader.log.log_end_offset:",
        Breaks.DURABILITY,
        ("unit/replica/serving/test_offsets.py::test_what_the_leader_has_and_its_followers_lack_cannot_be_deleted",),
    ),
    Mutant(
        "a cut of one committed record is not noted",
        "replica/hosting/follower.py",
        ("if cut.target < high_watermark:\n            events.append(self.loss(cut.target, high_watermark, EXACTLY"),
        (
            "if cut.target < high_watermark - 1:\n"
            "            events.append(self.loss(cut.target, high_watermark, EXACTLY"
        ),
        Breaks.ANSWERS,
        ("unit/replica/losses/test_losing.py::test_a_cut_of_a_single_committed_record_is_noted_too",),
        ("Loss is counted, and recorded durably, before the truncation; if that",),
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
        "a flush vouches for what was cut and written anew meanwhile",
        "replica/storage/flushing.py",
        "was == (end, hosted.role, cuts_of(hosted)):",
        "was[:2] == (end, hosted.role):",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_storage.py::test_a_sync_says_nothing_about_what_was_cut_and_written_anew_meanwhile",
        ),
    ),
    Mutant(
        "a log of which all is deleted refuses the batch that holds its start",
        "replica/hosting/follower.py",
        "        if log.log_start_offset != log.log_end_offset:\n            return\n",
        "        if log.log_start_offset != log.log_end_offset or log.size_bytes:\n            return\n",
        Breaks.AGREEMENT,
        ("unit/replica/test_scripts.py::test_script",),
    ),
    Mutant(
        "a log that begins anew keeps its high watermark",
        "replica/hosting/follower.py",
        "            log.truncate_fully_and_start_at(first.base_offset)\n            self.clamp()\n",
        "            log.truncate_fully_and_start_at(first.base_offset)\n",
        Breaks.AGREEMENT,
        ("unit/replica/test_scripts.py::test_script",),
    ),
    Mutant(
        "the ledger is written after the cut",
        "replica/hosting/follower.py",
        (
            "        events = self.losses_by(cut, now)\n"
            "        if events:\n"
            "            self.notes.note(events)\n"
            "        for event in events:\n"
            '            what = "cut" if event.certainty == EXACTLY else "copied anew"\n'
            "            self.losses.append(\n"
            '                f"{self.name}: offsets {event.start} to {event.end - 1} were committ'
            'ed here and are {what},"\n'
            '                f" because {cut.why}"\n'
            "            )\n"
            "        self.cuts += 1\n"
            "        if cut.is_all:\n"
            "            self.log.truncate_fully_and_start_at(cut.target)\n"
            "            self.high_watermark = cut.target\n"
            "            return\n"
            "        self.log.truncate_to(cut.target)  # also where nothing is cut: an epoch that"
            " starts there goes (T33)\n"
        ),
        (
            "        events = self.losses_by(cut, now)\n"
            "        for event in events:\n"
            '            what = "cut" if event.certainty == EXACTLY else "copied anew"\n'
            "            self.losses.append(\n"
            '                f"{self.name}: offsets {event.start} to {event.end - 1} were committ'
            'ed here and are {what},"\n'
            '                f" because {cut.why}"\n'
            "            )\n"
            "        self.cuts += 1\n"
            "        if cut.is_all:\n"
            "            self.log.truncate_fully_and_start_at(cut.target)\n"
            "            self.high_watermark = cut.target\n"
            "            self.notes.note(events)\n"
            "            return\n"
            "        self.log.truncate_to(cut.target)  # also where nothing is cut: an epoch that"
            " starts there goes (T33)\n"
            "        if events:\n"
            "            self.notes.note(events)\n"
        ),
        Breaks.DURABILITY,
        ("kip/traps/test_logs.py::test_t38_where_the_loss_cannot_be_noted_nothing_is_cut",),
        ("T38",),
    ),
    Mutant(
        "acks=all waits for the next fetch after a change of the ISR",
        "replica/roles.py",
        (
            "            if type(hosted.role) is Leader:\n"
            "                effects += self.recompute(hosted, hosted.role, now)\n"
        ),
        (
            "            if type(hosted.role) is Leader:\n"
            "                self.fetching.note_out_of_sync(hosted, hosted.role)\n"
        ),
        Breaks.ANSWERS,
        (
            "unit/replica/serving/test_alterations.py::"
            "test_t20_acks_all_is_acknowledged_by_the_answer_to_a_shrink_without_any_further_fetch",
        ),
        (
            "The high watermark is computed again with every change of the committed ISR",
            "T20",
        ),
    ),
    Mutant(
        "metadata of a change of the ISR moves nothing",
        "replica/roles.py",
        "            return self.recompute(hosted, role, now)\n",
        "            return []\n",
        Breaks.ANSWERS,
        (
            (
                "kip/traps/test_in_sync.py::"
                "test_t20_acks_all_is_answered_with_the_change_that_commits_it_and_not_with_the_next_fetch"
            ),
            (
                "unit/replica/serving/test_alterations.py::"
                "test_t20_acks_all_is_acknowledged_by_the_metadata_of_a_shrink_without_any_answer"
            ),
        ),
        ("The high watermark is computed again with every change of the committed ISR",),
    ),
    Mutant(
        "a follower takes its leader's high watermark before it cuts",
        "replica/hosting/follower.py",
        (
            "        cut = self.cut_by(answer)\n"
            "        if cut is not None:\n"
            "            self.perform(cut, now)\n"
            "            return Next.GO_ON\n"
        ),
        (
            "        if answer.error is ErrorCode.NONE and answer.high_watermark > self.high_watermark:\n"
            "            self.high_watermark = min(answer.high_watermark, log.log_end_offset)\n"
            "        cut = self.cut_by(answer)\n"
            "        if cut is not None:\n"
            "            self.perform(cut, now)\n"
            "            return Next.GO_ON\n"
        ),
        Breaks.DURABILITY,
        (
            "kip/traps/test_in_sync.py::"
            "test_t22_the_leaders_high_watermark_counts_only_after_the_cut_and_up_to_the_own_end",
        ),
        (
            "T22",
            "The follower truncates first, and then raises its high watermark",
        ),
    ),
    Mutant(
        "a follower takes its leader's high watermark beyond its own end",
        "replica/hosting/follower.py",
        "        high_watermark = min(answer.high_watermark, end)\n",
        "        high_watermark = answer.high_watermark\n",
        Breaks.DURABILITY,
        (
            "kip/traps/test_in_sync.py::"
            "test_t22_the_leaders_high_watermark_counts_only_after_the_cut_and_up_to_the_own_end",
        ),
        ("T22",),
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
        "a follower that lacks the named epoch cuts at the leader's end",
        "replica/hosting/follower.py",
        "        return min(own_end, self.log.log_end_offset)\n",
        "        return min(end, self.log.log_end_offset)\n",
        Breaks.DURABILITY,
        (
            "kip/traps/test_logs.py::test_t37_a_follower_that_lacks_the_named_epoch_goes_down_to_its_own_and_asks_again",
            "kip/test_kip_101.py::test_the_appendixs_divergence_below_two_unclean_elections_is_found",
        ),
        ("It fetches on from there", "The divergence that KIP-101 leaves after two unclean elections is found"),
    ),
    Mutant(
        "a follower asks without its last epoch",
        "replica/hosting/follower.py",
        "        return Position(self.epoch, log.log_end_offset, log.latest_epoch, log.log_start_offset)",
        "        return Position(self.epoch, log.log_end_offset, -1, log.log_start_offset)",
        Breaks.DURABILITY,
        (
            "kip/traps/test_logs.py::test_t35_a_follower_always_says_the_last_epoch_of_its_log",
            "kip/traps/test_logs.py::test_t35_an_answer_without_records_leaves_the_position_as_it_is",
        ),
        (
            "The follower asks with its latest epoch, always",
            "T35",
        ),
    ),
    Mutant(
        "a follower cuts nothing at a divergence",
        "replica/hosting/follower.py",
        ('            return Cut(max(target, self.log.log_start_offset), False, "the leader\'s log differs")'),
        '            return Cut(self.log.log_end_offset, False, "the leader\'s log differs")',
        Breaks.DURABILITY,
        (
            "unit/replica/test_cluster.py::test_a_diverged_follower_cuts_what_was_never_committed",
            ("kip/traps/test_logs.py::test_t37_after_two_leader_changes_without_records_the_divergence_is_found"),
            "kip/test_kip_101.py::test_scenario_2_the_follower_finds_its_orphaned_message_and_cuts_it",
            (
                "kip/test_kip_101.py::"
                "test_scenario_2_message_sets_whose_offsets_straddle_each_other_leave_no_replica_stuck"
            ),
        ),
        ("It truncates its log there", "Logs that differ after all replicas lost power become equal again"),
    ),
    Mutant(
        "who asks in an older leader epoch is served",
        "replica/hosting/hosted.py",
        "    if current_leader_epoch < role.epoch:\n        return ErrorCode.FENCED_LEADER_EPOCH\n",
        "    if current_leader_epoch < role.epoch:\n        return None\n",
        Breaks.AGREEMENT,
        (
            ("kip/test_chapter_details.py::test_a_client_whose_leader_epoch_is_another_learns_which_of_both_is_behind"),
            "kip/test_kip_101.py::test_a_request_in_another_leader_epoch_is_rejected",
        ),
        ("A request with an older or a newer leader epoch is rejected: Fetch",),
    ),
    Mutant(
        "who asks in a newer leader epoch is served",
        "replica/hosting/hosted.py",
        "    return ErrorCode.UNKNOWN_LEADER_EPOCH\n",
        "    return None\n",
        Breaks.AGREEMENT,
        (
            ("kip/test_chapter_details.py::test_a_client_whose_leader_epoch_is_another_learns_which_of_both_is_behind"),
            "kip/test_kip_101.py::test_a_request_in_another_leader_epoch_is_rejected",
        ),
        ("A request with an older or a newer leader epoch is rejected: Fetch",),
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
        "a fetch says no broker epoch",
        "replica/following/fetcher.py",
        "replica_state=AskingReplica(replica_id=self.host.me, replica_epoch=self.host.cluster.broker_epoch)",
        "replica_state=AskingReplica(replica_id=self.host.me, replica_epoch=-1)",
        Breaks.AGREEMENT,
        ("kip/test_kip_903.py::test_the_follower_sends_the_epoch_of_its_registration_in_every_fetch",),
        ("Every Fetch carries the broker epoch of its registration",),
    ),
    Mutant(
        "leaders count by their own file",
        "replica/roles.py",
        ("        min_isr = self.host.image.effective_min_isr(topic, partition)\n        if type(role) is Leader and"),
        (
            '        min_isr = min(len(partition.replicas), int(str(self.host.static.get("min.ins'
            'ync.replicas", 1))))\n'
            "        if type(role) is Leader and"
        ),
        Breaks.DURABILITY,
        ("unit/replica/test_cluster.py::test_leaders_count_by_the_metadata_and_not_by_their_own_file",),
        (
            "One value for controller and leaders, kept in the metadata",
            "T1",
        ),
    ),
    Mutant(
        "the high watermark of a checkpoint is believed beyond the log",
        "replica/storage/opening/loading.py",
        ("        high_watermark = min(max(found.high_watermark, log.log_start_offset), log.log_end_offset)\n"),
        "        high_watermark = max(found.high_watermark, log.log_start_offset)\n",
        Breaks.DURABILITY,
        ("kip/test_chapter.py::test_1_the_high_watermark_is_monotonic_on_a_given_log_and_never_exceeds_its_end",),
        ("The high watermark never falls on a given log, and never exceeds its end",),
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
        "high watermarks are not saved",
        "replica/storage/storage.py",
        "            Every(config.high_watermark_checkpoint_interval_ms, self.checkpoints.save_high_watermarks),\n",
        "",
        Breaks.DURABILITY,
        (
            (
                "unit/replica/storage/test_storage.py::test_high_watermarks_are_saved_every_five_seconds_if_they_have_changed"
            ),
            (
                "unit/replica/storage/test_namesakes.py::test_a_new_topic_does_not_inherit_the_checkpoints_of_its_namesake"
            ),
        ),
        ("The high watermark is saved every 5 s and at a stop",),
    ),
    Mutant(
        "who leads goes on copying",
        "replica/roles.py",
        "        self.fetchers.leave(hosted)\n        leader = Leader(",
        "        leader = Leader(",
        Breaks.AGREEMENT,
        ("kip/test_chapter_details.py::test_a_broker_that_becomes_leader_stops_fetching",),
        ("A leader fetches from no replica; a follower fetches only from the leader",),
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
        "a wait is over one record too early",
        "replica/hosting/hosted.py",
        "waiting[0].required <= leader.high_watermark:",
        "waiting[0].required <= leader.high_watermark + 1:",
        Breaks.DURABILITY,
        (
            "unit/replica/serving/test_requests.py::test_a_fetch_that_waits_for_a_record_is_not_answered_with_the_one_before_it",
        ),
    ),
    Mutant(
        "who waits is not told that the leadership is over",
        "replica/roles.py",
        "        effects = hosted.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER, now)\n",
        "        effects: list[Effect] = []\n",
        Breaks.DURABILITY,
        ("unit/replica/test_cluster.py::test_a_waiting_produce_and_fetch_learn_at_once_that_the_leadership_is_over",),
    ),
    Mutant(
        "a flush vouches in another role",
        "replica/storage/flushing.py",
        "was == (end, hosted.role, cuts_of(hosted)):",
        "(was[0], was[2]) == (end, cuts_of(hosted)):",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_storage.py::test_a_sync_of_one_role_says_nothing_about_what_was_cut_in_the_next",),
    ),
    Mutant(
        "an old recovery point stays after a cut",
        "replica/storage/checkpoints.py",
        (
            "            self.save_now(log_dir, RECOVERY_POINTS, self.recovery_points(log_dir))\n"
            "            if self.host"
        ),
        "            if self.host",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_storage.py::test_a_saved_recovery_point_falls_with_the_log_that_is_cut",),
    ),
    Mutant(
        "a deleted topic's checkpoints speak for its namesake",
        "replica/storage/checkpoints.py",
        "        if name not in self.listed:\n            return\n        self.listed = {}\n",
        "        return\n",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_namesakes.py::test_a_new_topic_does_not_inherit_the_checkpoints_of_its_namesake",),
    ),
    Mutant(
        "min ISR of a configuration is taken by new leaders alone",
        "replica/roles.py",
        "        leader.configure(self.host.image.effective_min_isr(topic, topic.partitions[hosted.at.partition]))\n",
        "",
        Breaks.DURABILITY,
        ("unit/replica/test_cluster.py::test_a_waiting_produce_learns_when_min_isr_is_raised_above_the_isr",),
    ),
    Mutant(
        "a truncated log's high watermark is kept",
        "replica/hosting/follower.py",
        ("        self.high_watermark = max(log.log_start_offset, min(self.high_watermark, log.log_end_offset))"),
        "        self.high_watermark = max(log.log_start_offset, self.high_watermark)",
        Breaks.AGREEMENT,
        ("unit/replica/losses/test_losing.py::test_the_saved_high_watermark_comes_down_with_the_log",),
    ),
    Mutant(
        "a follower deletes beyond its high watermark",
        "replica/hosting/follower.py",
        "            log.advance_log_start(min(answer.log_start_offset, self.high_watermark))",
        "            log.advance_log_start(min(answer.log_start_offset, log.log_end_offset))",
        Breaks.AGREEMENT,
        ("unit/replica/test_scripts.py::test_script[follower_answers]",),
    ),
    Mutant(
        "acks=1 is refused below min ISR",
        "replica/serving/producing.py",
        "        if acks == ACKS_ALL and len(leader.isr.isr) < leader.min_isr:",
        "        if acks != 0 and len(leader.isr.isr) < leader.min_isr:",
        Breaks.ANSWERS,
        ("kip/test_kip_966.py::test_acks_1_is_acknowledged_all_the_same",),
        ("acks=1 is acknowledged all the same once the leader has the record",),
    ),
    Mutant(
        "eligible replicas count for a leader's gate",
        "replica/roles.py",
        ("        min_isr = self.host.image.effective_min_isr(topic, partition)\n        if type(role) is Leader and"),
        (
            "        min_isr = self.host.image.effective_min_isr(topic, partition) - len(partition.elr)\n"
            "        if type(role) is Leader and"
        ),
        Breaks.DURABILITY,
        ("kip/test_kip_966_elr.py::test_a_leader_goes_by_the_isr_alone_and_an_eligible_replica_helps_no_write",),
        ("Leaders and followers go by the ISR alone",),
    ),
    Mutant(
        "a new leader does not look at its high watermark",
        "replica/roles.py",
        "        return effects + self.recompute(hosted, leader, now)\n",
        "        return effects\n",
        Breaks.AGREEMENT,
        ("kip/test_chapter_details.py::test_a_new_leader_whose_isr_is_itself_has_committed_its_log_at_once",),
        ("The high watermark is computed at once: an ISR of one may commit its log",),
    ),
    Mutant(
        "a replica out of range begins at offset 0",
        "replica/hosting/follower.py",
        ('            return Cut(answer.log_start_offset, True, "the leader\'s log has none of its offsets")'),
        '            return Cut(0, True, "the leader\'s log has none of its offsets")',
        Breaks.AGREEMENT,
        ("sim/test_scenarios.py::test_a_new_replica_of_a_log_that_starts_inside_a_batch_catches_up",),
        ("A new replica begins at offset 0, without an epoch; if the leader has",),
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
