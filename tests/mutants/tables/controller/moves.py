"""Mutants of what operators ask the controller for: elections, reassignments, features, configurations."""

from tests.mutants.mutant import Breaks, Mutant, table

MOVES = table(
    Mutant(
        "more than there are brokers may not be asked for",
        "controller/topics/topics.py",
        "    why = why_not_together(\n",
        (
            '    if int(str(own.get("min.insync.replicas", 1))) > len(basis.image.brokers):\n'
            '        return Refusal(E.INVALID_CONFIG, "more than there are brokers")\n'
            "    why = why_not_together(\n"
        ),
        Breaks.ANSWERS,
        (
            "kip/kip_966/test_kip_966.py::test_a_topic_may_ask_for_more_in_sync_replicas_than_it_has_and_than_there_are_brokers",
        ),
        ("A topic may still be created with more than it has replicas",),
    ),
    Mutant(
        "a change of the ELR begins a leader epoch",
        "controller/partition.py",
        "leads_anew = elected.leader != old.leader\n",
        "leads_anew = elected.leader != old.leader or sets.elr != old.elr\n",
        Breaks.ANSWERS,
        ("kip/kip_966/test_kip_966_elr.py::test_a_change_of_the_elr_alone_begins_no_leader_epoch",),
        ("A change of the ELR alone begins no leader epoch",),
    ),
    Mutant(
        "a designation replaces who leads",
        "controller/partitions/manual.py",
        (
            "    if partition.leader != NOBODY:\n"
            "        return Refusal(E.ELECTION_NOT_NEEDED, message_of(E.ELECTION_NOT_NEEDED))\n"
        ),
        "",
        Breaks.ANSWERS,
        (
            "kip/kip_966/test_kip_966_api.py::test_an_election_by_designation_or_by_the_longest_log_is_only_for_partitions_without_a_leader",
        ),
        ("… only for partitions without a leader",),
    ),
    Mutant(
        "metadata.version alone switches Eligible Leader Replicas on",
        "controller/basis.py",
        "            is_elr_enabled=self.image.features.get(ELR_FEATURE, 0) > 0,\n",
        '            is_elr_enabled=self.image.features.get("metadata.version", 0) >= 26,\n',
        Breaks.AGREEMENT,
        (
            "kip/traps/test_eligible.py::test_t11_metadata_version_alone_makes_nobody_eligible",
            "kip/kip_966/test_kip_966_api.py::test_until_it_is_switched_on_no_record_has_a_field_of_it",
        ),
        (
            "T11",
            "Switched on by its feature",
        ),
    ),
    Mutant(
        "the feature rests on a metadata.version without its fields",
        "metadata/features.py",
        "{METADATA_VERSION: 23}}",
        "{METADATA_VERSION: 22}}",
        Breaks.AGREEMENT,
        (
            "unit/controller/configs/test_features.py::test_t11_the_feature_rests_on_a_metadata_version_that_has_fields_for_it",
        ),
        ("Switched on by its feature",),
    ),
    Mutant(
        "a cancel goes back to the order of the move",
        "controller/partitions/reassignments.py",
        "    original = old.original_replicas or without(old.replicas, old.adding_replicas)\n",
        "    original = without(old.replicas, old.adding_replicas)\n",
        Breaks.ANSWERS,
        (
            "unit/controller/test_reassignments.py::test_cancelled_the_order_is_that_of_before_the_first_of_several_moves",
        ),
        ("Clients start it, list it with what it waits for, and cancel it, which",),
    ),
    Mutant(
        "another move starts from what the first one was to make",
        "controller/partitions/reassignments.py",
        "    assignment = towards(old, target, original, basis)\n",
        "    assignment = towards(old, target, without(old.replicas, old.removing_replicas), basis)\n",
        Breaks.AGREEMENT,
        (
            "unit/controller/test_reassignments.py::test_another_move_in_the_middle_starts_from_what_there_was_before_the_first",
        ),
        ("Clients start it, list it with what it waits for, and cancel it, which",),
    ),
    Mutant(
        "a move that costs nothing cannot be cancelled under min ISR",
        "controller/partitions/reassignments.py",
        "        if keeps_isr and keeps_elr:\n            return None\n",
        "",
        Breaks.ANSWERS,
        ("unit/controller/test_reassignments.py::test_a_cancel_that_costs_the_isr_nothing_is_always_possible",),
        ("T30",),
    ),
    Mutant(
        "who leads cannot be replaced by the preferred leader",
        "controller/partitions/elections.py",
        "    wish = Wish(election=Election.PREFERRED) if kind == PREFERRED else Wish(cause=cause)\n",
        "    wish = Wish(cause=cause)\n",
        Breaks.ANSWERS,
        (
            "unit/controller/elections/test_elections.py::test_the_preferred_leader_leads_at_once",
            "kip/traps/test_gray.py::test_t30_a_leader_whose_disk_is_frozen_is_replaced_by_an_election",
        ),
        (
            "T30",
            "Preferred leaders are elected on request and automatically",
        ),
    ),
    Mutant(
        "leadership returns by hand alone",
        "controller/controller.py",
        "            self.next_balance = after(now, self.config.leader_imbalance_check_ms)\n",
        "            self.next_balance = NEVER\n",
        Breaks.ANSWERS,
        (
            "unit/controller/test_controller.py::test_leadership_returns_to_the_preferred_replica_in_time",
            "unit/controller/test_controller.py::test_a_balancer_that_finds_more_than_it_elects_at_once_goes_on_soon",
        ),
        ("Preferred leaders are elected on request and automatically",),
    ),
    Mutant(
        "leadership returns though that is switched off",
        "controller/controller.py",
        "        if self.config.is_leader_rebalance_enabled:\n",
        "        if True:\n",
        Breaks.ANSWERS,
        ("unit/controller/test_controller.py::test_leadership_does_not_return_by_itself_where_that_is_switched_off",),
        ("Preferred leaders are elected on request and automatically",),
    ),
    Mutant(
        "partitions without a leader are not looked at in time",
        "controller/controller.py",
        "        self.next_unclean = after(now, self.config.unclean_election_check_ms)\n",
        "        self.next_unclean = NEVER\n",
        Breaks.ANSWERS,
        ("unit/controller/test_controller.py::test_partitions_without_a_leader_are_looked_at_in_a_span_of_their_own",),
        ("If a topic allows the loss, partitions without a leader get one after a",),
    ),
    Mutant(
        "leave for unclean elections elects the first ones alone",
        "controller/controller.py",
        (
            "        self.next_unclean = after(now, NEXT_ELECTIONS_MS if has_more else "
            "self.config.unclean_election_check_ms)\n"
        ),
        "        self.next_unclean = after(now, self.config.unclean_election_check_ms)\n",
        Breaks.ANSWERS,
        ("unit/controller/test_controller.py::test_allowing_unclean_elections_elects_all_though_not_all_at_once",),
        ("If a topic allows the loss, partitions without a leader get one after a",),
    ),
    Mutant(
        "a broker that was fenced stays so",
        "metadata/replay.py",
        "            fenced=old.fenced if record.fenced == 0 else record.fenced > 0,\n",
        "            fenced=old.fenced or record.fenced > 0,\n",
        Breaks.ANSWERS,
        ("kip/test_kip_841.py::test_once_unfenced_it_may_be_proposed_again",),
        ("Once unfenced, it may be proposed again",),
    ),
    Mutant(
        "a waiting reassignment names no replica",
        "controller/partitions/reassignments.py",
        '    reasons = [f"replica {node} is not in sync{state_of(node, basis)}" for node in missing]\n',
        '    reasons = ["a replica is not in sync" for _ in missing]\n',
        Breaks.ANSWERS,
        (
            "kip/traps/test_moves.py::test_t45_a_move_that_waits_says_for_which_replica",
            "unit/controller/test_reassignments.py::test_moves_are_listed_with_what_they_wait_for",
        ),
        (
            "T45",
            "Clients start it, list it with what it waits for, and cancel it, which",
        ),
    ),
    Mutant(
        "what a follower lacks is not told in bytes",
        "broker/handlers/describe_log_dirs.py",
        "        lag_bytes = log.bytes_from(has)\n",
        "        lag_bytes = log.size_bytes\n",
        Breaks.ANSWERS,
        (
            "unit/broker/handlers/test_log_dirs.py::test_a_leader_reports_how_far_a_follower_out_of_sync_is_behind_its_log",
        ),
        ("T45",),
    ),
    Mutant(
        "of who has never fetched all is said to be missing",
        "broker/handlers/describe_log_dirs.py",
        "FollowerOutOfSync(replica_id=node) if state.log_end_offset < 0 else lacking(leader.log, node, state)",
        "lacking(leader.log, node, state)",
        Breaks.ANSWERS,
        ("unit/broker/handlers/test_log_dirs.py::test_of_a_follower_that_has_never_fetched_nothing_is_known",),
        ("T45",),
    ),
    Mutant(
        "min ISR of one broker is set with Eligible Leader Replicas",
        "controller/configs.py",
        '        if resource.resource_name != CLUSTER_DEFAULT:\n            why = "Broker-level',
        '        if False:\n            why = "Broker-level',
        Breaks.DURABILITY,
        ("kip/traps/test_eligible.py::test_t13_min_isr_of_one_broker_is_refused_with_the_reason_also_when_only_asked",),
        ("T13",),
    ),
    Mutant(
        "who only asks changes the configuration",
        "controller/configs.py",
        "    return Plan(() if request.validate_only else tuple(records), response)\n\n\ndef why_no_resource",
        "    return Plan(tuple(records), response)\n\n\ndef why_no_resource",
        Breaks.ANSWERS,
        ("kip/traps/test_eligible.py::test_t13_min_isr_of_one_broker_is_refused_with_the_reason_also_when_only_asked",),
        ("T13",),
    ),
    Mutant(
        "a replica says that it has an epoch that nobody has led",
        "controller/partitions/inquiries.py",
        "    is_epoch = -1 <= row.last_written_leader_epoch <= row.current_leader_epoch\n",
        "    is_epoch = -1 <= row.last_written_leader_epoch\n",
        Breaks.DURABILITY,
        ("unit/controller/elections/test_recovery.py::test_what_no_log_can_be_like_does_not_count",),
    ),
    Mutant(
        "a replica is asked for its log once",
        "controller/partitions/inquiries.py",
        "            if node in self.under_way or node in self.again_at:\n",
        "            if node in self.under_way or node in self.again_at or node in self.asked:\n",
        Breaks.ANSWERS,
        (
            "kip/kip_966/test_kip_966_recovery.py::test_a_replica_that_restarts_before_it_was_asked_answers_in_its_new_epoch",
        ),
        ("A broker that fails before it is asked answers with its new broker epoch",),
    ),
)
