"""Which partitions an election is of, and who shall lead them: from options, and from Kafka's files."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.receiving import receive

from strandline.base.errors import ErrorCode as E
from strandline.cli.admin.leader_election import wanted_of
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import ReplicaLog
from strandline.client.errors import BadOption
from strandline.diagnosis.electing import entry_for, outcome_lines, plans_of, rows_of, why
from strandline.diagnosis.election_plan import Kind, plan_election
from strandline.wire.frame import encode_response
from strandline.wire.messages.own.describe_losses import Loss
from strandline.wire.messages.topics.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from strandline.wire.messages.topics.elect_leaders import TopicPartitions

WHOLE = tuple(ReplicaLog(node, last_epoch=6, end_offset=4, current_epoch=7, is_whole=True) for node in (1, 2))
T0, T1, U0 = Place("t", 0), Place("t", 1), Place("u", 0)


def a_file(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "partitions.json"
    path.write_text(json.dumps({"partitions": rows}))
    return path


@contextmanager
def another_program() -> Iterator[str]:
    """The address of a server that knows nothing of our own fields: topic t has a partition without a leader."""
    partition = DescribeTopicPartitionsResponsePartition(
        leader_id=-1, replica_nodes=(1, 2), eligible_leader_replicas=(), last_known_elr=()
    )
    topic = DescribeTopicPartitionsResponseTopic(name="t", partitions=(partition,))
    answer = DescribeTopicPartitionsResponse(topics=(topic,))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            receive(connection, int.from_bytes(receive(connection, 4), "big"))
            connection.sendall(b"".join(encode_response(answer, 0, 1)))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


def row(at: Place, **named: object) -> dict[str, object]:
    return {"topic": at.topic, "partition": at.partition, **named}


def test_a_file_of_kafkas_names_partitions(tmp_path: Path) -> None:
    path = a_file(tmp_path, row(T0), row(U0), row(T1))
    wanted = wanted_of(Kind.PREFERRED, None, None, None, path)
    assert wanted == {T0: -1, U0: -1, T1: -1}
    assert rows_of(Kind.UNCLEAN, wanted) == (
        TopicPartitions(topic="t", partitions=(0, 1)),
        TopicPartitions(topic="u", partitions=(0,)),
    )


def test_a_designation_names_a_leader_for_each_partition_by_either_of_the_kips_names(tmp_path: Path) -> None:
    path = a_file(tmp_path, row(T0, designatedLeader=3), row(T1, desiredLeader=0))
    wanted = wanted_of(Kind.DESIGNATION, None, None, None, path)
    assert wanted == {T0: 3, T1: 0}
    assert rows_of(Kind.DESIGNATION, wanted) == (
        TopicPartitions(topic="t", partitions=(0, 1), designated_leaders=(3, 0)),
    )
    assert wanted_of(Kind.DESIGNATION, "t", 0, 2, None) == {T0: 2}


@pytest.mark.parametrize("kind", [Kind.UNCLEAN, Kind.LONGEST_LOG_BALANCED])
def test_all_partitions_are_asked_for_by_naming_none(kind: Kind) -> None:
    assert wanted_of(kind, None, None, None, None) is None


@pytest.mark.parametrize(
    ("kind", "named", "complaint"),
    [
        (Kind.DESIGNATION, {}, "a designation needs a leader for t-0"),
        (Kind.DESIGNATION, {"designatedLeader": "1"}, "t-0 names '1' to lead"),
        (Kind.DESIGNATION, {"designatedLeader": True}, "t-0 names True to lead"),
        (Kind.DESIGNATION, {"designatedLeader": -1}, "t-0 names -1 to lead"),
        (Kind.DESIGNATION, {"designatedLeader": 1, "desiredLeader": 2}, "t-0 names 1 and 2 to lead"),
        (Kind.LONGEST_LOG_BALANCED, {"designatedLeader": 1}, "only --election-type designation takes"),
    ],
)
def test_a_file_whose_leaders_are_invalid_is_refused_before_anything_is_asked(
    kind: Kind, named: dict[str, object], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        wanted_of(kind, None, None, None, a_file(tmp_path, row(T0, **named)))
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_designation_of_all_partitions_or_without_a_leader_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for topic, partition, leader in ((None, None, None), ("t", 0, None), (None, None, 1)):
        with pytest.raises(SystemExit):
            wanted_of(Kind.DESIGNATION, topic, partition, leader, None)
        assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize("kind", [Kind.DESIGNATION, Kind.LONGEST_LOG_BALANCED, Kind.LONGEST_LOG_AGGRESSIVE])
def test_what_only_our_own_nodes_know_is_not_asked_of_another_program(kind: Kind) -> None:
    with another_program() as server, pytest.raises(BadOption) as refused:
        plans_of(server, kind, {T0: 1})
    assert refused.value.problem.startswith(f"this cluster does not know elections of type {kind.name.lower()}")


def test_an_answer_says_elected_not_needed_or_what_is_wrong() -> None:
    assert why(E.NONE, None) is None
    assert why(E.ELECTION_NOT_NEEDED, "…") == ""
    assert why(E.ELIGIBLE_LEADERS_NOT_AVAILABLE, None) == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    assert why(E.REQUEST_TIMED_OUT, "in time") == "in time"


def test_the_ledgers_entry_is_the_one_of_this_election() -> None:
    state = PartitionState(T0, (1, 2), (2,), 2, leader_epoch=7)
    loss = Loss(topic="t", where="metadata", start=4, certainty=1, replica=2, old_epoch=6, new_epoch=7, cause="…")
    assert entry_for(state, loss) is loss
    assert entry_for(state, None) is None
    for other in (Loss(replica=2, new_epoch=5), Loss(replica=1, new_epoch=7)):
        assert entry_for(state, other) is None
    clean = plan_election(replace(state, leader=-1), (), Kind.DESIGNATION, 1)
    reports = (ReplicaLog(1, last_epoch=6, end_offset=4, current_epoch=7),)
    unclean = plan_election(replace(state, leader=-1, isr=()), reports, Kind.DESIGNATION, 1)
    whole = plan_election(replace(state, leader=-1, isr=()), WHOLE, Kind.DESIGNATION, 1)
    assert outcome_lines(T0, True, (state, loss), unclean) == [
        "t-0: broker 2 was elected, and leads in epoch 7",
        "  ledger: (no time) t-0: at most what was committed from offset 4 on; broker 2 was elected, epoch 6 to 7; …",
    ]
    assert outcome_lines(T0, True, (state, None), clean)[1] == "  nothing was lost"
    assert outcome_lines(T0, True, (replace(state, is_recovering=True), None), whole)[1] == "  nothing was lost"
    not_yet = "  its entry in the ledger is not visible yet: strandline losses t:0"
    assert outcome_lines(T0, True, (state, None), unclean)[1] == not_yet
    assert outcome_lines(T0, True, (replace(state, is_recovering=True), None), clean)[1] == not_yet
    assert outcome_lines(T0, True, None, None) == ["t-0: a leader was elected"]
    assert outcome_lines(T0, False, None, None) == ["t-0: already has the right leader"]
