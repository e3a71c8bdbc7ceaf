"""Mutants of what bounds hostile input, and of what a node does that raises."""

from tests.mutants.mutant import Breaks, Mutant, table

CONTAINING = "unit/broker/faults/test_containing.py"
STOPS = f"{CONTAINING}::test_where_it_may_be_half_done_the_node_tells_the_others_and_stops"
QUARANTINED = f"{CONTAINING}::test_a_node_that_is_told_of_a_request_refuses_it_and_no_other"
BOMBS = "unit/wire/test_bombs.py"

HOSTILE = table(
    Mutant(
        "every exception is contained",
        "broker/faults/interruptible.py",
        '    return None if is_interruptible(module, function) else f"{module}.{function}"',
        "    return None",
        Breaks.DURABILITY,
        (STOPS, "sim/test_poison.py::test_a_request_that_raises_in_the_middle_stops_one_node_and_no_other"),
    ),
    Mutant(
        "a node that stops over a request tells nobody",
        "broker/faults/containing.py",
        "        for node, endpoint in others.items():",
        "        for node, endpoint in list(others.items())[:0]:",
        Breaks.AGREEMENT,
        (STOPS, "sim/test_poison.py::test_a_request_that_raises_in_the_middle_stops_one_node_and_no_other"),
    ),
    Mutant(
        "a node takes the request again that has stopped it",
        "broker/faults/containing.py",
        "        self.quarantine.add(found.requests)\n",
        "",
        Breaks.AGREEMENT,
        (STOPS,),
    ),
    Mutant(
        "a node goes on with what is half done",
        "broker/node.py",
        "        self.step = self.containment.step  # type: ignore[method-assign]  # requests need not ask each time\n",
        "",
        Breaks.DURABILITY,
        (STOPS,),
    ),
    Mutant(
        "what finished parts owe to others is forgotten",
        "broker/faults/containing.py",
        "            effects += error.effects\n",
        "            pass\n",
        Breaks.ANSWERS,
        (f"{CONTAINING}::test_what_the_parts_before_the_exception_want_done_is_done",),
    ),
    Mutant(
        "a batch with offsets is another one than without",
        "broker/faults/quarantine.py",
        "    return (view[PRODUCER_AT:COUNT_AT], view[HEADER_SIZE:]) if len(view) >= HEADER_SIZE else (view,)",
        "    return (view,)",
        Breaks.AGREEMENT,
        (
            "unit/broker/faults/test_quarantine.py::"
            "test_a_produce_is_known_again_after_a_leader_has_written_into_its_batch",
        ),
    ),
    Mutant(
        "a list of requests is taken as it comes",
        "broker/handlers/quarantine.py",
        "    if len(request.requests) > ROWS_MAX or any(why_no_row(row) for row in request.requests):",
        "    if len(request.requests) > ROWS_MAX:",
        Breaks.ANSWERS,
        (QUARANTINED,),
    ),
    Mutant(
        "items of arrays are not counted",
        "wire/codec_decode.py",
        "        self.count(count)\n        if type_.item.shape",
        "        if type_.item.shape",
        Breaks.ANSWERS,
        (
            f"{BOMBS}::test_a_large_request_has_only_so_many_items",
            f"{BOMBS}::test_items_are_counted_over_all_arrays_and_so_are_tagged_fields",
        ),
    ),
    Mutant(
        "tagged fields are not counted",
        "wire/codec_decode.py",
        "        self.count(count)\n        source.open",
        "        source.open",
        Breaks.ANSWERS,
        (f"{BOMBS}::test_items_are_counted_over_all_arrays_and_so_are_tagged_fields",),
    ),
    Mutant(
        "a compressed batch has as many records as it says",
        "wire/batch.py",
        "        if header.record_count > RECORDS_MAX:\n            return ErrorCode.MESSAGE_TOO_LARGE\n",
        "        pass\n",
        Breaks.ANSWERS,
        (f"{BOMBS}::test_a_batch_has_only_so_many_records",),
    ),
    Mutant(
        "error messages are as long as they are",
        "wire/codec_encode.py",
        'if name == "error_message" else',
        "if False else",
        Breaks.ANSWERS,
        (f"{BOMBS}::test_an_error_message_is_cut_to_what_clients_read",),
    ),
    Mutant(
        "a coordinator takes keys that no record can have",
        "coordination/shards.py",
        "        if is_too_long(key):\n            return self.key_error\n",
        "",
        Breaks.ANSWERS,
        ("unit/group/classic/test_joining.py::test_refusals_that_name_what_is_wrong_with_the_request",),
    ),
    Mutant(
        "a group keeps texts that no record can have",
        "group/classic/joining.py",
        "size > METADATA_BYTES_MAX or any(map(is_too_long, texts)) else None",
        "size > METADATA_BYTES_MAX else None",
        Breaks.ANSWERS,
        ("unit/group/classic/test_joining.py::test_refusals_that_name_what_is_wrong_with_the_request",),
    ),
    Mutant(
        "a search finds timestamps of more than 64 bits",
        "log/timestamps.py",
        "            if not -TIMESTAMP_END <= record.timestamp < TIMESTAMP_END:",
        "            if False:",
        Breaks.ANSWERS,
        ("unit/log/test_timely.py::test_a_timestamp_that_no_answer_can_name_is_not_found",),
    ),
    Mutant(
        "one row of ListOffsets after the other searches the same batch",
        "replica/serving/offsets.py",
        "                    if named[topic.name, asked.partition_index] == 1",
        "                    if named[topic.name, asked.partition_index]",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_offsets.py::test_a_partition_that_a_request_names_twice_is_not_searched",),
    ),
    Mutant(
        "a fetch session grows for as long as its client likes",
        "replica/serving/sessions.py",
        "        while total > INTERESTS_MAX:\n",
        "        while False:\n",
        Breaks.ANSWERS,
        (
            "unit/replica/serving/test_sessions.py::"
            "test_partitions_that_a_client_adds_forever_end_its_session_and_no_other",
        ),
    ),
    Mutant(
        "everybody with an account reads the metadata log",
        "server/storage/private.py",
        '    return name in NAMES or DIRECTORY in path.split("/")',
        "    return name in NAMES",
        Breaks.ANSWERS,
        ("unit/server/storage/test_disk.py::test_others_read_what_the_umask_lets_them_and_nothing_of_the_metadata",),
    ),
    Mutant(
        "an exception shows the password of a request",
        "base/traces.py",
        "SECRET_APIS = frozenset({33, 36, 44, 51})",
        "SECRET_APIS = frozenset({33, 36, 44})",
        Breaks.ANSWERS,
        (f"{CONTAINING}::test_what_a_client_wrote_stays_in_one_line_and_passwords_are_not_shown",),
    ),
    Mutant(
        "another user of the machine chooses the cluster's secret",
        "server/storage/secret_file.py",
        "    if owner not in (os.geteuid(), ROOT):\n",
        "    if False:\n",
        Breaks.ANSWERS,
        (
            "unit/server/storage/test_secret_file.py::test_the_secret_is_for_its_owner_alone_and_that_is_this_user_or_root",
        ),
    ),
    Mutant(
        "one connection takes all places of requests for the controller",
        "broker/forward.py",
        "        if len(self.out) >= WAITING_MAX or self.places[connection] >= WAITING_OF_CONNECTION_MAX:\n",
        "        if len(self.out) >= WAITING_MAX:\n",
        Breaks.ANSWERS,
        ("unit/broker/test_forward.py::test_one_connection_leaves_places_for_others_and_may_use_its_own_again",),
    ),
)
