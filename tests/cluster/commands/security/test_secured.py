"""Every command that talks to a cluster, against one with TLS, SASL and ACLs: as its super user, as alice, and as a
user without any rights."""

import json
import os
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cluster.commanding import Done, strandline

from strandline.cli.commands import COMMANDS
from strandline.client.admin.users import alter_credentials, upsertion
from strandline.client.ask import config_of
from strandline.testing.certificates import write_private
from strandline.testing.local_cluster import LocalCluster
from strandline.testing.secured import ADMIN, ALICE, MECHANISM

pytestmark = pytest.mark.cluster

NOBODY, PASSWORD = "nobody", "no rights at all"
CLUSTER, TOPIC = "Cluster authorization failed.", "Topic authorization failed."
GROUP, TRANSACTION = "Group authorization failed.", "Transactional id authorization failed."
PRODUCED = "1 records were not acknowledged: Broker: Topic authorization failed"
# Commands that reach no cluster, or one of their own; and the console, which asks what others ask until it is stopped.
WITHOUT_CLUSTER = {"console", "up", "node", "format", "random-uuid", "demo", "sim", "model", "completion", "schema"}


class Row(NamedTuple):
    command: str  # TOPIC, FILE: of this test
    refused: str  # what a user without rights reads on stderr; empty: it is allowed, and sees nothing
    status: int = 0  # as the super user


ROWS = [
    Row("topics create TOPIC --partitions 2", TOPIC),
    Row("topics list", ""),
    Row("topics describe TOPIC", TOPIC),
    Row("produce TOPIC", PRODUCED),
    Row("consume TOPIC --from-beginning --max-messages 1 --timeout-ms 20000", TOPIC),
    Row("consume TOPIC --from-beginning --max-messages 1 --timeout-ms 20000 --group TOPIC", TOPIC),
    Row("configs alter --entity-type topics --entity-name TOPIC --add-config retention.ms=100000", TOPIC),
    Row("configs describe --entity-type topics --entity-name TOPIC", TOPIC),
    Row("configs describe --entity-type brokers --entity-name 1 --all", CLUSTER),
    Row("configs alter --entity-type users --entity-name u --add-config producer_byte_rate=1e6", CLUSTER),
    Row("configs describe --entity-type users", CLUSTER),
    Row("users list", CLUSTER),
    Row("users remove nobody-else", CLUSTER, 1),
    Row("acls add --allow-principal User:u --topic TOPIC --producer", CLUSTER),
    Row("acls list --topic TOPIC", CLUSTER),
    Row("acls remove --allow-principal User:u --topic TOPIC --producer --force", CLUSTER),
    Row("groups list", ""),
    Row("groups describe --group nobodys", "GROUP_AUTHORIZATION_FAILED", 1),
    Row("features describe", ""),
    Row("features upgrade --feature transaction.version=2 --dry-run", CLUSTER),
    Row("reassignments list", CLUSTER),
    Row("reassignments current", CLUSTER),
    Row("reassignments execute FILE", CLUSTER),
    Row("reassignments cancel FILE", CLUSTER, 1),  # it is done, or was never needed
    Row("log-dirs describe", CLUSTER),
    Row("log-dirs move --broker 1 --topic TOPIC --partition 0 --to /nowhere", "CLUSTER_AUTHORIZATION_FAILED", 1),
    Row("metrics", CLUSTER, 1),  # the node serves none
    Row("explain TOPIC:0", TOPIC),
    Row("leader-election --election-type preferred --topic TOPIC --partition 0", CLUSTER),
    Row("losses", ""),
    Row("losses --acknowledge", ""),  # nothing is sent
    Row("transactions list", ""),
    Row("transactions producers --topic TOPIC --partition 0", TOPIC),
    Row("transactions find-hanging --broker-id 1", ""),
    Row("transactions describe --transactional-id TOPIC", TRANSACTION, 1),  # there is none
    Row("transactions abort --topic TOPIC --partition 0 --start-offset 0", TOPIC, 1),
    Row("bench --seconds 0.2 --warmup 0.1 --replication-factor 1 --rate 100", TOPIC),
    Row("bench connections --seconds 0.2", ""),
    Row("bench cold --megabytes 1 --seconds 0.2 --replication-factor 1 --drop true", TOPIC),
    Row("bench transactions --seconds 0.2 --replication-factor 1", TOPIC),
    Row("bench failover true --seconds 0.2 --rate 50 --replication-factor 1", TOPIC),
    Row("topics delete TOPIC", TOPIC),
]


