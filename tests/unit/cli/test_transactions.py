"""Transactions for an operator: what `strandline transactions` shows and refuses, and what `explain` says of one."""

from io import StringIO
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.rows import each
from tests.unit.cli.recovery.facts import BROKERS, commands

from strandline.base.errors import ErrorCode
from strandline.cli.admin import transactions as command
from strandline.cli.admin.explain import lines_of
from strandline.cli.admin.transaction_columns import DESCRIBED, HANGING, LISTED, PRODUCERS
from strandline.cli.columns import line_of, table_of
from strandline.client.admin.open_transactions import Found, Held
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.transactions import Coordinated, Listed, ProducerAt, Uncertain
from strandline.client.brokers import Silence
from strandline.diagnosis.explaining import judge
from strandline.diagnosis.situation import ACTION, HEALTHY, MISSING, Facts, Finding, status_of
from strandline.diagnosis.transactions import coordinated_json, hanging_json, held_json, listed_json, producer_json
from strandline.txn.transaction import NEVER_TIMES_OUT

AT = Place("t", 0)
STATE = PartitionState(AT, (1, 2, 3), (1, 2, 3), 2, 5, min_isr=2, partition_epoch=9)
OPEN = ProducerAt(AT, 7, 3, -1, 0, 60_000, 40)
KNOWN = Coordinated(1, "id", 7, 3, "Ongoing", 60_000, 120_000, (AT, Place("u", 2)))
HELD = Held(OPEN, None, 40, 90)
WHERE = {"topic": "t", "partition": 0}


# --- rows


def test_rows_have_kafkas_columns() -> None:
    assert line_of(listed_json(Listed(1, "id", 7, "Ongoing")), LISTED) == (
        "TransactionalId: id\tCoordinator: 1\tProducerId: 7\tTransactionState: Ongoing"
    )
    assert line_of(coordinated_json(KNOWN, 150_000), DESCRIBED) == (
        "CoordinatorId: 1\tTransactionalId: id\tProducerId: 7\tProducerEpoch: 3\tTransactionState: Ongoing"
        "\tTransactionTimeoutMs: 60000\tCurrentTransactionStartTimeMs: 120000\tTransactionDurationMs: 30000"
        "\tTopicPartitions: t-0,u-2"
    )
    assert line_of(producer_json(OPEN), PRODUCERS) == (
        "ProducerId: 7\tProducerEpoch: 3\tLatestCoordinatorEpoch: -1\tLastSequence: 0\tLastTimestamp: 60000"
        "\tCurrentTransactionStartOffset: 40"
    )
    row = {**hanging_json(OPEN, 180_000), "duration_min": 2}
    assert row["duration_ms"] == 120_000
    assert line_of(row, HANGING) == (
        "Topic: t\tPartition: 0\tProducerId: 7\tProducerEpoch: 3\tCoordinatorEpoch: -1\tStartOffset: 40"
        "\tLastTimestamp: 60000\tDuration(min): 2"
    )


def test_what_is_not_open_has_no_start() -> None:
    assert producer_json(replace(OPEN, start_offset=-1))["start_offset"] is None
    assert line_of(producer_json(replace(OPEN, start_offset=-1)), PRODUCERS).endswith("StartOffset: None")
    for state, is_open in (("Ongoing", True), ("PrepareCommit", True), ("CompleteCommit", False), ("Empty", False)):
        row = coordinated_json(replace(KNOWN, state=state), 150_000)
        assert (row["started_at_ms"], row["duration_ms"]) == ((120_000, 30_000) if is_open else (None, None))


def test_a_table_has_them_too() -> None:
    console = Console(width=200, file=StringIO())
    console.print(table_of([coordinated_json(KNOWN, 150_000)], DESCRIBED))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[1].split() == list(DESCRIBED.values())
    assert lines[3].split() == ["1", "id", "7", "3", "Ongoing", "60000", "120000", "30000", "t-0,u-2"]


# --- commands


