"""Mutants of log directories: failed, cordoned, and where the controller has replicas."""

from tests.mutants.mutant import Breaks, Mutant, table

DIRECTORIES = table(
    Mutant(
        "replicas of a failed directory go on",
        "replica/offline.py",
        "                host.drop(hosted)\n",
        "                hosted.leave()\n",
        Breaks.AGREEMENT,
        ("unit/replica/storage/test_directories.py::test_a_follower_whose_directory_fails_copies_no_longer",),
        ("Its replicas no longer fetch, its checkpoints are not changed, and the",),
    ),
    Mutant(
        "checkpoints are written to a failed directory",
        "replica/storage/checkpoints.py",
        (
            "    def save_high_watermarks(self, now: Instant) -> list[Effect]:\n"
            "        return [\n"
            "            effect\n"
            "            for log_dir in self.directories.live\n"
        ),
        (
            "    def save_high_watermarks(self, now: Instant) -> list[Effect]:\n"
            "        return [\n"
            "            effect\n"
            "            for log_dir in (*self.directories.live, *self.directories.offline.values())\n"
        ),
        Breaks.DURABILITY,
        ("kip/test_chapter_details.py::test_the_checkpoints_of_a_failed_directory_are_left_alone",),
        ("Its replicas no longer fetch, its checkpoints are not changed, and the",),
    ),
    Mutant(
        "the controller is not told where the replicas of a failed directory are",
        "replica/replicas.py",
        "        if self.has_caught_up:\n            self.offline.report_absent()\n",
        "",
        Breaks.AGREEMENT,
        (
            "unit/replica/storage/test_future.py::test_the_old_directory_fails_when_the_controller_has_the_replica_in_the_new_one_already",
        ),
        ("Its replicas no longer fetch, its checkpoints are not changed, and the",),
    ),
    Mutant(
        "what was to be told of a replica is forgotten with its directory",
        "replica/offline.py",
        "                self.storage.flushing.forget(hosted.at)\n",
        "                self.assignments.forget(hosted.at)\n",
        Breaks.AGREEMENT,
        (
            (
                "unit/replica/storage/test_directories.py::"
                "test_a_failed_directory_of_a_replica_that_metadata_has_elsewhere_is_reported"
            ),
        ),
        ("Its replicas no longer fetch, its checkpoints are not changed, and the",),
        (("replica/replicas.py", "        if self.has_caught_up:\n            self.offline.report_absent()\n", ""),),
    ),
    Mutant(
        "a replica in a lost directory comes into the ISR",
        "controller/partitions/isr.py",
        "    if not basis.image.is_online(node, old):\n        return True\n",
        "",
        Breaks.DURABILITY,
        ("unit/controller/test_directories.py::test_a_replica_in_a_lost_directory_may_not_come_back_into_the_isr",),
        ("Its replicas no longer fetch, its checkpoints are not changed, and the",),
    ),
    Mutant(
        "cordoned brokers get new replicas",
        "metadata/registrations.py",
        "        return not self.log_dirs or any(directory not in self.cordoned for directory in self.log_dirs)\n",
        "        return True\n",
        Breaks.ANSWERS,
        (
            "unit/controller/test_cordoned.py::test_no_new_partition_goes_where_all_directories_are_cordoned",
            "unit/controller/test_cordoned.py::test_neither_by_hand_nor_by_a_reassignment",
        ),
        ("They keep what they have; no new replica is placed",),
    ),
    Mutant(
        "a snapshot does not say what is cordoned",
        "metadata/registrations.py",
        "        cordoned_log_dirs=broker.cordoned or None,\n",
        "",
        Breaks.AGREEMENT,
        ("unit/controller/test_cordoned.py::test_it_is_in_a_snapshot_and_a_new_incarnation_says_it_anew",),
        ("They keep what they have; no new replica is placed",),
    ),
    Mutant(
        "replicas move into a cordoned directory",
        "replica/storage/moving/futures.py",
        "        if log_dir in cordoned(self.host):\n            return E.INVALID_REPLICA_ASSIGNMENT\n",
        "",
        Breaks.ANSWERS,
        ("unit/broker/handlers/test_log_dirs.py::test_a_cordoned_directory_keeps_its_logs_and_takes_no_new_one",),
        ("They keep what they have; no new replica is placed",),
    ),
    Mutant(
        "new replicas go into a cordoned directory",
        "replica/storage/placement.py",
        "        free = [log_dir for log_dir in live if log_dir.path not in closed] or live[:1]\n",
        "        free = live\n",
        Breaks.ANSWERS,
        ("unit/broker/handlers/test_log_dirs.py::test_a_cordoned_directory_keeps_its_logs_and_takes_no_new_one",),
        ("They keep what they have; no new replica is placed",),
    ),
    Mutant(
        "high watermarks lie in a file of our own",
        "replica/hosting/rows.py",
        '"replication-offset-checkpoint"',
        '"high-watermark-checkpoint"',
        Breaks.ANSWERS,
        ("kip/test_chapter_details.py::test_the_high_watermark_lies_in_kafkas_file_in_each_log_directory",),
        ("It lies in `replication-offset-checkpoint`",),
    ),
    Mutant(
        "an answer settles a newer wish",
        "replica/storage/moving/assignments.py",
        "                    if row.error_code in done and at in asked and self.wanted.get(at) == asked[at]:\n",
        "                    if row.error_code in done and at in asked and at in self.wanted:\n",
        Breaks.AGREEMENT,
        (
            "kip/traps/test_directories.py::test_t41_an_answer_settles_only_what_it_is_the_answer_to",
            "unit/replica/storage/test_directories.py::test_an_assignment_that_is_overtaken_is_reported_anew",
            "kip/traps/test_directories.py::test_t41_a_replica_that_went_there_and_back_learns_where_it_is",
        ),
        ("T41",),
    ),
    Mutant(
        "a wish that got no answer is forgotten",
        "replica/storage/moving/assignments.py",
        "        self.outbox.take()\n        self.outbox.back_off(now)\n",
        (
            "        for at in self.outbox.take():\n"
            "            self.wanted.pop(at, None)\n"
            "        self.outbox.back_off(now)\n"
        ),
        Breaks.AGREEMENT,
        ("kip/traps/test_directories.py::test_t41_what_is_retried_is_the_latest_wish",),
        ("T41",),
    ),
    Mutant(
        "a lost topic id stays lost",
        "replica/storage/opening/owners.py",
        "    if saved is not None and (topic_id is None",
        "    if False and (topic_id is None",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_damaged.py::test_a_log_that_lost_its_topic_id_has_it_again_by_the_checkpoint",),
    ),
    Mutant(
        "another topic's log is taken for that of the checkpoint",
        "replica/storage/opening/owners.py",
        "(topic_id != saved and is_nearly(topic_id, saved))",
        "topic_id != saved",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_damaged.py::test_another_topics_log_under_the_same_name_is_deleted_as_ever",),
    ),
    Mutant(
        "a log is opened under a name that is not its topic's by the checkpoint",
        "replica/storage/opening/owners.py",
        "topic_id == saved or topic_id not in rows.values()",
        "True",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_misnamed.py::test_a_folder_that_was_copied_under_another_name_costs_the_original_nothing",
        ),
    ),
    Mutant(
        "a log has a role under a name that is not its topic's",
        "replica/replicas.py",
        "            effects += part_with_misnamed(self.host, self.storage.disk, self.storage.findings)\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_misnamed.py::"
            "test_a_log_whose_folder_does_not_bear_its_topics_name_is_kept_aside_and_copied_anew",
        ),
    ),
    Mutant(
        "what a log had that is kept aside is not in the ledger",
        "replica/storage/opening/owners.py",
        "        findings.is_another(hosted)\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_misnamed.py::test_what_was_committed_there_is_in_the_ledger_before_it_is_copied_anew",
        ),
    ),
    Mutant(
        "a copy under another name is a second log of the topic",
        "replica/storage/opening/loading.py",
        "            refuse_other_name(first, path)\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_misnamed.py::test_a_folder_that_was_copied_under_another_name_costs_the_original_nothing",
        ),
    ),
    Mutant(
        "a log that cannot be kept aside is forgotten",
        "replica/storage/opening/owners.py",
        "            host.fail(directory, error)\n            continue\n",
        "            pass\n",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_misnamed.py::test_where_it_cannot_be_kept_aside_its_directory_is_offline",),
    ),
    Mutant(
        "the checkpoint says whose a name was when it is used again",
        "replica/storage/checkpoints.py",
        (
            "            self.write_now(log_dir, TOPIC_IDS, *self.topic_ids(log_dir))\n"
            "            for file, offsets in rows.items():\n"
        ),
        "            for file, offsets in rows.items():\n",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_damaged.py::test_before_a_name_is_used_again_no_checkpoint_says_whose_it_was",),
    ),
)
