"""GetTelemetrySubscriptions and PushTelemetry: what a client is asked for, when it may push, and why not (KIP-714)."""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.broker.telemetry.telling import BROKEN, LATENCY, MAX_BYTES, World

from strandline.base.effects import Report
from strandline.base.errors import ErrorCode as E
from strandline.base.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid, uuid_text
from strandline.base.time import NEVER
from strandline.broker.telemetry import instances
from strandline.broker.telemetry.pushed import Point
from strandline.broker.telemetry.telemetry import UNPACKED_BYTES_MAX
from strandline.wire.compress import Codec, compress
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest

ALL = {"metrics": "*", "interval.ms": "1000"}
SHOWN = "strandline_pushed_" + LATENCY.replace(".", "_")
STRANGE = Uuid(b"strange-instance")


def test_without_a_subscription_a_client_is_asked_for_nothing_every_five_minutes_and_what_it_pushes_is_not_read() -> (
    None
):
    world = World()
    asked = world.ask()
    assert (asked.error_code, asked.requested_metrics, asked.push_interval_ms) == (E.NONE, (), 300_000)
    assert asked.accepted_compression_types == (4, 3, 1, 2)
    assert (asked.telemetry_max_bytes, asked.delta_temporality) == (MAX_BYTES, True)
    assert asked.client_instance_id not in (ZERO_UUID, METADATA_TOPIC_ID)
    assert world.push(asked) == E.NONE
    assert (world.library.decoded, world.library.prepared, world.shown()) == ([], 0, {})
    others = [world.ask(connection=n) for n in range(20)]
    assert len({one.client_instance_id for one in (asked, *others)}) == 21
    assert len({one.subscription_id for one in (asked, *others)}) == 21
    assert {one.subscription_id < 0 for one in others} == {True, False}, "32 bits, of which one is the sign"
    assert all(-(1 << 31) <= one.subscription_id < 1 << 31 for one in others)


# Of the client in `test_a_client_is_asked_for_what_matches_it`.
MATCHES = [
    ("", True),
    ("client_id=app", True),
    ("client_id=ap", False),  # all of it must match
    ("client_id=app,client_id=nobody", False),  # the last one counts
    ("client_id = a.* ,client_source_port=47[0-9]{2}", True),
    ("client_software_name=apache-kafka-java", True),
    ("client_software_version=3\\.7\\..*", True),
    ("client_software_version=3\\.8\\..*", False),
    ("client_source_address=10\\.0\\..*", True),
    ("client_source_address=10\\.1\\..*", False),
    (f"client_instance_id={uuid_text(STRANGE)}", True),
    ("client_id=app,client_source_port=1", False),
]


@each("match, is_asked", MATCHES, world=World)
def test_a_client_is_asked_for_what_matches_it(match: str, is_asked: bool, world: World) -> None:
    java = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="3.7.1")
    world.answer(java, 1)
    world.subscribe("s", {**ALL, "match": match})
    assert world.ask(STRANGE).requested_metrics == (("*",) if is_asked else ())


