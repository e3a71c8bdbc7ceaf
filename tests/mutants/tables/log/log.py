"""Mutants of the log: opening, appending, cutting, epochs."""

from tests.mutants.mutant import Breaks, Mutant, table

LOG = table(
    Mutant(
        "the segment that ends at the recovery point is trusted",
        "log/files/opening.py",
        "following < recovery_point)",
        "following <= recovery_point)",
        Breaks.DURABILITY,
        (
            "unit/log/test_durable_cuts.py::"
            "test_a_segment_that_ends_at_the_recovery_point_may_have_been_cut_there_and_is_checked",
        ),
        more=(
            (
                "log/files/opening.py",
                "        if whole and following is not None and not clean:\n",
                "        if False:\n",
            ),
        ),
    ),
    Mutant(
        "epochs beyond the end outlive the opening",
        "log/files/stored_log.py",
        "        log.epochs.cut_end(log.log_end_offset)\n",
        "",
        Breaks.AGREEMENT,
        ("unit/log/test_durable_cuts.py::test_epochs_of_a_log_whose_segments_are_gone_are_gone_with_them",),
    ),
    Mutant(
        "epochs are not saved before records of them are durable",
        "log/files/stored_log.py",
        "        if self.epoch_file.is_behind:\n            self.epoch_file.save()\n        size = len(buffer)",
        "        size = len(buffer)",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_epoch_files.py::test_a_batch_is_not_written_before_the_epoch_that_it_bears",),
        ("A new leader adds its epoch and its log end to the file",),
    ),
    Mutant(
        "the file of epochs is not among what must be synced",
        "log/files/epoch_file.py",
        "        self.unsynced.add(self.path, self.directory)\n",
        "",
        Breaks.DURABILITY,
        (
            "kip/traps/test_logs.py::test_t34_an_epoch_is_flushed_before_records_of_it_are_called_recovered",
            (
                "kip/test_kip_101.py::"
                "test_the_footnote_an_epoch_is_durable_before_the_recovery_point_passes_its_first_record"
            ),
        ),
        (
            "T34",
            "Unless flushed at once, an epoch is durable before the recovery point passes its first record",
        ),
    ),
    Mutant(
        "after a crash the file of epochs is believed",
        "log/files/opening.py",
        ("    epochs.cut_end(segment.base_offset)  # from here on the batches know better than the file\n"),
        "",
        Breaks.DURABILITY,
        (
            ("kip/traps/test_logs.py::test_t34_after_a_power_loss_the_epochs_are_those_of_the_batches_that_are_left"),
            "kip/test_kip_101.py::test_after_an_unclean_shutdown_entries_beyond_the_log_are_removed",
        ),
        (
            "T34",
            "Entries at or beyond the log end are removed",
        ),
    ),
    Mutant(
        "an epoch that one does not have is answered with the log's end",
        "log/epochs.py",
        "        if epoch > self.latest:\n            return UNDEFINED\n",
        "        if epoch > self.latest:\n            return epoch, log_end_offset\n",
        Breaks.DURABILITY,
        (
            "kip/test_kip_101.py::test_an_epoch_of_which_the_leader_knows_nothing_has_no_end",
            "kip/traps/test_logs.py::test_t37_the_end_of_an_epoch_is_that_of_the_largest_not_after_it",
        ),
        ("An epoch that the leader does not know has no end offset (−1)",),
    ),
    Mutant(
        "the entries of what retention deletes stay",
        "log/files/stored_log.py",
        "            self.epoch_file.cut_start(self.log_start_offset)\n",
        "",
        Breaks.ANSWERS,
        ("kip/test_kip_101.py::test_entries_of_segments_that_retention_deletes_are_removed_from_the_file",),
        ("Entries of segments that retention deletes are removed",),
    ),
    Mutant(
        "the entries of deleted records stay in the file",
        "log/files/stored_log.py",
        "        self.epoch_file.cut_start(offset)\n",
        "        self.epochs.cut_start(offset)\n",
        Breaks.ANSWERS,
        (
            "kip/test_kip_101.py::test_entries_of_deleted_segments_are_removed_from_the_file",
            "kip/test_kip_101_compaction.py::test_entries_go_when_the_logs_start_passes_them",
        ),
        (
            "Entries of segments that retention deletes are removed",
            "Entries whose records compaction removes: the text removes them; as in",
        ),
    ),
    Mutant(
        "batches keep the epoch that their producer wrote",
        "log/log.py",
        "        patch(buffer, header, base, leader_epoch)\n",
        "        patch(buffer, header, base, max(0, header.partition_leader_epoch))\n",
        Breaks.DURABILITY,
        ("kip/test_kip_101.py::test_every_message_set_carries_the_epoch_in_which_its_leader_accepted_it",),
        ("Every batch carries the epoch in which its leader accepted it",),
    ),
    Mutant(
        "the appended epoch of a follower is not noted",
        "log/log.py",
        (
            "        if header.partition_leader_epoch > self.epochs.latest:\n"
            "            self.epoch_file.assign(header.partition_leader_epoch, header.base_offset)\n"
            "        batch = "
        ),
        "        batch = ",
        Breaks.DURABILITY,
        (
            "kip/test_kip_101.py::"
            "test_a_follower_that_sees_a_larger_epoch_in_a_message_set_adds_it_to_its_file_before_it_appends_the_set",
        ),
        ("A larger epoch in a fetched batch is in the follower's file before the batch is in its log",),
    ),
    Mutant(
        "a file of epochs that the batches contradict is believed",
        "log/files/opening.py",
        "        if is_believed and not clean:\n",
        "        if False:\n",
        Breaks.AGREEMENT,
        (
            "unit/log/test_proof.py::test_a_file_that_the_batches_contradict_gives_way_to_them",
            "unit/log/test_proof.py::"
            "test_a_follower_is_not_told_to_cut_what_only_a_file_of_another_partition_says_is_not_there",
        ),
        ("A follower reads its epochs from the file; an invalid file, or one that",),
    ),
    Mutant(
        "behind a file of epochs that is wrong nothing is learned of trusted segments",
        "log/files/opening.py",
        "        elif not is_believed:\n",
        "        elif not entries:\n",
        Breaks.AGREEMENT,
        ("unit/log/test_proof.py::test_a_file_that_the_batches_contradict_gives_way_to_them",),
    ),
    Mutant(
        "after a clean stop the file of epochs is compared all the same",
        "log/files/opening.py",
        "        if is_believed and not clean:\n",
        "        if is_believed:\n",
        Breaks.AGREEMENT,
        ("unit/log/test_proof.py::test_after_a_clean_stop_no_batch_is_read_for_the_epochs",),
    ),
    Mutant(
        "of the epochs of a segment only its beginning is compared",
        "log/files/proof.py",
        "for at in (first, *starts, end) for",
        "for at in (first,) for",
        Breaks.AGREEMENT,
        ("unit/log/test_proof.py::test_a_file_that_the_batches_contradict_gives_way_to_them",),
    ),
    Mutant(
        "of the epochs of a segment only its ends are compared",
        "log/files/proof.py",
        "for at in (first, *starts, end) for",
        "for at in (first, end) for",
        Breaks.AGREEMENT,
        ("unit/log/test_proof.py::test_a_file_that_the_batches_contradict_gives_way_to_them",),
    ),
    Mutant(
        "a batch in which an epoch begins agrees with it",
        "log/files/proof.py",
        "return first == epochs.epoch_at(header.last_offset) == header",
        "return epochs.epoch_at(header.last_offset) == header",
        Breaks.AGREEMENT,
        ("unit/log/test_proof.py::test_a_file_that_the_batches_contradict_gives_way_to_them",),
    ),
    Mutant(
        "the batch before an entry is not looked at",
        "log/segment.py",
        "        if before is not None:\n            yield before\n",
        "",
        Breaks.AGREEMENT,
        ("unit/log/test_proof.py::test_where_a_cleaner_was_the_batches_on_both_sides_of_an_entry_count",),
    ),
    Mutant(
        "epochs of deleted records are compared",
        "log/files/proof.py",
        "    if header.last_offset < log_start:\n        return True\n",
        "",
        Breaks.AGREEMENT,
        ("unit/log/test_proof.py::test_an_epoch_whose_records_a_cleaner_took_is_known_from_the_file",),
    ),
    Mutant(
        "an epoch before all batches cuts them",
        "log/files/proof.py",
        "    is_right = not falls(epochs.epoch_at(segment.base_offset - 1), segment)\n",
        "    is_right = True\n",
        Breaks.DURABILITY,
        (
            "unit/log/test_proof.py::"
            "test_what_is_not_trusted_is_not_cut_because_a_file_says_that_a_later_epoch_lies_before_it",
            "unit/log/test_proof.py::test_a_later_epoch_that_would_lie_in_a_gap_does_not_cut_what_comes_behind_it",
        ),
    ),
    Mutant(
        "a batch whose epoch has rotted outweighs the file",
        "log/files/proof.py",
        "    if proved is None or falls(proved.latest, segment):\n",
        "    if proved is None:\n",
        Breaks.DURABILITY,
        ("unit/log/test_proof.py::test_a_batch_whose_epoch_has_rotted_says_nothing_against_the_file",),
    ),
    Mutant(
        "batches whose epochs fall outweigh the file",
        "log/files/proof.py",
        "        if header.partition_leader_epoch < epochs.latest:\n            return False\n",
        "",
        Breaks.DURABILITY,
        ("unit/log/test_proof.py::test_a_batch_whose_epoch_has_rotted_says_nothing_against_the_file",),
    ),
    Mutant(
        "a damaged file of epochs is believed as far as it goes",
        "log/files/epoch_file.py",
        "    return epochs if epochs.entries == entries else Epochs()",
        "    return epochs",
        Breaks.DURABILITY,
        ("unit/log/test_log.py::test_epochs_are_read_from_the_batches_if_their_file_is_invalid",),
        ("A follower reads its epochs from the file; an invalid file, or one that",),
    ),
    Mutant(
        "the end of an epoch is that of the next larger one",
        "log/epochs.py",
        "        return self.entries[at - 1].epoch, end\n",
        "        return epoch, end\n",
        Breaks.DURABILITY,
        (
            "kip/test_kip_101.py::test_the_offset_that_is_returned_is_where_the_requested_epoch_ends",
            "kip/traps/test_logs.py::test_t37_the_end_of_an_epoch_is_that_of_the_largest_not_after_it",
            "property/log/test_log_reads.py::test_epochs_answer_as_a_list_of_every_offset_does",
        ),
        ("The answer is where the first larger epoch begins, or the log end if the",),
    ),
    Mutant(
        "an epoch that began at the end outlives a cut there",
        "log/files/stored_log.py",
        ("        self.epoch_file.cut_end(offset)\n        if offset >= self.log_end_offset:\n            return\n"),
        ("        if offset >= self.log_end_offset:\n            return\n        self.epoch_file.cut_end(offset)\n"),
        Breaks.DURABILITY,
        ("kip/traps/test_logs.py::test_t33_an_epoch_that_began_at_the_end_goes_with_a_cut_that_takes_no_record",),
        (
            "The follower truncates its epochs to that offset, in the file too, even if",
            "T33",
        ),
    ),
    Mutant(
        "a follower begins with its high watermark",
        "log/files/stored_log.py",
        "        log.epochs.cut_start(log.log_start_offset)\n        if log.epochs.entries != loaded.entries:",
        (
            "        log.epochs.cut_start(log.log_start_offset)\n"
            "        if not clean and recovery_point < log.log_end_offset:\n"
            "            log.truncate_to(recovery_point)\n"
            "        if log.epochs.entries != loaded.entries:"
        ),
        Breaks.DURABILITY,
        (
            "kip/test_kip_101.py::"
            "test_scenario_1_a_follower_that_restarts_and_leads_at_once_keeps_what_it_did_not_know_was_committed",
        ),
        ("A follower that restarts does not truncate to its old high watermark, and",),
    ),
    Mutant(
        "a torn batch is kept at recovery",
        "log/segment.py",
        "                if why_invalid(header, buffer) is not None:\n                    break\n",
        "",
        Breaks.DURABILITY,
        ("property/log/test_log_recovery.py::test_a_flipped_bit_behind_the_recovery_point_cuts_the_log_before_it",),
    ),
    Mutant(
        "what lies behind a damaged segment is kept",
        "log/files/opening.py",
        (
            "            drop_files(segments, bases[at + 1 :], interval_bytes)\n"
            "            return Loaded(epochs, entries, was_cut=True)\n"
        ),
        "            pass\n",
        Breaks.DURABILITY,
        (
            "unit/log/test_durable_cuts.py::"
            "test_a_segment_that_ends_at_the_recovery_point_may_have_been_cut_there_and_is_checked",
        ),
    ),
    Mutant(
        "indexes that were built anew are not synced",
        "log/files/opening.py",
        "            unsynced.add(*segment.flush_indexes())\n",
        "            segment.flush_indexes()\n",
        Breaks.DURABILITY,
        (
            "unit/log/test_durable_cuts.py::"
            "test_indexes_that_were_built_anew_are_synced_before_their_segment_is_trusted_again",
        ),
    ),
    Mutant(
        "a log that was cut in a gap ends before it at the next start",
        "log/files/stored_log.py",
        "        if ends_in_gap:\n",
        "        if False:\n",
        Breaks.DURABILITY,
        ("unit/log/compaction/test_compaction.py::test_a_cut_in_a_gap_ends_the_log_there",),
    ),
    Mutant(
        "a cut is not among what must be synced",
        "log/segments.py",
        "        self.unsynced.add(self.active.path)\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/log/test_durable_cuts.py::"
            "test_a_segment_that_was_cut_is_synced_although_the_next_append_goes_to_another",
        ),
    ),
    Mutant(
        "a recovery point survives a cut",
        "log/files/stored_log.py",
        "        self.recovery_point = min(self.recovery_point, self.log_end_offset)\n",
        "",
        Breaks.DURABILITY,
        ("unit/log/test_durable_cuts.py::test_a_cut_takes_the_recovery_point_along",),
    ),
    Mutant(
        "retention takes what is not committed",
        "log/files/retention.py",
        "        if following > high_watermark:\n            break\n",
        "",
        Breaks.DURABILITY,
        ("unit/log/test_durable_cuts.py::test_retention_takes_nothing_above_the_high_watermark",),
    ),
    Mutant(
        "a cut forgets no producers",
        "log/files/stored_log.py",
        "        self.producer_state.cut_end(self.log_start_offset, self.log_end_offset, self.touched)\n",
        "",
        Breaks.DURABILITY,
        ("unit/log/producers/test_producer_snapshot.py::test_a_truncation_takes_snapshots_and_what_they_know",),
    ),
    Mutant(
        "a sync covers what came after it",
        "log/files/stored_log.py",
        "        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))",
        "        self.recovery_point = self.log_end_offset",
        Breaks.DURABILITY,
        ("unit/log/test_log.py::test_what_was_named_is_synced_and_what_came_later_is_not",),
    ),
    Mutant(
        "other files count as synced with an older sync",
        "log/unsynced.py",
        "path: end for path, end in self.ends.items() if end is None or end > offset",
        "path: end for path, end in self.ends.items() if end is not None and end > offset",
        Breaks.DURABILITY,
        ("unit/log/test_log.py::test_what_was_named_is_synced_and_what_came_later_is_not",),
    ),
    Mutant(
        "a gap is copied into a log that was never compacted",
        "log/log.py",
        "            if gap < 0 or (gap and not self.gaps.may_precede(header.base_offset)):",
        "            if gap < 0:",
        Breaks.DURABILITY,
        ("unit/log/test_log.py::test_a_batch_that_does_not_follow_the_end_is_refused",),
    ),
    Mutant(
        "a copied batch is not checked",
        "log/log.py",
        (
            "            why = why_invalid(header, buffer)\n"
            "            if why is not None:\n"
            "                return refused(why)\n"
            "            self.append_copied"
        ),
        "            self.append_copied",
        Breaks.DURABILITY,
        ("unit/log/test_log.py::test_a_damaged_batch_is_refused_with_all_that_follows_it",),
    ),
    Mutant(
        "the file of epochs has the start before the epoch",
        "log/checkpoints.py",
        '[f"{e.epoch} {e.start_offset}" for e in entries]',
        '[f"{e.start_offset} {e.epoch}" for e in entries]',
        Breaks.DURABILITY,
        ("unit/log/test_files.py::test_epochs_are_lines_of_epoch_and_start",),
        ("Every log directory of a partition has a file of (epoch, start offset)",),
    ),
    Mutant(
        "a flush counts though the segment is not there any more",
        "log/segments.py",
        "            if not self.disk.exists(segment.path):",
        "            if False:",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_directories.py::test_a_folder_that_somebody_deletes_is_missed_by_the_next_flush",
            "unit/log/test_log.py::test_a_flush_makes_nothing_durable_that_is_not_there_under_its_name",
        ),
    ),
    Mutant(
        "flush.messages is one too patient",
        "log/files/stored_log.py",
        "        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:",
        "        if self.log_end_offset - self.recovery_point > self.config.flush_messages:",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_storage.py::"
            "test_with_flush_messages_no_record_is_acknowledged_before_replicas_have_it_on_disk",
        ),
        ("With `flush.messages=1` acknowledged records survive a power cut of all",),
    ),
)
