"""Mutants of what clients with quotas use, and of how long they must wait."""

from tests.mutants.mutant import Breaks, Mutant, table

RATES = "unit/broker/quotas/test_rates.py"
LIMITS = "unit/broker/quotas/test_limits.py"
THROTTLING = "unit/broker/quotas/test_throttling.py"

QUOTAS = table(
    Mutant(
        "one window more counts",
        "broker/quotas/rates.py",
        "        oldest = now // self.window_ms - self.count + 1\n",
        "        oldest = now // self.window_ms - self.count\n",
        Breaks.ANSWERS,
        (f"{RATES}::test_a_rate_is_what_was_recorded_in_the_windows_that_count",),
    ),
    Mutant(
        "a bucket never overflows",
        "broker/quotas/rates.py",
        "        return min(full, self.tokens + limit * max(0, now - self.looked_at) / 1000)\n",
        "        return self.tokens + limit * max(0, now - self.looked_at) / 1000\n",
        Breaks.ANSWERS,
        (f"{RATES}::test_a_bucket_holds_what_all_windows_allow_and_fills_at_the_limit",),
    ),
    Mutant(
        "the quota of a client id comes before that of any user",
        "broker/quotas/limits.py",
        "        ((None, ABSENT), True, False),\n        ((ABSENT, client_id), False, True),\n",
        "        ((ABSENT, client_id), False, True),\n        ((None, ABSENT), True, False),\n",
        Breaks.ANSWERS,
        (f"{LIMITS}::test_the_most_specific_entity_that_has_this_quota_counts",),
    ),
    Mutant(
        "users share the quota of the default user",
        "broker/quotas/limits.py",
        "        ((None, ABSENT), True, False),\n        ((ABSENT, client_id), False, True),\n",
        "        ((None, ABSENT), False, False),\n        ((ABSENT, client_id), False, True),\n",
        Breaks.ANSWERS,
        (f"{LIMITS}::test_the_most_specific_entity_that_has_this_quota_counts",),
    ),
    Mutant(
        "quotas of a snapshot are not seen",
        "broker/quotas/throttling.py",
        "        if self.seen[0] is not quotas or self.seen[1] != version:\n",
        "        if self.seen[1] != version:\n",
        Breaks.ANSWERS,
        (f"{THROTTLING}::test_another_image_with_the_same_version_has_its_own_quotas",),
    ),
    Mutant(
        "nodes are throttled",
        "broker/quotas/throttling.py",
        "        if caller.is_node:\n            return event\n",
        "",
        Breaks.DURABILITY,
        (f"{THROTTLING}::test_a_connection_that_closes_is_forgotten_and_nodes_are_never_throttled",),
    ),
    Mutant(
        "requests of closed connections are remembered",
        "broker/quotas/throttling.py",
        "        self.pending.pop(connection, None)\n",
        "        del connection\n",
        Breaks.ANSWERS,
        (f"{THROTTLING}::test_a_connection_that_closes_is_forgotten_and_nodes_are_never_throttled",),
    ),
    Mutant(
        "a client's ids are kept for ever",
        "broker/quotas/throttling.py",
        "        self.rates = {at: rate for at, rate in self.rates.items() if not rate.is_idle(now)}\n",
        "",
        Breaks.ANSWERS,
        (f"{THROTTLING}::test_what_is_as_good_as_new_is_not_kept",),
    ),
    Mutant(
        "a wait for a request's time has no bound",
        "broker/quotas/throttling.py",
        "        time_ms = min(self.wait_ms(REQUEST_PERCENTAGE, pending, now), self.config.window_ms)\n",
        "        time_ms = self.wait_ms(REQUEST_PERCENTAGE, pending, now)\n",
        Breaks.ANSWERS,
        (f"{THROTTLING}::test_time_counts_for_every_request_and_one_wait_is_a_window_at_most",),
    ),
    Mutant(
        "a fetch is not cut to its quota",
        "broker/quotas/throttling.py",
        "        if most >= request.max_bytes:\n",
        "        if most:\n",
        Breaks.ANSWERS,
        (f"{THROTTLING}::test_an_answer_to_a_fetch_counts_when_it_goes_and_a_fetch_is_cut_to_all_windows",),
    ),
    Mutant(
        "older clients are refused too",
        "broker/quotas/mutations.py",
        "{CreateTopicsRequest: 6, DeleteTopicsRequest: 5, CreatePartitionsRequest: 3}",
        "{CreateTopicsRequest: 5, DeleteTopicsRequest: 4, CreatePartitionsRequest: 2}",
        Breaks.ANSWERS,
        (
            f"{THROTTLING}::test_for_older_clients_all_is_done_and_they_wait",
            f"{THROTTLING}::test_the_version_before_a_strict_one_is_not_strict",
        ),
    ),
    Mutant(
        "a topic that exists already costs as much as a new one",
        "broker/quotas/mutations.py",
        "    return count if 0 < count <= PARTITIONS_MAX and topic.name not in image.topic_ids else 0\n",
        "    return count if 0 < count <= PARTITIONS_MAX else 0\n",
        Breaks.ANSWERS,
        (f"{THROTTLING}::test_a_mutation_is_a_partition_that_is_created_or_deleted",),
    ),
    Mutant(
        "a throttled connection is read as soon as a request is answered",
        "server/network/net.py",
        "            and not self.throttles\n",
        "",
        Breaks.ANSWERS,
        ("unit/server/test_net.py::test_from_a_throttled_connection_nothing_is_read_until_the_last_throttle_is_over",),
    ),
    Mutant(
        "a throttled connection is closed as idle",
        "server/network/net.py",
        "            is_idle = not (connection.heard or connection.slots or connection.throttles)\n",
        "            is_idle = not (connection.heard or connection.slots)\n",
        Breaks.ANSWERS,
        ("unit/server/test_net.py::test_from_a_throttled_connection_nothing_is_read_until_the_last_throttle_is_over",),
    ),
    Mutant(
        "a node does not see that it has quotas",
        "broker/node.py",
        "        self.quotas.follow(self.image)\n        self.has_quotas = self.quotas.is_needed\n",
        "        self.quotas.follow(self.image)\n",
        Breaks.ANSWERS,
        ("sim/test_quotas.py::test_throttled_clients_wait_and_replicas_do_not",),
    ),
)
