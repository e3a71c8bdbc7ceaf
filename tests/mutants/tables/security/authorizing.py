"""Mutants of the authorizer, and of the gate before a node's routes."""

from tests.mutants.mutant import Breaks, Mutant, table

AUTHORIZER, GATE = "security/acls/authorizer.py", "broker/authorizing"
ORACLE = ("property/test_authorizer.py::test_the_authorizer_decides_as_one_that_looks_at_all_acls",)
TABLE = (
    "unit/authorizing/test_table.py::"
    "test_a_request_is_permitted_in_each_way_that_kafka_knows_and_in_none_that_lacks_a_part",
)


def hiding(name: str) -> tuple[str]:
    return (f"unit/authorizing/test_hiding.py::{name}",)


def sessions(name: str) -> tuple[str]:
    return (f"unit/authorizing/test_sessions.py::{name}",)


def row(name: str, file: str, old: str, new: str, tests: tuple[str, ...]) -> Mutant:
    return Mutant(name, file, old, new, Breaks.ANSWERS, tests)


AUTHORIZING = table(
    row(
        "an acl of an ipv4 address does not count on sockets of ipv6",
        "security/acls/index.py",
        "    return str(address.ipv4_mapped or address) if isinstance(address, IPv6Address) else str(address)\n",
        "    return str(address)\n",
        ("unit/authorizing/test_table.py::test_an_acl_is_about_an_address_however_a_socket_or_java_writes_it",),
    ),
    row(
        "a node proves the secret to whoever asks in place of the one that it means",
        "security/sasl/node_secret.py",
        """        if sent.get("i") != str(ITERATIONS) or sent.get("s") != b64encode(salt_of(self.node)).decode():\n""",
        """        if sent.get("i") != str(ITERATIONS):\n""",
        ("unit/security/test_node_secret.py::test_a_proof_is_for_one_node_and_cannot_be_passed_on_to_another_or_back",),
    ),
    row(
        "who is connected to decides how long a node hashes",
        "security/sasl/node_secret.py",
        """        if sent.get("i") != str(ITERATIONS) or sent.get("s") != b64encode(salt_of(self.node)).decode():\n""",
        """        if sent.get("s") != b64encode(salt_of(self.node)).decode():\n""",
        ("unit/security/test_node_secret.py::test_a_stranger_does_not_decide_how_long_a_node_hashes",),
    ),
    row(
        "everybody may ask a controller which controllers there are",
        f"{GATE}/table.py",
        "DESCRIBE_CLUSTER: cluster.describe_controllers}",
        "DESCRIBE_CLUSTER: cluster.describe_cluster}",
        TABLE,
    ),
    row(
        "a client of a controller writes down itself who asks for an election",
        "broker/route.py",
        "    if not received.caller.is_node:\n        received = replace(received, message=signed(received))\n",
        "",
        ("unit/broker/test_forward.py::test_a_client_of_a_controllers_listener_does_not_write_down_itself_who_it_is",),
    ),
    row(
        "an acl that denies outweighs nothing",
        AUTHORIZER,
        "                    if acl.operation in (operation, AclOperation.ALL):\n                        return False",
        "                    if acl.operation in (operation, AclOperation.ALL):\n                        continue",
        ORACLE,
    ),
    row(
        "who may read may not describe",
        AUTHORIZER,
        "ALLOWING[AclOperation.DESCRIBE] += (AclOperation.READ, ",
        "ALLOWING[AclOperation.DESCRIBE] += (",
        ORACLE,
    ),
    row(
        "a resource of which an acl of another speaks is everybody's",
        AUTHORIZER,
        "            is_named = True\n",
        "            is_named = allowed\n",
        ORACLE,
    ),
    row(
        "decisions outlive the acls that they were made by",
        AUTHORIZER,
        "        self.version = version\n        self.forget()",
        "        self.version = version",
        ORACLE,
    ),
    row(
        "an acl counts from every host",
        AUTHORIZER,
        "            if acl.host in (host, WILDCARD):",
        "            if acl.host:",
        ORACLE,
    ),
    row(
        "a prefix that is denied covers nothing",
        AUTHORIZER,
        "for length in range(1, len(name) + 1))",
        "for length in range(1, 1))",
        ("property/test_authorizer.py::test_something_is_left_unless_all_that_is_allowed_is_denied",),
    ),
    row(
        "everybody is permitted what no acl is about before any acl is known",
        AUTHORIZER,
        "        if self.version < 0:",
        "        if self.version < -1:",
        ("unit/authorizing/test_table.py::test_nobody_is_permitted_anything_before_acls_are_known",),
    ),
    row(
        "the gate does not follow the metadata",
        f"{GATE}/guarded.py",
        "        self.gate.authorizer.follow(self.image.acls, self.image.acls_version)\n",
        "        if self.gate.authorizer.version < 0:\n"
        "            self.gate.authorizer.follow(self.image.acls, self.image.acls_version)\n",
        TABLE,
    ),
    row(
        "one permission of several is enough",
        f"{GATE}/verdict.py",
        "            if not rights.allows(operation, resource_type, getattr(received.message, field)):\n"
        "                return refuse(received, FAILED_BY_TYPE[resource_type])\n",
        "            if rights.allows(operation, resource_type, getattr(received.message, field)):\n"
        "                return received\n"
        "            return refuse(received, FAILED_BY_TYPE[resource_type])\n",
        TABLE,
    ),
    row(
        "answers that wait are remembered after their connection has ended",
        f"{GATE}/gate.py",
        "        self.pending.pop(connection, None)",
        "        self.pending.get(connection, None)",
        sessions("test_answers_to_a_connection_that_is_gone_are_forgotten"),
    ),
    row(
        "the answer to a request that raised has refused rows twice",
        f"{GATE}/guarded.py",
        "        self.gate.forget(event.to)\n",
        "        pass\n",
        sessions("test_a_request_that_raises_behind_the_gate_fails_wholly_and_the_node_goes_on"),
    ),
    row(
        "with an authorizer every request that raises stops a node",
        "broker/faults/interruptible.py",
        '    "broker.authorizing",  # what',
        '    # "broker.authorizing",  # what',
        sessions("test_a_request_that_raises_behind_the_gate_fails_wholly_and_the_node_goes_on"),
    ),
    row(
        "a session outlives the right to read",
        f"{GATE}/fetching.py",
        "if self.permitted.get(request.session_id) is rights and",
        "if request.session_id in self.permitted and",
        sessions("test_a_right_that_is_taken_away_ends_the_session_and_the_next_fetch_says_so"),
    ),
    row(
        "an attempt of somebody else ends a session",
        f"{GATE}/fetching.py",
        "        if earlier is None or (earlier.principal, earlier.host) != (rights.principal, rights.host):",
        "        if earlier is None:",
        sessions("test_nobody_else_may_use_a_session_nor_does_the_attempt_end_it"),
    ),
    row(
        "a fetch of which a part is refused has a session",
        f"{GATE}/fetching.py",
        "session_epoch=FINAL_EPOCH, topics=kept",
        "topics=kept",
        sessions("test_a_partition_that_is_not_permitted_is_an_error_in_each_answer_so_there_is_no_session"),
    ),
    row(
        "an id that is not known is in a session",
        f"{GATE}/fetching.py",
        "    if name is not None and rights.may_topic(READ, name, ",
        "    if name is None or rights.may_topic(READ, name, ",
        sessions("test_an_id_that_is_not_known_yet_is_in_no_session"),
    ),
    row(
        "a batch that calls itself transactional is written without a transactional id",
        f"{GATE}/records.py",
        "    return any(\n        batch is not None",
        "    return all(\n        batch is None",
        hiding("test_a_batch_is_of_a_transaction_if_it_says_so_itself"),
    ),
    row(
        "a topic that may be written to may be written to in anybody's transaction",
        f"{GATE}/records.py",
        "                if records[ATTRIBUTES_AT] & TRANSACTIONAL:",
        "                if records is None:",
        hiding("test_a_batch_is_of_a_transaction_if_it_says_so_itself"),
    ),
    row(
        "a produce without an answer is refused in silence",
        f"{GATE}/records.py",
        '        closes="" if request.acks else CLOSES,',
        '        closes="",',
        hiding("test_without_an_answer_a_refused_produce_costs_its_connection"),
    ),
    row(
        "a topic that came into being meanwhile is shown to everybody",
        f"{GATE}/topics.py",
        "        if row.name is None or may_topic(rights, DESCRIBE, row.name):",
        "        if row.name is None or row.partitions or may_topic(rights, DESCRIBE, row.name):",
        hiding("test_a_topic_that_came_into_being_while_metadata_was_asked_for_is_hidden_too"),
    ),
    row(
        "a topic that was deleted meanwhile is created anew",
        f"{GATE}/topics.py",
        "allow_auto_topic_creation=bool(missing)",
        "allow_auto_topic_creation=request.allow_auto_topic_creation",
        hiding("test_a_topic_that_is_deleted_while_metadata_is_asked_for_is_not_created_anew"),
    ),
    row(
        "whoever may describe a topic may create it",
        f"{GATE}/topics.py",
        "    if missing and not may(rights, CREATE):",
        "    if missing and not may(rights, CREATE) and not kept:",
        hiding("test_a_topic_is_created_only_for_who_may_create_it"),
    ),
    row(
        "the name of a topic is told to who knows its id",
        f"{GATE}/topics.py",
        "    return MetadataResponseTopic(error_code=DENIED, name=None, topic_id=asked.topic_id)",
        "    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)",
        hiding("test_metadata_by_id_does_not_tell_the_name"),
    ),
    row(
        "who may not delete a topic learns its name by its id",
        f"{GATE}/topics.py",
        "        elif may_topic(rights, DESCRIBE, topic.name):",
        "        else:",
        hiding("test_deleting_by_id_tells_the_name_only_to_who_may_describe"),
    ),
    row(
        "an id that only the controller knows is passed on to it",
        f"{GATE}/topics.py",
        "            error = ErrorCode.UNKNOWN_TOPIC_ID\n",
        "            return None\n",
        hiding("test_what_this_node_does_not_know_yet_is_not_passed_on_to_be_deleted"),
    ),
    row(
        "a cursor at a hidden topic is an error",
        f"{GATE}/topics.py",
        "        cursor = None  # its topic is gone, or hidden",
        "        pass",
        hiding("test_pages_are_made_of_what_may_be_described"),
    ),
    row(
        "who may not describe the cluster learns what it may do with it",
        f"{GATE}/topics.py",
        "if may(rights, DESCRIBE) else 0",
        "if rights else 0",
        hiding("test_operations_are_those_that_are_permitted"),
    ),
    row(
        "committed offsets of all topics are shown",
        f"{GATE}/groups.py",
        "    topics = describable(row.topics, rights) if hidden is None else",
        "    topics = row.topics if hidden is None else",
        hiding("test_offsets_are_committed_and_shown_where_that_is_permitted"),
    ),
    row(
        "all groups are listed",
        f"{GATE}/groups.py",
        "for row in response.groups if may_group(rights, DESCRIBE, row.group_id))",
        "for row in response.groups)",
        hiding("test_groups_that_may_not_be_described_are_not_listed"),
    ),
    row(
        "all topics of a transaction are shown",
        f"{GATE}/transactions.py",
        "tuple(t for t in state.topics if may_topic(rights, DESCRIBE, t.topic))",
        "tuple(t for t in state.topics)",
        hiding("test_transactions_that_may_not_be_described_are_not_listed_and_their_topics_are_shown_one_by_one"),
    ),
    row(
        "a client adds partitions of internal topics to its transaction",
        f"{GATE}/transactions.py",
        "    return topic.name not in INTERNAL_TOPICS and may_topic",
        "    return may_topic",
        hiding("test_nothing_is_added_to_a_transaction_if_one_topic_is_not_permitted"),
    ),
)