def test_a_client_does_not_match_by_what_nobody_knows_of_it() -> None:
    world = World()
    world.subscribe("s", {**ALL, "match": "client_software_name=.*"})
    assert world.ask(connection=1).requested_metrics == ()
    world.answer(ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.5.0"), 2)
    assert world.ask(connection=2).requested_metrics == ("*",)
    world.telemetry.disconnected(2)
    assert world.ask(connection=2).requested_metrics == (), "the next one on a connection of this number is another"


def test_a_pattern_that_would_keep_a_backtracking_matcher_busy_for_years_is_matched_at_once() -> None:
    world = World()
    world.subscribe("s", {**ALL, "match": "client_id=(a+)+b"})
    assert world.ask(client_id="a" * 32_000).requested_metrics == ()
    world.subscribe("s", {**ALL, "match": "client_id=(a?){900}"})
    assert world.ask(client_id="a" * 32_000).requested_metrics == (), "it takes too many steps"
    world.subscribe("t", {**ALL, "match": "client_id=a{250}"})
    assert world.ask(client_id="a" * 32_000).requested_metrics == ("*",), "its first letters count"


def test_subscriptions_that_match_are_one_with_all_their_metrics_and_the_shortest_interval() -> None:
    world = World()
    world.subscribe("a", {"metrics": "x.,y.", "interval.ms": "600000"})
    assert world.ask(connection=1).push_interval_ms == 600_000, "longer than the default"
    world.subscribe("b", {"metrics": "y.,z.", "interval.ms": "700000"})
    world.subscribe("c", {"metrics": "*", "interval.ms": "100", "match": "client_id=other"})
    asked = world.ask(connection=2)
    assert (asked.requested_metrics, asked.push_interval_ms) == (("x.", "y.", "z."), 600_000)
    asked = world.ask(connection=3, client_id="other")
    assert (asked.requested_metrics, asked.push_interval_ms) == (("*",), 100)


def test_what_cannot_be_read_is_no_subscription() -> None:
    world = World()
    world.subscribe("a", {**ALL, "interval.ms": "often"})
    world.subscribe("b", {**ALL, "match": "client_id=("})
    world.subscribe("c", {**ALL, "what": "is this"})
    assert world.telemetry.subscriptions == ()


WRONG: list[tuple[dict[str, Any], E]] = [
    ({"client_instance_id": ZERO_UUID}, E.INVALID_REQUEST),
    ({"client_instance_id": METADATA_TOPIC_ID}, E.INVALID_REQUEST),
    ({"client_instance_id": STRANGE}, E.UNKNOWN_SUBSCRIPTION_ID),  # each client has its own
    ({"subscription_id": 1, "compression_type": 9}, E.UNKNOWN_SUBSCRIPTION_ID),
    ({"compression_type": 5, "metrics": bytes(MAX_BYTES + 1)}, E.UNSUPPORTED_COMPRESSION_TYPE),
    ({"compression_type": -1}, E.UNSUPPORTED_COMPRESSION_TYPE),
    ({"metrics": bytes(MAX_BYTES + 1)}, E.TELEMETRY_TOO_LARGE),
    ({"metrics": bytes(MAX_BYTES)}, E.NONE),
    ({"metrics": b""}, E.NONE),
    ({"metrics": BROKEN}, E.INVALID_RECORD),
    ({"metrics": b"not zstd", "compression_type": Codec.ZSTD}, E.INVALID_RECORD),
    *(({"metrics": compress(codec, b"some"), "compression_type": codec}, E.NONE) for codec in Codec),
]


@each("changed, error", WRONG, world=World)
def test_a_push_is_rejected_for_the_first_thing_that_is_wrong(changed: dict[str, Any], error: E, world: World) -> None:
    world.subscribe("s", ALL)
    assert world.push(world.ask(), **changed) == error
    counted = world.telemetry
    is_failed = error is E.INVALID_RECORD
    assert (counted.failed, counted.unknown_subscriptions) == (is_failed, error is E.UNKNOWN_SUBSCRIPTION_ID)
    assert counted.exported == (error is E.NONE and changed["metrics"] != b"")
    assert counted.throttled == 0


def test_a_push_that_unpacks_to_too_much_is_rejected() -> None:
    world = World()
    world.subscribe("s", ALL)
    bomb = compress(Codec.ZSTD, bytes(UNPACKED_BYTES_MAX + 1))
    assert len(bomb) < MAX_BYTES
    assert world.push(world.ask(), metrics=bomb, compression_type=Codec.ZSTD) == E.TELEMETRY_TOO_LARGE
    assert world.library.decoded == []


def test_a_push_is_due_once_an_interval_and_the_first_one_at_any_time_after_the_question() -> None:
    world = World()
    world.subscribe("s", ALL)
    asked = world.ask()
    world.pass_ms(500)
    assert world.push(asked) == E.NONE, "clients draw the time of the first one"
    world.pass_ms(999)
    assert world.push(asked) == E.THROTTLING_QUOTA_EXCEEDED
    world.pass_ms(1)
    assert world.push(asked) == E.NONE, "a push that was too early is none"
    assert world.ask(asked.client_instance_id).error_code == E.THROTTLING_QUOTA_EXCEEDED
    world.pass_ms(1000)
    assert world.ask(asked.client_instance_id).error_code == E.NONE
    assert world.ask(asked.client_instance_id).error_code == E.THROTTLING_QUOTA_EXCEEDED
    assert world.push(asked) == E.NONE
    assert world.telemetry.throttled == 3


def test_after_a_new_subscription_a_client_asks_again_at_once_and_keeps_its_id() -> None:
    world = World()
    world.subscribe("s", ALL)
    asked = world.ask()
    assert world.push(asked) == E.NONE
    world.subscribe("other", {**ALL, "match": "client_id=other"})
    assert world.push(asked) == E.THROTTLING_QUOTA_EXCEEDED, "it is asked for nothing else: its interval goes on"
    world.subscribe("s", {"metrics": "x."})
    assert world.push(asked) == E.UNKNOWN_SUBSCRIPTION_ID
    again = world.ask(asked.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (E.NONE, ("x.",))
    assert again.client_instance_id == asked.client_instance_id
    assert again.subscription_id != asked.subscription_id
    assert world.push(again) == E.NONE


@each(
    "changed, code",
    [({"subscription_id": 1}, E.UNKNOWN_SUBSCRIPTION_ID), ({"compression_type": 7}, E.UNSUPPORTED_COMPRESSION_TYPE)],
    world=World,
)
def test_a_client_that_must_ask_again_need_not_wait(changed: dict[str, Any], code: E, world: World) -> None:
    world.subscribe("s", ALL)
    asked = world.ask()
    assert world.push(asked, **changed) == code
    assert world.ask(asked.client_instance_id).error_code == E.NONE
    assert world.push(asked) == E.NONE


def test_the_last_push_may_come_at_any_time_and_is_the_last() -> None:
    world = World()
    world.subscribe("s", ALL)
    asked = world.ask()
    assert world.push(asked) == E.NONE
    assert world.push(asked, terminating=True) == E.NONE
    for terminating in (True, False, False):
        world.pass_ms(1000)
        assert world.push(asked, terminating=terminating) == E.INVALID_REQUEST
    assert len(world.library.decoded) == 2


def test_another_broker_takes_the_push_of_a_client_that_asked_elsewhere() -> None:
    world, other = World(), World()
    for one in (world, other):
        one.subscribe("s", ALL)
    assert other.push(world.ask()) == E.NONE


def test_a_client_is_forgotten_with_its_connection_and_its_series_stay_for_three_intervals() -> None:
    world = World()
    world.subscribe("s", {**ALL, "interval.ms": "30000"})
    asked = world.ask()
    assert world.push(asked) == E.NONE
    world.telemetry.disconnected(1)
    assert len(world.telemetry.instances) == 0
    assert world.ask(asked.client_instance_id, connection=2).error_code == E.NONE, "it is new here"
    assert world.push(asked, connection=2) == E.NONE
    world.telemetry.disconnected(1)
    assert len(world.telemetry.instances) == 1, "that was another connection"
    world.pass_ms(89_999)
    assert (len(world.telemetry.instances), world.shown()) == (1, {SHOWN: 1.5})
    world.pass_ms(10_000)  # it looks every ten seconds
    assert (len(world.telemetry.instances), world.shown()) == (0, {})
    assert world.telemetry.purge_at == NEVER, "nothing is left that costs a timer"


def test_a_client_that_comes_on_another_connection_is_the_same_and_belongs_to_that() -> None:
    world = World()
    world.subscribe("s", ALL)
    asked = world.ask(connection=1)
    assert world.push(asked, connection=2) == E.NONE
    world.telemetry.disconnected(1)
    assert world.push(asked, connection=2) == E.THROTTLING_QUOTA_EXCEEDED, "it is known still"
    world.telemetry.disconnected(2)
    assert len(world.telemetry.instances) == 0


def test_a_silent_client_is_forgotten_after_a_minute_at_least() -> None:
    world = World()
    world.subscribe("s", ALL)
    asked = world.ask()
    for _ in range(3):
        assert world.push(asked) == E.NONE
        world.pass_ms(59_000)
        assert (len(world.telemetry.instances), len(world.shown())) == (1, 1)
    world.pass_ms(11_000)
    assert (len(world.telemetry.instances), len(world.shown())) == (0, 0)


def test_of_too_many_clients_the_one_that_is_silent_for_longest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "INSTANCES_MAX", 3)
    world = World()
    world.subscribe("s", ALL)
    first, second, third = (world.ask(connection=n) for n in range(3))
    assert world.push(first, connection=0) == E.NONE
    world.ask(connection=3)
    known = world.telemetry.instances.by_id
    assert len(known) == 3
    assert first.client_instance_id in known
    assert second.client_instance_id not in known
    assert third.client_instance_id in known


def test_a_node_that_shows_nothing_takes_nothing_and_its_operator_is_told_once() -> None:
    world = World()
    world.telemetry.decoder = None
    (reported,) = world.subscribe("s", ALL)
    assert isinstance(reported, Report)
    assert reported.level == "warning"
    assert "strandline.metrics.listener" in reported.text
    assert "strandline[telemetry]" in reported.text
    assert world.subscribe("t", ALL) == []
    world.answer(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 1)
    asked = world.ask()
    assert asked.error_code == E.UNSUPPORTED_VERSION
    assert world.push(asked) == E.UNSUPPORTED_VERSION


def test_what_a_client_was_not_asked_for_is_not_shown() -> None:
    world = World()
    world.subscribe("s", {**ALL, "metrics": "a.,b.c"})
    world.library.said = [Point(name, (), 1.0, False, False) for name in ("a.x", "b.cd", "b.d", "ab")]
    assert world.push(world.ask()) == E.NONE
    assert world.shown() == {"strandline_pushed_a_x": 1.0, "strandline_pushed_b_cd": 1.0}


def test_the_library_is_loaded_when_there_is_a_subscription() -> None:
    world = World()
    world.image.delta.reloaded = True
    world.telemetry.apply(world.image, world.image.take_delta())
    assert world.library.prepared == 0
    world.subscribe("s", ALL)
    assert world.library.prepared == 1
    other = World()
    other.image = world.image.copy()
    other.image.delta.reloaded = True
    other.telemetry.apply(other.image, other.image.take_delta())
    assert other.telemetry.subscriptions == world.telemetry.subscriptions != (), "out of a snapshot"