class As(NamedTuple):
    """A user on the command line."""

    cluster: LocalCluster
    properties: Path
    topic: str
    file: Path

    def run(self, command: str, lines: str = "") -> Done:
        words = [word.replace("TOPIC", self.topic).replace("FILE", str(self.file)) for word in command.split()]
        reached = ("--bootstrap-server", self.cluster.bootstrap, "--command-config", str(self.properties))
        return strandline(*words, *reached, stdin=lines)


def login(cluster: LocalCluster, user: str, topic: str, folder: Path) -> As:
    assert cluster.secured is not None
    file = folder / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1]}]}))
    return As(cluster, cluster.secured.properties_path(user), topic, file)


@pytest.fixture
def nobody(secured: LocalCluster, tmp_path: Path) -> As:
    alter_credentials(config_of(secured.bootstrap, secured.client), upsertion(NOBODY, MECHANISM, PASSWORD))
    given = login(secured, ALICE, f"alice-{uuid.uuid4().hex[:8]}", tmp_path)
    text = given.properties.read_text().replace('username="alice"', f'username="{NOBODY}"')
    secret = secured.secured.password(ALICE) if secured.secured else ""
    write_private(tmp_path / "nobody.properties", text.replace(secret, PASSWORD))
    return given._replace(properties=tmp_path / "nobody.properties")


def test_the_table_has_every_command_that_reaches_a_cluster() -> None:
    assert {row.command.split()[0] for row in ROWS} == COMMANDS.keys() - WITHOUT_CLUSTER


def test_every_command_works_as_the_super_user_and_refuses_who_has_no_rights(
    secured: LocalCluster, nobody: As, tmp_path: Path
) -> None:
    admin = login(secured, ADMIN, nobody.topic, tmp_path)
    problems = []
    for row in ROWS:
        is_last = row.command.startswith("topics delete")
        both = [nobody, admin] if is_last else [admin, nobody]
        done = {user: user.run(row.command, "hello\n") for user in both}
        good, bad = done[admin], done[nobody]
        if good.returncode != row.status or "uthorization" in good.stderr or "warning" in good.stderr:
            problems.append((row.command, "admin", good))
        if row.refused and (bad.returncode != 1 or row.refused not in bad.stderr):
            problems.append((row.command, "nobody", bad))
        if nobody.topic in bad.stdout or "Traceback" in good.stderr + bad.stderr:
            problems.append((row.command, "learned", bad))
    assert problems == []


def test_who_may_not_see_the_whole_ledger_is_not_told_that_nothing_was_lost(nobody: As) -> None:
    done = nobody.run("losses")
    assert done.returncode == 3 and "nothing that you may see was lost" in done.stdout
    assert "not listed: topics that you may not describe" in done.stdout


def test_alice_uses_what_is_hers_and_needs_no_group_to_consume(secured: LocalCluster, tmp_path: Path) -> None:
    alice = login(secured, ALICE, f"alice-{uuid.uuid4().hex[:8]}", tmp_path)
    assert alice.run("topics create TOPIC").returncode == 0
    assert alice.run("produce TOPIC", "hello\n") == Done(0, "", "")
    assert alice.run("consume TOPIC --from-beginning --max-messages 1") == Done(0, "hello\n", "")
    assert alice.run("consume TOPIC --from-beginning --max-messages 1 --group TOPIC") == Done(0, "hello\n", "")
    refused = alice.run("consume TOPIC --from-beginning --max-messages 1 --timeout-ms 9000 --group hers-not")
    assert refused.returncode == 1 and GROUP.rstrip(".") in refused.stderr
    explained = alice.run("explain TOPIC:0")
    assert explained.returncode == 0 and "healthy" in explained.stdout, "no controller is said to be missing"
    assert alice.run("topics delete TOPIC").returncode == 0


def test_who_comes_without_its_properties_reads_what_to_add(secured: LocalCluster) -> None:
    done = strandline("topics", "list", "--bootstrap-server", secured.bootstrap)
    assert done.returncode == 1 and "--command-config" in done.stderr


def test_a_file_of_secrets_that_others_may_read_is_warned_about(secured: LocalCluster, tmp_path: Path) -> None:
    admin = login(secured, ADMIN, "t", tmp_path)
    careless = tmp_path / "careless.properties"
    careless.write_text(admin.properties.read_text())
    os.chmod(careless, 0o644)
    done = admin._replace(properties=careless).run("topics list")
    assert done.returncode == 0
    assert done.stderr == f"warning: {careless} has a password, and others may read it: chmod 600 {careless}\n"
