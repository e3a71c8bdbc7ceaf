"""Mutants of the group coordinator."""

from tests.mutants.mutant import Breaks, Mutant, table

TRANSACTIONAL = "unit/group/offsets/test_transactional.py::"

GROUP = table(
    Mutant(
        "a late write completes a newer generation",
        "group/serving/membership.py",
        "if group.state is not State.COMPLETING_REBALANCE or group.generation != generation:",
        "if group.state is not State.COMPLETING_REBALANCE:",
        Breaks.AGREEMENT,
        ("unit/group/classic/test_syncing.py::test_a_write_that_ends_in_the_next_generation_completes_nothing_of_it",),
    ),
    Mutant(
        "sessions count from the beginning of a write that its members have waited for",
        "replica/serving/producing.py",
        "        waiter = InternalAppend(self.host, then, appended.base_offset, appended.last_offset + 1)\n",
        (
            "        waiter = InternalAppend(\n"
            "            self.host, lambda e, o, _: then(e, o, now), appended.base_offset, appended.last_offset + 1\n"
            "        )\n"
        ),
        Breaks.ANSWERS,
        ("unit/replica/serving/test_requests.py::test_the_brokers_own_append_is_done_when_it_is_committed",),
    ),
    Mutant(
        "a sync that waited long leaves a member what its session had then",
        "group/serving/membership.py",
        "        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:\n"
        "            del base_offset\n"
        "            if group.state",
        "        def done(error: ErrorCode, base_offset: int, at: Instant) -> list[Effect]:\n"
        "            del base_offset\n"
        "            if group.state",
        Breaks.ANSWERS,
        (
            "unit/group/classic/test_syncing.py::test_a_write_that_takes_long_takes_nothing_from_its_members_sessions",
            "unit/group/classic/test_closing_static.py::"
            "test_a_closed_static_member_ends_when_its_session_does_whatever_it_said_last",
        ),
    ),
    Mutant(
        "offsets of groups with members expire",
        "group/serving/retention.py",
        "        if isinstance(group, Group) and (group.members or group.pending):\n            return []\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/group/offsets/test_offsets.py::test_offsets_of_a_group_with_members_are_not_forgotten_however_old_they_are",
        ),
    ),
    Mutant(
        "an older offset commit is replayed over a newer one",
        "group/shards/shard.py",
        "                offsets[at] = committed\n            else:",
        "                offsets.setdefault(at, committed)\n            else:",
        Breaks.DURABILITY,
        ("unit/group/offsets/test_offsets.py::test_a_new_coordinator_finds_the_last_offset_that_was_committed",),
    ),
    Mutant(
        "an assignment is given out before it is written",
        "group/serving/membership.py",
        "        return effects + self.shards.write(shard, [group_record(group)], now, done)\n\n    def heartbeat",
        (
            "        return effects + done(ErrorCode.NONE, 0, now) + self.shards.write(shard, [group_record(g"
            "roup)], now, lambda error, base, at: [])\n"
            "\n"
            "    def heartbeat"
        ),
        Breaks.AGREEMENT,
        ("unit/group/classic/test_syncing.py::test_nobody_gets_an_assignment_before_it_is_written",),
    ),
    Mutant(
        "an offset counts before it is written",
        "group/serving/committing.py",
        (
            "        return self.shards.write(shard, [offset_record(request.group_id, *entry) for entry "
            "in accepted], now, done)"
        ),
        (
            "        return [*done(ErrorCode.NONE, 0, now), *self.shards.write(shard, [offset_record(request."
            "group_id, *entry) for entry in accepted], now, lambda error, base, at: [])]"
        ),
        Breaks.DURABILITY,
        ("unit/group/offsets/test_offsets.py::test_an_offset_is_visible_and_answered_when_it_is_written",),
    ),
    Mutant(
        "a deletion of offsets that could not be written is confirmed",
        "group/serving/offset_deletion.py",
        "failed = membership_error(error)",
        "failed = ErrorCode.NONE",
        Breaks.DURABILITY,
        (
            "unit/group/offsets/test_offset_deletion.py::test_a_deletion_that_cannot_be_written_is_refused_and_the_offset_stays",
        ),
    ),
    Mutant(
        "an offset that could not be written is acknowledged",
        "group/serving/committing.py",
        "answers.committed(request, coordinator_error(error), self.config, known, version)",
        "answers.committed(request, ErrorCode.NONE, self.config, known, version)",
        Breaks.DURABILITY,
        ("unit/group/offsets/test_offsets.py::test_an_offset_that_cannot_be_written_is_not_remembered",),
    ),
    Mutant(
        "a member of an older generation commits",
        "group/classic/group.py",
        "        return ErrorCode.ILLEGAL_GENERATION if generation != self.generation else None",
        "        return None",
        Breaks.AGREEMENT,
        ("unit/group/offsets/test_offsets.py::test_a_member_commits_in_its_generation_and_that_keeps_its_session",),
    ),
    Mutant(
        "a static member that was replaced goes on",
        "group/classic/group.py",
        "            if current != member_id:\n                return ErrorCode.FENCED_INSTANCE_ID\n",
        "",
        Breaks.ANSWERS,  # it is refused all the same, as a member that nobody knows
        ("unit/group/classic/test_static.py::test_a_static_member_that_restarts_takes_its_place_without_a_rebalance",),
    ),
    Mutant(
        "a coordinator loads what is damaged and may yet be repaired",
        "replica/scrubbing/scrubber.py",
        (
            "        self.host.suspects.add(hosted, max(damage.start, hosted.log.log_start_offset), now)\n"
            "        return True\n"
        ),
        "        return False\n",
        Breaks.DURABILITY,
        (
            "unit/broker/coordinators/test_internal_topics.py::"
            "test_what_another_replica_has_is_waited_for_and_repaired_for_the_coordinator_too",
        ),
    ),
    Mutant(
        "a coordinator ends its load where something is lost",
        "broker/coordinators/reading.py",
        "        self.unreadable += 1\n        place.passed(checked)\n        return size, Reached.MORE\n",
        "        return size, Reached.END\n",
        Breaks.DURABILITY,
        (
            "unit/broker/coordinators/test_internal_topics.py::"
            "test_what_no_replica_has_is_passed_once_it_is_known_to_be_lost_and_nothing_else_is",
        ),
    ),
    Mutant(
        "a partition that is not loaded is like an empty one",
        "coordination/shards.py",
        "loading.is_read = part.reached is Reached.END",
        "loading.is_read = part.reached is not Reached.MORE",
        Breaks.DURABILITY,
        (
            "unit/group/offsets/test_offsets.py::test_a_coordinator_that_cannot_read_all_yet_asks_to_wait_and_forgets_nothing",
        ),
    ),
    Mutant(
        "any generation in the log is believed",
        "group/shards/shard.py",
        "if 0 <= value.generation < GENERATION_END:",
        "if 0 <= value.generation:",
        Breaks.ANSWERS,
        (
            "unit/group/classic/test_joining.py::test_a_generation_that_no_group_comes_to_by_counting_is_not_gone_on_from",
        ),
    ),
    Mutant(
        "a tombstone of an offset is not replayed",
        "group/shards/shard.py",
        "        offsets.pop(at, None)\n",
        "        offsets.get(at, None)\n",
        Breaks.DURABILITY,
        ("unit/group/offsets/test_offsets.py::test_offsets_without_members_are_forgotten_after_their_retention",),
    ),
    Mutant(
        "a shard outlives its leadership",
        "coordination/shards.py",
        " if known.get(partition) != shard.leader_epoch]",
        " if partition not in led]",
        Breaks.DURABILITY,
        (
            "unit/group/test_administration.py::"
            "test_parked_syncs_are_sent_away_too_and_the_write_under_way_answers_nobody_twice",
        ),
    ),
    Mutant(
        "a member's commit is no sign of life",
        "group/serving/committing.py",
        (
            "            group.members[request.member_id].heard(now)\n"
            "            if group.state is State.COMPLETING_REBALANCE:"
        ),
        "            if group.state is State.COMPLETING_REBALANCE:",
        Breaks.ANSWERS,
        ("unit/group/offsets/test_offsets.py::test_a_member_commits_in_its_generation_and_that_keeps_its_session",),
    ),
    Mutant(
        "an offset counts before its transaction is committed",
        "group/shards/shard.py",
        "            if producer_id == NO_PRODUCER_ID:\n                offsets",
        "            if True:\n                offsets",
        Breaks.AGREEMENT,
        (TRANSACTIONAL + "test_a_transaction_that_is_open_where_the_log_ends_is_pending_for_a_new_coordinator",),
        holds=(
            "98.14",
            "447.8",
        ),
    ),
    Mutant(
        "an offset of an aborted transaction counts",
        "group/shards/shard.py",
        "            if commits:\n                offsets",
        "            if True:\n                offsets",
        Breaks.AGREEMENT,
        (TRANSACTIONAL + "test_what_an_aborted_transaction_has_committed_never_counts",),
        holds=("98.15",),
    ),
    Mutant(
        "a marker puts an offset over one that was committed later",
        "group/shards/shard.py",
        "if there is None or there.record_offset < committed.record_offset:",
        "if True:",
        Breaks.AGREEMENT,
        (TRANSACTIONAL + "test_an_offset_that_was_committed_after_the_pending_one_wins",),
        holds=("447.9",),
    ),
    Mutant(
        "an offset is stable while a commit that was accepted is not written",
        "group/offsets/pending.py",
        "return key in self.holders or self.under_way[key] > 0",
        "return key in self.holders",
        Breaks.AGREEMENT,
        (TRANSACTIONAL + "test_an_offset_is_unstable_from_when_its_commit_is_accepted",),
        holds=("447.6",),
    ),
    Mutant(
        "a commit that was not acknowledged in time is forgotten, and its transaction is not",
        "group/serving/transactional.py",
        "if base_offset >= 0:",
        "if error is ErrorCode.NONE:",
        Breaks.AGREEMENT,
        (TRANSACTIONAL + "test_a_commit_that_is_not_acknowledged_in_time_counts_if_its_transaction_is_committed",),
    ),
    Mutant(
        "a member of an older generation commits in a transaction",
        "group/serving/transactional.py",
        "    return group.why_not(request.member_id, request.group_instance_id, request.generation_id)\n",
        "    return None\n",
        Breaks.AGREEMENT,
        (TRANSACTIONAL + "test_a_member_commits_in_its_generation_by_its_id",),
        holds=("447.1",),
    ),
    Mutant(
        "a group is deleted, and what is pending in it comes back",
        "group/coordinator.py",
        "list(dict.fromkeys([*shard.offsets.get(group_id, {}), *pending]))",
        "list(shard.offsets.get(group_id, {}))",
        Breaks.ANSWERS,
        (TRANSACTIONAL + "test_a_group_is_deleted_with_what_is_pending_in_it",),
    ),
    Mutant(
        "an offset is forgotten while another is pending",
        "group/serving/retention.py",
        "if not shard.pending.is_unstable((group_id, *at))",
        "if at",
        Breaks.DURABILITY,
        (TRANSACTIONAL + "test_an_offset_whose_time_is_up_is_kept_while_another_is_pending_and_so_is_its_group",),
    ),
    Mutant(
        "the record of a group goes while an offset is pending in it",
        "group/serving/retention.py",
        " and group_id not in shard.pending.groups",
        "",
        Breaks.DURABILITY,
        (TRANSACTIONAL + "test_a_group_without_an_offset_is_kept_while_one_is_pending",),
        holds=("KAFKA-19163",),
    ),
    Mutant(
        "a record does not say that its member speaks the consumer protocol",
        "wire/messages/consumer_groups/records.py",
        'Nullable("0+"), Tag(0)] = (\n        ClassicMemberMetadata()\n    )',
        'Nullable("0+"), Tag(0)] = None',
        Breaks.ANSWERS,
        ("unit/wire/test_batch_group_records.py::test_a_member_is_kafkas_bytes",),
    ),
    Mutant(
        "a member takes the place of another one",
        "group/consumer/planning.py",
        "    if joins and request.member_id not in group.members:",
        "    if joins and group.static.get(request.instance_id) != request.member_id:",
        Breaks.ANSWERS,
        ("kip/groups/test_kip_848.py::test_a_member_keeps_its_instance_id",),
    ),
    Mutant(
        "an expression of Kafka's stops the whole group",
        "group/consumer/draft.py",
        "                if regex == own:\n                    raise\n",
        "                raise\n",
        Breaks.ANSWERS,
        (
            "kip/groups/test_kip_848_coordinator.py::"
            "test_an_expression_that_only_kafka_takes_stops_nobody_but_its_member",
        ),
    ),
    Mutant(
        "the cause of a rebalance is whatever happened last in it",
        "group/classic/group.py",
        "self.cause = self.cause if was is State.PREPARING_REBALANCE else why",
        "self.cause = why",
        Breaks.ANSWERS,
        ("unit/group/test_progress.py::test_a_rebalance_has_a_cause_which_later_ones_do_not_replace",),
    ),
    Mutant(
        "a commit that failed counts as the last one of its member",
        "group/serving/transactional.py",
        "            if error is ErrorCode.NONE:\n                note_commit(shard, request, at)\n",
        "            note_commit(shard, request, at)\n",
        Breaks.ANSWERS,
        ("unit/group/test_progress.py::test_a_commit_that_failed_is_none",),
    ),
    Mutant(
        "a deletion of offsets that is rejected as a whole has rows",
        "broker/authorizing/groups.py",
        "return response if response.error_code else replace(response, topics=(*response.topics, *rows))",
        "return replace(response, topics=(*response.topics, *rows))",
        Breaks.ANSWERS,
        ("unit/authorizing/test_hiding.py::test_a_deletion_that_the_coordinator_rejects_as_a_whole_has_no_rows",),
    ),
)
