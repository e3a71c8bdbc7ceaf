"""`strandline configs` for users, clients and ips, `strandline users`, and --add-scram: what needs no cluster."""

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.commanding import strandline
from tests.rows import each

from strandline.cli.admin.configs import names_of
from strandline.cli.security.add_scram import user_of
from strandline.cli.security.client_configs import names_in_order, shown
from strandline.cli.security.passwords import password_for
from strandline.metadata.security.scram import salted_credential

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")


def test_names_and_defaults_belong_to_types_in_their_order() -> None:
    typed = ["--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "app"]
    assert names_in_order(typed) == ["", "app"]
    assert names_in_order(["--entity-name=a=b", "--all", "--entity-default", "--entity-name"]) == ["a=b", "", ""]
    assert names_of(None, 2) == ["", ""]
    assert names_of(["a", "b"], 0) == ["a", "b"]


def test_an_entity_is_shown_as_kafka_does() -> None:
    assert shown((("client-id", None), ("user", "al"))) == "user-principal 'al', the default client-id"
    assert shown((("ip", "::1"),)) == "ip '::1'"


ALTER_USER = ("configs", "alter", "--entity-type", "users", "--entity-name", "u")
REFUSED = [
    (("--add-config", "producer_byte_rate=fast"), "Cannot parse quota configuration value for producer_byte_rate"),
    (("--add-config", "retention.ms=1"), "retention.ms cannot be set for users"),
    (("--add-config", "SCRAM-SHA-256=[secret]"), "SCRAM-SHA-256 needs [iterations=NUMBER,password=PASSWORD]"),
    (("--add-config", "SCRAM-SHA-256=[iterations=1,password=secret]"), "1 iterations are not between 4096 and 16384"),
    (
        ("--add-config", "SCRAM-SHA-256=[password=secret],producer_byte_rate=1"),
        "quotas and SCRAM credentials cannot be changed together",
    ),
    (
        ("--entity-type", "clients", "--entity-name", "c", "--add-config", "SCRAM-SHA-256=[password=secret]"),
        "SCRAM-SHA-256 cannot be set for users and clients",
    ),
    (
        ("--entity-type", "clients", "--add-config", "producer_byte_rate=1"),
        "name --entity-name or --entity-default for each type",
    ),
    (("--entity-type", "ips", "--entity-name", "c", "--add-config", "a=1"), "users ips do not go together"),
    (("--entity-name", "v", "--add-config", "producer_byte_rate=1"), "there are more of --entity-name"),
]


@each(("more", "why"), REFUSED)
def test_what_makes_no_sense_is_refused_before_the_cluster_is_asked(more: tuple[str, ...], why: str) -> None:
    done = strandline(*ALTER_USER, *more, *NOWHERE)
    assert done.returncode == 2, done.stderr
    assert why in done.stderr
    assert "secret" not in done.stderr


def test_a_password_on_the_command_line_is_warned_of() -> None:
    done = strandline(*ALTER_USER, "--add-config", "SCRAM-SHA-256=[password=secret]", *NOWHERE)
    assert "warning: a password on the command line is visible" in done.stderr
    assert "secret" not in done.stderr
    assert "no cluster answers" in done.stderr


def test_a_password_is_the_first_line_of_a_file_that_only_its_owner_may_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "password"
    path.write_text("s3crét, =\nsecond line\n")
    path.chmod(0o600)
    assert password_for("alice", path) == "s3crét, ="
    assert capsys.readouterr().err == ""
    path.chmod(0o640)
    assert password_for("alice", path) == "s3crét, ="
    assert "other users of this machine may read" in capsys.readouterr().err


@each("content", [None, b"", b"\n", b"\xff\n"])
def test_without_a_password_nothing_is_asked(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
    done = strandline("users", "add", "alice", "--password-file", str(path), *NOWHERE)
    assert done.returncode == 2
    assert "no password for alice" in done.stderr or "cannot be read" in done.stderr


def test_without_a_file_the_password_is_the_first_line_of_the_input() -> None:
    """There it is empty."""
    assert "no password for alice" in strandline("users", "add", "alice", *NOWHERE).stderr


SALT = b"0123456789abcdef"
SALTED = hashlib.pbkdf2_hmac("sha512", b"pencil", SALT, 8192)


def test_users_of_a_new_cluster_are_written_as_for_kafka_storage() -> None:
    salt, salted = b64encode(SALT).decode(), b64encode(SALTED).decode()
    expected = salted_credential("SCRAM-SHA-512", SALTED, SALT, 8192)
    for text in (
        f"SCRAM-SHA-512=[name=alice,salt={salt},iterations=8192,password=pencil]",
        f' SCRAM-SHA-512=[name="alice",password="pencil",iterations="8192",salt="{salt}"]',
        f"SCRAM-SHA-512=[name=alice,salt={salt},iterations=8192,saltedpassword={salted}]",
    ):
        record = user_of(text)
        assert (record.name, record.mechanism, record.iterations) == ("alice", 2, 8192)
        assert (record.salt, record.stored_key, record.server_key) == (SALT, expected.stored_key, expected.server_key)
    one, two = (user_of("SCRAM-SHA-256=[name=bob,password=a=b]") for _ in range(2))
    assert one.iterations == 4096
    assert len(one.stored_key) == 32
    assert one.salt != two.salt


WRONG = [
    ("SCRAM-SHA-256", "needs MECHANISM="),
    ("SCRAM-SHA-1=[name=a,password=secret]", "mechanism SCRAM-SHA-1 is not supported"),
    ("SCRAM-SHA-256=name=a,password=secret", "start with ["),
    ("SCRAM-SHA-256=[password=secret]", "must supply 'name'"),
    ("SCRAM-SHA-256=[name=,password=secret]", "must supply 'name'"),
    ("SCRAM-SHA-256=[name=a]", "one of 'password' or 'saltedpassword'"),
    ("SCRAM-SHA-256=[name=a,password=]", "one of 'password' or 'saltedpassword'"),
    ("SCRAM-SHA-256=[name=a,saltedpassword=c2VjcmV0]", "'salt' with 'saltedpassword'"),
    ("SCRAM-SHA-256=[name=a,salt=c2FsdA==,saltedpassword=c2VjcmV0]", "has 32 bytes, not 6"),
    ("SCRAM-SHA-256=[name=a,salt=!,password=secret]", "The given salt is not base64"),
    ("SCRAM-SHA-256=[name=a,salt=,password=secret]", "The given salt is not base64"),
    ("SCRAM-SHA-256=[name=a,password=secret,iterations=many]", "Failed to parse iterations count: many"),
    ("SCRAM-SHA-256=[name=a,password=secret,iterations=4095]", "must be >= 4096 for add-scram using SCRAM-SHA-256"),
    ("SCRAM-SHA-256=[name=a,password=secret,iterations=16385]", "must be <= 16384"),
    ("SCRAM-SHA-256=[name=a,password=secret,colour=red]", "Unknown SCRAM configurations: colour"),
    ("SCRAM-SHA-256=[name=a,password=secret,x]", "needs an equals sign"),
]


@each(("text", "why"), WRONG)
def test_what_is_no_user_is_refused_without_its_password(text: str, why: Any) -> None:
    with pytest.raises(ValueError) as refused:
        user_of(text)
    assert why in str(refused.value)
    assert "secret" not in str(refused.value)
