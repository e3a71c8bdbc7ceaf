"""An operator looks at groups of real consumers, moves their offsets, and deletes offsets and groups."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from tests.cluster.commands.test_recovery_commands import Commands
from tests.cluster.driving import create, quiet, until, until_is

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

RECORDS = 10  # in each partition


@pytest.fixture
def commands(shared_cluster: LocalCluster) -> Commands:
    return Commands(shared_cluster)


@pytest.fixture
def read(commands: Commands) -> str:
    """A topic with two partitions that have records, read to its end by the group of the same name."""
    name = filled(commands)
    with consuming(commands, name, name) as consumer:
        until_is({0: RECORDS, 1: RECORDS}, lambda: committed(commands, name))
        assert consumer
    return name


def filled(commands: Commands) -> str:
    name = f"g-{uuid4().hex[:8]}"
    create(commands.cluster, name, 2)
    producer = Producer(quiet(commands.cluster.bootstrap, acks="all"))
    for partition in (0, 1):
        for number in range(RECORDS):
            producer.produce(name, b"%d" % number, partition=partition, timestamp=1_000_000 * (number + 1))
    assert producer.flush(20) == 0
    return name


@contextmanager
def consuming(commands: Commands, group: str, topic: str) -> Iterator[str]:
    """A consumer that polls and commits; its client id."""
    settings = {"group_id": group, "auto_offset_reset": "earliest", "auto_commit_interval_ms": 100, "client_id": "app"}
    consumer = Consumer(quiet(commands.cluster.bootstrap, session_timeout_ms=6000, **settings))
    consumer.subscribe([topic])
    ends = threading.Event()

    def poll() -> None:
        while not ends.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield "app"
    finally:
        ends.set()
        thread.join()


def committed(commands: Commands, group: str) -> dict[int, int]:
    """Nothing, too, while there is no such group, or no topic yet that could keep it."""
    report, error = commands.run("groups", "lag", "--group", group, "--json", status=None)
    assert report or "not exist" in error or "has no coordinator now" in error, error
    rows = json.loads(report) if report else []
    return {row["partition"]: row["committed_offset"] for row in rows if row["committed_offset"] is not None}


def test_a_group_with_a_member_is_shown_and_its_offsets_are_left_alone(commands: Commands) -> None:
    name = filled(commands)
    of_group = ("--group", name)
    with consuming(commands, name, name):
        until_is({0: RECORDS, 1: RECORDS}, lambda: committed(commands, name))
        (listed,) = [row for row in commands.json("groups", "list", "--state", "stable") if row["group"] == name]
        assert (listed["type"], listed["protocol_type"], listed["state"]) == ("classic", "consumer", "Stable")
        assert name not in str(commands.json("groups", "list", "--state", "Empty,Dead"))
        assert name not in str(commands.json("groups", "list", "--type", "consumer"))
        (group,) = commands.json("groups", "describe", *of_group)
        assert (group["members"], group["assignor"], group["coordinator"]) == (1, "range", listed["coordinator"])
        (member,) = commands.json("groups", "members", *of_group)
        assert (member["client_id"], member["partitions"]) == ("app", 2)
        assert (member["assigned"], member["subscribed"]) == ([f"{name}-0", f"{name}-1"], [name])
        (first, _) = commands.json("groups", "lag", *of_group)
        assert (first["log_start_offset"], first["log_end_offset"], first["lag"]) == (0, RECORDS, 0)
        assert first["member_id"] == member["member_id"]
        for command in (
            ("reset-offsets", *of_group, "--all-topics", "--to-earliest"),
            ("delete-offsets", *of_group, "--topic", name),
            ("delete", *of_group),
        ):
            error = commands.run("groups", *command, "--execute", status=1)[1]
            assert (
                member["member_id"] in error and "client app at 127.0.0.1" in error and "stop these consumers" in error
            )
            assert member["member_id"] in commands.run("groups", *command)[1], "a plan warns of them"
        assert committed(commands, name) == {0: RECORDS, 1: RECORDS}
    until(lambda: commands.json("groups", "describe", *of_group)[0]["state"] == "Empty")
    for topic, problem in ((f"no-{name}", "does not exist"), (f"{name}:9", f"partition {name}-9 does not exist")):
        assert problem in commands.run("groups", "lag", *of_group, "--topic", topic, status=1)[1]
    assert "'' cannot be the id of a group" in commands.run("explain", "--group", "", status=2)[1]


def test_offsets_are_reset_as_planned_in_each_way_that_kafka_has(commands: Commands, read: str, tmp_path: Path) -> None:
    of_group = ("--group", read)
    plan = commands.json("groups", "reset-offsets", *of_group, "--topic", f"{read}:1", "--to-offset", "4")
    assert plan == [
        {
            "group": read,
            "topic": read,
            "partition": 1,
            "old_offset": RECORDS,
            "new_offset": 4,
            "log_start_offset": 0,
            "log_end_offset": RECORDS,
            "skipped": 0,
            "repeated": 6,
            "note": "",
            "outcome": "planned",
            "error": None,
        }
    ]
    assert committed(commands, read) == {0: RECORDS, 1: RECORDS}, "a plan changes nothing"
    for options, expected in (
        (("--topic", f"{read}:1", "--to-offset", "4"), {0: 10, 1: 4}),
        (("--all-topics", "--shift-by", "-3"), {0: 7, 1: 1}),
        (("--all-topics", "--shift-by", "-3"), {0: 4, 1: 0}),
        (("--topic", read, "--to-latest"), {0: 10, 1: 10}),
        (("--all-topics", "--to-datetime", "1970-01-01T00:50:00.000"), {0: 2, 1: 2}),
        (("--all-topics", "--to-current"), {0: 2, 1: 2}),
        (("--all-topics", "--by-duration", "PT1H"), {0: 10, 1: 10}),
        (("--all-topics", "--to-earliest"), {0: 0, 1: 0}),
    ):
        rows = commands.json("groups", "reset-offsets", *of_group, *options, "--execute")
        assert {row["outcome"] for row in rows} == {"reset"}
        assert committed(commands, read) == expected, options
    exported = commands.run(
        "groups", "reset-offsets", *of_group, "--topic", f"{read}:0", "--to-offset", "5", "--export"
    )[0]
    assert exported == f"{read},0,5\n"
    (tmp_path / "plan.csv").write_text(exported)
    commands.run("groups", "reset-offsets", *of_group, "--from-file", str(tmp_path / "plan.csv"), "--execute")
    assert committed(commands, read) == {0: 5, 1: 0}


def test_a_reset_group_reads_from_there(commands: Commands, read: str) -> None:
    commands.run("groups", "reset-offsets", "--group", read, "--topic", f"{read}:0", "--to-offset", "7", "--execute")
    consumer = Consumer(quiet(commands.cluster.bootstrap, group_id=read))
    consumer.subscribe([read])
    found = []
    until(lambda: (message := consumer.poll(0.1)) and (found.append(message.offset()) or len(found) == 3))
    consumer.close()
    assert found == [7, 8, 9]


def test_offsets_and_groups_are_deleted(commands: Commands, read: str) -> None:
    of_group = ("--group", read)
    (plan,) = commands.json("groups", "delete-offsets", *of_group, "--topic", f"{read}:1")
    assert (plan["offset"], plan["outcome"]) == (RECORDS, "planned")
    assert committed(commands, read) == {0: RECORDS, 1: RECORDS}
    (done,) = commands.json("groups", "delete-offsets", *of_group, "--topic", f"{read}:1", "--execute")
    assert done["outcome"] == "deleted"
    assert committed(commands, read) == {0: RECORDS}
    (plan,) = commands.json("groups", "delete", *of_group)
    assert (plan["state"], plan["offsets"], plan["outcome"]) == ("Empty", 1, "planned")
    assert commands.json("groups", "delete", *of_group, "--execute")[0]["outcome"] == "deleted"
    error = commands.run("groups", "describe", *of_group, status=1)[1]
    assert f"group '{read}' does not exist" in error


def test_lines_for_a_pipe_have_kafkas_columns(commands: Commands, read: str) -> None:
    (first, _) = commands.lines("groups", "lag", "--group", read)
    assert first == (
        f"GROUP: {read}\tTOPIC: {read}\tPARTITION: 0\tCURRENT-OFFSET: 10\tLOG-START-OFFSET: 0\tLAST-STABLE-OFFSET: 10"
        "\tLOG-END-OFFSET: 10\tLAG: 0\tCONSUMER-ID: -\tHOST: -\tCLIENT-ID: -"
    )
    out, err = commands.run("groups", "reset-offsets", "--group", read, "--topic", f"{read}:0", "--shift-by", "-2")
    assert out == (
        f"GROUP: {read}\tTOPIC: {read}\tPARTITION: 0\tCURRENT-OFFSET: 10\tNEW-OFFSET: 8"
        "\tCONSEQUENCE: reads 2 offsets again\n"
    )
    assert "nothing was changed" in err
