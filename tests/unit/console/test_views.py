"""What views make of facts: topics, groups, moves, transactions and metrics; and what they are asked for."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from strandline.client.admin.behind import Behind
from strandline.client.admin.groups.described import GroupState, Listed, Member
from strandline.client.admin.groups.offsets import Ends
from strandline.client.admin.nodes.gauges import COLUMNS
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replicas.reassignments import Move
from strandline.client.admin.replicas.sizes import ReplicaSize
from strandline.client.admin.transactions import Coordinated, ProducerAt
from strandline.client.admin.transactions import Listed as ListedTransaction
from strandline.client.ask import config_of
from strandline.client.errors import BadOption
from strandline.console.asking.groups import Groups, GroupSeen
from strandline.console.asking.logs import LogEnds, Sizes
from strandline.console.asking.metrics import Metrics
from strandline.console.asking.transactions import Transactions
from strandline.console.changes import cancelling, record, reset
from strandline.console.changes.record import bytes_of
from strandline.console.facts import Facts, Observed
from strandline.console.reading.browsing import Page, Seen
from strandline.console.reading.texts import Format
from strandline.console.views import groups, metrics, reassignments, topics, transactions
from strandline.diagnosis.groups.plans import Reset, Target
from strandline.diagnosis.groups.resetting import Goal
from strandline.wire.messages.topics.list_partition_reassignments import OngoingPartitionReassignment
from strandline.wire.record import Record

A, B, HIDDEN = Place("t", 0), Place("t", 1), Place("__consumer_offsets", 0)
HEALTHY = PartitionState(A, (1, 2), (1, 2), 1)


def knowing(**facts: Any) -> Observed:
    observed = Observed(config_of("127.0.0.1:1"))
    observed.facts = Facts(**facts)
    return observed


# --- topics


def test_a_topic_is_as_large_and_as_fast_as_its_partitions_together() -> None:
    sizes = Sizes(
        2_000,
        {A: (ReplicaSize(1, 10, 0, "/a"), ReplicaSize(2, 20, 0, "/a"), ReplicaSize(2, 99, 0, "/b", is_future=True))},
        rates={A: 1.0, B: 0.26},
    )
    ends = LogEnds(2_000, {A: 7}, {A: 2.0, B: 3.0})
    states = (HEALTHY, replace(HEALTHY, at=B), replace(HEALTHY, at=HIDDEN))
    rows = topics.topic_rows(Facts(partitions=states, sizes=sizes, ends=ends))
    assert rows["t"] == {
        "topic": "t",
        "is_internal": False,
        "partitions": 2,
        "replicas": 2,
        "size_bytes": 30,
        "records_per_s": 5.0,
        "bytes_per_s": 1.3,
        "leaderless": 0,
        "out_of_sync": 0,
    }
    hidden = rows["__consumer_offsets"]
    assert hidden["is_internal"] and hidden["size_bytes"] is None and hidden["records_per_s"] is None


def test_a_topics_partitions_without_a_leader_or_out_of_sync_are_counted_but_for_those_that_only_move() -> None:
    leaderless = replace(HEALTHY, leader=-1, isr=(1, 2))
    behind = replace(HEALTHY, at=B, isr=(1,))
    moving = replace(HEALTHY, at=Place("t", 2), replicas=(1, 2, 3), adding=(3,))
    row = topics.topic_rows(Facts(partitions=(leaderless, behind, moving)))["t"]
    assert (row["leaderless"], row["out_of_sync"], row["replicas"]) == (1, 1, 3)


def test_each_replica_is_shown_with_its_size_and_whether_it_is_in_sync() -> None:
    sizes = Sizes(1, {A: (ReplicaSize(2, 20, 5, "/b"), ReplicaSize(1, 10, 0, "/a"))}, rates={A: 4.0})
    facts = Facts(partitions=(replace(HEALTHY, isr=(1,)),), sizes=sizes, ends=LogEnds(1, {A: 7}, {A: 2.0}))
    row = topics.partition_rows(facts)["t:0"]
    assert (row["leader"], row["high_watermark"], row["records_per_s"], row["bytes_per_s"]) == (1, 7, 2.0, 4.0)
    assert [(one["broker"], one["size_bytes"], one["is_in_sync"]) for one in row["replicas"]] == [
        (1, 10, True),
        (2, 20, False),
    ]
    assert topics.looked_rows(facts) == {"ends": 1}


QUERY = {"topic": "t"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {"partitions": (0, 1), "start": "latest", "limit": 50, "key": None}),
        ({"partition": "1", "limit": "7"}, {"partitions": (1,), "limit": 7}),
        ({"limit": "0"}, {"limit": 1}),
        ({"start": "offset", "number": "12"}, {"start": "offset", "number": 12}),
        ({"start": "earliest", "number": "12"}, {"start": "earliest", "number": 0}),
        ({"key": "61", "key_given_as": "hex"}, {"key": b"a"}),
        ({"key": "a"}, {"key": b"a"}),
        ({"positions": '{"0": 5, "9": 1}'}, {"positions": {0: 5}}),
        ({"positions": '{"0": -5}'}, {"positions": {0: 0}}),
    ],
)
def test_which_records_are_wanted_is_read_from_the_query(query: dict[str, str], expected: dict[str, Any]) -> None:
    wanted = topics.wanted_of(QUERY | query, [0, 1])
    assert {key: getattr(wanted, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"partition": "2"}, "there is no partition 2"),
        ({"start": "middle"}, "'middle' is not a place to start at"),
        ({"start": "offset", "number": "-1"}, "number: '-1'"),
        ({"start": "offset", "number": str(1 << 63)}, "number: "),
        ({"limit": "9" * 5000}, "limit: '999"),
        ({"partition": "9" * 5000}, "there is no partition 999"),
        ({"positions": '{"0": 1e999}'}, "the positions are not"),
        ({"limit": "501"}, "limit: '501' is not a number from 0 to 500"),
        ({"key": "x", "key_given_as": "hex"}, "this is not hex"),
        ({"positions": "[]"}, "the positions are not"),
        ({"positions": '{"0": null}'}, "the positions are not"),
        ({"positions": "{"}, "the positions are not"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query: dict[str, str], why: str) -> None:
    with pytest.raises(BadOption, match=why):
        topics.wanted_of(QUERY | query, [0, 1])


def test_a_topic_of_many_partitions_is_read_one_at_a_time() -> None:
    with pytest.raises(BadOption, match="51 partitions, and at most 50"):
        topics.wanted_of(QUERY, list(range(51)))
    assert len(topics.wanted_of(QUERY, list(range(50))).partitions) == 50
    assert topics.wanted_of(QUERY | {"partition": "7"}, list(range(51))).partitions == (7,)


def test_a_page_of_records_says_whether_it_is_the_last_and_bounds_headers() -> None:
    headers = tuple((f"h{number}", b"1") for number in range(topics.HEADERS_MAX + 2))
    seen = Seen(0, Record(4, 1_000, None, b"v", headers))
    page = topics.page_json(Page((seen,), {0: 5, 1: 3}, {0: 5, 1: 4}), Format(), Format())
    (row,) = page["records"]
    assert (page["is_at_end"], page["next"]) == (False, {"0": 5, "1": 3})
    assert (row["key"]["form"], row["value"]["text"], len(row["headers"]), row["headers_left_out"]) == (
        "null",
        "v",
        topics.HEADERS_MAX,
        2,
    )
    assert topics.page_json(Page((), {0: 5}, {0: 5}), Format(), Format())["is_at_end"]


# --- a record by hand


@pytest.mark.parametrize(
    ("text", "given_as", "expected"),
    [("a", "text", b"a"), ("", "text", b""), ("6 1", "null", None), ("61 62", "hex", b"ab"), ("YQ==", "base64", b"a")],
)
def test_bytes_are_given_as_text_hexadecimal_base64_or_not_at_all(
    text: str, given_as: str, expected: bytes | None
) -> None:
    assert bytes_of(text, given_as) == expected


@pytest.mark.parametrize(("text", "given_as"), [("6", "hex"), ("YQ", "base64"), ("Y*Q==", "base64"), ("a", "other")])
def test_bytes_that_are_not_what_they_are_given_as_are_refused(text: str, given_as: str) -> None:
    with pytest.raises(BadOption):
        bytes_of(text, given_as)


def test_a_record_goes_to_a_topic_and_a_partition_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "partitions_of", lambda _, topic: [0, 1] if topic == "t" else [])
    observed = knowing()
    plan = record.plan(observed, record.NewRecord("t", 1, "k", "text", "v\u00e9"))
    assert plan == {
        "lines": ["A record with a key of 1 byte and a value of 3 bytes would be written to partition 1 of t."]
    }
    tombstone = record.plan(observed, record.NewRecord("t", value_as="null"))["lines"][0]
    assert tombstone == "A record with no key and no value, a tombstone would be written to one of 2 partitions of t."
    for wrong in (
        record.NewRecord("none"),
        record.NewRecord("t", 2),
        record.NewRecord("t", -2),
        record.NewRecord("t", headers=(record.Header(""),)),
        record.NewRecord("t", headers=(record.Header("h"),) * 101),
    ):
        for do in (record.plan, record.write):
            with pytest.raises(Exception, match=r"there is no partition|does not exist|at most 100 headers"):
                do(observed, wrong)


# --- groups

MEMBER = Member("m", "client", "/10.0.0.1", assigned=(A, B))
STATE = GroupState("g", 2, "classic", "Stable", "consumer", "range", (MEMBER,))
LISTED = Listed("g", "classic", "consumer", "Empty", 2)


def test_a_group_has_the_state_of_its_description_and_its_lag() -> None:
    seen = {"g": GroupSeen(LISTED, STATE, {A: 3}), "x": GroupSeen(replace(LISTED, group_id="x"), None, "broker 2 why")}
    facts = Facts(groups=Groups(5, seen, {3: "does not run"}), ends=LogEnds(1, {A: 10}))
    rows = groups.group_rows(facts)
    assert rows["g"] == {
        "group": "g",
        "type": "classic",
        "protocol_type": "consumer",
        "state": "Stable",
        "coordinator": 2,
        "members": 1,
        "topics": ["t"],
        "lag": 7,
        "problem": "",
    }
    assert {key: rows["x"][key] for key in ("state", "members", "lag", "problem")} == {
        "state": "Empty",
        "members": None,
        "lag": None,
        "problem": "broker 2 why",
    }
    assert groups.silent_rows(facts) == {"3": "does not run"}
    assert groups.looked_rows(facts) == {"groups": 5}
    assert (groups.group_rows(Facts()), groups.silent_rows(Facts()), groups.looked_rows(Facts())) == (
        {},
        {},
        {"groups": 0},
    )


def test_one_group_has_all_partitions_that_it_has_offsets_for_or_reads() -> None:
    other = Place("u", 0)
    seen = GroupSeen(LISTED, STATE, {A: 3, other: 1})
    known = Groups(5, {"g": seen}, {}, {"g": ((5, 7.0),)})
    found = groups.group(knowing(groups=known, ends=LogEnds(1, {A: 10, B: 4})), {"group": "g"})
    cells = [(row["topic"], row["partition"], row["committed_offset"], row["log_end_offset"], row["lag"], row["host"])
             for row in found["partitions"]]  # fmt: skip
    assert cells == [("t", 0, 3, 10, 7, "10.0.0.1"), ("t", 1, None, 4, None, "10.0.0.1"), ("u", 0, 1, None, None, None)]
    assert (found["lags"], found["member_rows"][0]["client_id"]) == (((5, 7.0),), "client")
    assert groups.group(knowing(groups=known), {"group": "none"}) is None
    assert groups.group(knowing(), {"group": "g"}) is None
    with pytest.raises(BadOption):
        groups.group(knowing(), {})


# --- a reset


@pytest.mark.parametrize(
    ("to", "value", "goal"),
    [
        ("to-earliest", "", Goal(Target.EARLIEST)),
        ("to-offset", "7", Goal(Target.OFFSET, 7)),
        ("shift-by", "-7", Goal(Target.SHIFT, -7)),
        ("to-datetime", "1970-01-01T00:00:01", Goal(Target.DATETIME, 1_000)),
        ("by-duration", "PT9S", Goal(Target.DURATION, 1_000)),
    ],
)
def test_where_offsets_are_reset_to_is_read_as_the_command_reads_it(to: Any, value: str, goal: Goal) -> None:
    assert reset.goal_of(reset.ResetOffsets("g", to, value), datetime.fromtimestamp(10, UTC)) == goal


@pytest.mark.parametrize(
    ("to", "value"),
    [("to-offset", "-1"), ("to-offset", ""), ("shift-by", "x"), ("to-datetime", "x"), ("by-duration", "")],
)
def test_a_target_without_a_value_that_makes_sense_is_refused(to: Any, value: str) -> None:
    with pytest.raises(BadOption):
        reset.goal_of(reset.ResetOffsets("g", to, value), datetime.now(UTC))


def test_only_a_whole_plan_of_a_group_without_members_can_be_carried_out() -> None:
    plans = [Reset("g", A, 5, 2, Ends(0, 9, 9))]
    found = reset.plan_json(plans, [], None)
    assert (found["can_reset"], found["rows"][0]["consequence"]) == (True, "reads 3 offsets again")
    assert not reset.plan_json([], [], None)["can_reset"]
    assert not reset.plan_json(plans, ["t-1: why"], None)["can_reset"]
    assert not reset.plan_json(plans, [], ("it has members", "stop them"))["can_reset"]
    with pytest.raises(BadOption, match="no plan was confirmed"):
        reset.reset_as_planned(knowing(), reset.ResetOffsets("g", "to-earliest"))


# --- moves


def move(behind: Any = None, adding: tuple[int, ...] = (3,)) -> Move:
    row = OngoingPartitionReassignment(
        partition_index=0, replicas=(1, 2, *adding), adding_replicas=adding, removing_replicas=(2,)
    )
    return Move(A, row, {} if behind is None else behind)


@pytest.mark.parametrize(
    ("moved", "size", "expected"),
    [
        (move({3: Behind(3, 5, 25)}), 100, 0.75),
        (move({}), 100, 1.0),
        (move({3: Behind(3, 5, 500)}), 100, 0.0),
        (move({3: Behind(3, 5, 50)}, adding=(3, 4)), 100, 0.75),
        (move({2: Behind(2, 5, 50)}), 100, 1.0),
        (move({3: Behind(3, why="it has fetched nothing")}), 100, None),
        (move({3: Behind(3, 5, 25)}), None, None),
        (move("its leader does not answer"), 100, None),
        (move({}, adding=()), 100, None),
    ],
)
def test_a_move_is_as_far_as_its_new_replicas_have_the_leaders_bytes(
    moved: Move, size: int | None, expected: float | None
) -> None:
    assert reassignments.progress(moved, size) == expected


def test_a_move_is_shown_with_what_its_replicas_lack_in_words() -> None:
    facts = Facts(moves=(move({3: Behind(3, 5, 25)}),), sizes=Sizes(1, largest={A: 100}))
    row = reassignments.move_rows(facts)["t:0"]
    assert (row["replicas"], row["adding"], row["removing"], row["progress"]) == ([1, 2], [3], [2], 0.75)
    assert row["behind_words"] == ["3 by 5 records, 25 B"]
    assert reassignments.move_rows(Facts()) == {}


def test_the_plan_of_a_cancellation_says_what_stays_and_what_is_deleted() -> None:
    assert cancelling.lines_of(move()) == [
        "t-0 keeps the replicas of before: 1, 2.",
        "What was copied to 3 is deleted there.",
    ]
    assert cancelling.lines_of(move(adding=())) == ["t-0 keeps the replicas of before: 1, 2."]


# --- transactions


def test_a_transaction_is_open_since_its_start_and_a_row_does_not_change_by_itself() -> None:
    ongoing = Coordinated(1, "x", 7, 2, "Ongoing", 60_000, 1_000, (A,))
    seen = {"x": ongoing, "y": replace(ongoing, state="CompleteCommit"), "z": ListedTransaction(2, "z", 9, "Empty")}
    facts = Facts(transactions=Transactions(seen, {3: "does not run"}))
    rows = transactions.transaction_rows(facts)
    assert rows["x"] == {
        "coordinator": 1,
        "transactional_id": "x",
        "producer_id": 7,
        "producer_epoch": 2,
        "state": "Ongoing",
        "timeout_ms": 60_000,
        "started_at_ms": 1_000,
        "partitions": ["t-0"],
    }
    assert rows["y"]["started_at_ms"] is None
    assert set(rows["z"]) == set(rows["x"]) and rows["z"]["producer_epoch"] is None
    assert transactions.silent_rows(facts) == {"3": "does not run"}
    assert (transactions.transaction_rows(Facts()), transactions.silent_rows(Facts())) == ({}, {})


def test_a_transaction_that_hangs_is_explained_with_the_command_that_aborts_it() -> None:
    found = transactions.finding(ProducerAt(A, 7, 2, 1, 5, 1_000, 40), " --bootstrap-server x:1")
    assert found["what"] == "t-0: a transaction of producer 7 is open since offset 40"
    assert found["needs_action"]
    assert found["ways"][0]["command"].endswith("--topic t --partition 0 --start-offset 40 --bootstrap-server x:1")
    for text in ("x", "-1", str(transactions.MINUTES_MAX + 1)):
        with pytest.raises(BadOption, match="is not a number of minutes"):
            transactions.hanging(knowing(), {"minutes": text})


# --- metrics


def test_the_newest_values_of_a_node_are_those_of_the_last_look() -> None:
    series = {1: {"partitions": ((1, 1.0), (2, 3.0)), "records in": ((1, 9.0),)}}
    known = Metrics(2, {1: "http://x", 2: None, 3: "http://y"}, 0, {1: {"partitions": 3}, 2: None, 3: None}, series)
    rows = metrics.metric_rows(Facts(metrics=known))
    assert rows["1"] == {"node": 1, "time_ms": 2, "url": "http://x", "values": {"partitions": 3.0}}
    assert (rows["2"]["url"], rows["2"]["values"], rows["3"]["values"]) == (None, None, None)
    found = metrics.history(knowing(metrics=known), {})
    assert found["series"] == {"1": series[1]}
    assert [column["name"] for column in found["columns"]] == [name for name, _, _ in COLUMNS]
    assert {"name": "bytes in", "is_rate": True, "is_trouble": False} in found["columns"]
    assert {"name": "offline replicas", "is_rate": False, "is_trouble": True} in found["columns"]
