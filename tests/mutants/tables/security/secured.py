"""Mutants of secured clusters on this machine, and of what commands say when they are refused."""

from tests.mutants.mutant import Breaks, Mutant, table

FOLDER = "unit/cli/test_secured_folder.py::"
COMMANDS = "cluster/commands/security/test_secured.py::"
EVERY = f"{COMMANDS}test_every_command_works_as_the_super_user_and_refuses_who_has_no_rights"
ALICES = f"{COMMANDS}test_alice_uses_what_is_hers_and_needs_no_group_to_consume"

SECURED = table(
    Mutant(
        "files with passwords are for everybody",
        "testing/certificates.py",
        "os.O_CLOEXEC, 0o600)",
        "os.O_CLOEXEC, 0o644)",
        Breaks.ANSWERS,
        (f"{FOLDER}test_everything_is_made_once_and_secrets_are_for_their_owner_alone",),
    ),
    Mutant(
        "a certificate is kept until it has expired",
        "testing/certificates.py",
        "RENEWED_S = 30 * 86_400",
        "RENEWED_S = 0",
        Breaks.ANSWERS,
        (f"{FOLDER}test_a_certificate_that_is_about_to_expire_is_made_anew",),
    ),
    Mutant(
        "each start makes new passwords",
        "testing/secured.py",
        "if not self.password_path(user).exists():",
        "if True:",
        Breaks.ANSWERS,
        (f"{FOLDER}test_everything_is_made_once_and_secrets_are_for_their_owner_alone",),
    ),
    Mutant(
        "a secured cluster goes on without its security",
        "cli/nodes/up.py",
        "    return asked or made\n",
        "    return asked\n",
        Breaks.ANSWERS,
        (f"{FOLDER}test_a_cluster_stays_what_it_was_made_as",),
    ),
    Mutant(
        "log directories that may not be seen are none",
        "cli/admin/log_dirs.py",
        "        if answer.error_code:\n",
        "        if False:\n",
        Breaks.ANSWERS,
        (EVERY,),
    ),
    Mutant(
        "a topic that may not be read does not exist",
        "client/admin/topics.py",
        "if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:",
        "if False:",
        Breaks.ANSWERS,
        (EVERY,),
    ),
    Mutant(
        "whoever may not ask for the controller is told that there is none",
        "client/admin/control.py",
        "if any(answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED for answer in heard):",
        "if False:",
        Breaks.ANSWERS,
        (ALICES,),
    ),
    Mutant(
        "consuming alone needs a group",
        "cli/records/consume.py",
        "not has_group and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED",
        "False",
        Breaks.ANSWERS,
        (ALICES,),
    ),
    Mutant(
        "a ledger of which a part is hidden counts as whole",
        "client/brokers.py",
        "bool(operations >> AclOperation.DESCRIBE & 1)",
        "True",
        Breaks.ANSWERS,
        (f"{COMMANDS}test_who_may_not_see_the_whole_ledger_is_not_told_that_nothing_was_lost",),
    ),
    Mutant(
        "a file of passwords that others may read is used without a word",
        "cli/connect.py",
        "path.stat().st_mode & OTHERS",
        "False",
        Breaks.ANSWERS,
        (f"{COMMANDS}test_a_file_of_secrets_that_others_may_read_is_warned_about",),
    ),
)
