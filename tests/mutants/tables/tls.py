"""Mutants of listeners with TLS: who is let in, as whom, and with which certificates."""

from tests.mutants.mutant import Breaks, Mutant, table

SERVER = "unit/server/test_tls.py::"
LISTENERS = "unit/broker/test_listeners.py::"
PRINCIPALS = "unit/security/test_principals.py::test_the_first_rule_that_matches_makes_the_name"

TLS = table(
    Mutant(
        "a client need not show a certificate where one is required",
        "server/tls/contexts.py",
        '"required": ssl.CERT_REQUIRED',
        '"required": ssl.CERT_OPTIONAL',
        Breaks.ANSWERS,
        (f"{SERVER}test_who_is_not_let_in_is_named_with_the_reason",),
    ),
    Mutant(
        "a node believes a certificate of another host",
        "server/tls/contexts.py",
        'context.check_hostname = bool(settings.text("ssl.endpoint.identification.algorithm"))',
        "context.check_hostname = False",
        Breaks.ANSWERS,
        (f"{SERVER}test_nodes_verify_each_other_and_the_host",),
    ),
    Mutant(
        "a node starts with a certificate that no other node believes",
        "server/tls/contexts.py",
        "    if server is not None and is_for_nodes:\n",
        "    if False:\n",
        Breaks.ANSWERS,
        (f"{SERVER}test_what_cannot_be_used_ends_the_start_with_the_reason",),
    ),
    Mutant(
        "versions that are not enabled are spoken",
        "server/tls/contexts.py",
        "version for version in possible if version in enabled",
        "version for version in possible",
        Breaks.ANSWERS,
        (f"{SERVER}test_requests_large_and_small_are_answered_over_both_versions",),
    ),
    Mutant(
        "the other side does not hear why it is not let in",
        "server/tls/alerts.py",
        '            spare.send(getattr(error, "alert", b""))\n',
        "            pass\n",
        Breaks.ANSWERS,
        (f"{SERVER}test_who_is_not_let_in_is_named_with_the_reason",),
    ),
    Mutant(
        "a certificate file that cannot be used is reported again and again",
        "server/tls/listener_tls.py",
        "        self.settings, self.stamps = settings, found\n        return self.read(settings)\n",
        "        new = self.read(settings)\n        self.settings, self.stamps = settings, found\n        return new\n",
        Breaks.ANSWERS,
        (f"{SERVER}test_a_changed_file_is_used_for_new_connections_and_old_ones_stay",),
    ),
    Mutant(
        "a certificate that no rule maps is everybody's",
        "server/tls/listener_tls.py",
        "        if name is None:\n",
        "        if name is None:\n            return ANONYMOUS\n        if name is None:\n",
        Breaks.ANSWERS,
        (f"{SERVER}test_a_certificate_that_no_rule_maps_is_let_in_nowhere",),
    ),
    Mutant(
        "a handshake may last for ever",
        "server/network/handshakes.py",
        "ssl_handshake_timeout=HANDSHAKE_S",
        "ssl_handshake_timeout=3600",
        Breaks.ANSWERS,
        (f"{SERVER}test_a_handshake_that_takes_too_long_ends",),
    ),
    Mutant(
        "controllers are reached with the settings of brokers",
        "server/tls/listener_tls.py",
        "self.for_voters if endpoint in self.voters else self.for_brokers",
        "self.for_brokers",
        Breaks.ANSWERS,
        (f"{SERVER}test_each_endpoint_is_reached_as_its_listener_is_configured",),
    ),
    Mutant(
        "a rule needs to match only the beginning of a subject",
        "security/principals.py",
        "re.fullmatch(self.pattern, name)",
        "re.match(self.pattern, name)",
        Breaks.ANSWERS,
        (PRINCIPALS,),
    ),
    Mutant(
        "a comma in a subject's value looks like the end of it",
        "security/distinguished_names.py",
        "ESCAPED = frozenset(',=+<>#;\"\\\\')",
        "ESCAPED = frozenset('=+<>#;\"\\\\')",
        Breaks.ANSWERS,
        ("unit/security/test_certificates.py::test_a_subject_is_written_from_its_end_with_javas_short_names",),
    ),
    Mutant(
        "a setting of the node goes before the listener's own",
        "broker/listeners/settings.py",
        "return self.own[key] if key in self.own else self.node[key]",
        "return self.node[key] if self.node[key] is not None else self.own.get(key)",
        Breaks.ANSWERS,
        (f"{LISTENERS}test_a_listeners_own_setting_goes_before_the_nodes_and_a_dynamic_one_before_both",),
    ),
    Mutant(
        "a listener that nobody mapped is plain",
        "broker/listeners/listeners.py",
        "        if name and name not in protocols:\n",
        "        protocols.setdefault(name, PLAINTEXT)\n        if False:\n",
        Breaks.ANSWERS,
        (f"{LISTENERS}test_a_wrong_combination_is_refused_with_what_to_do",),
    ),
    Mutant(
        "whoever has any certificate is let in where no authority is named",
        "broker/listeners/tls.py",
        "    if is_served and client_auth(settings) != NONE and not trusts:\n",
        "    if False:\n",
        Breaks.ANSWERS,
        (f"{LISTENERS}test_a_wrong_combination_is_refused_with_what_to_do",),
    ),
    Mutant(
        "a client of SASL needs the certificate that others need",
        "broker/listeners/tls.py",
        '    if uses_sasl(settings.protocol) and "ssl.client.auth" not in settings.own:\n',
        "    if False:\n",
        Breaks.ANSWERS,
        (f"{LISTENERS}test_clients_of_sasl_need_a_certificate_only_if_their_listener_says_so",),
    ),
    Mutant(
        "a key is shown to whoever may describe a broker",
        "broker/handlers/describe_configs.py",
        "        value=None if is_sensitive else row.value,\n",
        "        value=row.value,\n",
        Breaks.ANSWERS,
        (
            "unit/broker/test_handlers.py::"
            "test_a_listeners_own_settings_are_shown_where_they_are_set_and_no_secret_of_any_listener",
        ),
    ),
    Mutant(
        "a snapshot forgets the protocols of listeners",
        "metadata/registrations.py",
        "security_protocol=broker.protocols.get(name, 0)",
        "security_protocol=0",
        Breaks.ANSWERS,
        ("unit/metadata/test_image.py::test_the_security_protocol_of_a_listener_outlives_changes_and_snapshots",),
    ),
)
