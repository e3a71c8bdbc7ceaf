"""Mutants of users' SCRAM credentials and clients' quotas: as metadata, and what changes and shows them."""

from tests.mutants.mutant import Breaks, Mutant, table

SCRAM = "unit/controller/security/test_scram_credentials.py"
QUOTAS = "unit/controller/security/test_client_quotas.py"

USERS = table(
    Mutant(
        "a snapshot has no credentials",
        "metadata/image.py",
        "            yield credential_record(user, credential)\n",
        "            pass\n",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_a_snapshot_says_everything",),
    ),
    Mutant(
        "copies of an image share credentials",
        "metadata/state.py",
        "        self.scram = dict(other.scram)\n",
        "        self.scram = other.scram\n",
        Breaks.AGREEMENT,
        ("unit/metadata/test_image.py::test_a_credential_is_replaced_and_removed_and_shows_its_keys_nowhere",),
    ),
    Mutant(
        "an entity in another order is another entity",
        "metadata/security/quotas.py",
        "    return tuple(sorted(pairs, key=lambda pair: pair[0]))\n",
        "    return tuple(pairs)\n",
        Breaks.AGREEMENT,
        (f"{QUOTAS}::test_an_entity_that_is_named_twice_in_any_order_is_not_changed",),
    ),
    Mutant(
        "what cannot be applied is shown with its keys",
        "metadata/fitting.py",
        'SECRET = ("salt", "stored_key", "server_key")',
        "SECRET = ()",
        Breaks.ANSWERS,
        ("unit/metadata/test_fitting.py::test_an_operator_learns_what_is_particular_to_a_record",),
    ),
    Mutant(
        "a record shows its keys",
        "metadata/security/records.py",
        "    def __repr__(self) -> str:\n",
        "    def shown(self) -> str:\n",
        Breaks.ANSWERS,
        ("unit/metadata/test_image.py::test_a_credential_is_replaced_and_removed_and_shows_its_keys_nowhere",),
    ),
    Mutant(
        "the removal of a credential that is not there can be applied",
        "metadata/fitting.py",
        '    return None if (record.name, record.mechanism) in image.scram else "there is no such credential"\n',
        "    return None\n",
        Breaks.AGREEMENT,
        (
            "unit/metadata/test_fitting.py::"
            "test_what_does_not_fit_is_reported_with_the_reason_and_what_is_like_it_and_fits_is_applied",
        ),
    ),
    Mutant(
        "a password may be hashed less often than 4096 times",
        "controller/security/scram.py",
        "    if change.iterations < ITERATIONS_MIN:\n",
        "    if change.iterations < 0:\n",
        Breaks.ANSWERS,
        (f"{SCRAM}::test_what_cannot_be_is_refused_and_others_of_the_request_are_done",),
    ),
    Mutant(
        "the last of two changes of a user counts",
        "controller/security/scram.py",
        "        elif change.name in changes:\n",
        "        elif False:\n",
        Breaks.ANSWERS,
        (f"{SCRAM}::test_a_user_is_changed_once_in_a_request_whatever_the_mechanism",),
    ),
    Mutant(
        "the first of three changes of a user counts",
        "controller/security/scram.py",
        "        why = refused.get(change.name)\n",
        "        why = None\n",
        Breaks.ANSWERS,
        (f"{SCRAM}::test_a_user_is_changed_once_in_a_request_whatever_the_mechanism",),
    ),
    Mutant(
        "the two keys of a credential are exchanged",
        "metadata/security/scram.py",
        '    client_key = hmac.digest(salted, b"Client Key", name)\n',
        '    client_key = hmac.digest(salted, b"Server Key", name)\n',
        Breaks.ANSWERS,
        (f"{SCRAM}::test_a_credential_is_what_rfc_7677_makes_of_the_password",),
    ),
    Mutant(
        "what is no number is a quota",
        "controller/security/quotas.py",
        "    if not value > 0:  # nor is NaN\n",
        "    if value <= 0:\n",
        Breaks.AGREEMENT,
        (f"{QUOTAS}::test_what_cannot_be_is_refused_as_a_whole_and_other_entities_are_changed",),
    ),
    Mutant(
        "to validate quotas changes them",
        "controller/security/quotas.py",
        "    return Plan(() if request.validate_only else tuple(records), ",
        "    return Plan(tuple(records), ",
        Breaks.ANSWERS,
        (f"{QUOTAS}::test_only_what_changes_is_written",),
    ),
    Mutant(
        "a strict filter finds entities with other types beside",
        "broker/handlers/describe_client_quotas.py",
        "    if strict and len(names) != len(wanted):\n",
        "    if strict and not names:\n",
        Breaks.ANSWERS,
        ("unit/broker/handlers/test_describing_users.py::test_a_filter_finds_the_entities_that_fit",),
    ),
    Mutant(
        "an older cluster gets the users of a new one",
        "controller/features.py",
        "    return [*records, *basis.config.initial_users] if is_new else records\n",
        "    return [*records, *basis.config.initial_users]\n",
        Breaks.ANSWERS,
        ("unit/controller/configs/test_features.py::test_a_new_cluster_begins_with_users_and_an_older_one_gets_none",),
    ),
    Mutant(
        "a name belongs to the first type, wherever a default stands",
        "cli/security/client_configs.py",
        '        elif argument == "--entity-default":\n            names.append(DEFAULT)\n    return names\n',
        '    return names + [DEFAULT] * list(arguments).count("--entity-default")\n',
        Breaks.ANSWERS,
        ("unit/cli/test_client_configs.py::test_names_and_defaults_belong_to_types_in_their_order",),
    ),
)
