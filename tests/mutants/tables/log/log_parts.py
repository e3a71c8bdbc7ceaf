"""Mutants of what a log has beside its records: producers, compaction, the marker of a clean stop."""

from tests.mutants.mutant import Breaks, Mutant, table

LOG_PARTS = table(
    Mutant(
        "a swap's old segments go before its names are durable",
        "log/files/swapping.py",
        "    disk.sync([directory])\n    for segment",
        "    for segment",
        Breaks.DURABILITY,
        (
            "unit/log/compaction/test_compaction_passes.py::"
            "test_the_names_of_a_swap_are_durable_before_what_it_replaces_is_deleted",
        ),
    ),
    Mutant(
        "the directory is not synced after a swap's names",
        "log/segments.py",
        "            self.warm = None\n        self.unsynced.add(self.directory)\n",
        "            self.warm = None\n",
        Breaks.DURABILITY,
        ("unit/log/compaction/test_compaction_passes.py::test_the_last_names_of_a_swap_are_synced_with_the_log",),
    ),
    Mutant(
        "compaction takes the entries of epochs without records",
        "log/files/stored_log.py",
        "        self.segments.replace(group, cleaned)\n",
        (
            "        self.segments.replace(group, cleaned)\n"
            "        latest = self.epochs.latest\n"
            "        left = {h.partition_leader_epoch for s in self.segments for h in s.headers(0) if h.record_count}\n"
            "        self.epochs.entries = [e for e in self.epochs.entries if e.epoch in left or e.epoch == latest]\n"
        ),
        Breaks.DURABILITY,
        (
            "kip/test_kip_101_compaction.py::test_entries_whose_records_compaction_takes_stay_and_answer",
            "kip/test_kip_101_compaction.py::test_a_follower_that_still_has_those_records_cuts_nothing",
            (
                "kip/test_kip_101_compaction.py::"
                "test_a_follower_that_wrote_on_in_such_an_epoch_cuts_what_its_leader_never_had"
            ),
            "kip/test_kip_101_compaction.py::test_entries_go_when_the_logs_start_passes_them",
        ),
        ("Entries whose records compaction removes: the text removes them; as in",),
    ),
    Mutant(
        "the marker stays when the broker has started",
        "log/evidence/clean_shutdown.py",
        "            disk.remove(path)\n            disk.sync([directory])\n",
        "            pass\n",
        Breaks.DURABILITY,
        (
            (
                "kip/kip_966/test_kip_966_shutdown.py::"
                "test_a_broker_that_starts_puts_the_epoch_of_the_file_into_its_registration_and_removes_the_file"
            ),
            "kip/traps/test_registration.py::test_t27_the_marker_is_taken_away_durably_and_believed_once",
            "unit/log/test_files.py::test_a_clean_stop_is_believed_once",
        ),
        (
            "A broker that starts puts that epoch into its registration, and removes the file",
            "The marker is written last at a stop, with the broker epoch, and deleted",
        ),
    ),
    Mutant(
        "the marker is taken away and may come back",
        "log/evidence/clean_shutdown.py",
        "            disk.remove(path)\n            disk.sync([directory])\n",
        "            disk.remove(path)\n",
        Breaks.DURABILITY,
        ("kip/traps/test_registration.py::test_t27_the_marker_is_taken_away_durably_and_believed_once",),
        ("The marker is written last at a stop, with the broker epoch, and deleted",),
    ),
    Mutant(
        "a marker of another node or cluster is believed",
        "log/evidence/clean_shutdown.py",
        "    of_here = Marker.of(as_it_was(place, marker),",
        (
            "    place = Place(marker.cluster_id, marker.node_id, place.directories, place.dead)\n"
            "    of_here = Marker.of(as_it_was(place, marker),"
        ),
        Breaks.DURABILITY,
        ("kip/traps/test_registration.py::test_t28_all_directories_must_have_a_marker_of_the_same_stop_of_this_node",),
        (
            "A marker of another stop, node, cluster or set of directories does not",
            "T28",
        ),
    ),
    Mutant(
        "a producer's older epoch is accepted",
        "log/producers/producers.py",
        ("        if batch.producer_epoch < producer.epoch:\n            return ErrorCode.INVALID_PRODUCER_EPOCH\n"),
        "",
        Breaks.DURABILITY,
        ("unit/log/producers/test_producers.py::test_a_new_epoch_begins_at_zero_and_fences_the_old_one",),
        holds=(
            "98.8",
            "890.18",
        ),
    ),
    Mutant(
        "the second batch of a producer in flight counts as a duplicate of the first",
        "log/producers/producers.py",
        ("            if old.first_sequence == batch.base_sequence and old.last_sequence == batch.last_sequence:"),
        ("            if old.first_sequence <= batch.base_sequence and batch.last_sequence <= old.last_sequence + 1:"),
        Breaks.DURABILITY,
        ("unit/log/producers/test_producers.py::test_each_of_the_last_five_batches_is_a_duplicate_and_none_before",),
    ),
    Mutant(
        "four batches of a producer are remembered",
        "log/producers/producers.py",
        "BATCHES_MAX = 5",
        "BATCHES_MAX = 4",
        Breaks.AGREEMENT,
        ("unit/log/producers/test_producers.py::test_each_of_the_last_five_batches_is_a_duplicate_and_none_before",),
    ),
    Mutant(
        "a search for a time goes on behind a length that has rotted",
        "log/timestamps.py",
        "        if position < segment.size:\n            return Damaged(following)\n",
        "",
        Breaks.ANSWERS,
        ("unit/replica/scrubbing/test_scrubbing.py::test_a_search_for_a_time_names_no_record_behind_damage",),
    ),
    Mutant(
        "a search for a time believes records that have rotted",
        "log/timestamps.py",
        "            if not is_sound(segment, header):\n                return Damaged(header.base_offset)\n",
        "",
        Breaks.ANSWERS,
        ("unit/replica/scrubbing/test_scrubbing.py::test_a_search_for_a_time_names_no_record_behind_damage",),
    ),
    Mutant(
        "producer snapshots ahead of the log are believed",
        "log/producers/producer_state.py",
        "if offset <= end and offset < believed_below]",
        "if offset <= end]",
        Breaks.DURABILITY,
        (
            "unit/log/producers/test_producer_snapshot.py::test_after_an_unclean_stop_none_is_believed_from_the_recovery_point_on",
        ),
        holds=("KAFKA-5249",),
    ),
    Mutant(
        "records at the high watermark are cleaned",
        "log/cleaning/cleanable.py",
        "    bound = min(stable_end, log.recovery_point)\n",
        "    bound = log.recovery_point\n",
        Breaks.DURABILITY,
        ("unit/log/compaction/test_compaction.py::test_nothing_at_or_above_the_high_watermark_is_looked_at",),
    ),
    Mutant(
        "what is not durable decides what is cleaned",
        "log/cleaning/cleanable.py",
        "    bound = min(stable_end, log.recovery_point)\n",
        "    bound = stable_end\n",
        Breaks.DURABILITY,
        (
            "unit/log/compaction/test_compaction.py::test_nothing_that_a_power_loss_may_take_decides_over_what_is_durable",
        ),
    ),
    Mutant(
        "the last record of a key is taken too",
        "log/cleaning/compaction.py",
        ("        if record.key is None or record.offset < self.last_of_key.get(fingerprint(record.key), -1):"),
        ("        if record.key is None or record.offset <= self.last_of_key.get(fingerprint(record.key), -1):"),
        Breaks.DURABILITY,
        ("unit/log/compaction/test_compaction.py::test_nothing_at_or_above_the_high_watermark_is_looked_at",),
    ),
    Mutant(
        "batches that producers are remembered by are cleaned away",
        "log/cleaning/compaction.py",
        "if not kept and not begins_epoch and not self.is_kept_empty(header):",
        "if not kept and not begins_epoch:",
        Breaks.AGREEMENT,
        ("unit/log/compaction/test_compaction.py::test_a_producers_batches_stay_empty_so_that_its_sequence_is_known",),
    ),
    Mutant(
        "the first batches of epochs are cleaned away",
        "log/cleaning/compaction.py",
        "if not kept and not begins_epoch and not self.is_kept_empty(header):",
        "if not kept and not self.is_kept_empty(header):",
        Breaks.AGREEMENT,
        (
            "unit/log/compaction/test_compaction.py::test_a_tombstone_stays_for_its_retention_after_the_first_pass_that_saw_it",
        ),
    ),
)
