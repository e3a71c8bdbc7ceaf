"""Mutants of roles: what metadata makes of a replica, and what a replica keeps from one role to the next."""

from tests.mutants.mutant import Breaks, Mutant, table

ROLES = table(
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
        "who leads goes on copying",
        "replica/roles.py",
        "        self.fetchers.leave(hosted)\n        leader = Leader(",
        "        leader = Leader(",
        Breaks.AGREEMENT,
        ("kip/test_chapter_details.py::test_a_broker_that_becomes_leader_stops_fetching",),
        ("A leader fetches from no replica; a follower fetches only from the leader",),
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
        "min ISR of a configuration is taken by new leaders alone",
        "replica/roles.py",
        "        leader.configure(self.host.image.effective_min_isr(topic, topic.partitions[hosted.at.partition]))\n",
        "",
        Breaks.DURABILITY,
        ("unit/replica/test_cluster.py::test_a_waiting_produce_learns_when_min_isr_is_raised_above_the_isr",),
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
        (
            "kip/kip_966/test_kip_966_elr.py::test_a_leader_goes_by_the_isr_alone_and_an_eligible_replica_helps_no_write",
        ),
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
)
