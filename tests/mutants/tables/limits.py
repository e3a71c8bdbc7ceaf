"""Mutants of the driver's limits against clients that take too much: connections, memory, lines of the log."""

from tests.mutants.mutant import Breaks, Mutant, table

LIMITS_TESTS = "unit/server/network/test_limits.py"
SLOW_TESTS = "unit/server/network/test_slow_clients.py"
ANSWERS_TESTS = "unit/replica/serving/test_answer_memory.py"


def row(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, file, old, new, Breaks.ANSWERS, tests)


LIMITS = table(
    row(
        "clients that shake no hands keep nodes out",
        "server/network/net.py",
        "HANDSHAKES_MAX * (2 if listener.name in self.limits.config.node_listeners else 1)",
        "HANDSHAKES_MAX",
        "unit/server/tls/test_tls.py::test_clients_that_shake_no_hands_leave_places_for_nodes",
    ),
    row(
        "requests of closed connections wait for the broker to join",
        "broker/node.py",
        "            self.early = [held for held in self.early if held.to.connection != event.connection]\n",
        "            pass\n",
        "unit/authorizing/test_sessions.py::"
        "test_who_comes_and_goes_before_the_broker_has_joined_takes_no_place_of_others",
    ),
    row(
        "nodes wait for clients to close connections",
        "server/network/limits.py",
        "        if self.total >= config.connections_max and not is_protected:\n",
        "        if self.total >= config.connections_max:\n",
        f"{LIMITS_TESTS}::test_over_the_number_of_the_node_clients_wait_for_a_connection_to_close_and_nodes_are_let_in",
        f"{SLOW_TESTS}::test_over_the_number_of_a_node_clients_wait_and_a_node_takes_the_place_of_an_idle_client",
    ),
    row(
        "nodes that come fast take the rate of clients",
        "server/network/limits.py",
        "        if listener not in config.node_listeners:\n            found",
        "        if listener in config.node_listeners or True:\n            found",
        f"{LIMITS_TESTS}::test_nodes_have_no_rate_but_that_of_their_listener",
    ),
    row(
        "an override of an address is not looked at",
        "server/network/limits.py",
        "        most = config.per_address_overrides.get(address, config.per_address_max)\n",
        "        most = config.per_address_max\n",
        f"{LIMITS_TESTS}::test_the_number_of_an_address_is_its_own_and_counts_over_all_listeners",
    ),
    row(
        "a long rest saves more than one burst",
        "server/network/limits.py",
        "            self.left = min(self.left + (now_ms - self.at) * self.per_s, self.most)\n",
        "            self.left = self.left + (now_ms - self.at) * self.per_s\n",
        f"{LIMITS_TESTS}::test_over_a_rate_the_acceptor_waits_until_one_more_is_within_it",
    ),
    row(
        "an acceptor that waits for a place is not woken",
        "server/network/net.py",
        "                acceptor.one_closed()\n",
        "                pass\n",
        f"{SLOW_TESTS}::test_over_the_number_of_a_node_clients_wait_and_a_node_takes_the_place_of_an_idle_client",
    ),
    row(
        "a connection that closes is still counted",
        "server/network/net.py",
        "        self.requests.waiting.pop(connection, None)\n        self.uncount(connection)\n",
        "        self.requests.waiting.pop(connection, None)\n",
        f"{SLOW_TESTS}::test_a_connection_that_ends_gives_back_what_it_held",
        f"{SLOW_TESTS}::test_over_the_number_of_an_address_connections_are_closed_and_the_log_stays_small",
    ),
    row(
        "the lines of all addresses together have no bound",
        "server/network/refusals.py",
        "        if self.printed[who] < LINES_MAX and self.printed_of_kind[kind] < LINES_OF_KIND_MAX:\n",
        "        if self.printed[who] < LINES_MAX:\n",
        f"{LIMITS_TESTS}::test_many_addresses_fill_neither_the_log_nor_the_memory",
    ),
    row(
        "a refused connection is a line, however many there were",
        "server/network/accepting.py",
        "            if self.log_limit.may_print(REFUSED, address, now_ms):\n",
        "            if self.log_limit.may_print(REFUSED, address, now_ms) or why:\n",
        f"{SLOW_TESTS}::test_over_the_number_of_an_address_connections_are_closed_and_the_log_stays_small",
    ),
    row(
        "answers are as large as ever while slow clients hold memory",
        "base/answer_memory.py",
        "        free = self.bytes_max - self.held - self.given\n",
        "        free = self.bytes_max - self.given\n",
        f"{ANSWERS_TESTS}::test_an_answer_has_at_most_a_quarter_of_what_is_free_and_one_batch_at_the_bound",
        f"{ANSWERS_TESTS}::test_what_is_held_and_given_is_subtracted_and_small_answers_are_not_counted",
    ),
    row(
        "above the bound each Fetch gets one batch more",
        "replica/serving/reading.py",
        "                if (left > 0 or size == left) and not",
        "                if (left > 0 or size == 0) and not",
        f"{ANSWERS_TESTS}::test_above_the_bound_a_fetch_waits_and_gets_nothing_when_its_time_is_over",
    ),
    row(
        "one step may make any number of large answers",
        "replica/serving/fetching.py",
        "            self.answers.gave(size, now)\n",
        "            pass\n",
        f"{ANSWERS_TESTS}::test_answers_of_one_instant_get_smaller_before_the_driver_has_seen_any",
    ),
    row(
        "a Fetch waits for more than it can get",
        "replica/serving/contexts.py",
        "            self.min_bytes = 1\n",
        "            pass\n",
        f"{ANSWERS_TESTS}::test_who_wants_more_than_there_is_memory_for_does_not_wait_for_it",
    ),
    row(
        "what is written is not counted while its last bytes wait",
        "server/network/unsent.py",
        "            if self.transport.get_write_buffer_size() == 0:\n",
        "            if self.transport.get_write_buffer_size() >= 0:\n",
        f"{SLOW_TESTS}::test_what_was_written_counts_until_the_last_of_it_is_sent_although_more_may_be_written",
    ),
    row(
        "answers behind one that waits are not counted",
        "server/network/net.py",
        "            self.keep(answer)\n",
        "            pass\n",
        f"{SLOW_TESTS}::test_answers_that_wait_for_an_earlier_one_are_counted_and_stop_the_reading",
    ),
    row(
        "over the bound nobody is closed at once",
        "server/network/net.py",
        "            self.watch.relieve_soon()\n",
        "            pass\n",
        f"{SLOW_TESTS}::test_over_the_bound_the_largest_of_those_that_read_slowly_are_closed_and_others_are_served",
    ),
    row(
        "nodes give way before clients",
        "server/network/slowness.py",
        "key=lambda row: (row.is_node, row.stalled_looks",
        "key=lambda row: (not row.is_node, row.stalled_looks",
        f"{LIMITS_TESTS}::test_above_the_bound_those_that_still_read_give_way_too_and_nodes_last",
    ),
    row(
        "large frames begin without memory",
        "server/network/framing.py",
        "                if not self.memory.may_begin:\n",
        "                if False:\n",
        f"{SLOW_TESTS}::test_parts_of_large_requests_have_bounded_memory_and_the_slowest_give_way",
    ),
    row(
        "each frame waits for the others",
        "server/network/request_memory.py",
        "        if self.favoured is None:\n            self.favoured = owner\n",
        "",
        f"{SLOW_TESTS}::test_a_large_request_waits_for_more_memory_in_the_middle_and_goes_on",
    ),
    row(
        "all requests are counted and never bounded",
        "server/network/counted_requests.py",
        "        if not memory.may_begin and not connection.closed:\n",
        "        if False:\n",
        f"{SLOW_TESTS}::test_at_the_bound_of_all_requests_nothing_more_is_read_until_there_is_room",
    ),
    row(
        "a connection may be silent for as long as it likes",
        "server/network/watch.py",
        "            if 0 < self.setup_ms_max <= age_ms:\n",
        "            if 0 < self.setup_ms_max < 0:\n",
        f"{SLOW_TESTS}::test_a_connection_without_a_request_is_closed_and_one_that_made_a_request_is_not",
    ),
    row(
        "a closed connection waits for its reader for ever",
        "server/network/watch.py",
        "            if connection.closed and stalled_ms:\n",
        "            if connection.closed and stalled_ms < 0:\n",
        f"{SLOW_TESTS}::test_a_closed_connection_does_not_wait_for_its_reader_for_ever",
    ),
    row(
        "idle connections block the metrics",
        "server/metrics/metrics.py",
        "            oldest.cancel()\n",
        "            return\n",
        "unit/server/metrics/test_traffic.py::test_idle_connections_give_way_to_a_scrape_the_oldest_first",
    ),
)
