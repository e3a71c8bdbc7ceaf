"""Mutants of followers: what they ask for, what they take, where they cut."""

from tests.mutants.mutant import Breaks, Mutant, table

FOLLOWERS = table(
    Mutant(
        "a follower cuts its log at a start that no log can have",
        "replica/hosting/follower.py",
        "0 <= answer.log_start_offset <= OFFSET_MAX:",
        "0 <= answer.log_start_offset:",
        Breaks.DURABILITY,
        ("unit/replica/test_scripts.py::test_a_leader_that_begins_where_no_log_can_begin_cuts_nothing",),
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
        "a fetch says no broker epoch",
        "replica/following/fetcher.py",
        "replica_state=AskingReplica(replica_id=self.host.me, replica_epoch=self.host.cluster.broker_epoch)",
        "replica_state=AskingReplica(replica_id=self.host.me, replica_epoch=-1)",
        Breaks.AGREEMENT,
        ("kip/test_kip_903.py::test_the_follower_sends_the_epoch_of_its_registration_in_every_fetch",),
        ("Every Fetch carries the broker epoch of its registration",),
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
        "a replica out of range begins at offset 0",
        "replica/hosting/follower.py",
        ('            return Cut(answer.log_start_offset, True, "the leader\'s log has none of its offsets")'),
        '            return Cut(0, True, "the leader\'s log has none of its offsets")',
        Breaks.AGREEMENT,
        ("sim/test_scenarios.py::test_a_new_replica_of_a_log_that_starts_inside_a_batch_catches_up",),
        ("A new replica begins at offset 0, without an epoch; if the leader has",),
    ),
)