class Cluster:
    """What the commands ask for, as a test says it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.known: Any = None
        self.opened: tuple[ProducerAt, ...] | str = (OPEN,)
        self.written: list[tuple[int, ProducerAt]] = []
        self.state = STATE
        self.listed: tuple[list[Listed], dict[int, str]] = ([Listed(1, "id", 7, "Ongoing")], {})
        self.requests: list[Any] = []
        self.coordinators: dict[str, Any] = {"id": 1}
        self.described: Any = KNOWN
        self.found = Found([OPEN], [])
        self.searched: list[Any] = []
        patch.setattr(command, "brokers_of", lambda bootstrap: BROKERS)
        patch.setattr(command, "chosen", lambda bootstrap, text: [self.state])
        patch.setattr(command, "describe_partitions", lambda bootstrap, names: [self.state])
        patch.setattr(command, "producers_at", lambda brokers, asked: {(node, AT): self.opened for node in asked})
        patch.setattr(command, "known_to_coordinators", lambda *rest: {OPEN: self.known})
        patch.setattr(command, "write_abort", lambda brokers, leader, one: self.written.append((leader, one)))
        patch.setattr(command, "list_transactions", self.list_transactions)
        patch.setattr(command, "coordinators_of", lambda bootstrap, names: self.coordinators)
        patch.setattr(command, "describe_at", lambda brokers, asked: dict.fromkeys(asked, self.described))
        patch.setattr(command, "find_hanging", self.find_hanging)
        patch.setattr(command, "now_ms", lambda: 1_000_000)

    def list_transactions(self, brokers: Any, request: Any) -> Any:
        self.requests.append(request)
        return self.listed

    def find_hanging(self, *asked: Any) -> Found:
        self.searched.append(asked)
        return self.found


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def refusal(capsys: pytest.CaptureFixture[str], run: Any, *arguments: Any, status: int = 1, **options: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        run(*arguments, **options)
    assert ended.value.code == status
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    return error


def test_a_list_asks_with_its_filters_and_says_who_did_not_answer(cluster: Cluster, capsys: Any) -> None:
    filters = {"state": ["Ongoing"], "producer_id": [7], "running_longer_than_ms": 5}
    assert command.list_all(**filters, transactional_id_pattern="i.*") == 0
    (request,) = cluster.requests
    assert (request.state_filters, request.producer_id_filters) == (("Ongoing",), (7,))
    assert (request.duration_filter, request.transactional_id_pattern) == (5, "i.*")
    assert capsys.readouterr().out.startswith("TransactionalId: id\t")
    cluster.listed = [], {3: "is down"}
    assert command.list_all() == command.INCOMPLETE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "not known: broker 3 is down; it may coordinate more" in printed.err


def test_a_state_that_there_is_not_is_refused_with_those_that_there_are(cluster: Cluster, capsys: Any) -> None:
    error = refusal(capsys, command.list_all, state=["ongoing"], status=2)
    assert "'ongoing' is not a state" in error and "PrepareCommit" in error and "PrepareEpochFence" in error
    assert cluster.requests == []


@each(
    "coordinator, described, words",
    [
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, None, ("has no coordinator now", "strandline explain")),
        (1, Silence("is down"), ("broker 1 coordinates 'id', and is down", "start it")),
        (1, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ("'id' is not known", "transactions list")),
        (1, ErrorCode.NOT_COORDINATOR, ("does not describe 'id': NOT_COORDINATOR", "repeat")),
    ],
)
def test_an_id_that_cannot_be_described_says_why(
    coordinator: Any, described: Any, words: tuple[str, ...], cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.coordinators, cluster.described = {"id": coordinator}, described
    error = refusal(capsys, command.describe, transactional_id=["id"])
    assert all(word in error for word in words), error


def test_a_partition_that_nobody_leads_or_whose_replica_refuses_says_where_to_look(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.opened = "broker 3 refuses: NOT_LEADER_OR_FOLLOWER"
    assert "t-0: broker 3 refuses" in refusal(capsys, command.producers, **WHERE, broker_id=3)
    cluster.state = replace(STATE, leader=-1)
    error = refusal(capsys, command.producers, **WHERE)
    assert "t-0 has no leader" in error and "strandline explain t:0" in error


@each("option", [{"start_offset": 40}, {"producer_id": 7}])
def test_a_hanging_transaction_is_aborted_at_its_leader(option: Any, cluster: Cluster) -> None:
    cluster.written.clear()
    command.abort(**WHERE, **option)
    assert cluster.written == [(2, OPEN)]


def test_epochs_that_are_given_take_the_place_of_those_that_the_leader_knows(cluster: Cluster) -> None:
    command.abort(**WHERE, producer_id=7, producer_epoch=4, coordinator_epoch=6)
    assert cluster.written == [(2, replace(OPEN, epoch=4, coordinator_epoch=6))]


@each(
    "known, words",
    [
        (KNOWN, ("it does not hang: broker 1 coordinates it, 'id' (Ongoing)", "describe --transactional-id id")),
        (Uncertain("broker 3 is down"), ("it may not hang: broker 3 is down", "--force")),
    ],
)
def test_what_a_coordinator_knows_or_may_know_is_aborted_only_by_force(
    known: Any, words: tuple[str, ...], cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.known = known
    cluster.written.clear()
    error = refusal(capsys, command.abort, **WHERE, start_offset=40)
    assert all(word in error for word in words), error
    assert cluster.written == []
    command.abort(**WHERE, start_offset=40, force=True)
    assert cluster.written == [(2, OPEN)]
    capsys.readouterr()


def test_an_abort_of_what_is_not_open_says_what_is(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name either --start-offset or --producer-id" in refusal(capsys, command.abort, **WHERE, status=2)
    assert "name either --start-offset or --producer-id" in refusal(
        capsys, command.abort, **WHERE, start_offset=1, producer_id=7, status=2
    )
    error = refusal(capsys, command.abort, **WHERE, start_offset=41)
    assert "no transaction at offset 41 is open in t-0" in error and "producer 7 at 40" in error
    cluster.opened = (replace(OPEN, start_offset=-1),)
    error = refusal(capsys, command.abort, **WHERE, producer_id=7)
    assert "no transaction of producer 7 is open in t-0" in error and "open there: none" in error
    assert cluster.written == []


def test_a_search_ends_with_what_it_found(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.find() == command.FOUND
    assert "StartOffset: 40" in capsys.readouterr().out
    cluster.found = Found([], ["t-0: broker 2 is down"])
    assert command.find(topic="t", partition=0, max_transaction_timeout=5, broker_id=2) == command.INCOMPLETE
    assert "not known: t-0: broker 2 is down" in capsys.readouterr().err
    cluster.found = Found([], [])
    assert command.find() == 0
    assert [asked[3:] for asked in cluster.searched] == [
        (1_000_000 - 900_000, None),
        (1_000_000 - 300_000, 2),
        (1_000_000 - 900_000, None),
    ]


def test_a_search_in_a_partition_needs_its_topic_and_a_broker_that_is_there(cluster: Cluster, capsys: Any) -> None:
    assert "--partition needs --topic" in refusal(capsys, command.find, partition=0, status=2)
    error = refusal(capsys, command.find, broker_id=9, status=2)
    assert "broker 9 is not registered" in error and "1, 2, 3" in error


# --- explain


def explained(held: Held) -> Finding:
    (finding,) = judge(Facts(STATE, BROKERS, held=held, options=" --bootstrap-server h:1"))
    return finding


def test_explain_names_who_holds_the_last_stable_offset_since_when_and_what_ends_it() -> None:
    finding = explained(replace(HELD, known=KNOWN))
    assert finding.what == "a transaction of producer 7 holds the last stable offset at 40"
    assert "50 offsets up to the high watermark 90" in finding.why[0]
    assert "open since offset 40; producer 7 with epoch 3 wrote last at 1970-01-01T00:01:00Z" in finding.why[1]
    assert finding.why[2].startswith("transactional id 'id': Ongoing since 1970-01-01T00:02:00Z")
    assert "broker 1" in finding.why[2]
    assert finding.waits_for == "its producer to end it; else it is aborted after 1970-01-01T00:03:00Z, its timeout"
    assert status_of((finding,)) == HEALTHY


def test_one_that_somebody_else_has_prepared_never_times_out() -> None:
    finding = explained(replace(HELD, known=replace(KNOWN, timeout_ms=NEVER_TIMES_OUT)))
    assert finding.waits_for == "whoever has prepared it (two-phase commit): it never times out"


def test_one_that_a_sink_of_spark_has_prepared_names_the_command_that_ends_it() -> None:
    finding = explained(replace(HELD, known=replace(KNOWN, transactional_id="strandline-sink/q/r/0.0.0")))
    assert "`strandline pipeline settle`; its coordinator aborts it after 1970-01-01T00:03:00Z" in finding.waits_for


def test_one_that_is_decided_waits_for_its_marker() -> None:
    finding = explained(replace(HELD, known=replace(KNOWN, state="PrepareCommit")))
    assert finding.waits_for == "its marker: broker 1 has decided, and writes it"


def test_one_that_hangs_needs_an_operator_and_has_a_way_out() -> None:
    finding = explained(HELD)
    assert status_of((finding,)) == ACTION
    assert "it hangs" in finding.why[2]
    (way,) = commands(finding)
    assert way == "transactions abort --topic t --partition 0 --start-offset 40 --bootstrap-server h:1"


def test_one_whose_coordinator_did_not_answer_is_a_missing_fact() -> None:
    finding = explained(replace(HELD, known=Uncertain("broker 1 is down")))
    assert status_of((finding,)) == MISSING
    assert (finding.needs_action, finding.ways) == (False, ())
    assert "its transactional id is not known: broker 1 is down" in finding.why


def test_without_one_a_partition_is_healthy() -> None:
    facts = Facts(STATE, BROKERS)
    assert judge(facts) == ()
    assert "healthy" in lines_of(facts, ())[0]


def test_what_holds_it_is_in_json() -> None:
    assert held_json(None) is None
    hanging, known = held_json(HELD), held_json(replace(HELD, known=KNOWN))
    assert hanging is not None and known is not None
    assert (hanging["is_hanging"], hanging["transactional_id"]) == (True, None)
    assert (known["is_hanging"], known["transactional_id"], known["started_at_ms"]) == (False, "id", 120_000)
    assert (known["producer_id"], known["last_stable_offset"], known["high_watermark"]) == (7, 40, 90)
